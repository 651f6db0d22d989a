"""Whatever is sent, the answer is a clear 4xx that names the field, and nothing is written."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client, override_settings

from memory.models import Interaction
from tests.conftest import Agent
from tests.http.calls import (
    INTERACTIONS,
    LESSONS,
    MISSING,
    OPERATIONS,
    OUTCOMES,
    RETRIEVE,
    START,
    Field,
    Operation,
    nothing_changes,
    raw,
    refused,
    report,
    send,
    start,
)

pytestmark = pytest.mark.django_db

FIELDS = [(operation, name, field) for operation in OPERATIONS.values() for name, field in operation.fields.items()]
TEXTS = [(operation, name, field) for operation, name, field in FIELDS if field.kind in {"text", "slug"}]
DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]
COMPOUND: tuple[Any, ...] = ([], ["a"], [None], {}, {"a": "b"}, {"task": "x"}, [[["a"]]], DEEP)
NUMBERS = (0, 1, -1, 1.5, 1e308, 10**400, float("inf"), float("nan"), True, False)
WRONG: dict[str, tuple[object, ...]] = {
    "text": (*COMPOUND, *NUMBERS),
    "slug": (*COMPOUND, *NUMBERS, "Upper", "a b", "-a", "a/b", "a\n", "\na", " a", "ä", "%00", "'; DROP TABLE project"),
    "integer": (*COMPOUND, 1.5, 5.0, "5", "", "five", True, False, float("inf"), -(10**400), -1, 2**31, 2**63),
    "truth": (*COMPOUND, 0, 1, "true", "false", "", "yes"),
    "signal": (*COMPOUND, *NUMBERS, "", "good", "Accepted", "accepted ", "accepted\x00", "\ud800", "x" * 100_000),
}
SURVIVORS = {
    "right to left": "\u202eرتب الأسماء\u202c ← שלום",
    "emoji": "👩🏽‍🚀🏴󠁧󠁢󠁥󠁮󠁧󠁿 sort ✂️",
    "SQL": "'; DROP TABLE lesson; -- $$ %s %(a)s \\' {0}",
    "HTML": "<script>alert(1)</script><img src=x onerror=alert(1)>&amp;</lessons>",
    "controls": "a\tb\r\nc\x01\x7f\x85\u2028d\ufeff",
    "not characters": "\uffff\U0010ffff\ufdd0",
    "zero width": "\u200b",
    "punctuation": "!!! --- ???",
    "operators": "a & b | !c <-> d:* 'e' \\",
}


def named(cases: list[tuple[Operation, str, Field]]) -> pytest.MarkDecorator:
    ids = [f"{operation.name}-{name}" for operation, name, _ in cases]
    return pytest.mark.parametrize(("operation", "name", "field"), cases, ids=ids)


every_field = named(FIELDS)
every_text = named(TEXTS)
every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)


@pytest.fixture
def own(agent: Agent) -> str:
    """An interaction of the agent's."""
    return str(start(agent.client)["id"])


def refuse_value(agent: Agent, own: str, operation: Operation, name: str, value: object) -> None:
    with nothing_changes():
        response = send(agent.client, operation, own, {**operation.body, name: value})
        if value is DEEP:
            assert "nested deeper" in refused(response, 400)["detail"]
        elif isinstance(value, float) and not math.isfinite(value):
            assert "is not JSON" in refused(response, 400)["detail"]
        else:
            assert name in refused(response, 400, name)["detail"], repr(value)[:100]


class TestAField:
    @every_field
    def test_of_another_type_or_out_of_range_is_named(
        self, agent: Agent, own: str, operation: Operation, name: str, field: Field
    ) -> None:
        for value in WRONG[field.kind]:
            refuse_value(agent, own, operation, name, value)

    @named([case for case in FIELDS if not case[2].nullable])
    def test_that_needs_a_value_is_named_when_null(
        self, agent: Agent, own: str, operation: Operation, name: str, field: Field
    ) -> None:
        refuse_value(agent, own, operation, name, None)

    @named([case for case in FIELDS if case[2].required])
    def test_that_is_required_is_named_when_missing(
        self, agent: Agent, own: str, operation: Operation, name: str, field: Field
    ) -> None:
        body = {key: value for key, value in operation.body.items() if key != name}
        with nothing_changes():
            refused(send(agent.client, operation, own, body), 400, name)

    @named([case for case in TEXTS if not case[2].blank])
    def test_that_must_say_something_is_named_when_empty_or_blank(
        self, agent: Agent, own: str, operation: Operation, name: str, field: Field
    ) -> None:
        for value in ("", " ", "\n\t ", "\u3000"):
            refuse_value(agent, own, operation, name, value)

    @every_text
    def test_with_a_nul_or_a_lone_surrogate_is_named(
        self, agent: Agent, own: str, operation: Operation, name: str, field: Field
    ) -> None:
        for value in ("\x00", "a\x00b", "\ud800", "a\udfffb", "\udc00\ud800"):
            refuse_value(agent, own, operation, name, value)

    @every_text
    def test_over_its_limit_is_named_and_at_its_limit_is_accepted(
        self, agent: Agent, own: str, operation: Operation, name: str, field: Field
    ) -> None:
        refuse_value(agent, own, operation, name, "x" * (field.limit + 1))
        response = send(agent.client, operation, own, {**operation.body, name: "x" * field.limit})
        assert response.status_code == operation.success, response.content

    @named([case for case in FIELDS if case[2].kind == "integer"])
    def test_beyond_its_bounds_is_named_and_at_them_is_accepted(
        self, agent: Agent, own: str, operation: Operation, name: str, field: Field
    ) -> None:
        for value in (field.lowest - 1, field.limit + 1):
            refuse_value(agent, own, operation, name, value)
        for value in (field.lowest, field.limit):
            response = send(agent.client, operation, own, {**operation.body, name: value})
            assert response.status_code == operation.success, response.content

    @named([case for case in FIELDS if case[2].nullable])
    def test_that_may_be_null_is_accepted_as_null(
        self, agent: Agent, own: str, operation: Operation, name: str, field: Field
    ) -> None:
        response = send(agent.client, operation, own, {**operation.body, name: None})
        assert response.status_code == operation.success, response.content

    def test_over_a_limit_does_not_hide_another_that_is_wrong(self, agent: Agent) -> None:
        body = {"task": "x" * 20_001, "k": 0, "project": "A", "retrieve": 1}
        with nothing_changes():
            refused(send(agent.client, START, "", body), 400, "task", "k", "project", "retrieve")


class TestAnyText:
    @pytest.mark.parametrize("text", SURVIVORS.values(), ids=SURVIVORS)
    def test_comes_back_as_it_was_sent_and_does_no_harm(
        self, agent: Agent, lesson: Callable[..., Any], text: str
    ) -> None:
        kept = lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")
        sent = {"task": f"[{text}]", "session": f"[{text}]", "tier": f"[{text}]"[:40], "model": f"[{text}]"}
        made = start(agent.client, **sent)
        finished = {"response": text, "token_source": f"[{text}]"[:40]}
        response = agent.client.patch(f"{INTERACTIONS}{made['id']}/", finished, format="json")
        assert response.status_code == 200
        assert sent | finished == {name: response.json()[name] for name in sent | finished}
        assert report(agent.client, made["id"], "failed", detail=f"[{text}]").status_code == 201
        (outcome,) = agent.client.get(OUTCOMES).json()["results"]
        assert outcome["detail"] == f"[{text}]"
        (found,) = agent.client.get(INTERACTIONS, {"session": sent["session"]}).json()["results"]
        assert found["id"] == made["id"]
        assert agent.client.get(LESSONS, {"q": text}).status_code == 200
        assert [row["id"] for row in agent.client.get(LESSONS).json()["results"]] == [str(kept.pk)]

    @pytest.mark.parametrize("unit", ["x", "漢", "a_", "a.", "aB", "`a", "a::", "\u0301", "ﷺ", "--a", "<a", "'"])
    def test_of_20000_characters_without_a_space_is_searched_with(
        self, agent: Agent, lesson: Callable[..., Any], unit: str
    ) -> None:
        lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")
        task = (unit * 20_000)[:20_000]
        assert start(agent.client, task)["lessons"] == []
        assert agent.client.post(RETRIEVE, {"task": task}, format="json").json()["lessons"] == []

    def test_of_200000_characters_is_kept_as_a_response(self, agent: Agent, own: str) -> None:
        text = "ab\n" * 66_666
        response = agent.client.patch(f"{INTERACTIONS}{own}/", {"response": text}, format="json")
        assert response.json()["response"] == text


BODIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", ""),
    "a list": (b'[{"task": "x"}]', "must be a JSON object"),
    "a string": (b'"task"', "must be a JSON object"),
    "a number": (b"1", "must be a JSON object"),
    "null": (b"null", "must be a JSON object"),
    "true": (b"true", "must be a JSON object"),
    "white space": (b" \n", "is not JSON"),
    "not closed": (b'{"task": "x"', "is not JSON"),
    "single quotes": (b"{'task': 'x'}", "is not JSON"),
    "a trailing comma": (b'{"task": "x",}', "is not JSON"),
    "a comment": (b'{"task": "x"} // y', "is not JSON"),
    "two documents": (b'{"task": "x"}{"task": "y"}', "is not JSON"),
    "a raw control character": (b'{"task": "a\nb"}', "is not JSON"),
    "a bad escape": (b'{"task": "\\x"}', "is not JSON"),
    "a byte order mark": (b'\xef\xbb\xbf{"task": "x"}', "is not JSON"),
    "a form": (b"task=x", "is not JSON"),
    "not UTF-8": (b'{"task": "\xff"}', "not UTF-8: byte 10"),
    "overlong UTF-8": (b'{"task": "\xc0\xaf"}', "not UTF-8"),
    "a surrogate in UTF-8": (b'{"task": "\xed\xa0\x80"}', "not UTF-8"),
    "Latin-1": ('{"task": "ä"}'.encode("latin-1"), "not UTF-8"),
    "UTF-16": ('{"task": "x"}'.encode("utf-16"), "not UTF-8"),
    "gzip": (b"\x1f\x8b\x08\x00", "not UTF-8"),
    "NaN": (b'{"task": "x", "k": NaN}', "NaN is not JSON"),
    "Infinity": (b'{"task": "x", "k": Infinity}', "Infinity is not JSON"),
    "minus Infinity": (b'{"task": "x", "k": -Infinity}', "-Infinity is not JSON"),
    "a number of 5,000 digits": (b'{"task": "x", "k": ' + b"9" * 5000 + b"}", "too many digits"),
    "21 lists": (b'{"task": ' + b"[" * 20 + b"]" * 20 + b"}", "nested deeper than 20"),
    "1,000 lists": (b'{"task": ' + b"[" * 1000 + b"]" * 1000 + b"}", "nested deeper than 20"),
    "900,000 open lists": (b'{"task": ' + b"[" * 900_000, "nested deeper than 20"),
    "200,000 objects": (b'{"task": ' * 100_000, "nested deeper than 20"),
}


class TestABody:
    @every_operation
    @pytest.mark.parametrize("kind", [kind for kind in BODIES if kind != "empty"])
    def test_that_is_not_a_json_object_is_refused(
        self, agent: Agent, own: str, operation: Operation, kind: str
    ) -> None:
        body, reason = BODIES[kind]
        with nothing_changes():
            assert reason in refused(send(agent.client, operation, own, body), 400)["detail"]

    @pytest.mark.parametrize("body", [b"", b"{}"], ids=["no body", "an empty object"])
    def test_that_says_nothing_is_told_what_is_missing(self, agent: Agent, own: str, body: bytes) -> None:
        missing = {"start": "task", "look_up": "task", "report": "signal", "finish": "body"}
        with nothing_changes():
            for name, field in missing.items():
                refused(send(agent.client, OPERATIONS[name], own, body), 400, field)

    @every_operation
    def test_of_over_a_megabyte_is_too_large(self, agent: Agent, own: str, operation: Operation) -> None:
        body = json.dumps({**operation.body, "detail": "x" * 1_000_000}).encode()
        with nothing_changes():
            assert "1000000 bytes" in refused(send(agent.client, operation, own, body), 413)["detail"]

    @override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=17)
    def test_of_exactly_the_limit_is_read(self, agent: Agent) -> None:
        assert len(b'{"task": "abcde"}') == 17
        assert send(agent.client, START, "", b'{"task": "abcde"}').status_code == 201
        refused(send(agent.client, START, "", b'{"task": "abcdef"}'), 413)

    @every_operation
    @pytest.mark.parametrize(
        "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "a" * 9000]
    )
    def test_that_is_not_declared_as_json_is_of_the_wrong_media_type(
        self, agent: Agent, own: str, operation: Operation, kind: str
    ) -> None:
        body = json.dumps(operation.body).encode()
        with nothing_changes():
            response = raw(agent.client, operation.method, operation.url(own), body, CONTENT_TYPE=kind)
            refused(response, 415)

    @pytest.mark.parametrize("charset", ["utf-16", "latin-1", "zlib", "rot13", "nonsense", '"'])
    def test_is_read_as_utf_8_whatever_charset_it_claims(self, agent: Agent, charset: str) -> None:
        kind = f"application/json; charset={charset}"
        response = raw(agent.client, "POST", INTERACTIONS, '{"task": "größer 漢"}'.encode(), content_type=kind)
        assert response.status_code == 201, response.content
        assert Interaction.objects.get().task == "größer 漢"

    @every_operation
    def test_with_one_name_twice_is_refused_and_the_name_told(
        self, agent: Agent, own: str, operation: Operation
    ) -> None:
        (name, value), *_ = operation.body.items()
        twice = f'{{"{name}": {json.dumps(value)}, "{name}": {json.dumps(value)}}}'.encode()
        with nothing_changes():
            errors = refused(send(agent.client, operation, own, twice), 400, name)["errors"]
        assert errors == {name: ["is given more than once."]}

    def test_with_one_name_twice_deep_inside_is_refused(self, agent: Agent) -> None:
        refused(send(agent.client, START, "", b'{"task": [{"a": 1, "a": 1}]}'), 400, "a")
        refused(send(agent.client, START, "", b'{"task": "x", "\\u0074ask": "y"}'), 400, "task")

    def test_in_chunks_without_a_length_is_told_to_send_one(self, agent: Agent) -> None:
        """An ASGI server hands such a body on without Content-Length, which would be read as no body at all."""
        with nothing_changes():
            refused(raw(agent.client, "POST", INTERACTIONS, b"", HTTP_TRANSFER_ENCODING="chunked"), 411)


class TestAnUnknownField:
    @every_operation
    def test_is_named_with_what_the_request_knows(self, agent: Agent, own: str, operation: Operation) -> None:
        with nothing_changes():
            response = send(agent.client, operation, own, {**operation.body, "sigal": "accepted"})
            (sentence,) = refused(response, 400, "sigal")["errors"]["sigal"]
        assert all(name in sentence for name in operation.fields)

    @every_operation
    @pytest.mark.parametrize("value", ["caller", 1.0, None, "", {}], ids=repr)
    def test_that_others_decide_is_told_who_decides_it(
        self, agent: Agent, own: str, operation: Operation, value: object
    ) -> None:
        decided = {"source": "API key", "reward": "signal", "account": "API key", "state": "evidence"}
        with nothing_changes():
            body = {**operation.body, **dict.fromkeys(decided, value)}
            errors = refused(send(agent.client, operation, own, body), 400, *decided)["errors"]
        for name, decider in decided.items():
            assert decider in errors[name][0]

    @pytest.mark.parametrize(
        "name",
        ["", " ", "\x00", "\ud800", "Task", "task ", "\u200btask", "t\u0430sk", "__class__", "<b>", "x" * 500_000],
    )
    def test_with_any_name_is_refused_in_a_short_answer(self, agent: Agent, name: str) -> None:
        with nothing_changes():
            response = send(agent.client, START, "", {"task": "x", name: 1})
        assert response.status_code == 400
        assert len(json.loads(response.content)["errors"]) == 1
        assert len(response.content) < 2000
        response.content.decode("ascii")  # whatever the name was, the answer can be read

    def test_is_not_named_fifty_thousand_times(self, agent: Agent) -> None:
        with nothing_changes():
            response = send(agent.client, START, "", {f"f{i}": 1 for i in range(50_000)})
        assert response.status_code == 400
        assert len(response.content) < 10_000


class TestAnAddress:
    @pytest.mark.parametrize(
        "path",
        [
            "interactions/{}/",
            "interactions/{}/outcomes/",
            "lessons/{}/",
            "lessons/{}/evidence/",
            "lessons/{}/history/",
            "lessons/{}/neighbours/",
        ],
    )
    @pytest.mark.parametrize(
        "key", [MISSING, "1", "x", "%00", "%ff", "' OR 1=1", MISSING.upper() + "0", "..%2f..%2fadmin", "x" * 3000]
    )
    def test_without_a_record_is_not_found(self, agent: Agent, path: str, key: str) -> None:
        url = "/api/v1/" + path.format(key)
        with nothing_changes():
            if path.endswith("outcomes/"):
                refused(agent.client.post(url, {"signal": "accepted"}, format="json"), 404)
            else:
                refused(agent.client.get(url), 404)
            if path == "interactions/{}/":
                refused(agent.client.patch(url, {"response": "x"}, format="json"), 404)

    def test_that_does_not_exist_is_a_problem_under_api_and_a_page_elsewhere(self) -> None:
        document = refused(Client().get("/api/v1/lesons/"), 404)
        assert "/api/v1/lesons/" in document["detail"]
        response = Client().get("/lesons/")
        assert (response.status_code, response.headers["Content-Type"]) == (404, "text/html; charset=utf-8")

    def test_without_its_last_slash_is_told_so_and_not_redirected(self, agent: Agent) -> None:
        """A client that follows a redirect sends GET, and would take a list for the answer to its POST."""
        with nothing_changes():
            for response in (
                agent.client.post(INTERACTIONS.rstrip("/"), {"task": "x"}, format="json"),
                agent.client.get(INTERACTIONS.rstrip("/")),
            ):
                assert "ends with a slash" in refused(response, 404)["detail"]

    def test_of_a_host_that_is_not_served_is_refused(self) -> None:
        refused(Client().get(INTERACTIONS, headers={"Host": "evil.example"}), 400)


METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"}
ALLOWED = {
    INTERACTIONS: {"GET", "HEAD", "POST"},
    INTERACTIONS + "{own}/": {"GET", "HEAD", "PATCH", "DELETE"},
    INTERACTIONS + "{own}/outcomes/": {"POST"},
    OUTCOMES: {"GET", "HEAD"},
    RETRIEVE: {"POST"},
    LESSONS: {"GET", "HEAD"},
    LESSONS + "{lesson}/": {"GET", "HEAD", "DELETE"},
    LESSONS + "{lesson}/evidence/": {"GET", "HEAD"},
    LESSONS + "{lesson}/history/": {"GET", "HEAD"},
    LESSONS + "{lesson}/neighbours/": {"GET", "HEAD"},
    "/api/v1/schema/": {"GET", "HEAD", "OPTIONS"},
    "/api/v1/docs/": {"GET", "HEAD"},
    "/api/v1/docs/script.js": {"GET", "HEAD"},
    "/healthz": {"GET", "HEAD"},
    "/readyz": {"GET", "HEAD"},
}


@pytest.mark.parametrize("path", ALLOWED)
def test_another_method_is_refused_with_those_that_are_allowed(
    agent: Agent, own: str, lesson: Callable[..., Any], path: str
) -> None:
    kept = lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")
    url = path.format(own=own, lesson=kept.pk)
    with nothing_changes():
        for method in METHODS - ALLOWED[path]:
            response = raw(agent.client, method, url, "{}")
            if method == "HEAD":
                assert response.status_code == 405
            else:
                refused(response, 405)
            assert {word.strip() for word in response.headers["Allow"].split(",")} == ALLOWED[path]


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/*", "x", ",;q=", "a/b," * 2000])
def test_the_answer_is_json_whatever_accept_says(agent: Agent, accept: str) -> None:
    response = agent.client.get(INTERACTIONS, headers={"Accept": accept})
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    refused(agent.client.get(f"{INTERACTIONS}?x=1", headers={"Accept": accept}), 400, "x")
