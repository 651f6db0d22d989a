"""The client says what the API says: every field, every way of calling, and every word of its list."""

import inspect
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

import sonder_client
from sonder_client import AsyncSonder, Sonder, answers, knowledge, loop, teamwork
from sonder_client.call import Call, Listing

# How the API calls the answers.
NAMES = {
    "Lesson": "LessonHandedOut", "Preference": "Preference", "StatedPreference": "PreferenceDetail", "Fact": "Fact",
    "ProjectFact": "FactDetail", "Started": "Started", "Interaction": "Interaction", "Reported": "Reported",
    "Outcome": "Outcome", "Considered": "Considered", "Retrieved": "LookedUp", "Turn": "TurnAnswer",
    "Session": "Session", "ProjectSummary": "ProjectSummary", "SessionDetail": "SessionDetail",
    "SessionTitle": "Renamed", "Task": "AgentTask", "TaskEvent": "TaskEvent",
}  # fmt: skip
# How it calls what a request takes.
BODIES = {
    "start_interaction": "StartRequest",
    "finish_interaction": "PatchedFinishRequest",
    "record_outcome": "ReportRequest",
    "record_fact": "RecordRequest",
    "correct_fact": "CorrectRequest",
    "add_task": "NewTaskRequest",
    "change_task": "PatchedChangeTaskRequest",
}
REQUESTS = {
    name: build
    for module in (loop, knowledge, teamwork)
    for name, build in inspect.getmembers(module, inspect.isfunction)
    if build.__module__ == module.__name__ and not name.startswith("_")
}


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return dict(document["components"]["schemas"])


def values() -> dict[str, type]:
    return {name: kind for name, kind in vars(answers).items() if is_dataclass(kind) and isinstance(kind, type)}


def test_every_answer_has_the_fields_that_the_api_answers(schemas: dict[str, Any]) -> None:
    assert set(NAMES) == set(values())
    for name, kind in values().items():
        assert {field.name for field in fields(kind)} == set(schemas[NAMES[name]]["properties"]), name


@pytest.mark.parametrize("name", BODIES)
def test_every_request_takes_what_the_api_takes(schemas: dict[str, Any], name: str) -> None:
    taken = set(inspect.signature(REQUESTS[name]).parameters) - {"idempotency_key", "interaction", "fact"}
    wanted = set(schemas[BODIES[name]]["properties"])
    assert taken - {"task"} == wanted - {"task"}


def test_both_clients_have_every_request_by_its_name_and_with_its_words() -> None:
    assert len(REQUESTS) == 26
    for kind in (Sonder, AsyncSonder):
        assert {name: getattr(kind, name).__doc__ for name in REQUESTS} == {n: b.__doc__ for n, b in REQUESTS.items()}


def test_both_clients_have_the_same_methods() -> None:
    assert [name for name in vars(Sonder) if not name.startswith("_")] == [
        name for name in vars(AsyncSonder) if not name.startswith("_")
    ]


def test_every_value_is_immutable_and_says_what_it_is() -> None:
    for kind in (*values().values(), Call, Listing):
        assert kind.__doc__
        assert kind.__dataclass_params__.frozen
        assert all(field.kw_only for field in fields(kind))


def test_the_list_of_names_is_sorted_and_whole() -> None:
    assert set(values()) <= set(sonder_client.__all__)
    assert all(hasattr(sonder_client, name) for name in sonder_client.__all__)
