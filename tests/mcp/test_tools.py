"""What an agent reads before its first call is enough to use the loop right, and leaves no room to use it wrong."""

import asyncio
import re
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator
from mcp import Client, types

from memory.mcp.server import build
from memory.mcp.tools import TOOLS
from memory.rules.signals import SIGNALS

LOOP = ("start_interaction", "finish_interaction", "record_outcome")
LOOKS = ("retrieve_lessons", "list_preferences", "list_facts")
# Words for what a caller must not choose: whose it is, who judges, and what becomes of a lesson.
DECIDED = re.compile(r"account|tenant|scope|source|judge|state|standing|reward|approv|review|actor|role|lesson")
# Where the HTTP API takes the same.
SAME = {
    "start_interaction": "Start",
    "finish_interaction": "PatchedFinish",
    "record_outcome": "Report",
    "retrieve_lessons": "Retrieve",
}
OWN = {"interaction_id", "idempotency_key"}  # an address and a header there


def listed() -> tuple[dict[str, types.Tool], str]:
    """The tools and the instructions, as a client gets them."""

    async def ask() -> tuple[dict[str, types.Tool], str]:
        async with Client(build(lambda _: pytest.fail("a list needs no key"))) as client:
            found = await client.list_tools()
            return {tool.name: tool for tool in found.tools}, str(client.instructions)

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def tools() -> dict[str, types.Tool]:
    return listed()[0]


def test_there_are_these_tools_and_none_that_writes_or_forgets_a_lesson(tools: dict[str, types.Tool]) -> None:
    assert tuple(tools) == LOOP + LOOKS


@pytest.mark.parametrize("name", TOOLS)
def test_each_says_when_to_call_it_and_what_to_do_next(tools: dict[str, types.Tool], name: str) -> None:
    tool = tools[name]
    assert tool.title
    description = str(tool.description)
    assert re.match(r"Call this (first|when|as soon as|to)\b", description)
    _, _, following = description.partition(" Next: ")
    assert len(following) > 20
    assert re.fullmatch(r"[\x20-\x7e]+", description)
    assert len(description) < 600, "it costs every conversation its tokens"


def test_each_tool_of_the_loop_names_the_one_after_it(tools: dict[str, types.Tool]) -> None:
    following = {name: str(tools[name].description).partition(" Next: ")[2] for name in LOOP}
    assert "finish_interaction" in following["start_interaction"]
    assert "record_outcome" in following["start_interaction"]
    assert "record_outcome" in following["finish_interaction"]
    assert "start_interaction" in str(tools["retrieve_lessons"].description).partition(" Next: ")[2]


def test_the_instructions_tell_the_loop_in_order(tools: dict[str, types.Tool]) -> None:
    _, instructions = listed()
    assert re.findall(r"\b\w+_\w+\b", instructions) == list(LOOP)
    assert "no tool that saves or forgets" in instructions


@pytest.mark.parametrize("name", TOOLS)
def test_no_argument_lets_the_caller_choose_what_the_key_or_the_evidence_decides(
    tools: dict[str, types.Tool], name: str
) -> None:
    schema = tools[name].input_schema
    assert [argument for argument in schema["properties"] if DECIDED.search(argument)] == []
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("name", TOOLS)
def test_every_argument_is_described_flat_and_bounded(tools: dict[str, types.Tool], name: str) -> None:
    schema = tools[name].input_schema
    Draft202012Validator.check_schema(schema)
    assert set(schema) <= {"type", "properties", "required", "additionalProperties"}
    for argument, field in schema["properties"].items():
        assert len(field["description"]) > 15, argument
        assert field["type"] in ("string", "integer"), "no union that a model could mistake"
        bounds = {"string": {"maxLength", "pattern", "enum", "format"}, "integer": {"maximum"}}[field["type"]]
        assert bounds & set(field), argument
        assert "title" not in field


def test_the_signals_are_listed_and_each_is_explained(tools: dict[str, types.Tool]) -> None:
    signal = tools["record_outcome"].input_schema["properties"]["signal"]
    assert signal["enum"] == list(SIGNALS)
    assert [word for word in SIGNALS if word not in signal["description"]] == []


@pytest.mark.parametrize("name", TOOLS)
def test_the_hints_say_what_a_host_may_let_pass_unasked(tools: dict[str, types.Tool], name: str) -> None:
    hints = tools[name].annotations
    assert hints is not None
    assert hints.read_only_hint is (name in LOOKS)
    assert hints.destructive_hint is False
    assert hints.open_world_hint is False
    assert hints.idempotent_hint is (name != "start_interaction")


@pytest.mark.parametrize("name", TOOLS)
def test_every_answer_has_a_schema_in_which_no_lesson_has_its_wording_outside_the_fence(
    tools: dict[str, types.Tool], name: str
) -> None:
    schema = tools[name].output_schema
    assert schema is not None
    Draft202012Validator.check_schema(schema)
    assert ("context" in schema["properties"]) == ("lessons" in schema["properties"])
    assert "text" not in schema.get("$defs", {}).get("HandedOut", {"properties": {}})["properties"]


@pytest.mark.parametrize("name", SAME)
def test_an_argument_means_and_allows_what_the_same_field_of_the_http_api_does(
    tools: dict[str, types.Tool], name: str
) -> None:
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    there = document["components"]["schemas"][f"{SAME[name]}Request"]
    here = tools[name].input_schema
    assert set(here["properties"]) - OWN <= set(there["properties"])
    assert set(here["required"]) - OWN == set(there.get("required", ()))
    for argument in set(here["properties"]) - OWN - {"project"}:  # whose pattern bounds it
        mine, theirs = here["properties"][argument], there["properties"][argument]
        told = {bound: theirs[bound] for bound in ("maxLength", "minimum", "maximum", "default") if theirs.get(bound)}
        assert {bound: mine.get(bound) for bound in told} == told, argument
