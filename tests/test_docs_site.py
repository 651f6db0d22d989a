"""The site of the documents: every page has its reader, whose first hour leads to it, and the same links hold there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mkdocs.config import load_config
from mkdocs.config.defaults import MkDocsConfig

from scripts import docs_site
from tests.markdown import anchors, links

ROOT = Path(__file__).resolve().parent.parent
READERS = ["agent-developers.md", "reviewers.md", "operators.md", "contributors.md"]
LOADED = re.compile(r"""(?:src=|<link[^>]+href=|url\(|@import)\s*["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def config() -> MkDocsConfig:
    return docs_site.on_config(load_config(str(ROOT / "mkdocs.yml")))


def make_docs(checkout: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """What `make docs` runs, into another folder."""
    (arguments,) = re.findall(r"^docs:.*\n\t@\$\(BIN\)/mkdocs (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    command = [sys.executable, "-m", "mkdocs", *arguments.split(), "--site-dir", str(site)]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    made = make_docs(ROOT, folder)
    assert made.returncode == 0, made.stderr
    return folder


def groups(config: MkDocsConfig) -> dict[str, list[str]]:
    """The pages that the site has for each reader, under that of the first hour."""
    lists: list[Any] = [pages for entry in config.nav or () for pages in entry.values() if isinstance(pages, list)]
    paths = [[uri for page in pages for uri in page.values()] for pages in lists]
    return {first: others for first, *others in paths}


def source(uri: str) -> Path:
    moved = {at: path for path, at in docs_site.outside().items()}
    return ROOT / moved.get(uri, f"docs/{uri}")


def test_every_document_has_one_place_among_the_pages_of_a_reader(config: MkDocsConfig) -> None:
    listed = [uri for first, others in groups(config).items() for uri in [first, *others]]
    documents = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), *ROOT.glob("evaluation/reports/*.md")]
    assert sorted(map(source, ["index.md", *listed])) == sorted(documents)


def test_the_first_hour_of_each_reader_leads_to_every_page_of_theirs(config: MkDocsConfig) -> None:
    assert list(groups(config)) == READERS
    for first, others in groups(config).items():
        linked = {target.partition("#")[0] for target in links(docs_site.linked(source(first).read_text(), first))}
        assert {uri for uri in others if not uri.startswith(docs_site.REPORTS)} <= linked, first


def test_the_site_has_every_page_with_the_names_of_headings_that_a_code_host_gives(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/*.md")]
    for uri in [*pages, *docs_site.outside().values()]:
        if uri.endswith(".md"):
            names = set(re.findall(r'<h\d id="([^"]+)"', (site / uri).with_suffix(".html").read_text()))
            assert anchors(re.sub(r"```.*?```", "", source(uri).read_text(), flags=re.DOTALL)) <= names, uri
        else:
            assert (site / uri).read_text() == source(uri).read_text()


def test_a_link_or_a_heading_that_is_not_there_fails_the_build_and_is_named(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "docs", checkout / "docs", ignore=shutil.ignore_patterns("*.png"))
    for name in ("mkdocs.yml", "scripts", "examples", "evaluation", *(path.name for path in ROOT.glob("*.md"))):
        (checkout / name).symlink_to(ROOT / name)
    with (checkout / "docs" / "reviewers.md").open("a") as page:
        page.write("[a](nowhere.md) [b](review.md#nowhere)\n")
    made = make_docs(checkout, tmp_path / "site")
    assert made.returncode != 0
    assert "'nowhere.md'" in made.stderr
    assert "'review.md#nowhere'" in made.stderr


def test_nothing_is_loaded_from_another_server(site: Path) -> None:
    read = [path for kind in ("html", "css", "js") for path in site.rglob(f"*.{kind}")]
    assert [path for path in read if LOADED.search(path.read_text())] == []
    assert LOADED.search('<link rel="stylesheet" href="https://example.com/a.css">')
    assert LOADED.search("@import url(//example.com/font.css)")


@pytest.mark.parametrize(
    ("uri", "here", "there"),
    [
        ("operators.md", "../SECURITY.md#reporting-a-fault", "SECURITY.md#reporting-a-fault"),
        ("contributors.md", "../evaluation/reports/trust.md", "evaluation/reports/trust.md"),
        ("deployment.md", "../README.md", "readme.md"),
        ("readme.md", "docs/api.md#keys", "api.md#keys"),
        ("readme.md", "LICENSE", "LICENSE.txt"),
        ("evaluation/reports/loop.md", "../../docs/measured.md", "../../measured.md"),
        ("api.md", "states.md", "states.md"),
        ("api.md", "../memory/conf.py", "../memory/conf.py"),
    ],
)
def test_a_link_of_the_repository_leads_to_the_same_document_on_the_site(uri: str, here: str, there: str) -> None:
    assert docs_site.linked(f"See [it]({here}).", uri) == f"See [it]({there})."


def test_a_link_to_another_site_and_one_in_code_stay_as_they_are() -> None:
    assert docs_site.linked("[a](https://example.com/README.md)", "index.md") == "[a](https://example.com/README.md)"
    block = "```text\n[a](../README.md)\n```"
    page: Any = type("Page", (), {"file": type("File", (), {"src_uri": "index.md"})})
    unused: Any = None
    assert docs_site.on_page_markdown(block, page, unused, unused) == block


def test_a_diagram_becomes_a_table_of_its_arrows() -> None:
    drawn = '```mermaid\nflowchart LR\n    start(["task"]) --> gate{"lost<br>often?"}\n    gate -->|no| start\n```'
    assert docs_site.arrows(drawn).splitlines()[2:] == ["| task | lost often? |  |", "| lost often? | task | no |"]
    states = "```mermaid\nstateDiagram-v2\n    [*] --> pending\n    pending --> claimed: taken up\n```"
    assert docs_site.arrows(states).splitlines()[2:] == [
        "|  | pending |  |",
        "| pending | claimed | taken up |",
    ]


@pytest.mark.parametrize("name", ["README.md", "docs/distillation.md"])
def test_no_arrow_of_a_diagram_is_lost(name: str) -> None:
    drawn = [block for block in docs_site.FENCE.findall((ROOT / name).read_text()) if block.startswith("```mermaid")]
    assert len(drawn) == 1
    assert len(docs_site.arrows(drawn[0]).splitlines()) - 2 == drawn[0].count("-->")
