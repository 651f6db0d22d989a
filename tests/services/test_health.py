"""The learning-health report against rows whose every figure is known."""

import ast
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings as site
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

import review.tasks
from memory import tasks
from memory.models import Account, EmbeddingSpace, Interaction, JobRun, Lesson, LessonEmbedding, LessonTombstone
from memory.models.vocabulary import OutcomeSource, TombstoneReason
from memory.rules.health import wilson
from memory.rules.signals import reward_of
from memory.services import bands, jobs, tombstone
from memory.services.health import HealthReport, report, scheduled_jobs
from memory.services.health.report import EvidenceClass, Queue, Verdicts
from memory.services.ids import first_id
from tests.conftest import Agent
from tests.models.rows import insert

pytestmark = pytest.mark.django_db

NOW = datetime(2030, 6, 15, 12, tzinfo=UTC)  # nothing that the fixtures make is recent
QUERIES = 11  # of a report, whatever it finds


@pytest.fixture
def begin(agent: Agent) -> Callable[..., UUID]:
    """An interaction of some age, with what was said of it: pairs of source and signal, in order."""

    def make(days: float = 1.0, *said: tuple[str, str], by: Agent = agent) -> UUID:
        at = NOW - timedelta(days=days)
        pk = UUID(int=first_id(at).int | secrets.randbits(62) | 7 << 76 | 2 << 62)
        insert("interaction", id=pk, account_id=by.account.pk, api_key_id=by.key.pk, created_at=at)
        for n, (source, signal) in enumerate(said, start=1):
            insert(
                "outcome",
                interaction_id=pk,
                source=source,
                signal=signal,
                sequence=n,
                reward=reward_of(signal),
                created_at=at,
                credited_at=at,
            )
        return pk

    return make


def made(account: Account | None = None) -> HealthReport:
    return report(account.pk if account else None, NOW)


def by_source(found: HealthReport) -> dict[str, tuple[int, int, int]]:
    """Wins, losses and retractions of each class that said something."""
    rows = {row.source: (row.wins, row.losses, row.retracted) for row in found.classes}
    return {source: row for source, row in rows.items() if any(row)}


class TestClassesOfEvidence:
    def test_stand_side_by_side_and_are_never_added_up(self, begin: Callable[..., UUID]) -> None:
        for n, source in enumerate(OutcomeSource.values, start=1):
            for _ in range(n):
                begin(1, (source, "accepted"))
            begin(1, (source, "failed"))
        assert by_source(made()) == {source: (n, 1, 0) for n, source in enumerate(OutcomeSource.values, start=1)}

    def test_each_have_their_say_where_two_judged_the_same_work(self, begin: Callable[..., UUID]) -> None:
        begin(1, ("machine", "tests_passed"), ("caller", "rejected"))
        assert by_source(made()) == {"caller": (0, 1, 0), "machine": (1, 0, 0)}

    def test_are_heard_by_their_latest_word(self, begin: Callable[..., UUID]) -> None:
        begin(1, ("caller", "accepted"), ("caller", "rejected"), ("caller", "accepted"))
        begin(1, ("caller", "accepted"), ("caller", "failed"))
        begin(1, ("caller", "failed"), ("caller", "retracted"))
        assert by_source(made()) == {"caller": (1, 1, 1)}

    def test_have_a_win_rate_with_its_interval(self, begin: Callable[..., UUID]) -> None:
        for signal in ("accepted", "accepted", "used", "failed"):
            begin(1, ("caller", signal))
        (caller,) = [row for row in made().classes if row.source == "caller"]
        interval = wilson(3, 4)
        assert caller == EvidenceClass(
            source="caller", wins=3, losses=1, retracted=0, win_rate=0.75, low=interval.low, high=interval.high
        )

    def test_that_said_nothing_have_no_win_rate(self) -> None:
        assert [(row.source, row.win_rate, row.low, row.high) for row in made().classes] == [
            (source, None, 0.0, 1.0) for source in OutcomeSource.values
        ]


class TestTheWindow:
    def test_is_four_weeks_of_seven_days_newest_first(self, begin: Callable[..., UUID]) -> None:
        for days in (0, 6.99, 7.01, 13.99, 27.99, 28.01, 400):
            begin(days, ("caller", "accepted"))
        begin(1, ("machine", "failed"))
        weeks = made().weeks
        assert [week.since for week in weeks] == [NOW - timedelta(days=7 * n) for n in (1, 2, 3, 4)]
        judged = [{share.source: share.judged for share in week.provenance if share.judged} for week in weeks]
        assert judged == [{"caller": 2, "machine": 1}, {"caller": 2}, {}, {"caller": 1}]
        assert [week.interactions for week in weeks] == [3, 2, 0, 1]
        assert made().work.interactions == 6

    def test_does_not_count_a_retracted_word_as_a_judge(self, begin: Callable[..., UUID]) -> None:
        begin(1, ("caller", "accepted"), ("caller", "retracted"))
        assert {share.judged for week in made().weeks for share in week.provenance} == {0}


class TestUnjudgedWork:
    def test_is_counted_once_somebody_had_a_day_to_judge_it(self, begin: Callable[..., UUID]) -> None:
        begin(0.9)
        begin(1.1)
        begin(2)
        begin(2, ("unknown", "accepted"))
        work = made().work
        assert (work.interactions, work.settled, work.without_outcome) == (4, 3, 2)


class TestDistillations:
    def test_are_counted_by_how_they_ended(self, begin: Callable[..., UUID]) -> None:
        ends: Sequence[dict[str, Any]] = [
            {"state": "no_lesson", "result_reason": "private", "completed_at": NOW},
            {"state": "no_lesson", "result_reason": "private", "completed_at": NOW},
            {"state": "stored", "result_reason": "stored", "completed_at": NOW, "lesson": UUID(int=1)},
            {"state": "pending"},
        ]
        for end in ends:
            insert("lesson_distillation", interaction_id=begin(1), **end)
        insert("lesson_distillation", interaction_id=begin(40))
        assert [(row.state, row.reason, row.n) for row in made().distillations] == [
            ("no_lesson", "private", 2),
            ("pending", None, 1),
            ("stored", "stored", 1),
        ]

    def test_that_failed_wait_for_an_operator(self, begin: Callable[..., UUID]) -> None:
        end = {"state": "failed", "result_reason": "attempts_exhausted", "completed_at": NOW}
        insert("lesson_distillation", interaction_id=begin(1), **end)
        assert "failed_distillations" in codes(made())


def codes(found: HealthReport) -> set[str]:
    return {reason.code for reason in found.reasons}


class TestLessons:
    def test_are_counted_by_state_and_age(self) -> None:
        for state, days in (("active", 1), ("active", 8), ("active", 27), ("active", 29), ("quarantined", 85)):
            insert("lesson", state=state, created_at=NOW - timedelta(days=days))
        found = {row.state: row for row in made().lessons}
        active = found["active"]
        assert (active.n, active.week, active.month, active.quarter, active.older) == (4, 1, 2, 1, 0)
        assert (found["quarantined"].n, found["quarantined"].older) == (1, 1)
        assert [row.n for row in found.values()] == [0, 4, 1, 0, 0]

    def test_on_trial_are_those_in_service(self) -> None:
        for state, on_trial in (("active", True), ("active", False), ("quarantined", True)):
            insert("lesson_standing", lesson_id=insert("lesson", state=state)["id"], on_trial=on_trial)
        assert {row.state: row.on_trial for row in made().lessons if row.on_trial} == {"active": 1}


class TestQuarantines:
    def test_are_counted_by_what_recently_happened_to_them(self) -> None:
        kinds = {
            "quarantined": 7,
            "quarantined_by_reviewer": 6,
            "upheld": 5,
            "released_by_reviewer": 2,
            "released_to_trial": 1,
            "rehabilitated": 4,
            "probation_loss": 3,
            "edited": 9,
        }
        for kind, n in kinds.items():
            for _ in range(n):
                event(kind, days=27)
            event(kind, days=29)
        q = made().quarantine
        assert (q.opened, q.opened_by_reviewer, q.upheld, q.overturned, q.rehabilitated) == (7, 6, 5, 3, 4)
        assert q.probation_losses == 3

    def test_show_what_became_of_what_they_kept_out_by_who_judged(self, begin: Callable[..., UUID]) -> None:
        credited = {"outcome_signal": "accepted", "reward": 0.8, "outcome_at": NOW}
        for exposure, source in (
            ("served", None), ("probation", "caller"), ("probation", "machine"), ("probation", None),
            ("withheld_trial", None), ("withheld_quarantine", "caller"), ("withheld_quarantine", None),
        ):  # fmt: skip
            pk = begin(1, (source or "unknown", "accepted"))
            judged = {**credited, "outcome_source": source, "credited_outcome_id": outcome_of(pk)} if source else {}
            insert("lesson_usage", interaction_id=pk, exposure=exposure, **judged)
        assert [(row.exposure, row.n, row.credited) for row in made().exposures] == [
            ("served", 1, ()),
            (
                "probation",
                3,
                (Verdicts(source="caller", wins=1, losses=0), Verdicts(source="machine", wins=1, losses=0)),
            ),
            ("withheld_trial", 1, ()),
            ("withheld_quarantine", 2, (Verdicts(source="caller", wins=1, losses=0),)),
        ]

    def test_that_people_lift_are_minded(self) -> None:
        for kind in ("released_by_reviewer", "released_to_trial", "upheld"):
            event(kind, days=1)
        assert "overturned" in codes(made())


def event(kind: str, *, days: float, lesson: UUID | None = None) -> None:
    at = NOW - timedelta(days=days)
    pk = UUID(int=first_id(at).int | secrets.randbits(62))
    insert("trust_event", id=pk, kind=kind, created_at=at, **({"lesson": lesson} if lesson else {}))


def outcome_of(interaction: UUID) -> UUID:
    (pk,) = Interaction.objects.get(pk=interaction).outcome_set.values_list("pk", flat=True)
    return UUID(str(pk))


class TestBands:
    def test_are_those_last_measured_with_how_much_they_rest_on(self) -> None:
        for n, losses in ((1, 1), (1, 0), (8, 2)):
            lesson = insert("lesson")["id"]
            insert("lesson_source_sum", lesson_id=lesson, source="caller", n=n, losses=losses)
        bands.measure()
        rows = {row.lower: row for row in made().bands}
        assert list(rows) == [1, 2, 5, 10, 25, 50, 100]
        interval = wilson(1, 2)
        assert (rows[1].upper, rows[1].n, rows[1].losses, rows[1].low, rows[1].high) == (
            1, 2, 1, interval.low, interval.high,
        )  # fmt: skip
        assert rows[1].rate == pytest.approx((1 + 50 * 0.5062) / 52)
        assert (rows[5].n, rows[5].losses, rows[100].upper) == (8, 2, None)


class TestQueues:
    def test_say_how_much_waits_how_much_of_it_is_late_and_since_when(self, begin: Callable[..., UUID]) -> None:
        ages = {"credit": (4, 6), "distillation": (50, 70), "review": (6 * 1440, 8 * 1440), "contradiction": (1,)}
        oldest = {name: NOW - timedelta(minutes=max(minutes)) for name, minutes in ages.items()}
        for minutes in ages["credit"]:
            insert("outcome", interaction_id=begin(1), created_at=NOW - timedelta(minutes=minutes))
        for minutes in ages["distillation"]:
            insert("lesson_distillation", interaction_id=begin(1), created_at=NOW - timedelta(minutes=minutes))
        for minutes in ages["review"]:
            insert("review_item", created_at=NOW - timedelta(minutes=minutes))
        insert("contradiction", created_at=oldest["contradiction"])
        assert made().queues == tuple(
            Queue(name=name, waiting=len(minutes), late=int(len(minutes) > 1), oldest_at=oldest[name])
            for name, minutes in ages.items()
        )
        assert {"uncredited", "undistilled", "unreviewed"} <= codes(made())

    def test_hold_nothing_that_is_done(self, begin: Callable[..., UUID]) -> None:
        begin(1, ("caller", "accepted"))
        end = {"state": "no_lesson", "result_reason": "private", "completed_at": NOW}
        insert("lesson_distillation", interaction_id=begin(1), **end)
        insert("review_item", status="resolved")
        insert("contradiction", verdict="keep_both")
        assert [(queue.waiting, queue.oldest_at) for queue in made().queues] == [(0, None)] * 4

    def test_hold_what_a_worker_is_at(self, begin: Callable[..., UUID]) -> None:
        claim = {"claim_token": UUID(int=1), "owner": "w", "claimed_at": NOW, "lease_expires_at": NOW}
        insert("lesson_distillation", interaction_id=begin(1), state="claimed", **claim)
        insert("lesson_distillation", interaction_id=begin(1), state="retryable")
        assert [queue.waiting for queue in made().queues if queue.name == "distillation"] == [2]


class TestVectors:
    def test_that_are_missing_of_another_space_or_of_tombstones_are_counted(
        self, lesson: Callable[..., Lesson], space: EmbeddingSpace
    ) -> None:
        kept = lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")
        insert("lesson", created_at=NOW - timedelta(minutes=6))
        insert("lesson", created_at=NOW - timedelta(minutes=4))
        other = EmbeddingSpace.objects.get(pk=insert("embedding_space", dimension=3)["id"])
        LessonEmbedding.objects.create(lesson=kept, space=other, embedding=[1, 0, 0])
        tombstone.write(kept.pk, TombstoneReason.SUPERSEDED)
        insert("lesson_tombstone")
        found = made().vectors
        assert found.space == str(space)
        assert (found.lessons, found.missing, found.in_other_spaces, found.tombstones_left_behind) == (3, 1, 1, 1)
        assert {"without_vector", "tombstones"} <= codes(made())

    def test_are_all_missing_without_an_active_space(self, lesson: Callable[..., Lesson]) -> None:
        lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")
        EmbeddingSpace.objects.update(is_active=False)
        found = made().vectors
        assert (found.space, found.missing) == (None, 1)


class TestJobs:
    def test_are_all_of_the_schedule_by_the_names_that_their_runs_have(self) -> None:
        recorded = set(recorded_jobs())
        assert set(scheduled_jobs()) == recorded
        tasks_named = [entry["task"] for entry in site.CELERY_BEAT_SCHEDULE.values()]
        assert len(scheduled_jobs()) == len(tasks_named) == len(set(tasks_named))

    def test_have_their_last_run_and_how_punctual_they_are(self, account: Account) -> None:
        Account.objects.update(created_at=NOW - timedelta(days=400))
        run("daily", NOW - timedelta(days=2), "done")
        run("daily", NOW - timedelta(hours=3), "failed")
        run("credit_sweep", NOW - timedelta(days=2), "done")
        run("embed_sweep", NOW - timedelta(seconds=40), "done")
        run("embed_sweep", NOW, "")
        found = {job.job: job for job in made().jobs}
        daily = found["daily"]
        assert (daily.standing, daily.started_at, daily.outcome, daily.done_at) == (
            "failed", NOW - timedelta(hours=3), "failed", NOW - timedelta(days=2),
        )  # fmt: skip
        assert (found["credit_sweep"].standing, found["distill_sweep"].standing) == ("late", "never_ran")
        embed = found["embed_sweep"]
        assert (embed.standing, embed.outcome, embed.started_at) == ("on_time", "", NOW)
        assert {reason.words for reason in made().reasons} >= {
            "The last run of the job daily failed.",
            "The job credit_sweep last ran well 2 days ago; it is due every 30 seconds.",
            "The job distill_sweep has never run well; it is due every 30 seconds.",
        }

    def test_of_a_store_that_was_just_made_had_no_time_to_run(self, account: Account) -> None:
        Account.objects.update(created_at=NOW)
        assert {job.standing for job in made().jobs} == {"waiting"}

    def test_are_recorded_as_the_report_reads_them(self, account: Account) -> None:
        with jobs.recorded("daily"):
            pass
        (daily,) = [job for job in report().jobs if job.job == "daily"]
        assert (daily.standing, daily.outcome) == ("on_time", "done")

    def test_may_be_scheduled_by_a_span_or_by_the_calendar(self) -> None:
        schedule = {
            "a": {"task": "memory.tasks.maintenance_a", "schedule": timedelta(minutes=5)},
            "b": {"task": "memory.tasks.credit_b", "schedule": object()},
        }
        with override_settings(CELERY_BEAT_SCHEDULE=schedule):
            assert scheduled_jobs() == {"a": 300.0, "credit_b": 86400.0}


def run(job: str, at: datetime, outcome: str) -> None:
    JobRun.objects.create(job=job, started_at=at, outcome=outcome, finished_at=at if outcome else None)


def recorded_jobs() -> list[str]:
    """The names under which the tasks record their runs."""
    names = []
    for room in (tasks, review.tasks):
        for node in ast.walk(ast.parse(Path(str(room.__file__)).read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr="recorded"), args=[ast.Constant(value=str(name))]):
                    names.append(name)
                case ast.Call(
                    func=ast.Attribute(attr="recorded"), args=[ast.Attribute(value=ast.Name(id=module), attr=constant)]
                ):
                    names.append(getattr(getattr(room, module), constant))
    return names


class TestAnAccount:
    def test_sees_its_own_work_alone_and_an_operator_all_of_it(
        self, agent: Agent, rival: Agent, begin: Callable[..., UUID]
    ) -> None:
        begin(1, ("caller", "accepted"))
        theirs = begin(2, ("machine", "failed"), by=rival)
        insert("lesson_distillation", interaction_id=theirs)
        insert("lesson_usage", interaction_id=theirs)
        insert("outcome", interaction_id=begin(2, by=rival))
        own, others, whole = made(agent.account), made(rival.account), made()
        assert by_source(own) == {"caller": (1, 0, 0)}
        assert by_source(others) == {"machine": (0, 1, 0), "caller": (1, 0, 0)}
        assert by_source(whole) == {"machine": (0, 1, 0), "caller": (2, 0, 0)}
        assert [found.work.interactions for found in (own, others, whole)] == [1, 2, 3]
        assert [found.work.without_outcome for found in (own, others, whole)] == [0, 0, 0]
        assert [len(found.distillations) for found in (own, others, whole)] == [0, 1, 1]
        assert [sum(row.n for row in found.exposures) for found in (own, others, whole)] == [0, 1, 1]
        waiting = [{queue.name: queue.waiting for queue in found.queues} for found in (own, others, whole)]
        assert [(row["credit"], row["distillation"]) for row in waiting] == [(0, 0), (1, 1), (1, 1)]

    def test_sees_shared_lessons_as_counts(self, agent: Agent) -> None:
        shared = insert("lesson")["id"]
        event("quarantined", days=1, lesson=shared)
        insert("review_item")
        insert("contradiction")
        insert("band_rate", scored=9)
        own = made(agent.account)
        assert [row.n for row in own.lessons if row.n] == [1]
        assert own.quarantine.opened == 1
        assert own.vectors.lessons == own.vectors.missing == 1
        assert [row.n for row in own.bands] == [9]
        assert {queue.name: queue.waiting for queue in own.queues} == {
            "credit": 0, "distillation": 0, "review": 1, "contradiction": 1,
        }  # fmt: skip

    @override_settings(SONDER_LESSON_SCOPE="account")
    def test_sees_no_others_lessons_where_they_are_not_shared(self, agent: Agent, rival: Agent) -> None:
        for who in (agent.account.pk, rival.account.pk, None):
            lesson = insert("lesson", account_id=who)["id"]
            event("quarantined", days=1, lesson=lesson)
            insert("review_item", account_id=who)
            insert("contradiction", account_id=who)
            insert("band_rate", account_id=who, lower=1, scored=9)
            insert("lesson_tombstone", account_id=who)
        own, whole = made(agent.account), made()
        assert [sum(row.n for row in found.lessons) for found in (own, whole)] == [1, 3]
        assert [found.quarantine.opened for found in (own, whole)] == [1, 3]
        assert [found.vectors.lessons for found in (own, whole)] == [1, 3]
        assert [found.vectors.tombstones_left_behind for found in (own, whole)] == [1, 3]
        assert [[row.n for row in found.bands] for found in (own, whole)] == [[9], [27]]
        waiting = [{queue.name: queue.waiting for queue in found.queues} for found in (own, whole)]
        assert [(row["review"], row["contradiction"]) for row in waiting] == [(1, 1), (3, 3)]

    def test_sees_questions_about_its_own_work_and_no_others(self, agent: Agent, rival: Agent) -> None:
        for who in (agent, rival):
            insert("review_item", kind="outcome_needed", account_id=who.account.pk)
        assert [queue.waiting for queue in made(agent.account).queues if queue.name == "review"] == [1]


class TestAReport:
    def test_takes_the_same_number_of_queries_whatever_it_finds(
        self, agent: Agent, begin: Callable[..., UUID], lesson: Callable[..., Lesson]
    ) -> None:
        def queries(account: Account | None) -> int:
            with CaptureQueriesContext(connection) as captured:
                made(account)
            return len(captured)

        empty = [queries(None), queries(agent.account)]
        for source in OutcomeSource.values:
            pk = begin(1, (source, "accepted"))
            insert("lesson_usage", interaction_id=pk)
            insert("lesson_distillation", interaction_id=pk)
            event("quarantined", days=1)
            run("daily", NOW, "done")
        assert [queries(None), queries(agent.account)] == empty == [QUERIES, QUERIES]

    def test_of_a_store_that_grades_itself_says_so_however_well_it_does(self, begin: Callable[..., UUID]) -> None:
        insert("lesson")
        for _ in range(40):
            begin(1, ("machine", "tests_passed"))
        assert "self_graded" in codes(made())
        begin(1, ("caller", "accepted"))
        assert "self_graded" not in codes(made())

    def test_of_an_empty_store_is_building(self, account: Account) -> None:
        Account.objects.update(created_at=NOW)
        found = made()
        assert (found.state, codes(found)) == ("building", {"few_judged", "no_lessons"})

    def test_of_a_good_store_is_healthy(
        self, account: Account, begin: Callable[..., UUID], lesson: Callable[..., Lesson]
    ) -> None:
        Account.objects.update(created_at=NOW)
        lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")
        for n in range(40):
            begin(1, ("caller", "failed" if n < 8 else "accepted"))
        assert (made().state, made().reasons) == ("healthy", ())


def test_an_id_parts_what_is_older_from_what_is_newer() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    bound = first_id(at)
    older, same = (UUID(int=(int(at.timestamp() * 1000) + ms) << 80 | 7 << 76 | 2 << 62) for ms in (-1, 0))
    assert older < bound < same
    assert LessonTombstone.objects.filter(pk__gte=bound).count() == 0
