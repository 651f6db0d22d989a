"""Tool calls through the protocol: the loop, who may do what, and refusals that say what to do and store nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.mcp.calls import BROKEN
from memory.mcp.tools import TOOLS
from memory.models import ApiKey, Interaction, Lesson, LessonUsage, Outcome, Project
from memory.services import interaction as interactions
from memory.services.credit import sweep
from memory.services.fact import NewFact, record
from tests.conftest import Agent
from tests.http.calls import INTERACTIONS, LESSONS, MISSING, nothing_changes
from tests.mcp.clients import answer, refused, use

pytestmark = pytest.mark.django_db

TEXT = "Pass `timeout=30` to every `requests.get` call, because without it a dead peer blocks the worker forever."
TASK = "pass a timeout to the requests.get call of the worker"
WORK = {
    "start_interaction": {"task": TASK},
    "finish_interaction": {"interaction_id": MISSING, "response": "done"},
    "record_outcome": {"interaction_id": MISSING, "signal": "accepted"},
    "retrieve_lessons": {"task": TASK},
    "list_preferences": {},
    "list_facts": {"project": "api"},
}


@pytest.fixture
def started(agent: Agent) -> str:
    return str(answer(use(agent.token, "start_interaction", task=TASK))["interaction_id"])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_whole_loop_from_the_task_to_the_evidence(agent: Agent, lesson: Callable[..., Lesson], mode: str) -> None:
    stored = lesson(TEXT)
    begun = answer(use(agent.token, "start_interaction", mode, task=TASK, project="api", session="talk", model="m"))
    assert [found["id"] for found in begun["lessons"]] == [str(stored.pk)]
    assert (begun["mode"], begun["lessons"][0]["standing"]) == ("hybrid", "active")
    assert f'<lesson id="{stored.pk}">{TEXT}</lesson>' in begun["context"]
    work = begun["interaction_id"]
    row = Interaction.objects.get(pk=work)
    assert (row.task, row.model, row.retrieved_context) == (TASK, "m", begun["context"])
    assert (row.project.slug, row.session.external_id, row.api_key) == ("api", "talk", agent.key)
    assert LessonUsage.objects.get(interaction=work).lesson_id == stored.pk

    done = answer(
        use(agent.token, "finish_interaction", mode, interaction_id=work, response=" It works.\n", tokens_in=9)
    )
    assert (done["has_response"], done["tokens_in"], done["tokens_out"]) == (True, 9, None)
    assert Interaction.objects.get(pk=work).response == " It works.\n", "as it was said"
    said = answer(use(agent.token, "record_outcome", mode, interaction_id=work, signal="failed", detail="exit 1"))
    assert (said["source"], said["reward"], said["new"]) == ("caller", -1.0, True)
    sweep()
    evidence = agent.client.get(f"{LESSONS}{stored.pk}/evidence/").json()
    assert [(loss["interaction"], loss["signal"], loss["source"]) for loss in evidence["rows"]] == [
        (work, "failed", "caller")
    ]
    assert evidence["losses"] == 1


def test_looking_up_records_nothing_and_hands_out_the_same(agent: Agent, lesson: Callable[..., Lesson]) -> None:
    lesson(TEXT)
    with nothing_changes():
        looked = answer(use(agent.token, "retrieve_lessons", task=TASK))
    begun = answer(use(agent.token, "start_interaction", task=TASK))
    assert looked["context"] == begun["context"]
    assert [found["id"] for found in looked["lessons"]] == [found["id"] for found in begun["lessons"]]
    assert looked["note"] is None


def test_nothing_that_fits_is_an_empty_answer(agent: Agent, lesson: Callable[..., Lesson]) -> None:
    lesson(TEXT)
    for name in ("start_interaction", "retrieve_lessons"):
        empty = answer(use(agent.token, name, task="bake bread with rye flour"))
        assert (empty["lessons"], empty["context"]) == ([], "")


def test_preferences_and_facts_are_the_ones_that_an_interaction_is_handed(agent: Agent) -> None:
    wish = "I always prefer tabs over spaces in this code base."
    for project in (None, "api"):
        answer(use(agent.token, "start_interaction", task=wish, project=project))
    record(agent.account.pk, NewFact(project="api", key="database", text="The database is PostgreSQL 18."))
    record(agent.account.pk, NewFact(project="api", text="It runs on two machines."))
    begun = answer(use(agent.token, "start_interaction", task=TASK, project="api"))
    assert answer(use(agent.token, "list_preferences", project="api"))["preferences"] == begun["preferences"]
    assert answer(use(agent.token, "list_facts", project="api"))["facts"] == begun["facts"]
    assert len(begun["facts"]) == 2
    everywhere = answer(use(agent.token, "list_preferences"))["preferences"]
    assert {row["scope"] for row in everywhere} == {"global"}
    assert {row["scope"] for row in begun["preferences"]} == {"global", "project:api"}
    (about,) = answer(use(agent.token, "list_facts", project="api", key="database"))["facts"]
    assert about["text"] == "The database is PostgreSQL 18."
    assert answer(use(agent.token, "list_facts", project="unheard-of"))["facts"] == []
    assert not Project.objects.filter(slug="unheard-of").exists(), "asking makes no project"


def test_the_latest_word_of_a_source_counts_and_the_same_word_is_no_new_row(agent: Agent, started: str) -> None:
    words = [answer(use(agent.token, "record_outcome", interaction_id=started, signal=s)) for s in
             ("failed", "failed", "accepted", "retracted")]  # fmt: skip
    assert [word["new"] for word in words] == [True, False, True, True]
    assert words[0]["id"] == words[1]["id"]
    assert list(Outcome.objects.order_by("sequence").values_list("signal", flat=True)) == [
        "failed", "accepted", "retracted",
    ]  # fmt: skip


def test_who_judged_comes_from_the_key(agent: Agent, machine: Agent, started: str) -> None:
    for who, source in ((machine, "machine"), (agent, "caller")):
        said = answer(use(who.token, "record_outcome", interaction_id=started, signal="accepted"))
        assert said["source"] == source


class TestRepeating:
    def test_the_same_call_with_the_same_key_is_done_once(self, agent: Agent) -> None:
        once = {"task": TASK, "idempotency_key": "abc"}
        first = use(agent.token, "start_interaction", **once)
        again = use(agent.token, "start_interaction", **once)
        assert answer(again) == answer(first)
        assert Interaction.objects.count() == 1
        assert [(result.meta or {}).get("idempotency-replayed") for result in (first, again)] == [None, True]

    def test_without_a_key_it_is_another_interaction(self, agent: Agent) -> None:
        ids = {answer(use(agent.token, "start_interaction", task=TASK))["interaction_id"] for _ in range(2)}
        assert len(ids) == Interaction.objects.count() == 2

    def test_another_call_with_the_same_key_is_refused(self, agent: Agent, machine: Agent, started: str) -> None:
        use(agent.token, "record_outcome", interaction_id=started, signal="failed", idempotency_key="abc")
        for who, name, arguments in (
            (agent, "record_outcome", {"interaction_id": started, "signal": "accepted"}),
            (agent, "start_interaction", {"task": TASK}),
            (machine, "record_outcome", {"interaction_id": started, "signal": "failed"}),
        ):
            text = refused(use(who.token, name, idempotency_key="abc", **arguments), 409, "idempotency_key")
            assert "idempotency_key: use a new key" in text
        assert Outcome.objects.count() == 1

    def test_a_refused_call_can_be_corrected_and_sent_with_the_same_key(self, agent: Agent) -> None:
        refused(use(agent.token, "start_interaction", task=" ", idempotency_key="abc"), 400, "task")
        answer(use(agent.token, "start_interaction", task=TASK, idempotency_key="abc"))

    def test_the_key_of_an_http_request_is_another_call(self, agent: Agent) -> None:
        headers = {"Idempotency-Key": "abc"}
        agent.client.post(INTERACTIONS, {"task": TASK}, format="json", headers=headers)
        refused(use(agent.token, "start_interaction", task=TASK, idempotency_key="abc"), 409, "idempotency_key")


class TestRefusals:
    @pytest.mark.parametrize("name", TOOLS)
    def test_a_tool_needs_its_scope(self, agent: Agent, machine: Agent, reader: Agent, name: str) -> None:
        has_not = reader if TOOLS[name].scope == "loop" else machine
        with nothing_changes():
            text = refused(use(has_not.token, name, **WORK[name]), 403)
        assert f"the scope '{TOOLS[name].scope}'" in text

    @pytest.mark.parametrize("name", ["list_preferences", "list_facts"])
    def test_a_key_that_reads_may_read(self, reader: Agent, name: str) -> None:
        answer(use(reader.token, name, **WORK[name]))

    @pytest.mark.parametrize("token", ["", "secret", "sonder_aaaaaaaaaaaa_" + "a" * 43, "{agent}x"])
    def test_a_key_that_is_none_opens_nothing(self, agent: Agent, token: str) -> None:
        with nothing_changes():
            for name in TOOLS:
                refused(use(token.format(agent=agent.token), name, **WORK[name]), 401)

    @pytest.mark.parametrize("field", ["revoked_at", "expires_at"])
    def test_a_key_ends_in_the_middle_of_a_conversation(self, agent: Agent, started: str, field: str) -> None:
        word = {"interaction_id": started, "signal": "failed"}
        answer(use(agent.token, "record_outcome", **word))
        ApiKey.objects.filter(pk=agent.key.pk).update(**{field: timezone.now() - timedelta(seconds=1)})
        with nothing_changes():
            refused(use(agent.token, "record_outcome", **word), 401)

    @pytest.mark.parametrize("name", ["finish_interaction", "record_outcome"])
    def test_another_account_has_no_such_interaction(self, rival: Agent, started: str, name: str) -> None:
        with nothing_changes():
            theirs = refused(use(rival.token, name, **{**WORK[name], "interaction_id": started}), 404)
            nobodys = refused(use(rival.token, name, **WORK[name]), 404)
        assert theirs == nobodys, "and is not told that another has it"

    def test_a_tool_that_does_not_exist_is_refused_with_those_that_do(self, agent: Agent) -> None:
        with nothing_changes():
            text = refused(use(agent.token, "save_lesson", text=TEXT), 404)
        assert all(name in text for name in TOOLS)

    @pytest.mark.parametrize(
        ("name", "wrong", "said"),
        [
            ("start_interaction", {"task": None}, "task: Input should be a valid string."),
            ("start_interaction", {"task": " \n"}, "task: is empty."),
            ("start_interaction", {"task": "a\0b"}, "task: holds a NUL character"),
            ("start_interaction", {"task": "half \ud83d"}, "task: holds a NUL character or half of a surrogate pair"),
            ("start_interaction", {"task": "x" * 20_001}, "task: is longer than 20000 characters."),
            ("start_interaction", {"project": "No Slug"}, "project: use 1 to 63 characters"),
            ("start_interaction", {"project": "line\n"}, "project: use 1 to 63 characters"),
            ("start_interaction", {"k": 51}, "k: Input should be less than or equal to 50."),
            ("start_interaction", {"k": True}, "k: Input should be a valid integer."),
            ("start_interaction", {"k": "5"}, "k: Input should be a valid integer."),
            ("start_interaction", {"session": "s" * 201}, "session: is longer than 200 characters."),
            (
                "start_interaction",
                {"idempotency_key": "é"},
                "idempotency_key: use 1 to 200 printable ASCII characters.",
            ),
            ("start_interaction", {"sesion": "s"}, "sesion: is no argument of this tool; it knows task, project,"),
            ("finish_interaction", {"response": "\0"}, "response: holds a NUL character"),
            ("finish_interaction", {"response": "x" * 200_001}, "response: is longer than 200000 characters."),
            ("finish_interaction", {"tokens_in": -1}, "tokens_in: Input should be greater than or equal to 0."),
            ("finish_interaction", {"tokens_out": 2**31}, "tokens_out: Input should be less than or equal to 2147483"),
            ("record_outcome", {"signal": "great"}, "signal: choose one of tests_passed,"),
            ("record_outcome", {"detail": "\udfff"}, "detail: holds a NUL character or half of a surrogate pair"),
            ("record_outcome", {"interaction_id": "7"}, "interaction_id: is no id. Give the interaction_id that"),
            ("record_outcome", {"source": "caller"}, "source: is no argument of this tool"),
            ("list_facts", {"key": "\0"}, "key: holds a NUL character"),
        ],
    )
    def test_a_wrong_argument_is_named_with_what_to_do_and_nothing_is_stored(
        self, agent: Agent, started: str, name: str, wrong: dict[str, Any], said: str
    ) -> None:
        right = WORK[name] | ({"interaction_id": started} if "interaction_id" in WORK[name] else {})
        answer(use(agent.token, name, **right))
        with nothing_changes():
            text = refused(use(agent.token, name, **{**right, **wrong}), 400, *wrong)
        assert text.count(said) == 1

    def test_every_wrong_argument_is_named_at_once(self, agent: Agent) -> None:
        refused(use(agent.token, "start_interaction", k=0, projct="x", model=7), 400, "k", "projct", "model", "task")

    def test_a_name_that_is_no_text_is_shown_harmlessly(self, agent: Agent) -> None:
        result = use(agent.token, "start_interaction", task=TASK, **{"\ud800" + "x" * 2000: 1})
        (named,) = result.structured_content["errors"]
        assert named.endswith("x…")
        assert len(named.encode()) < 100

    def test_null_is_as_good_as_leaving_an_argument_out(self, agent: Agent, started: str) -> None:
        use(agent.token, "finish_interaction", interaction_id=started, response="done", tokens_in=4)
        done = answer(use(agent.token, "finish_interaction", interaction_id=started, response=None, tokens_out=5))
        assert (done["has_response"], done["tokens_in"], done["tokens_out"]) == (True, 4, 5)
        with nothing_changes():
            text = refused(use(agent.token, "finish_interaction", interaction_id=started, response=None), 400)
        assert "Name at least one of response, tokens_in, tokens_out." in text


def test_a_key_has_one_allowance_for_both_ways_in(agent: Agent, settings: Any) -> None:
    settings.SONDER_THROTTLE_LOOP = "2/hour"
    answer(use(agent.token, "retrieve_lessons", task=TASK))
    assert agent.client.post(INTERACTIONS, {"task": TASK}, format="json").status_code == 201
    with nothing_changes():
        text = refused(use(agent.token, "start_interaction", task=TASK), 429)
    assert "available in" in text
    assert agent.client.post(INTERACTIONS, {"task": TASK}, format="json").status_code == 429
    answer(use(agent.token, "list_preferences"))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_fault_of_the_product_is_told_without_its_details(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(interactions, "start", break_down)
    with pytest.raises(BaseException) as caught, nothing_changes():  # noqa: PT011
        use(agent.token, "start_interaction", mode, task=TASK)
    assert BROKEN in repr(caught.value)
