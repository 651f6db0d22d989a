"""Calibrating a space: what counts as evidence, what is proposed, and that one change at a time is applied."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Account, Calibration, EmbeddingSpace, Interaction, JobRun, Lesson, LessonUsage
from memory.rules.calibration import ENOUGH
from memory.search import EmbeddedQuery, embed_query
from memory.services import calibration
from memory.services.calibration import Values
from memory.services.credit import sweep
from memory.services.everyday import EVERYDAY
from memory.services.labelled import Evidence, of_files, of_store
from memory.services.measuring import measure, ungated
from memory.services.retrieval import look_up
from tests.models.test_concurrency import compete
from tests.services.play import make_callers, say, serve

pytestmark = pytest.mark.django_db
Make = Callable[..., Lesson]
THINGS = (
    "socket", "cursor", "session", "file", "pool", "lock", "thread", "queue", "pipe", "stream", "channel", "buffer",
    "handle", "mutex", "timer", "watcher", "listener", "proxy", "tunnel", "logger", "parser", "cache", "index", "shard",
    "replica", "migration", "trigger", "fixture", "mock", "schema",
)  # fmt: skip
STRICT: Values = {"min_similarity": 0.99, "uncorroborated_min_similarity": 0.995, "gate": None}


def taught(lesson: Make, account: Account, thing: str) -> Lesson:
    """A lesson, and the work that it was learned from."""
    work = serve(account, f"release the {thing} once its {thing} owner has gone", [])
    made = lesson(f"Release the `{thing}` in a `finally` block, once the {thing} has no owner.")
    Lesson.objects.filter(pk=made.pk).update(source_interaction=work.pk)
    return made


@pytest.fixture
def store(lesson: Make, account: Account) -> list[Lesson]:
    """As many lessons with their tasks as a fit needs, and a few more."""
    make_callers(account)
    return [taught(lesson, account, thing) for thing in THINGS]


def version(space: EmbeddingSpace) -> str:
    return calibration.version_of(calibration.values_of(EmbeddingSpace.objects.get(pk=space.pk)))


class TestEvidence:
    def test_a_lesson_fits_the_task_it_was_learned_from_and_one_that_was_won_with_it(
        self, lesson: Make, account: Account
    ) -> None:
        callers = make_callers(account)
        learned = taught(lesson, account, "socket")
        used = lesson("Close the `cursor` before the connection goes back to its pool.")
        for source, signal in (("caller", "accepted"), ("machine", "failed"), ("attributed", "tests_passed")):
            say(callers[source], serve(account, f"close what the {source} opened", [used]).pk, signal)
        sweep()
        found = of_store()
        assert {(asked.text, asked.basis, asked.fits) for asked in found.tasks} == {
            ("release the socket once its socket owner has gone", "learned", frozenset({learned.pk})),
            ("close what the caller opened", "won", frozenset({used.pk})),
        }
        assert [asked.text for asked in found.off_domain] == list(EVERYDAY)
        assert found.basis == {"learned": 1, "won": 1, "everyday": len(EVERYDAY)}

    def test_what_is_out_of_service_fits_nothing(self, lesson: Make, account: Account) -> None:
        make_callers(account)
        gone = taught(lesson, account, "socket")
        Lesson.objects.filter(pk=gone.pk).update(state="rejected")
        assert of_store().tasks == ()

    def test_one_task_in_several_wordings_of_white_space_is_one_question(self, lesson: Make, account: Account) -> None:
        callers = make_callers(account)
        one, other = (lesson(f"Close the `{thing}` before it is renamed.") for thing in ("cursor", "file"))
        for shown, task in ((one, "close it first"), (other, "Close  it first.")):
            say(callers["caller"], serve(account, task, [shown]).pk, "accepted")
        sweep()
        assert [asked.fits for asked in of_store().tasks] == [frozenset({one.pk, other.pk})]

    def test_the_digest_is_of_the_questions_whatever_their_order(self, store: list[Lesson]) -> None:
        found = of_store()
        backwards = Evidence(tasks=found.tasks[::-1], off_domain=found.off_domain[::-1])
        assert found.digest == backwards.digest != Evidence(tasks=found.tasks[1:], off_domain=found.off_domain).digest

    def test_a_file_names_lessons_by_their_id_here_or_where_they_came_from(
        self, lesson: Make, account: Account, tmp_path: Path
    ) -> None:
        one, other = lesson("Close the `cursor` first."), lesson("Close the `file` first.")
        Lesson.objects.filter(pk=other.pk).update(source_ref="f1")
        rows = [{"query": "close it", "lesson_id": str(one.pk)}, {"query": "close that", "lesson_id": "f1"}]
        queries = tmp_path / "queries.jsonl"
        queries.write_text("\n".join(map(json.dumps, rows)))
        strangers = tmp_path / "off.jsonl"
        strangers.write_text('{"query": "bake a cake"}\n\n')
        found = of_files(queries, strangers)
        assert [asked.fits for asked in found.tasks] == [frozenset({one.pk}), frozenset({other.pk})]
        assert [(asked.text, asked.basis) for asked in found.off_domain] == [("bake a cake", "file")]

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ('{"query": "x"}', 'line 1 needs a "lesson_id"'),
            ('{"query": " ", "lesson_id": "1"}', 'line 1 needs a "query"'),
            ("[]", "line 1 is no object"),
            ("{", "line 1 is not JSON"),
            ('{"query": "x", "lesson_id": "nobody"}', "no lesson in service here has the id nobody"),
        ],
    )
    def test_a_file_that_cannot_be_used_is_refused_by_line(self, tmp_path: Path, line: str, words: str) -> None:
        queries = tmp_path / "queries.jsonl"
        queries.write_text(line)
        with pytest.raises(Invalid, match=words):
            of_files(queries, None)
        with pytest.raises(Invalid, match="cannot be read"):
            of_files(tmp_path / "nothing.jsonl", None)


class TestMeasuring:
    def test_sees_what_retrieval_considers_before_its_gate_and_leaves_no_trace(
        self, store: list[Lesson], space: EmbeddingSpace
    ) -> None:
        Lesson.objects.filter(pk=store[0].pk).update(state="quarantined")
        evidence = of_store()
        found = measure(evidence, space)
        assert len(found.tasks) == len(THINGS) - 1
        assert all(sum(pair.fits for pair in task.pairs) == 1 for task in found.tasks)
        assert all(len(task.pairs) > 5 for task in found.tasks)
        assert not any(pair.fits for question in found.off_domain for pair in question.pairs)
        assert found.other_topics == (), "a small store has no other topics"
        assert not LessonUsage.objects.exists()
        assert Interaction.objects.count() == len(THINGS)

    def test_sets_tasks_of_a_larger_store_beside_lessons_of_other_topics(
        self, store: list[Lesson], space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memory.services.measuring.ENOUGH", 10)
        found = measure(of_store(), space)
        assert len(found.other_topics) == len(THINGS)
        assert not any(pair.fits for question in found.other_topics for pair in question.pairs)
        best = [max(pair.cosine for pair in task.pairs if pair.fits) for task in found.tasks]
        others = [question.pairs[0].cosine for question in found.other_topics]
        assert sum(others) / len(others) < sum(best) / len(best)

    def test_an_ungated_space_is_never_the_stores(self, space: EmbeddingSpace) -> None:
        open_space = ungated(space)
        assert (open_space.pk, open_space.min_similarity, open_space.gate) == (space.pk, -1.0, None)
        assert EmbeddingSpace.objects.get().min_similarity == space.min_similarity != -1.0


class TestProposing:
    def test_a_fit_is_cross_validated_kept_and_changes_nothing(
        self, store: list[Lesson], space: EmbeddingSpace
    ) -> None:
        before = version(space)
        made = calibration.propose(of_store())
        assert made.proposed is not None
        assert made.missing == (0, 0)
        assert made.proposed_does is not None
        assert (made.proposed_does.tasks, made.proposed_does.off_domain) == (len(THINGS), len(EVERYDAY))
        assert made.proposed_does.found >= 0.9 * len(THINGS)
        assert made.proposed_does.noisy == 0
        assert version(space) == made.version == before
        latest = calibration.latest_proposal(space)
        assert latest is not None
        assert latest[0] == made == calibration.from_json(json.loads(json.dumps(made.to_json())))

    def test_too_little_evidence_is_no_fit_and_says_what_is_missing(
        self, lesson: Make, account: Account, space: EmbeddingSpace
    ) -> None:
        make_callers(account)
        taught(lesson, account, "socket")
        made = calibration.propose(of_store(EVERYDAY[:5]))
        assert (made.proposed, made.proposed_does) == (None, None)
        assert made.missing == (ENOUGH - 1, ENOUGH - 5)
        assert made.why_not == "Too little evidence for a fit."

    def test_questions_that_cannot_be_told_apart_are_no_fit(self, store: list[Lesson], space: EmbeddingSpace) -> None:
        texts = [lesson.text for lesson in store]
        made = calibration.propose(of_store(texts))
        assert made.proposed is None
        assert made.why_not == "An off-domain question says what a lesson says: no threshold keeps it out."

    def test_a_small_store_keeps_the_gate_that_a_larger_one_will_need(
        self, store: list[Lesson], space: EmbeddingSpace
    ) -> None:
        gate = {"min_support": 0.15, "min_similarity": 0.2}
        EmbeddingSpace.objects.update(gate=gate)
        made = calibration.propose(of_store())
        assert made.proposed is not None
        assert made.proposed["gate"] == gate

    def test_a_distribution_is_of_all_scores_and_ends_in_empty_bins(self) -> None:
        found = calibration.distribution("x", [0.01, 0.02, 0.11], 0.05)
        assert found.edges == (-0.05, 0.0, 0.05, 0.1, 0.15)
        assert found.shares == pytest.approx((0, 2 / 3, 0, 1 / 3, 0))
        assert calibration.distribution("x", [], 0.05).edges == ()


class TestApplying:
    def test_the_next_question_meets_the_new_thresholds(self, lesson: Make, account: Account) -> None:
        lesson("Close the `cursor` before the connection goes back to its pool.")
        space = EmbeddingSpace.objects.get()

        def ask() -> EmbeddedQuery:
            return embed_query("close the cursor before its connection goes back")

        assert look_up(account, ask(), 5).chosen
        calibration.apply(space.pk, STRICT, expected=version(space), actor="system", reason="stricter")
        assert not look_up(account, ask(), 5).chosen

    def test_the_journal_has_before_after_reason_and_digest(self, space: EmbeddingSpace) -> None:
        before = calibration.values_of(space)
        entry = calibration.apply(
            space.pk, STRICT, expected=version(space), actor="system", reason=" why ", data_digest="a" * 64
        )
        assert (entry.before, entry.data_digest, entry.actor) == (before, "a" * 64, "system")
        assert entry.after == {**STRICT, "reason": "why"}
        now = EmbeddingSpace.objects.get(pk=space.pk)
        assert calibration.values_of(now) == STRICT
        assert now.calibrated_at is not None
        assert now.calibrated_at <= timezone.now()
        assert calibration.former(entry, STRICT) == before

    def test_an_entry_of_the_admin_is_completed_to_be_taken_back(self, space: EmbeddingSpace) -> None:
        entry = Calibration.objects.create(
            space=space,
            before={"min_similarity": 0.1, "prune_similarity": 0.9},
            after={"min_similarity": 0.2, "prune_similarity": 0.9},
            data_digest=calibration.NO_DATA,
            actor="system",
        )
        assert calibration.former(entry, STRICT) == {**STRICT, "min_similarity": 0.1}

    @pytest.mark.parametrize(
        "wrong",
        [
            {"min_similarity": 0.999},
            {"min_similarity": float("nan")},
            {"min_similarity": None},
            {"uncorroborated_min_similarity": 1.5},
            {"gate": {"min_support": 2, "min_similarity": 0}},
            {"gate": {"other": 1}},
        ],
    )
    def test_what_are_no_thresholds_are_refused(self, space: EmbeddingSpace, wrong: dict[str, Any]) -> None:
        with pytest.raises(Invalid, match="no thresholds"):
            calibration.apply(space.pk, {**STRICT, **wrong}, expected=version(space), actor="system", reason="x")
        assert not Calibration.objects.exists()

    def test_no_reason_no_effect_no_such_space_and_what_moved_are_refused(self, space: EmbeddingSpace) -> None:
        present, now = calibration.values_of(space), version(space)
        with pytest.raises(Invalid, match="characters why"):
            calibration.apply(space.pk, STRICT, expected=now, actor="system", reason=" ")
        with pytest.raises(Invalid, match="in force already"):
            calibration.apply(space.pk, present, expected=now, actor="system", reason="x")
        with pytest.raises(NotFound):
            calibration.apply(uuid4(), STRICT, expected=now, actor="system", reason="x")
        with pytest.raises(Conflict) as moved:
            calibration.apply(space.pk, STRICT, expected="other", actor="system", reason="x")
        assert moved.value.errors == {"expected_version": [now]}
        assert not Calibration.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_who_apply_at_once_one_wins(space: EmbeddingSpace) -> None:
    seen = version(space)

    def apply(reason: str, lowest: float) -> Callable[[], object]:
        values = {**STRICT, "min_similarity": lowest}
        return lambda: calibration.apply(space.pk, values, expected=seen, actor="system", reason=reason)

    try:
        error = compete(apply("mine", 0.8), apply("theirs", 0.7), first_commits=True)
        assert isinstance(error, Conflict)
        assert [entry.after["reason"] for entry in Calibration.objects.all()] == ["mine"]
        assert EmbeddingSpace.objects.get(pk=space.pk).min_similarity == 0.8
    finally:
        space.save()  # the other tests' space


class TestCommand:
    def run(self, *args: str) -> str:
        out = StringIO()
        call_command("calibrate", *args, stdout=out)
        return out.getvalue()

    def test_shows_and_changes_nothing_until_told(self, store: list[Lesson], space: EmbeddingSpace) -> None:
        before = version(space)
        told = self.run()
        assert f"60 everyday, {len(THINGS)} learned" in told
        assert "in force: similarity 0.500 alone, 0.200 with two shared words" in told
        assert "proposed: similarity" in told
        assert "Nothing was changed: use --apply." in told
        assert version(space) == before
        assert "The proposed thresholds are in force." in self.run("--apply", "--reason", "Measured.")
        entry = Calibration.objects.get()
        assert (entry.actor, entry.after["reason"]) == ("system", "Measured.")
        assert version(space) != before
        assert "The proposed thresholds are in force." not in self.run("--apply")
        assert Calibration.objects.count() == 1

    def test_tells_programs_everything(self, store: list[Lesson], space: EmbeddingSpace) -> None:
        told = json.loads(self.run("--json"))
        assert told["applied"] is False
        assert told["proposed"]["min_similarity"] <= told["proposed"]["uncorroborated_min_similarity"]
        assert {each["name"] for each in told["distributions"]} >= {"tasks", "off_domain"}

    def test_says_what_is_missing(self, space: EmbeddingSpace) -> None:
        told = self.run("--apply")
        assert "Nothing is proposed. Too little evidence for a fit. 30 tasks and 0 off-domain questions" in told
        assert not Calibration.objects.exists()

    def test_refuses_a_file_in_a_sentence(self, space: EmbeddingSpace, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="cannot be read"):
            self.run("--queries", str(tmp_path / "none.jsonl"))

    def test_leaves_no_failed_job_behind(self, store: list[Lesson], space: EmbeddingSpace, settings: Any) -> None:
        settings.SONDER_EMBEDDING = "nothing"
        with pytest.raises(CommandError):
            self.run()
        assert not JobRun.objects.exists()
