"""Faults that other memories had in public, each looked for here as a kind and not as the one case."""

import ast
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import override_settings

from memory import tasks
from memory.embedding.hashing import HashingProvider
from memory.errors import EmbeddingUnavailable, NotFound
from memory.models import Account, EmbeddingSpace, Interaction, Lesson, LessonEmbedding, LessonUsage
from memory.models.vocabulary import Origin
from memory.search import Scope
from memory.services import rejection
from memory.services.caller import Caller
from memory.services.erasure import erase
from memory.services.lesson import NewLesson, store
from memory.services.space import open_first_space
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, CURSOR, TIMEOUT, TIMEOUT_AGAIN, TIMEOUT_TASK
from tests.conftest import Agent, make_agent
from tests.distillers.server import lesson as answer
from tests.embedding.server import embedding_server
from tests.http.calls import INTERACTIONS, refused, report, start
from tests.models.test_concurrency import compete
from tests.services.workshop import make_due, model

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]


class TestTheEmbedderChanges:
    """Elsewhere inserts failed on the dimension, and calls looked successful."""

    @pytest.fixture
    def other(self, settings: Any) -> Any:
        """The settings of another model, with vectors of 64 components."""
        small = HashingProvider(dimension=64)
        with embedding_server() as server:
            server.body = lambda texts: {
                "data": [{"index": i, "embedding": v.tolist()} for i, v in enumerate(small.embed(texts))]
            }

            def switch(on: bool = True) -> None:
                settings.SONDER_EMBEDDING = "openai" if on else "hashing"
                settings.SONDER_EMBEDDING_URL = server.url if on else ""
                settings.SONDER_EMBEDDING_MODEL = "other-model" if on else ""

            yield switch

    @pytest.mark.django_db(transaction=True)
    def test_it_is_told_at_once_writes_nothing_wrong_and_moves_without_losing_evidence(
        self, agent: Agent, other: Callable[..., None], space: EmbeddingSpace
    ) -> None:
        acts.imported(agent.account, TIMEOUT)
        report(agent.client, start(agent.client, TIMEOUT_TASK)["id"], "accepted")
        acts.background()
        evidence = list(LessonUsage.objects.values_list("lesson", "interaction", "reward", "credit_seq"))

        other()
        with pytest.raises(EmbeddingUnavailable, match="reembed"):
            open_first_space()
        assert [found.id for found in run_checks(databases=["default"])] == ["memory.W001"]
        with pytest.raises(CommandError, match="embedding"):
            call_command("doctor")
        answer = acts.looked_up(agent, TIMEOUT_TASK)
        assert (answer["mode"], [found["text"] for found in answer["lessons"]]) == ("lexical", [TIMEOUT])
        assert "hashing" in answer["note"]
        noted = acts.import_texts(agent.account, CLOCK)
        assert (noted["stored"], noted["embedded"]) == (1, 0)
        assert "reembed" in noted["note"]
        waiting = acts.learn(agent, CURSOR)
        assert acts.distilled(agent, waiting) == ("retryable", None)
        acts.background()
        assert set(LessonEmbedding.objects.values_list("space", flat=True)) == {space.pk}
        with pytest.raises(DatabaseError, match="another dimension"), transaction.atomic():
            LessonEmbedding.objects.create(lesson=acts.stored(agent.account, CLOCK), space=space, embedding=[1.0] * 64)

        moved = acts.command("reembed")
        assert moved["embedded"] == 2
        assert (EmbeddingSpace.objects.get(is_active=True).model, run_checks(databases=["default"])) == (
            "other-model",
            [],
        )
        found = start(agent.client, TIMEOUT_TASK)
        assert (found["mode"], found["lessons"][0]["text"]) == ("hybrid", TIMEOUT)
        kept = LessonUsage.objects.exclude(interaction=found["id"])
        assert list(kept.values_list("lesson", "interaction", "reward", "credit_seq")) == evidence
        make_due(Interaction.objects.get(pk=waiting).pk)
        acts.background()
        assert acts.distilled(agent, waiting) == ("stored", "stored")

        other(False)
        acts.command("reembed")
        assert EmbeddingSpace.objects.get(is_active=True).pk == space.pk


class TestADeleteWithoutAScope:
    """Elsewhere a delete whose scope was not resolved wiped everybody."""

    def test_what_is_to_go_must_be_named_and_everybody_else_stays(
        self, account: Account, agent: Agent, rival: Agent
    ) -> None:
        for who in (agent, rival):
            start(who.client, TIMEOUT_TASK, project="api", session="talk")
            who.client.post(acts.FACTS, {"project": "api", "text": "Tests run."}, format="json")
        theirs = set(Interaction.objects.filter(account=rival.account).values_list("pk", flat=True))
        custodian = make_agent(account, "caller", ["admin"])
        for target in ("", "*", "None", "00000000-0000-7000-8000-000000000000", str(rival.account.pk)):
            assert custodian.client.delete(f"{INTERACTIONS}{target}/").status_code in (404, 405)
            assert custodian.client.delete(f"/api/v1/projects/{target}/").status_code in (404, 405)
        for arguments in (["account"], ["account", ""], ["account", "*"], ["account", "None"], ["everything", "1"], []):
            with pytest.raises(CommandError):
                call_command("erase", *arguments, "--apply")
        with pytest.raises(NotFound):
            erase("account", rival.account.pk, account_id=agent.account.pk, actor="system")
        assert Interaction.objects.count() == 2

        call_command("erase", "account", str(agent.account.pk), "--apply")
        assert not Account.objects.filter(slug="acme").exists()
        assert set(Interaction.objects.values_list("pk", flat=True)) == theirs
        assert len(acts.pages(rival, acts.FACTS)) == 1
        assert start(rival.client, TIMEOUT_TASK)["id"]

    def test_no_code_deletes_without_saying_what(self) -> None:
        """Only what is computed again in the same transaction is emptied: sums and band rates."""
        found = {}
        for path in (ROOT / "memory").rglob("*.py"):
            written = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            calls = [ast.unparse(node) for node in written if isinstance(node, ast.Call)]
            texts = [ast.unparse(node) for node in written if isinstance(node, ast.Constant | ast.JoinedStr)]
            everything = [call for call in calls if re.search(r"\.objects(\.all\(\))?\.delete\(\)$", call)]
            everything += [
                text for text in texts if re.search(r"(DELETE FROM|TRUNCATE) [\w{]", text) and "WHERE" not in text
            ]
            if everything:
                found[str(path.relative_to(ROOT))] = everything
        assert found == {
            "memory/services/standing.py": ["f'DELETE FROM {table}'"],
            "memory/services/bands.py": ["BandRate.objects.all().delete()"],
        }


class TestALeakedScope:
    """Elsewhere one filter object was shared, and a call's scope leaked into the next."""

    def test_a_scope_is_a_value_that_nobody_can_change(self, agent: Agent) -> None:
        for kind in (Caller, Scope):
            assert kind.__dataclass_params__.frozen, kind  # type: ignore[attr-defined]
            assert not [f.name for f in fields(kind) if f.type in ("list", "dict", "set")]
        scope = Scope(account_id=agent.account.pk, reviewed_only=False)
        with pytest.raises(FrozenInstanceError):
            scope.account_id = None  # type: ignore[misc]

    @pytest.mark.django_db(transaction=True)
    def test_calls_and_tasks_of_many_accounts_at_once_keep_to_their_own(
        self, agent: Agent, rival: Agent, settings: Any
    ) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        mine = {agent.account.slug: f"{TIMEOUT[:-1]} at acme.", rival.account.slug: f"{TIMEOUT[:-1]} at rival."}
        for who in (agent, rival):
            acts.imported(who.account, mine[who.account.slug])

        def work(who: Agent) -> tuple[str, list[str]]:
            try:
                found = acts.recalled(who, TIMEOUT_TASK)
                acts.learn(who, CLOCK)
                return who.account.slug, found
            finally:
                connection.close()

        with ThreadPoolExecutor(max_workers=4) as pool:
            answers = list(pool.map(work, [agent, rival] * 8))
        assert all(found == [mine[slug]] or sorted(found) == sorted([mine[slug], CLOCK]) for slug, found in answers)
        assert sorted(Lesson.objects.filter(text=CLOCK).values_list("account__slug", flat=True)) == ["acme", "rival"]


class TestTwoAtOnce:
    """Elsewhere two concurrent adds passed a check that was stale for the second."""

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("texts", [(TIMEOUT, TIMEOUT), (TIMEOUT, TIMEOUT_AGAIN)], ids=["same", "other words"])
    def test_of_many_distillations_of_one_value_exactly_one_stores_it(
        self, agent: Agent, lesson_scope: str, texts: tuple[str, str]
    ) -> None:
        waiting = [acts.work(agent, "fetch the report", f"Lesson: {text}") for text in texts * 4]
        other = acts.work(agent, "fetch the report", f"Lesson: {CLOCK}")

        def distil(interaction: str) -> None:
            try:
                tasks.distill_interaction(interaction)
            finally:
                connection.close()

        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(distil, [*waiting, other, *waiting]))
        reasons = [acts.distilled(agent, interaction)[1] for interaction in waiting]
        assert reasons.count("stored") == 1
        assert set(reasons) - {"stored"} <= {"exact_duplicate", "semantic_duplicate"}
        assert acts.distilled(agent, other) == ("stored", "stored")
        assert sorted(acts.listed(agent)) in [sorted([text, CLOCK]) for text in texts]

    @pytest.mark.django_db(transaction=True)
    def test_a_writer_waits_for_who_rejects_its_value_and_is_refused(
        self, agent: Agent, reviewer: Any, lesson_scope: str
    ) -> None:
        rejected = acts.imported(agent.account, TIMEOUT)
        said: list[str] = []

        def reject() -> None:
            rejection.reject(rejected.pk, reviewer=reviewer.pk, reason="it does harm")

        def write() -> None:
            new = NewLesson(
                text=TIMEOUT, origin=Origin.IMPORTED, path="test", actor="system", account_id=rejected.account_id
            )
            said.append(store(new).verdict.refusal)

        assert compete(reject, write, first_commits=True) is None
        assert said == ["rejected_value"], "before the rejection it would have been a duplicate"
        assert acts.import_texts(agent.account, TIMEOUT, CLOCK)["stored"] == 1


class TestRecallBecomesMemory:
    """Elsewhere what had been recalled was distilled as if it were new, and grew."""

    def test_what_was_handed_out_is_not_learned_again_and_what_is_new_beside_it_is(
        self, agent: Agent, lesson_scope: str
    ) -> None:
        acts.imported(agent.account, TIMEOUT)
        for text, reason in ((TIMEOUT, "exact_duplicate"), (TIMEOUT_AGAIN, "semantic_duplicate"), (CLOCK, "stored")):
            started = start(agent.client, TIMEOUT_TASK)
            assert TIMEOUT in started["context"]
            acts.finish(agent, started["id"], f"I was told so.\n\nLesson: {text}")
            report(agent.client, started["id"], "accepted")
            acts.background()
            assert acts.distilled(agent, started["id"])[1] == reason
        assert sorted(acts.listed(agent)) == sorted([TIMEOUT, CLOCK])

    def test_not_even_a_lesson_that_another_scope_holds(self, agent: Agent) -> None:
        """It was handed out while lessons were shared; the account's own scope has no such lesson."""
        acts.imported(agent.account, TIMEOUT)
        works = []
        for text in (TIMEOUT, CLOCK):
            works.append(start(agent.client, TIMEOUT_TASK)["id"])
            acts.finish(agent, works[-1], f"Lesson: {text}")
        with override_settings(SONDER_LESSON_SCOPE="account"):
            for interaction in works:
                report(agent.client, interaction, "accepted")
            acts.background()
            assert [acts.distilled(agent, each)[1] for each in works] == ["exact_duplicate", "stored"]


def meanwhile(act: Callable[[], object]) -> Callable[[Any], None]:
    """What happens in a thread and on a connection of its own while a model is asked."""

    def run(_: Any) -> None:
        try:
            act()
        finally:
            connection.close()

    return run


class TestForgottenContentComesBack:
    """Elsewhere a cache, or a writer that had been waiting, brought back what had been forgotten."""

    @pytest.mark.django_db(transaction=True)
    def test_a_worker_that_was_at_it_writes_nothing_after_the_erasure(self, agent: Agent, lesson_scope: str) -> None:
        gone, kept = (acts.work(agent, "fetch the report", f"Lesson: {text}") for text in (TIMEOUT, CLOCK))
        with model() as server:
            server.answer = answer(TIMEOUT)
            server.before = meanwhile(lambda: acts.command("erase", "interaction", gone, "--apply"))
            tasks.distill_interaction(gone)
            server.before = lambda _: None
            server.answer = answer(CLOCK)
            tasks.distill_interaction(kept)
        for task in (tasks.credit_interaction, tasks.distill_interaction):
            task(gone)
        acts.background()
        assert acts.tables_with(TIMEOUT) == []
        assert acts.listed(agent) == [CLOCK]

    @pytest.mark.django_db(transaction=True)
    def test_a_value_that_is_rejected_while_a_model_thinks_is_refused_when_it_has_thought(
        self, agent: Agent, lesson_scope: str, reviewer: Any
    ) -> None:
        work = acts.work(agent, "fetch the report", "done")

        def reject() -> None:
            lesson = acts.imported(agent.account, TIMEOUT)
            rejection.reject(lesson.pk, reviewer=reviewer.pk, reason="it does harm")

        with model() as server:
            server.answer, server.before = answer(TIMEOUT), meanwhile(reject)
            tasks.distill_interaction(work)
            assert acts.distilled(agent, work) == ("no_lesson", "rejected_value")
            server.before = lambda _: None
            server.answer = answer(CLOCK)
            assert acts.distilled(agent, acts.learn(agent, "x")) == ("stored", "stored")

    def test_a_vector_that_was_still_to_be_made_is_not_made_for_an_erased_lesson(self, agent: Agent) -> None:
        gone, kept = (acts.imported(agent.account, text) for text in (TIMEOUT, CLOCK))
        LessonEmbedding.objects.all().delete()
        acts.command("erase", "lesson", str(gone.pk), "--apply")
        for lesson in (gone, kept):
            tasks.maintenance_embed(str(lesson.pk))
        acts.background()
        assert [row.lesson_id for row in LessonEmbedding.objects.all()] == [kept.pk]

    def test_no_kept_answer_and_no_memory_of_a_process_has_it(self, agent: Agent, lesson_scope: str) -> None:
        gone, kept = (acts.imported(agent.account, text) for text in (TIMEOUT, CLOCK))
        fact = agent.client.post(acts.FACTS, {"project": "api", "text": "Tests run."}, format="json").json()["id"]
        body = {"task": f"{TIMEOUT_TASK}; {CLOCK_TASK}", "project": "api"}

        def asked(key: str) -> Any:
            return agent.client.post(INTERACTIONS, body, format="json", headers={"Idempotency-Key": key})

        first = asked("1").json()
        assert {lesson["id"] for lesson in first["lessons"]} == {str(gone.pk), str(kept.pk)}
        acts.command("erase", "lesson", str(gone.pk), "--apply")
        refused(asked("1"), 409, "Idempotency-Key")
        second = asked("2").json()
        assert [lesson["text"] for lesson in second["lessons"]] == [CLOCK]
        assert asked("2").json() == second, "an answer without it is replayed"
        acts.command("erase", "fact", fact, "--apply")
        refused(asked("2"), 409, "Idempotency-Key")
        assert asked("3").json()["facts"] == []
