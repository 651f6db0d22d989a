"""What is erased is gone, with every copy; what did not come from it stays; nothing brings it back."""

import functools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from uuid import UUID

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from structlog.testing import capture_logs

from memory.errors import NotFound
from memory.models import (
    Account,
    Adjudication,
    Comment,
    Credit,
    ErasureRecord,
    Fact,
    IdempotencyRecord,
    Interaction,
    Lesson,
    LessonDistillation,
    LessonEmbedding,
    LessonStanding,
    LessonTombstone,
    LessonUsage,
    Outcome,
    Preference,
    Project,
    ReviewItem,
    TrustEvent,
)
from memory.models.base import new_id
from memory.models.sql import execute, fetch
from memory.models.vocabulary import Verdict
from memory.rules.text import digest
from memory.services.adjudication import Decision, decide, undo, version_of
from memory.services.authority import Person
from memory.services.credit import credit
from memory.services.erasure import KINDS, erase, ledger_path, read_ledger, sync_ledger
from memory.services.erasure.rows import forget_answers
from memory.services.fact import Correction, NewFact, correct, record
from memory.services.idempotency import Answer, once
from memory.services.space import embed_pending
from memory.services.standing import differences
from tests.conftest import Agent
from tests.http.test_quarantine_walk import TASK, TEXT, quarantine, report, start
from tests.services.play import make_callers, make_lessons, say, serve

pytestmark = pytest.mark.django_db
SECRET = "zanzibar-quokka-5571"
WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
TEXT_TABLES = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"


@pytest.fixture(autouse=True)
def own_ledger(settings, tmp_path) -> None:
    settings.SONDER_VAR = str(tmp_path)


def until(happens: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def places(word: str) -> list[tuple[str, str]]:
    """Every column of every table that holds the word."""
    found = []
    for table, column in fetch(TEXT_TABLES):
        (hit,) = fetch(f'SELECT EXISTS (SELECT 1 FROM "{table}" WHERE "{column}"::text LIKE %s)', [f"%{word}%"])
        if hit[0]:
            found.append((table, column))
    return found


def gone(subject: UUID) -> list[tuple[str, str]]:
    """Where a uuid still stands, but for the record of its erasure."""
    return [place for place in places(str(subject)) if place[0] != "erasure_record"]


def learned_from(interaction: Interaction, text: str) -> Lesson:
    """A lesson as distillation leaves it."""
    lesson = Lesson.objects.create(
        text=text,
        text_sha256=digest(text),
        origin="distilled",
        state="active",
        identifiers="",
        source_interaction=interaction.pk,
    )
    embed_pending()
    return lesson


class TestAnInteraction:
    def test_takes_everything_that_came_from_it_and_leaves_its_sibling(self, agent: Agent, operator) -> None:
        first = start(agent, f"I prefer {SECRET} over tabs.", session="talk", project="api")
        agent.client.patch(f"/api/v1/interactions/{first['id']}/", {"response": f"Say {SECRET}."}, format="json")
        report(agent, first["id"], "used")
        source = Interaction.objects.get(pk=first["id"])
        lesson = learned_from(source, f"Always call `{SECRET}()` before closing the file.")
        LessonTombstone.objects.create(
            text_sha256="a" * 64, signature_version=1, mac_key_id="k", reason="superseded",
            source_lesson=lesson.pk, source_interaction=source.pk,
        )  # fmt: skip
        ReviewItem.objects.create(kind="new_lesson", subject=lesson.pk, priority=1, status="open")
        Comment.objects.create(subject=lesson.pk, author=operator, text=f"About {SECRET}.")
        TrustEvent.objects.create(lesson=lesson.pk, kind="approved", evidence={"note": SECRET}, actor="system")
        second = start(agent, f"use {SECRET} again, differently", project="api")
        assert [found["id"] for found in second["lessons"]] == [str(lesson.pk)]
        report(agent, second["id"], "used")

        assert {table for table, _ in places(SECRET)} >= {"interaction", "lesson", "preference", "comment"}
        erased = erase("interaction", source.pk, account_id=agent.account.pk, actor="system")

        assert gone(source.pk) == gone(lesson.pk) == []
        assert places(SECRET) == [("interaction", "task")], "only the sibling's own words are left"
        assert erased.counts["lesson"] == erased.counts["preference"] == erased.counts["interaction"] == 1
        assert Interaction.objects.get().pk == UUID(second["id"])
        assert Outcome.objects.count() == Credit.objects.count() == 1
        assert differences() == []

    def test_leaves_other_lessons_where_they_are_and_their_sums_exact(self, account, agent) -> None:
        callers, lessons = make_callers(account), make_lessons(3)
        works = [serve(account, f"task {n}", lessons[:2], lessons[2:]) for n in range(4)]
        for work in works:
            say(callers["caller"], work.pk, "failed")
            credit(work.pk)
        erase("interaction", works[0].pk, account_id=None, actor="system")
        assert Lesson.objects.count() == 3
        assert differences() == []
        assert set(LessonStanding.objects.values_list("losses", flat=True)) == {0, 3}

    def test_reaches_the_journals_of_lessons_that_stay(self, agent: Agent, lesson: Callable) -> None:
        bad = lesson(TEXT)
        quarantine(agent, bad)
        (event,) = TrustEvent.objects.filter(kind="quarantined")
        victim = UUID(event.evidence["rows"][0]["interaction"])
        erase("interaction", victim, account_id=None, actor="system")
        event.refresh_from_db()
        assert len(event.evidence["rows"]) == 4
        assert gone(victim) == []

    def test_frees_a_lesson_whose_quarantine_no_longer_holds_without_it(self, agent: Agent, lesson: Callable) -> None:
        bad = lesson(TEXT)
        quarantine(agent, bad)
        erase("interaction", Interaction.objects.earliest("id").pk, account_id=None, actor="system")
        bad.refresh_from_db()
        assert bad.state == "active"
        assert not LessonTombstone.objects.exists()

    def test_is_safe_against_work_that_was_queued_before(self, agent: Agent) -> None:
        work = start(agent, "anything")
        agent.client.post(f"/api/v1/interactions/{work['id']}/outcomes/", {"signal": "used"}, format="json")
        erase("interaction", UUID(work["id"]), account_id=None, actor="system")
        assert credit(UUID(work["id"])) is None
        assert not Credit.objects.exists()

    def test_forgets_the_answers_that_were_kept_for_a_replay(self, agent: Agent) -> None:
        body = {"task": f"about {SECRET}"}
        agent.client.post("/api/v1/interactions/", body, format="json", headers={"Idempotency-Key": "k"})
        assert IdempotencyRecord.objects.count() == 1
        erase("interaction", Interaction.objects.get().pk, account_id=None, actor="system")
        assert not IdempotencyRecord.objects.exists()


class TestALesson:
    def test_goes_with_its_wordings_vectors_exposures_and_contexts(self, agent: Agent, lesson: Callable) -> None:
        kept = lesson("Close every cursor before you commit the transaction in psycopg.")
        bad = lesson(f"Call `{SECRET}()` before you commit the transaction in psycopg.")
        later = lesson(f"Call `{SECRET}()` after you commit the transaction in psycopg.")
        Lesson.objects.filter(pk=later.pk).update(supersedes=bad.pk)
        work = start(agent, f"commit the transaction in psycopg with {SECRET}")
        assert len(work["lessons"]) == 3
        report(agent, work["id"], "failed")
        erase("lesson", bad.pk, account_id=None, actor="system")
        assert gone(bad.pk) == gone(later.pk) == []
        assert places(SECRET) == [("interaction", "task")]
        assert list(Lesson.objects.all()) == [kept]
        assert LessonUsage.objects.get().lesson_id == kept.pk
        assert differences() == []

    def test_is_not_distilled_again_from_the_interaction_that_stays(self, agent: Agent) -> None:
        work = Interaction.objects.get(pk=start(agent, "anything")["id"])
        lesson = learned_from(work, "Always close the file before renaming it.")
        LessonDistillation.objects.create(
            interaction=work, state="stored", signal="used", attempts=1, result_reason="stored", lesson=lesson.pk,
            completed_at=work.created_at,
        )  # fmt: skip
        erase("lesson", lesson.pk, account_id=None, actor="system")
        row = LessonDistillation.objects.get()
        assert (row.state, row.lesson, Interaction.objects.count()) == ("cancelled", None, 1)

    def test_has_those_judged_again_that_were_handed_out_beside_it(self, account) -> None:
        callers, (gone_one, companion, apart) = make_callers(account), make_lessons(3)
        for n in range(5):
            work = serve(account, f"task {n}", [gone_one, companion])
            say(callers["caller"], work.pk, "failed")
            credit(work.pk)
        alone = serve(account, "task 9", [apart])
        say(callers["caller"], alone.pk, "failed")
        credit(alone.pk)
        before = dict(LessonStanding.objects.values_list("lesson_id", "version"))
        erase("lesson", gone_one.pk, account_id=None, actor="system")
        after = LessonStanding.objects.in_bulk()
        assert {row["cohort"] for row in after[companion.pk].evidence["rows"]} == {1}
        assert after[companion.pk].evidence["epoch"]["share"] == 5
        assert after[apart.pk].version == before[apart.pk], "nothing of its evidence moved"
        assert differences() == []


def statements_to_erase(kind: str, subject: UUID) -> int:
    with CaptureQueriesContext(connection) as captured:
        erase(kind, subject, account_id=None, actor="system")
    return len(captured)


class TestTheCost:
    def test_of_a_lesson_is_as_many_statements_however_often_it_was_handed_out(self, account) -> None:
        callers, lessons, taken = make_callers(account), make_lessons(3), []
        for lesson, times in zip(lessons[:2], (3, 30), strict=True):
            for n in range(times):
                work = serve(account, f"task {n}", [lesson, lessons[2]])
                say(callers["caller"], work.pk, "used")
                credit(work.pk)
            taken.append(statements_to_erase("lesson", lesson.pk))
        assert taken[0] == taken[1]

    def test_of_many_interactions_is_as_many_statements_as_of_few(self, account) -> None:
        callers, lessons, taken = make_callers(account), make_lessons(3), []
        for slug, times in (("few", 3), ("many", 30)):
            project = Project.objects.create(account=account, slug=slug, name=slug)
            for n in range(times):
                work = serve(account, f"task {n}", lessons[:2], lessons[2:])
                Interaction.objects.filter(pk=work.pk).update(project=project)
                say(callers["caller"], work.pk, "used" if n % 2 else "failed")
                credit(work.pk)
            taken.append(statements_to_erase("project", project.pk))
        assert taken[0] == taken[1]
        assert differences() == []
        assert not fetch("SELECT 1 FROM lesson_task_sum UNION ALL SELECT 1 FROM withheld_sum"), "no empty sum stays"

    def test_of_a_row_is_no_search_for_what_refers_to_it(self) -> None:
        """PostgreSQL looks for references to each row that goes; without an index it reads the whole table for each."""
        few = ("account", "api_key", "auth_user", "embedding_space")  # one at a time, or never
        unindexed = fetch(
            """
            SELECT c.conrelid::regclass::text, a.attname FROM pg_constraint c
                JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
            WHERE c.contype = 'f' AND c.connamespace = 'public'::regnamespace
                AND NOT c.confrelid::regclass::text = ANY(%s) AND NOT EXISTS (
                    SELECT 1 FROM pg_index i
                    WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1]
                        AND coalesce(pg_get_expr(indpred, indrelid), format('(%%I IS NOT NULL)', a.attname))
                            = format('(%%I IS NOT NULL)', a.attname)
                )
            """,
            [list(few)],
        )
        assert unindexed == []


class TestKeptAnswers:
    def test_are_found_by_any_id_in_them_at_any_depth(self, account) -> None:
        kept, other = new_id(), new_id()
        bodies = {
            "deep": {"lessons": [{"id": str(kept), "text": SECRET}]},
            "within": {"context": f"<lesson id={str(kept).upper()}>{SECRET}</lesson>"},
            "other": {"id": str(other)},
        }
        for key, body in bodies.items():
            once(account.pk, key, "0" * 64, functools.partial(Answer, status=201, body=body))
        counts: Counter[str] = Counter()
        forget_answers(counts, [kept])
        assert counts["idempotency_record"] == 2
        assert IdempotencyRecord.objects.get().key == "other"

    def test_are_looked_up_in_an_index(self) -> None:
        execute("SET LOCAL enable_seqscan = off")
        plan = fetch("EXPLAIN DELETE FROM idempotency_record WHERE names && %s::uuid[]", [[new_id()]])
        assert "idempotency_record_names" in str(plan)


class TestDecisions:
    """What people decided goes with what they decided about, and with what their decision moved."""

    @pytest.fixture
    def person(self, operator) -> Person:
        return Person(user_id=operator.pk, name="Olive", everywhere=True)

    def decide(self, person: Person, subject: Lesson, verdict: Verdict, reason: str, **data: object) -> Adjudication:
        return decide(
            Decision(
                person=person,
                verdict=verdict,
                subject=subject.pk,
                expected_version=version_of(subject.pk),
                reason_code=reason,
                note=SECRET,
                data=data,
            )
        )

    def test_an_edit_goes_with_its_new_wording_and_its_undo_with_it(self, person: Person, lesson: Callable) -> None:
        old = lesson(TEXT)
        made = self.decide(person, old, Verdict.EDIT, "", text="Log lost connections with the host name.")
        undo(made.pk, person)
        new = Lesson.objects.get(origin="edited")
        assert Adjudication.objects.count() == 2
        erase("lesson", new.pk, account_id=None, actor="system")
        assert not Adjudication.objects.exists()
        assert gone(new.pk) == []
        assert Lesson.objects.get() == old

    def test_an_excuse_goes_with_the_loss_that_it_excused(self, account, person: Person) -> None:
        callers, (bad,) = make_callers(account), make_lessons(1)
        works = [serve(account, f"task {n}", [bad]) for n in range(2)]
        for work in works:
            say(callers["caller"], work.pk, "failed")
            credit(work.pk)
        usage = LessonUsage.objects.get(interaction=works[0])
        self.decide(person, bad, Verdict.EXEMPT_ROW, "hard_work", usage=str(usage.pk))
        assert {table for table, _ in places(SECRET)} >= {"adjudication", "usage_exemption", "trust_event"}
        erase("interaction", works[0].pk, account_id=None, actor="system")
        assert places(SECRET) == gone(usage.pk) == []
        assert Lesson.objects.get() == bad

    def test_an_accounts_decisions_go_with_it(self, account, person: Person, lesson: Callable) -> None:
        with override_settings(SONDER_LESSON_SCOPE="account"):
            own = lesson(TEXT, account_id=account.pk)
            made = self.decide(person, own, Verdict.REJECT, "wrong")
            undo(made.pk, person)
            erase("account", account.pk, account_id=None, actor="system")
        assert not Adjudication.objects.exists()
        assert places(SECRET) == []


class TestAFact:
    def test_goes_with_every_version_of_it(self, account) -> None:
        first = record(account.pk, NewFact(project="api", text=f"The host is {SECRET}.", key="host"))
        record(account.pk, NewFact(project="api", text="Logs go to stderr.", key="logs"))
        second = correct(account.pk, first.pk, Correction(changes={"text": f"The host was {SECRET}."}))
        erase("fact", second.pk, account_id=account.pk, actor="system")
        assert places(SECRET) == []
        assert Fact.objects.get().key == "logs"


class TestAProjectAndAnAccount:
    def test_a_project_goes_whole_and_the_other_project_stays(self, agent: Agent) -> None:
        start(agent, f"I prefer {SECRET} always here and there.", project="api", session="talk")
        start(agent, f"I prefer {SECRET} over tabs.", project="api", session="talk")
        start(agent, "I prefer spaces over tabs.", project="web", session="talk")
        record(agent.account.pk, NewFact(project="api", text=f"The host is {SECRET}."))
        project = Interaction.objects.earliest("id").project_id
        erase("project", project, account_id=agent.account.pk, actor="system")
        assert places(SECRET) == []
        assert gone(project) == []
        assert (Interaction.objects.count(), Preference.objects.count()) == (1, 1)

    def test_an_account_goes_whole_and_its_rival_keeps_everything(self, agent: Agent, rival: Agent) -> None:
        for own in (agent, rival):
            for n in range(3):
                report(own, start(own, f"{TASK.format(n)} I prefer tabs.", project="api", session="s")["id"], "used")
            record(own.account.pk, NewFact(project="api", text="The port is 8080.", key="port"))
        before = rival.client.get("/api/v1/interactions/").json()["results"]
        erase("account", agent.account.pk, account_id=None, actor="system")
        assert gone(agent.account.pk) == []
        assert list(Account.objects.all()) == [rival.account]
        assert rival.client.get("/api/v1/interactions/").json()["results"] == before
        assert agent.client.get("/api/v1/interactions/").status_code == 401
        assert differences() == []


class TestEveryErasure:
    def test_a_dry_run_counts_the_same_and_changes_nothing(self, agent: Agent, lesson: Callable) -> None:
        lesson(TEXT)
        work = start(agent, TASK.format(1), project="api")
        report(agent, work["id"], "failed")
        before = {table: fetch(f'SELECT count(*) FROM "{table}"') for table, _ in fetch(TEXT_TABLES)}
        planned = erase("interaction", UUID(work["id"]), account_id=None, actor="system", dry_run=True)
        assert {table: fetch(f'SELECT count(*) FROM "{table}"') for table, _ in fetch(TEXT_TABLES)} == before
        assert list(read_ledger()) == []
        done = erase("interaction", UUID(work["id"]), account_id=None, actor="system")
        assert done.counts == planned.counts

    def test_leaves_a_content_free_record_and_a_line_in_the_ledger(
        self, agent: Agent, django_capture_on_commit_callbacks
    ) -> None:
        work = start(agent, f"about {SECRET}")
        with django_capture_on_commit_callbacks(execute=True):
            erase("interaction", UUID(work["id"]), account_id=None, actor="user:1")
        row = ErasureRecord.objects.get()
        assert (row.kind, str(row.subject), row.actor) == ("interaction", work["id"], "user:1")
        assert SECRET not in json.dumps(row.counts) + ledger_path().read_text()
        assert [(kind, str(subject)) for kind, subject, _ in read_ledger()] == [("interaction", work["id"])]

    def test_a_ledger_that_cannot_be_written_is_made_good_later(
        self, agent: Agent, django_capture_on_commit_callbacks
    ) -> None:
        work = start(agent, "anything")
        ledger_path().mkdir()
        with django_capture_on_commit_callbacks(execute=True):
            erase("interaction", UUID(work["id"]), account_id=None, actor="system")
        assert ErasureRecord.objects.exists()
        ledger_path().rmdir()
        assert (sync_ledger(), sync_ledger()) == (1, 0)
        assert [str(subject) for _, subject, _ in read_ledger()] == [work["id"]]

    def test_another_accounts_record_does_not_exist_for_the_caller(self, agent: Agent, rival: Agent) -> None:
        work = start(agent, "anything")
        for kind in ("interaction", "account", "project", "fact", "lesson"):
            with pytest.raises(NotFound):
                erase(kind, UUID(work["id"]), account_id=rival.account.pk, actor="system")
        assert Interaction.objects.exists()

    def test_journals_are_append_only_again_right_after(self, agent: Agent) -> None:
        work = start(agent, "anything")
        TrustEvent.objects.create(lesson=work["id"], kind="approved", actor="system")
        with transaction.atomic():
            erase("interaction", UUID(work["id"]), account_id=None, actor="system")
            with pytest.raises(IntegrityError), transaction.atomic():
                execute("DELETE FROM trust_event")
        assert connection.needs_rollback is False

    def test_what_was_erased_stays_away_after_all_background_work(self, agent: Agent, lesson: Callable) -> None:
        bad, kept = lesson(TEXT), lesson("Log every lost database connection of the worker with its host name.")
        erase("lesson", bad.pk, account_id=None, actor="system")
        embed_pending()
        found = start(agent, TASK.format(1))["lessons"]
        assert [f["id"] for f in found] == [str(kept.pk)]
        assert set(LessonEmbedding.objects.values_list("lesson_id", flat=True)) == {kept.pk}


@pytest.mark.django_db(transaction=True)
class TestARace:
    def test_a_lesson_handed_out_while_it_is_erased_leaves_no_copy(self, space, agent: Agent, lesson: Callable) -> None:
        bad = lesson(TEXT)
        holding, found = threading.Event(), threading.Event()
        answers: list[dict] = []

        def hand_out() -> None:
            with transaction.atomic():
                answers.append(start(agent, TASK.format(1)))
                found.set()
                holding.wait(10)
            connection.close()

        rival = threading.Thread(target=hand_out)
        rival.start()
        assert found.wait(30)

        def erase_it() -> None:
            erase("lesson", bad.pk, account_id=None, actor="system")
            connection.close()

        eraser = threading.Thread(target=erase_it)
        eraser.start()
        eraser.join(1)
        assert eraser.is_alive(), "the erasure waits for whoever hands the lesson out"
        holding.set()
        rival.join(30)
        eraser.join(30)
        assert [handed["id"] for handed in answers[0]["lessons"]] == [str(bad.pk)]
        assert Interaction.objects.get().retrieved_context == ""
        assert gone(bad.pk) == []

    def test_outcomes_that_land_meanwhile_are_refused_or_erased(self, space, agent: Agent) -> None:
        works = [start(agent, f"task {n}")["id"] for n in range(12)]
        statuses: list[int] = []

        def report_all(signal: str) -> None:
            for work in works:
                address = f"/api/v1/interactions/{work}/outcomes/"
                statuses.append(agent.client.post(address, {"signal": signal}, format="json").status_code)
            connection.close()

        def erase_all() -> None:
            for work in works:
                erase("interaction", UUID(work), account_id=None, actor="system")
            connection.close()

        threads = [threading.Thread(target=report_all, args=(signal,)) for signal in ("used", "failed")]
        threads.append(threading.Thread(target=erase_all))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert set(statuses) <= {200, 201, 404}
        assert not Interaction.objects.exists()
        assert not Outcome.objects.exists()
        assert differences() == []

    @pytest.mark.parametrize("within", [nullcontext, transaction.atomic], ids=["alone", "in a request"])
    def test_a_deadlock_is_tried_again_and_told_to_the_ledger_once(
        self, space, agent: Agent, lesson: Callable, within: Callable[[], AbstractContextManager[None]]
    ) -> None:
        work, (learned, other) = UUID(start(agent, "anything")["id"]), (lesson(TEXT), lesson("Log with structlog."))
        Lesson.objects.filter(pk=learned.pk).update(source_interaction=work)
        locked = threading.Event()

        def cross() -> None:
            with transaction.atomic():
                execute("SET LOCAL deadlock_timeout = '60s'")  # so that it is the erasure that gives way
                fetch("SELECT 1 FROM lesson WHERE id = %s FOR UPDATE", [learned.pk])
                locked.set()
                until(lambda: fetch(WAITING))
                fetch("SELECT 1 FROM interaction WHERE id = %s FOR UPDATE", [work])
            connection.close()

        rival = threading.Thread(target=cross)
        rival.start()
        assert locked.wait(30)
        with capture_logs() as logged, within():
            erase("interaction", work, account_id=None, actor="system")
        rival.join(30)
        assert [entry["event"] for entry in logged] == ["erasure_attempted_again"]
        assert list(Lesson.objects.all()) == [other]
        assert ErasureRecord.objects.count() == 1
        assert [subject for _, subject, _ in read_ledger()] == [work]

    def test_what_always_loses_gives_up_and_has_changed_nothing(self, space, agent: Agent, monkeypatch) -> None:
        work = UUID(start(agent, "anything")["id"])
        tried = []

        def lose(subject: UUID, counts: Counter[str]) -> None:
            tried.append(subject)
            execute("DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = 'deadlock_detected'; END $$")

        monkeypatch.setattr("memory.services.erasure.run.FIRST_WAIT", 0)
        monkeypatch.setitem(KINDS, "interaction", lose)
        with pytest.raises(OperationalError):
            erase("interaction", work, account_id=None, actor="system")
        assert len(tried) == 5
        assert not ErasureRecord.objects.exists()
        assert list(read_ledger()) == []

    def test_any_other_fault_is_not_tried_again(self, space, agent: Agent, monkeypatch) -> None:
        work, tried = UUID(start(agent, "anything")["id"]), []

        def fail(subject: UUID, counts: Counter[str]) -> None:
            tried.append(subject)
            execute("DO $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = 'disk_full'; END $$")

        monkeypatch.setitem(KINDS, "interaction", fail)
        with pytest.raises(OperationalError):
            erase("interaction", work, account_id=None, actor="system")
        assert len(tried) == 1
