"""Hooks of MkDocs for the site of the documents: `make docs`, configured in mkdocs.yml.

A document links to others relative to its place in the repository, as a code host shows them. The site keeps these
links: what documents link to outside docs/ becomes a part of it, links are rewritten to where that stands, and headings
have the names that GitHub gives them. Diagrams, which GitHub draws, become tables of their arrows: the site loads no
script for them.
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = "docs/"
REPORTS: Final = "evaluation/reports/"
OUTSIDE: Final = (
    "*.md", "LICENSE", "NOTICE", f"{REPORTS}*.md", "examples/*.py",
)  # fmt: skip
# MkDocs takes README.md for the first page of its folder, and a browser offers a name without an ending for download.
RENAMED: Final = MappingProxyType({"README.md": "readme.md", "LICENSE": "LICENSE.txt", "NOTICE": "NOTICE.txt"})
FENCE: Final = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")  # the path in [words](path#heading), of this repository
NODE: Final = re.compile(r"(\w+)[\[({]+\"?([^\"\[\](){}]*)\"?[\])}]+")  # name(["words"]) in a flowchart
ARROW: Final = re.compile(r"^\s*(\S+) --> ?(?:\|([^|]*)\|)? *(\[\*\]|\w+)(?:: (.*))?$", re.MULTILINE)


def outside() -> Mapping[str, str]:
    """What the site has from outside docs/: its path in the repository, and its path among the pages."""
    found = (path.relative_to(ROOT).as_posix() for pattern in OUTSIDE for path in sorted(ROOT.glob(pattern)))
    return {path: RENAMED.get(path, path) for path in found}


def heading_name(title: str, separator: str) -> str:
    """The name that GitHub gives to a heading: lower case, hyphens for spaces, other punctuation dropped."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Names headings as GitHub does, so that links to them are the same; ends the navigation with all reports."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = heading_name
    assert config.nav, "mkdocs.yml has the groups"
    ((_, last),) = config.nav[-1].items()
    last += [{f"Report: {Path(uri).stem}": uri} for uri in outside().values() if uri.startswith(REPORTS)]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what lies outside docs/."""
    for path, uri in outside().items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with its links as the site has them, and its diagrams as tables."""
    parts = FENCE.split(markdown)
    parts[::2] = [linked(part, page.file.src_uri) for part in parts[::2]]
    parts[1::2] = [arrows(part) if part.startswith("```mermaid") else part for part in parts[1::2]]
    return "".join(parts)


def linked(text: str, uri: str) -> str:
    """A text of the page `uri`, with links that lead from there to where the site has what they name.

    A link to what the site does not have stays as it is, and fails the strict build.
    """
    moved = outside()
    here = next((path for path, at in moved.items() if at == uri), DOCS + uri)

    def target(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[0]))
        there = moved.get(path) or (path.removeprefix(DOCS) if path.startswith(DOCS) else None)
        return posixpath.relpath(there, posixpath.dirname(uri) or ".") if there else link[0]

    return LINK.sub(target, text)


def arrows(diagram: str) -> str:
    """The arrows of a flowchart or state diagram in Mermaid, as a table."""
    words = {name: said.replace("<br>", " ") for name, said in NODE.findall(diagram)} | {"[*]": ""}
    plain = NODE.sub(r"\1", diagram)
    rows = [
        f"| {words.get(start, start)} | {words.get(end, end)} | {label or said} |"
        for start, label, end, said in ARROW.findall(plain)
    ]
    return "\n".join(["| from | to | when |", "| --- | --- | --- |", *rows])
