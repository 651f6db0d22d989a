"""An old store moves in: all that has a place here comes along, once, and the rest is told with its reason."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from memory.models import (
    Account,
    EmbeddingSpace,
    Fact,
    ImportedRow,
    Interaction,
    Lesson,
    LessonDistillation,
    LessonEmbedding,
    LessonStanding,
    LessonTombstone,
    LessonUsage,
    Outcome,
    Preference,
    RefinementHistory,
    ReviewItem,
    Session,
    SessionProjectSummary,
    Task,
    TaskDependency,
    WriteRefusal,
)
from memory.services.erasure import erase
from memory.services.preference_history import versions_of
from memory.services.sonder.job import Job
from memory.services.sonder.values import old_digest, project_slug
from memory.services.standing import differences
from tests.services.old_store import OldStore, nomic, vector

pytestmark = pytest.mark.django_db

REAL = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "sonder_memory.db"
PARSER = "Pin the parser to `==2.1` in `requirements.txt`, because a minor release renamed its tokens."
CURSOR = "Close every `psycopg` cursor before the commit, because an open cursor keeps the snapshot alive."
CLOCK = "Freeze the clock with `time_machine.travel` in tests that compare dates."


@pytest.fixture(autouse=True)
def own_ledger(settings: Any, tmp_path: Path) -> None:
    settings.SONDER_VAR = str(tmp_path / "var")


@pytest.fixture
def old(tmp_path: Path) -> OldStore:
    return OldStore(tmp_path / "memory.db")


def moved(path: Path, *options: str) -> dict[str, Any]:
    """The report of the command; of every table the counts add up to its rows."""
    out = StringIO()
    call_command("import_sonder", str(path), "--json", *options, stdout=out)
    report: dict[str, Any] = json.loads(out.getvalue())
    for name, tally in report["tables"].items():
        assert tally["imported"] + tally["already"] + sum(tally["skipped"].values()) == tally["rows"], name
    return report


@pytest.fixture
def move(old: OldStore, space: EmbeddingSpace) -> Callable[..., dict[str, Any]]:
    def run(*options: str) -> dict[str, Any]:
        return moved(old.path, *options)

    return run


def here(kind: str, legacy: str) -> Any:
    """The id that a row of the file has here."""
    return ImportedRow.objects.get(kind=kind, legacy_id=legacy).subject


def skipped(report: dict[str, Any], table: str) -> dict[str, str]:
    """Why rows of a table were skipped, by their old ids."""
    return {row["id"]: row["reason"] for row in report["details"] if row["table"] == table}


def doctor() -> dict[str, Any]:
    out = StringIO()
    call_command("doctor", "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


class TestTheRealStore:
    def test_it_moves_in_whole_and_a_second_time_nothing_more(self, space: EmbeddingSpace) -> None:
        first = moved(REAL)
        assert {name: (t["rows"], t["imported"]) for name, t in first["tables"].items() if t["imported"]} == {
            "interactions": (600, 600), "sessions": (1, 1), "lessons": (300, 300), "lesson_usage": (1757, 1757),
            "outcomes": (497, 497), "preferences": (2, 2), "facts": (5, 5), "tasks": (1, 1), "task_events": (1, 1),
        }  # fmt: skip
        assert {reason for t in first["tables"].values() for reason in t["skipped"]} == {
            "made_anew", "of_the_old_program",
        }  # fmt: skip
        assert (first["vectors"], first["credited"]) == ({"kept": 294}, 497)
        assert first["spaces"] == ["all-minilm-l6-v2:latest int8-8199be6f (384)"]
        assert set(Outcome.objects.values_list("source", flat=True)) == {"unknown"}
        assert set(Lesson.objects.values_list("state", flat=True)) == {"active"}
        assert len(first["quarantined_there"]) == 3
        assert LessonStanding.objects.count() == LessonUsage.objects.filter(
            credited_outcome__isnull=False
        ).values("lesson").distinct().count()  # fmt: skip
        assert doctor()["clean"]
        second = moved(REAL)
        assert {name: t["already"] for name, t in second["tables"].items() if t["already"]} == {
            name: t["imported"] for name, t in first["tables"].items() if t["imported"]
        }
        assert (Interaction.objects.count(), Outcome.objects.count(), Lesson.objects.count()) == (600, 497, 300)


class TestLessons:
    def test_a_lesson_keeps_its_time_its_source_and_its_old_id(self, old: OldStore, move: Callable[..., Any]) -> None:
        old.work("i1")
        old.add("lessons", id="l1", text=PARSER, source_interaction="i1", ts="2026-05-01 08:00:00")
        old.add("lessons", id="l2", text=CURSOR, source_interaction="seed:concept:databases")
        report = move()
        lesson = Lesson.objects.get(text=PARSER)
        assert (str(lesson.created_at), lesson.origin) == ("2026-05-01 08:00:00+00:00", "imported")
        assert (lesson.source_interaction, lesson.source_ref) == (here("interaction", "i1"), "l1")
        assert lesson.source_import.name == "memory.db"
        assert report["notes"] == {"lessons whose source is no interaction of the file": 1}

    def test_vectors_stay_in_the_space_of_their_model_with_its_thresholds(
        self, old: OldStore, move: Callable[..., Any], space: EmbeddingSpace
    ) -> None:
        old.add("lessons", id="l1", text=PARSER, **nomic(3.0, 4.0))
        old.add("lessons", id="l2", text=CURSOR, **{**nomic(1.0), "embedding_dim": 9})
        old.add("lessons", id="l3", text=CLOCK, **{**nomic(1.0), "embedding_model": None})
        report = move()
        assert report["vectors"] == {"kept": 1, "dimension_lies": 1, "no_model": 1}
        own = EmbeddingSpace.objects.get(model="nomic-embed-text")
        assert (own.min_similarity, own.uncorroborated_min_similarity, own.is_active) == (0.62, 0.70, False)
        kept = LessonEmbedding.objects.get(space=own)
        assert list(kept.embedding) == pytest.approx([0.6, 0.8, 0, 0, 0, 0, 0, 0], abs=1e-3)
        assert LessonEmbedding.objects.filter(space=space).count() == 3, "all are embedded in the active space too"

    def test_vectors_of_the_active_space_are_taken_as_they_are(
        self, old: OldStore, move: Callable[..., Any], space: EmbeddingSpace
    ) -> None:
        told = {"embedding_model": space.model, "embedding_revision": space.revision, "embedding_dim": space.dimension}
        old.add("lessons", id="l1", text=PARSER, embedding=vector(1.0, dimension=space.dimension), **told)
        move()
        assert list(LessonEmbedding.objects.get().embedding)[:2] == [1.0, 0.0]

    def test_the_gates_refuse_what_they_refuse_everywhere_once(self, old: OldStore, move: Callable[..., Any]) -> None:
        texts = {
            "l1": PARSER, "twin": PARSER.upper(), "mail": "Write to bob@example.com before you deploy `api`.",
            "long": "word " * 500, "mute": "...", "none": None, "blank": "  ", "blob": b"\x00\x01",
            "vague": "Be careful.",
        }  # fmt: skip
        for legacy, text in texts.items():
            old.add("lessons", id=legacy, text=text)
        old.work("i1", "l1", "twin", "mail")
        first = move()
        assert skipped(first, "lessons") == {
            "twin": "exact_duplicate", "mail": "private", "long": "too_long", "mute": "empty", "none": "empty_text",
            "blank": "empty_text", "blob": "bad_value",
        }  # fmt: skip
        assert first["flagged"] == {"vague": 1}
        assert ReviewItem.objects.get().kind == "vague"
        assert here("lesson", "twin") == here("lesson", "l1") == Lesson.objects.get(text=PARSER).pk
        assert first["tables"]["lesson_usage"]["skipped"] == {"same_lesson": 1, "refused_above": 1}
        refusals = WriteRefusal.objects.count()
        assert refusals == 4
        second = move()
        assert skipped(second, "lessons") == skipped(first, "lessons")
        assert WriteRefusal.objects.count() == refusals
        old.connection.execute("UPDATE lessons SET text = ? WHERE id = 'mail'", (CURSOR,))
        old.connection.commit()
        assert move()["tables"]["lessons"]["imported"] == 1, "what was put right comes along"

    def test_what_the_old_store_had_rejected_stays_out(self, old: OldStore, move: Callable[..., Any]) -> None:
        old.add("lesson_tombstones", text_sha256=old_digest(PARSER), source_lesson_id="gone", **nomic(1.0))
        old.add("lesson_tombstones", text_sha256="short")
        old.add("lesson_tombstones", text_sha256="0" * 64, reason="quarantined")
        old.add("lessons", id="l1", text=PARSER.upper())
        old.add("lessons", id="l2", text=CURSOR)
        report = move()
        assert skipped(report, "lessons") == {"l1": "rejected_value"}
        assert skipped(report, "lesson_tombstones") == {"short": "bad_value", "0" * 64: "bad_value"}
        buried = LessonTombstone.objects.get()
        assert (buried.reason, buried.space.model) == ("near_duplicate_pruned", "nomic-embed-text")
        assert [lesson.text for lesson in Lesson.objects.all()] == [CURSOR]
        assert move()["tables"]["lesson_tombstones"]["already"] == 1
        assert doctor()["clean"]

    def test_in_a_gated_account_lessons_wait(self, old: OldStore, space: EmbeddingSpace) -> None:
        Account.objects.create(slug="careful", name="Careful", review_policy="gated")
        old.add("lessons", id="l1", text=PARSER)
        moved(old.path, "--account", "careful")
        assert Lesson.objects.get().state == "candidate"


class TestTrust:
    def losing(self, old: OldStore, **row: Any) -> None:
        """A lesson that lost seven times on different tasks."""
        old.add("lessons", id="l1", text=PARSER)
        old.add("lessons", id="l2", text=CURSOR)
        for n in range(7):
            old.work(f"i{n}", "l1", signal="failed", task=f"task {n}", **row)

    def test_nothing_is_quarantined_by_a_guess_and_what_was_held_back_is_told(
        self, old: OldStore, move: Callable[..., Any]
    ) -> None:
        self.losing(old)
        old.connection.execute("UPDATE lesson_usage SET outcome_ts = datetime('now')")
        old.connection.commit()
        report = move()
        assert report["quarantined_there"] == ["l1"]
        lesson = Lesson.objects.get(text=PARSER)
        assert lesson.state == "active"
        standing = LessonStanding.objects.get(lesson=lesson)
        assert (standing.wins, standing.losses) == (0, 0)
        assert LessonUsage.objects.filter(lesson=lesson, outcome_source="unknown", weight=0).count() == 7
        assert differences() == []

    def test_after_its_week_the_old_store_would_have_tried_it_again(
        self, old: OldStore, move: Callable[..., Any]
    ) -> None:
        self.losing(old)
        assert move()["quarantined_there"] == []

    def test_where_the_file_says_who_judged_it_counts(self, old: OldStore, move: Callable[..., Any]) -> None:
        self.losing(old, source="caller")
        with override_settings(SONDER_TRUST_POLICY="trial"):
            move()
        lesson = Lesson.objects.get(text=PARSER)
        assert lesson.state == "quarantined"
        assert LessonTombstone.objects.get().source_lesson == lesson.pk
        assert doctor()["clean"]

    def test_each_source_keeps_the_order_of_its_words(self, old: OldStore, move: Callable[..., Any]) -> None:
        old.work("i1", signal=None)
        for signal, reward, source in (("used", 0.9, "caller"), ("failed", -1.0, "machine"), ("failed", -1, "caller")):
            old.add("outcomes", interaction_id="i1", signal=signal, reward=reward, source=source)
        old.add("outcomes", interaction_id="i1", signal="compiled", reward=0.7, source="a friend")
        report = move()
        told = Outcome.objects.order_by("source", "sequence").values_list("source", "sequence", "signal")
        assert list(told) == [("caller", 1, "used"), ("machine", 1, "failed"), ("unknown", 1, "compiled")]
        assert report["tables"]["outcomes"]["skipped"] == {"repeated": 1}, "the old store kept one of each signal"

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ({"signal": "retracted", "reward": 0}, "unknown_signal"),
            ({"signal": "great", "reward": 1}, "unknown_signal"),
            ({"signal": None}, "unknown_signal"),
            ({"reward": 0.9}, "reward_disagrees"),
            ({"reward": None}, "reward_disagrees"),
            ({"reward": "0.8"}, "reward_disagrees"),
            ({"ts": "soon"}, "bad_timestamp"),
            ({"interaction_id": "i2"}, "orphan"),
            ({"interaction_id": None}, "no_id"),
        ],
    )
    def test_an_outcome_that_is_not_sound_is_left_out(
        self, old: OldStore, move: Callable[..., Any], row: dict[str, Any], reason: str
    ) -> None:
        old.work("i1", signal=None)
        old.add("outcomes", **{"interaction_id": "i1", **row})
        assert move()["tables"]["outcomes"]["skipped"] == {reason: 1}

    def test_a_distillation_comes_along_as_what_came_of_it(self, old: OldStore, move: Callable[..., Any]) -> None:
        old.add("lessons", id="l1", text=PARSER, source_interaction="stored")
        old.add("lessons", id="l2", text="Ask eve@example.org about `api`.", source_interaction="private")
        rows: dict[str, dict[str, Any]] = {
            "stored": {"state": "stored"}, "private": {"state": "stored"}, "pruned": {"state": "stored"},
            "legacy": {"state": "legacy_no_lesson"}, "dull": {"state": "no_lesson", "result_reason": "not_concrete"},
            "odd": {"state": "no_lesson", "result_reason": "moon"}, "off": {"state": "cancelled"},
            "lost": {"state": "cancelled"}, "live": {"state": "claimed"}, "again": {"state": "retryable"},
        }  # fmt: skip
        for ident, row in rows.items():
            old.work(ident, signal="failed" if ident == "lost" else "accepted")
            old.add("lesson_distillations", interaction_id=ident, **row)
        report = move()
        found = {
            ident: tuple(LessonDistillation.objects.filter(pk=here("interaction", ident)).values_list(
                "state", "result_reason").first() or ()) for ident in rows
        }  # fmt: skip
        assert found == {
            "stored": ("stored", "stored"), "private": ("no_lesson", "private"), "pruned": (),
            "legacy": ("no_lesson", "no_candidate"), "dull": ("no_lesson", "not_concrete"),
            "odd": ("no_lesson", "no_candidate"), "off": ("cancelled", "cancelled_by_operator"),
            "lost": ("cancelled", "contradicted"), "live": (), "again": (),
        }  # fmt: skip
        assert report["tables"]["lesson_distillations"]["skipped"] == {"lesson_gone": 1, "unfinished": 2}


class TestWork:
    def test_work_keeps_its_order_its_session_and_its_project(self, old: OldStore, move: Callable[..., Any]) -> None:
        old.add("sessions", session_id="talk", title="Parsers", summarized_through="i2", summary="We talked.")
        old.add("session_project_summaries", session_id="talk")
        old.add("session_project_summaries", session_id="talk", project_key="none")
        for n in range(1, 5):
            old.work(f"i{n}", session_id="talk", project="My API", task=f"task {n}", tokens_in=-5, tokens_out=7)
        old.work("alone", project=None, project_explicit=0)
        report = move()
        session = Session.objects.get(external_id="talk")
        told = Interaction.objects.filter(session=session).order_by("pk")
        assert [work.task for work in told] == [f"task {n}" for n in range(1, 5)]
        assert {(w.project.slug, w.project.name, w.tokens_in, w.tokens_out) for w in told} == {
            (project_slug("My API"), "My API", None, 7)
        }
        assert (session.title, session.summary, session.summarized_through_id) == ("Parsers", "We talked.", told[1].pk)
        assert SessionProjectSummary.objects.get().summary == "We pinned parsers."
        assert report["tables"]["session_project_summaries"]["skipped"] == {"no_project": 1}
        key = told[0].api_key
        assert (key.outcome_source, key.revoked_at is None) == ("unknown", False)

    def test_facts_and_tasks_come_along(self, old: OldStore, move: Callable[..., Any]) -> None:
        old.add("facts", id="f1", text="The service listens on port 8000.")
        old.add("facts", id="f2", text="Mail ops@example.com.")
        old.add("facts", id="f3", text="Nobody's.", project=None)
        old.add("tasks", id="t1", title="Ship it", status="canceled")
        old.add("tasks", id="t2", title="x" * 301, parent_id="t1", status="doing")
        old.add("tasks", id="t3", title="Other", account_scope="somebody")
        old.add("tasks", id="t4", title="Odd", status="dreaming", parent_id="t9")
        old.add("task_events", id="e1", task_id="t1")
        old.add("task_events", id="e2", task_id="t3")
        for first, then in (("t2", "t1"), ("t1", "t2"), ("t1", "t1")):
            old.add("task_deps", task_id=first, depends_on=then)
        report = move()
        assert [fact.text for fact in Fact.objects.all()] == ["The service listens on port 8000."]
        assert skipped(report, "facts") == {"f2": "private", "f3": "no_project"}
        assert skipped(report, "tasks") == {"t3": "other_account", "t4": "unknown_status"}
        child = Task.objects.get(status="in_progress")
        assert (child.parent.title, len(child.title), child.detail[:301]) == ("Ship it", 300, "x" * 301)
        assert skipped(report, "task_events") == {"e2": "orphan"}
        assert report["tables"]["task_deps"]["skipped"] == {"cycle": 2}
        assert TaskDependency.objects.get().task == child

    def test_preferences_come_with_their_versions(self, old: OldStore, move: Callable[..., Any]) -> None:
        old.work("i1")
        state = {"id": "p1", "scope": "project:My API", "key": "tabs", "text": "Use tabs.", "source_interaction": "i1",
                 "confidence": 0.6, "evidence_count": 1, "enabled": True, "revision": 1}  # fmt: skip
        later = {**state, "text": "Use spaces.", "revision": 2}
        back = {**state, "revision": 3}
        old.add("preferences", **{**back, "enabled": 1})
        outcome = {"kind": "grounded-outcome", "summary": "s", "interaction_id": "i1", "signal": "accepted"}
        old.refine("r1", state, later, evidence_json=json.dumps([outcome]))
        old.refine("r2", later, back, operation="rollback", parent_refinement_id="r1")
        old.refine("r3", back, {**back, "revision": 4}, after_digest="0" * 64)
        old.add("preferences", id="p2", key="mail", text="Write to eve@example.org.")
        old.add("preferences", id="p3", key="odd", text="Sure?", confidence=7)
        old.add("preferences", id="p4", key="far", text="Sure.", scope="galaxy")
        report = move()
        assert skipped(report, "preferences") == {"p2": "private", "p3": "bad_value", "p4": "unknown_scope"}
        assert skipped(report, "refinement_history") == {"r3": "digest_mismatch"}
        preference = Preference.objects.get()
        assert (preference.scope, preference.revision) == (f"project:{project_slug('My API')}", 3)
        assert preference.source_interaction == here("interaction", "i1")
        assert [(v.number, v.text, v.flaw) for v in versions_of(preference)] == [
            (3, "Use tabs.", ""), (2, "Use spaces.", ""), (1, "Use tabs.", ""),
        ]  # fmt: skip
        entries = RefinementHistory.objects.order_by("after_version")
        assert entries[0].evidence_json == [{"kind": "outcome", "id": str(Outcome.objects.get().pk)}]
        assert entries[1].parent == entries[0]
        assert entries[1].evidence_json == [{"kind": "note", "text": "Bob said so."}]


class TestRuns:
    def test_what_the_old_store_got_since_comes_with_the_next_run(
        self, old: OldStore, move: Callable[..., Any]
    ) -> None:
        old.add("lessons", id="l1", text=PARSER)
        old.work("i1", "l1")
        move()
        old.add("lessons", id="l2", text=CURSOR)
        old.add("lesson_usage", lesson_id="l2", interaction_id="i1")
        old.work("i2", "l1", "l2")
        report = move()
        counts = {name: (t["imported"], t["already"]) for name, t in report["tables"].items() if t["rows"]}
        assert counts == {"interactions": (1, 1), "lessons": (1, 1), "lesson_usage": (2, 1), "outcomes": (1, 1)}
        assert report["tables"]["lesson_usage"]["skipped"] == {"scored_without": 1}
        assert differences() == []

    def test_what_was_erased_here_is_not_brought_back(self, old: OldStore, move: Callable[..., Any]) -> None:
        for n, text in ((1, PARSER), (2, CURSOR)):
            old.work(f"i{n}", project=f"p{n}", task=f"task {n}")
            old.add("lessons", id=f"l{n}", text=text, source_interaction=f"i{n}")
            old.add("facts", id=f"f{n}", text=f"Port 800{n}.", project=f"p{n}")
        move()
        erase("project", Interaction.objects.get(task="task 1").project_id, account_id=None, actor="system")
        report = move()
        assert [lesson.text for lesson in Lesson.objects.all()] == [CURSOR]
        assert [work.task for work in Interaction.objects.all()] == ["task 2"]
        assert [fact.text for fact in Fact.objects.all()] == ["Port 8002."]
        for table in ("interactions", "lessons", "facts"):
            assert report["tables"][table]["skipped"] == {"gone_here": 1}
        assert report["tables"]["outcomes"]["skipped"] == {"gone_here": 1}
        assert move("--account", Account.objects.get().slug)["tables"] == report["tables"]

    def test_an_account_that_is_erased_takes_the_old_ids_with_it(self, old: OldStore, move: Callable[..., Any]) -> None:
        old.work("i1")
        move()
        erase("account", Account.objects.get().pk, account_id=None, actor="system")
        assert ImportedRow.objects.count() == 0

    def test_a_dry_run_tells_what_would_come_and_changes_nothing(
        self, old: OldStore, account: Account, move: Callable[..., Any]
    ) -> None:
        old.add("lessons", id="l1", text=PARSER)
        old.work("i1", "l1")
        report = move("--dry-run", "--account", "acme")
        assert report["tables"]["lessons"]["imported"] == report["tables"]["outcomes"]["imported"] == 1
        assert (Lesson.objects.count(), Interaction.objects.count(), ImportedRow.objects.count()) == (0, 0, 0)
        assert move("--account", "acme")["tables"] == report["tables"]

    def test_two_accounts_may_move_the_same_file_in_without_sharing_work(
        self, old: OldStore, account: Account, rival_account: Account, space: EmbeddingSpace
    ) -> None:
        old.add("lessons", id="l1", text=PARSER)
        old.work("i1", "l1")
        with override_settings(SONDER_LESSON_SCOPE="account"):
            for slug in ("acme", "rival"):
                assert moved(old.path, "--account", slug)["tables"]["lessons"]["imported"] == 1
        assert Interaction.objects.values("account").distinct().count() == 2
        assert {lesson.account_id for lesson in Lesson.objects.all()} == {account.pk, rival_account.pk}

    def test_a_file_of_the_first_program_lacks_tables_and_columns(self, tmp_path: Path, space: EmbeddingSpace) -> None:
        old = OldStore(tmp_path / "first.db", without=("lesson_tombstones", "refinement_history", "task_deps"))
        for table, column in (("outcomes", "source"), ("preferences", "revision"), ("interactions", "session_id")):
            old.connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        old.connection.execute("CREATE TABLE memory_replication_log (source_id TEXT)")
        old.add("memory_replication_log", source_id="a")
        old.add("interactions", id="i1")
        old.add("outcomes", interaction_id="i1")
        report = moved(old.path)
        assert Outcome.objects.get().source == "unknown"
        assert report["tables"]["memory_replication_log"]["skipped"] == {"no_place": 1}

    def test_of_two_at_once_the_second_is_told_to_wait(
        self, old: OldStore, move: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old.work("i1")
        move()
        monkeypatch.setattr(Job, "known", lambda self, kind, legacy: {})  # it looked before the other had written
        with pytest.raises(CommandError, match="under way"):
            move()
        assert Interaction.objects.count() == 1

    def test_what_cannot_be_imported_says_what_to_do(self, tmp_path: Path, space: EmbeddingSpace) -> None:
        with pytest.raises(CommandError, match="cannot be read: No such file"):
            moved(tmp_path / "nowhere.db")
        with pytest.raises(CommandError, match="--create-account"):
            moved(tmp_path / "nowhere.db", "--account", "nobody")


def test_whatever_a_damaged_row_holds_the_counts_add_up_and_the_others_come_along(
    old: OldStore, move: Callable[..., Any]
) -> None:
    """Every column of every table in turn holds what it may not."""
    old.work("sound", "l0")
    old.add("lessons", id="l0", text=PARSER)
    odd: list[Any] = [None, b"\xff\x00", "", "a\0b", 10**18, -1, 1e300, "x" * 5000, "\ud7ff" * 300]
    n = 0
    for table, columns in (
        ("interactions", {"task": "t", "retrieved_ctx": "", "response": "", "tier": "", "project": "p", "ts": "",
                          "tokens_in": 1, "session_id": "s", "task_embedding": b"", "project_explicit": 1}),
        ("outcomes", {"interaction_id": "sound", "signal": "", "reward": 1, "ts": "", "source": ""}),
        ("lessons", {"text": "", "embedding": b"", "embedding_model": "", "embedding_dim": 1, "ts": "",
                     "source_interaction": ""}),
        ("lesson_usage", {"lesson_id": "l0", "interaction_id": "sound", "ts": "", "reward": 1, "task": ""}),
        ("lesson_distillations", {"interaction_id": "sound", "state": "", "signal": "", "attempts": 1}),
        ("lesson_tombstones", {"text_sha256": "0" * 64, "embedding": b"", "reason": "", "created_ts": ""}),
        ("preferences", {"scope": "", "key": "", "text": "", "confidence": 1, "evidence_count": 1, "enabled": 1}),
        ("facts", {"project": "", "text": "", "ts": "", "embedding": b""}),
        ("tasks", {"title": "", "detail": "", "status": "", "priority": 1, "owner": "", "parent_id": ""}),
        ("task_events", {"task_id": "", "event": "", "note": "", "ts": ""}),
        ("sessions", {"title": "", "summary": "", "project": "", "summarized_through": "", "created_ts": ""}),
        ("refinement_history", {"target_id": "", "operation": "", "before_json": "", "evidence_json": ""}),
    ):  # fmt: skip
        key = {"outcomes": {}, "lesson_usage": {}, "lesson_tombstones": {}, "sessions": {"session_id": "s"}}
        for column in columns:
            for value in odd:
                n += 1
                ids = {name: f"{made}{n}" for name, made in key.get(table, {"id": table}).items()}
                ids = {} if table == "lesson_distillations" else ids
                whole = {"text": f"{PARSER} {n}"} if table == "lessons" else {}
                old.add(table, **{**whole, **ids, column: value})
    report = move()
    assert report["tables"]["interactions"]["skipped"]["bad_timestamp"] >= 7
    assert Interaction.objects.filter(task="pin the parser").count() > 50
    assert Lesson.objects.filter(text=PARSER).exists()
    counts = {name: (t["already"] + t["imported"], t["skipped"]) for name, t in report["tables"].items()}
    again = move()
    assert {name: (t["already"], t["skipped"]) for name, t in again["tables"].items() if t["imported"]} == {}
    assert {name: t["already"] for name, t in again["tables"].items()} == {n: c for n, (c, _) in counts.items()}
    assert differences() == []
