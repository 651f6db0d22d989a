"""The documents tell the truth: every setting, endpoint, word and command stands in them, and nothing else does."""

import ast
import math
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import pytest
from django.apps import apps
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.db.models import TextChoices
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.generators import SchemaGenerator

from memory.conf import Conf
from memory.embedding import presets
from memory.models import vocabulary
from memory.models.lesson import SIMILARITIES
from memory.rules import bands, concreteness, expectation, ledger, relevance
from memory.rules.expectation import Tally
from memory.rules.quarantine import DEFAULTS as REFERENCE
from memory.rules.signals import REWARDS, SOURCES
from memory.services.adjudication import ACTS
from memory.services.credit import sweep
from review import urls as review_urls
from scripts import settings_table
from sonder_site.environment import SECRETS
from tests.conftest import Agent
from tests.markdown import CELL, fences, leads, links, rows, sections, words

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CODE = sorted(path for room in ("memory", "review", "sonder_site") for path in (ROOT / room).rglob("*.py"))
CONVERTER = re.compile(r"<(?:\w+:)?\w+>")  # a parameter of a path, as Django writes it
PARAMETER = re.compile(r"{\w+}")  # and as OpenAPI writes it


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


class TestSettings:
    def test_the_table_of_settings_is_the_one_that_the_code_makes(self) -> None:
        page = read("docs/settings.md")
        assert settings_table.page_with_table(page) == page

    def test_every_variable_of_the_environment_that_the_code_reads_is_in_the_table_and_no_other(self) -> None:
        listed = set(words(sections(read("docs/settings.md"))["The site's"]))
        read_by_code = {name for path in CODE for name in environment_variables(ast.parse(path.read_text()))}
        assert listed == read_by_code - {"DJANGO_SETTINGS_MODULE"}

    def test_every_setting_that_a_document_names_exists(self) -> None:
        known = {f"SONDER_{name.upper()}" for name in Conf.__dataclass_fields__}
        known |= {f"{name}_FILE" for name in SECRETS} | set(re.findall(r"SONDER_[A-Z]+", read(".env.example")))
        named = {name for page in PAGES for name in re.findall(r"\bSONDER_[A-Z_]*[A-Z]\b", page.read_text())}
        assert named <= known


def environment_variables(tree: ast.Module) -> Iterator[str]:
    """Names that `env.str("X")` and its kind, `os.environ[...]`, `.get(...)` and `"X" in os.environ` ask for."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="env")), args=[ast.Constant(value=str(name)), *_]):
                yield name
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name
            case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))):
                yield name
            case ast.Compare(left=ast.Constant(value=str(name)), comparators=[ast.Attribute(attr="environ")]):
                yield name


def endpoints(patterns: list[Any], prefix: str = "/") -> Iterator[str]:
    """`METHOD path` of every route; the admin, which has hundreds, is one, and so are the review pages."""
    for pattern in patterns:
        path = prefix + CONVERTER.sub("{id}", str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            is_one = pattern.namespace in ("admin", "review")
            yield from ["GET " + path] if is_one else endpoints(pattern.url_patterns, path)
            continue
        assert isinstance(pattern, URLPattern)
        view = getattr(pattern.callback, "view_class", None)
        methods = [m for m in ("get", "post", "put", "patch", "delete") if hasattr(view, m)]
        is_api = view is not None and view.__module__.startswith("memory.")
        yield from (f"{method.upper()} {path}" for method in (methods if is_api else ["get"]))


def all_endpoints() -> list[str]:
    return sorted(endpoints(get_resolver().url_patterns))


class TestApi:
    def test_every_endpoint_has_its_section_and_every_section_its_endpoint(self) -> None:
        titles = [title for title in sections(read("docs/api.md"), "###") if title.startswith("`")]
        documented = [re.sub(r" (?!/)", " /api/v1/", title.strip("`"), count=1) for title in titles]
        assert sorted(documented) == all_endpoints()

    def test_the_readme_lists_every_endpoint_that_someone_would_call(self) -> None:
        listed = words(sections(read("README.md"))["The HTTP surface"])
        assert sorted(listed) == [name for name in all_endpoints() if name not in UNLISTED]

    def test_every_field_and_parameter_of_an_endpoint_is_told(self) -> None:
        told = told_of_endpoints()
        missing = [(title, n) for title, names in wire_names() for n in names if f"`{n}`" not in told[f"`{title}`"]]
        assert missing == []

    def test_every_status_of_an_error_is_listed_and_every_listed_one_can_come(self) -> None:
        listed = [row[0] for row in rows(sections(read("docs/api.md"))["Errors"])]
        assert sorted(listed) == sorted({*error_statuses(), "405", "500"})


class TestReviewPages:
    def test_every_address_is_in_the_page_for_reviewers_and_no_other(self) -> None:
        listed = [row[0].strip("`") for row in rows(sections(read("docs/review.md"))["Addresses"])]
        routes = [f"/review/{CONVERTER.sub('{id}', str(pattern.pattern))}" for pattern in review_urls.urlpatterns]
        assert sorted(listed) == sorted(routes)

    def test_every_decision_is_explained(self) -> None:
        decisions = rows(sections(read("docs/review.md"))["What each decision does"])
        told = {word for row in decisions for word in row[0].split(", ")}
        assert len(told) == len(ACTS)


UNLISTED = {"GET /", "GET /favicon.ico", "GET /api/v1/docs/script.js"}


def told_of_endpoints() -> dict[str, str]:
    """Each endpoint's section; with its whole chapter where it says that fields are "as above" or "as below"."""
    return {
        title: chapter if re.search(r"\bas\s+(above|below)\b", section) else section
        for chapter in sections(read("docs/api.md")).values()
        for title, section in sections(chapter, "###").items()
    }


def openapi() -> dict[str, Any]:
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return document


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in openapi()["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {PARAMETER.sub('{id}', path.removeprefix('/api/v1/'))}", operation


def wire_names() -> Iterator[tuple[str, set[str]]]:
    """Each operation with the names of its parameters and of all fields in its body and its good answers."""
    schemas = openapi()["components"]["schemas"]
    for title, operation in operations():
        bodies = [operation.get("requestBody", {}), *(a for s, a in operation["responses"].items() if s < "300")]
        parts = [kind["schema"] for body in bodies for kind in body.get("content", {}).values()]
        names = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"}
        yield title, names.union(*(field_names(part, schemas) for part in parts)) - {"next", "previous", "results"}


def field_names(schema: dict[str, Any], schemas: dict[str, Any]) -> set[str]:
    if "$ref" in schema:
        return field_names(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    inner = [*schema.get("properties", {}).values(), *schema.get("allOf", ()), *schema.get("oneOf", ())]
    inner += [schema["items"]] if "items" in schema else []
    return set(schema.get("properties", {})).union(*(field_names(part, schemas) for part in inner))


def error_statuses() -> set[str]:
    return {status for _, operation in operations() for status in operation["responses"] if status >= "400"}


VOCABULARIES = {
    name: value.values
    for name, value in vars(vocabulary).items()
    if isinstance(value, type) and issubclass(value, TextChoices) and value is not TextChoices
}


def states(name: str) -> str:
    """The section of docs/states.md whose heading names the vocabulary."""
    (found,) = [body for title, body in sections(read("docs/states.md")).items() if title.startswith(name)]
    return found


class TestStates:
    @pytest.mark.parametrize("name", VOCABULARIES)
    def test_every_word_of_a_vocabulary_is_explained_and_no_other_is(self, name: str) -> None:
        assert words(states(f"`{name}`")) == VOCABULARIES[name]

    def test_every_section_is_of_a_vocabulary_that_exists(self) -> None:
        named = [title for title in sections(read("docs/states.md")) if title.startswith("`")]
        assert [CELL.findall(title)[0] for title in named] == list(VOCABULARIES)

    def test_the_rewards_and_the_weights_are_the_rules(self) -> None:
        assert {row[0].strip("`"): Decimal(row[1]) for row in rows(states("`Signal`"))} == REWARDS
        sources = rows(states("`OutcomeSource`"))
        assert {row[0].strip("`"): Decimal(row[2]) for row in sources} == {
            s: ledger.DEFAULTS.weights[s] for s in SOURCES
        }

    def test_the_reasons_of_the_gates_are_explained(self) -> None:
        assert set(get_args(relevance.Reason)) - {""} <= set(words(states("Reasons")))
        assert {"quarantined", "withheld_trial", "contradicted"} <= set(words(states("Reasons")))
        assert set(get_args(concreteness.Reason)) <= set(words(states("Refusals")))


COMMANDS = sorted(name for name, app in get_commands().items() if app in {a.name for a in apps.get_app_configs()} and
                  (ROOT / app.split(".")[0]).is_dir())  # fmt: skip


def options(command: BaseCommand) -> list[str]:
    """The command's own arguments, as a person writes them."""
    own = command.create_parser("manage.py", "command")
    shared = BaseCommand().create_parser("manage.py", "command")
    known = {action.dest for action in shared._actions}
    return [max(a.option_strings, key=len, default=a.dest) for a in own._actions if a.dest not in known]


class TestCommands:
    def test_every_command_has_its_section_and_every_section_its_command(self) -> None:
        assert sorted(title.strip("`") for title in sections(read("docs/commands.md"))) == COMMANDS

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_option_of_a_command_is_explained_and_no_other_is(self, name: str) -> None:
        explained = words(sections(read("docs/commands.md"))[f"`{name}`"])
        assert sorted(explained) == sorted(options(load_command_class(get_commands()[name], name)))


POLICIES = Conf.__dataclass_fields__["trust_policy"].metadata["choices"]


class TestEvidence:
    @pytest.mark.django_db
    @pytest.mark.parametrize("policy", POLICIES)
    def test_every_field_of_the_evidence_is_explained(
        self, agent: Agent, lesson: Callable[..., Any], settings: Any, policy: str
    ) -> None:
        settings.SONDER_TRUST_POLICY = policy
        bad = lesson("Set `fsync` to off so that every commit is fast.")
        started = agent.client.post(
            "/api/v1/interactions/", {"task": "make every commit fast with fsync"}, format="json"
        )
        agent.client.post(f"/api/v1/interactions/{started.json()['id']}/outcomes/", {"signal": "failed"}, format="json")
        sweep()
        evidence = agent.client.get(f"/api/v1/lessons/{bad.pk}/evidence/").json()
        assert (evidence["policy"], len(evidence["rows"])) == (policy, 1)
        page = read("docs/evidence.md")
        assert [name for name in keys({**evidence, "constants": None}) if f"`{name}`" not in page] == []

    def test_the_thresholds_and_rates_of_the_reference_policy_are_the_rules(self) -> None:
        page = sections(read("docs/evidence.md"))["How the policy `reference` decides"]
        r = REFERENCE
        gates = {row[0]: row[2] for row in rows(page)[:4]}
        assert gates == {
            "`losses`": f"at {r.losses} on at least {r.tasks} different tasks, or at {r.losses_one_task}",
            "`mean_reward`": f"at {r.mean_reward} or lower",
            "`share`": f"at {r.share}",
            "`base_rate`": f"at {r.p} or lower",
        }
        measured = [(str(band.prior), f"{bands.losses_needed(band.prior):.2f}") for band in bands.BANDS]
        assert [(row[1], row[2]) for row in rows(page)[4:]] == measured

    def test_the_expected_loss_of_the_example_is_the_rules(self) -> None:
        section = sections(read("docs/evidence.md"), "###")["One row"]
        told = {row[0].strip("`"): float(re.findall(r"[\d.]+", row[1])[-1]) for row in rows(section)}
        peer, task = Tally(observed=6, expected=3), Tally(observed=3, expected=1)
        found = expectation.expected_loss(losses=30, n=150, task=task, peers=[peer], niche=Tally())
        parts = {**asdict(found), "expected": found.expected_loss}
        assert told == {name: round(parts[name], 3) for name in told}
        assert list(told) == ["rate", "task_factor", "peer_factor", "niche_factor", "expected"]
        steps = [abs(ledger.step(weight=1, loss=loss, expected=found.expected_loss)) for loss in (1, 0)]
        assert all(f"{step:.3f}" in section for step in steps)

    def test_the_thresholds_of_the_trial_policy_are_the_defaults(self) -> None:
        section = sections(read("docs/evidence.md"))["How the policy `trial` decides"]
        fields = Conf.__dataclass_fields__
        told = dict(re.findall(r"odds of (\d+)[^|(]*\(`SONDER_(\w+)`\)", section))
        assert {name: float(odds) for odds, name in told.items()} == {
            name: fields[name.lower()].default for name in ("TRIAL_ODDS", "QUARANTINE_ODDS", "RELEASE_ODDS")
        }

    def test_work_that_is_lost_without_a_lesson_frees_it_as_the_example_says(self) -> None:
        section = sections(read("docs/evidence.md"), "###")["A ledger, row by row"]
        hard = expectation.expected_loss(losses=48, n=240, task=Tally(), peers=(), niche=Tally(observed=21, expected=6))
        assert (f"{hard.niche_factor:.2f}", f"{hard.expected_loss:.1f}") == ("2.67", "0.4")
        assert "= 2.67, the expected loss of every row becomes\n0.4, each loss is worth 0.51 instead of 0.76" in section
        assert f"{ledger.step(weight=1, loss=1, expected=hard.expected_loss):.2f}" == "0.51"
        assert account_of(section, hard.expected_loss).odds <= ledger.DEFAULTS.release_odds
        assert expectation.niche_factor(3, 6) == 1

    def test_the_ledger_of_the_example_is_the_rules(self) -> None:
        section = sections(read("docs/evidence.md"), "###")["A ledger, row by row"]
        points = account_of(section, 0.2).points
        assert [(row[1], row[2]) for row in rows(section)] == [(f"{p.s:.4f}", f"{math.exp(p.s):.1f}") for p in points]


def account_of(section: str, expected: float) -> ledger.LedgerResult:
    """The account of the outcomes in a section's table, each with this expected loss."""
    return ledger.replay(
        ledger.LedgerRow(
            interaction=UUID(int=i),
            credit_seq=i,
            task_digest=f"{i}",
            weight=1,
            loss=int(row[0] == "loss"),
            expected=expected,
        )
        for i, row in enumerate(rows(section))
    )


def keys(value: Any) -> set[str]:
    """Every key in a JSON value."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    return set(value).union(*map(keys, value.values())) if isinstance(value, dict) else set()


def test_the_thresholds_of_each_known_model_are_its_presets() -> None:
    table = rows(sections(read("docs/embeddings.md"))["Thresholds"])
    known = [presets.MINILM, presets.NOMIC, presets.HASHING, presets.CAUTIOUS]
    assert [[float(n) for n in row[1:]] for row in table] == [[asdict(p)[name] for name in SIMILARITIES] for p in known]


def test_every_room_of_the_code_is_on_the_plan() -> None:
    named = words(sections(read("docs/architecture.md"))["The rooms"])
    rooms = [path for path in (ROOT / "memory").iterdir() if path.name not in ("__init__.py", "__pycache__")]
    assert {f"memory/{path.name}{'/' if path.is_dir() else ''}" for path in rooms} <= set(named)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = re.findall(r"`(tests/[^`]+)`", read("THREAT_MODEL.md"))
    assert len(named) > 15
    assert [name for name in named if not (ROOT / name).exists()] == []


class TestEveryPage:
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_every_link_leads_somewhere(self, page: Path) -> None:
        local = [target for target in links(page.read_text()) if "://" not in target]
        assert [target for target in local if not leads(page, target)] == []

    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_every_shell_block_is_bash(self, page: Path) -> None:
        for block in fences(page.read_text(), "bash", "sh"):
            checked = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
            assert (checked.returncode, checked.stderr) == (0, ""), block


def test_the_readme_names_the_two_commands_of_the_makefile() -> None:
    targets = re.findall(r"^(\w+):.*##", read("Makefile"), re.MULTILINE)
    (commands,) = fences(sections(read("README.md"))["Two commands"], "sh")
    named = re.findall(r"^make (\w+)", commands, re.MULTILINE)
    assert named == ["run", "test"]
    assert set(named) <= set(targets)
