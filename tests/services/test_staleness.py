"""Lessons that once did well and have not been judged for long: told, asked about, and left as they are."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from memory.models import Account, JobRun, Lesson, LessonStanding, LessonUsage, Outcome, ReviewItem, TrustEvent
from memory.services import staleness
from memory.services.credit import sweep
from memory.services.staleness import Stale, stale
from memory.tasks import maintenance_staleness
from tests.services.near import state_of
from tests.services.play import make_callers, say, serve

pytestmark = pytest.mark.django_db

TEXT = "Name every index after its table and its columns."
NOW = timezone.now()


@pytest.fixture
def judged(lesson: Callable[..., Lesson], account: Account) -> Callable[..., Lesson]:
    """A lesson with outcomes of some days ago."""
    callers = make_callers(account)

    def make(*signals: str, days: float, source: str = "caller", text: str = TEXT) -> Lesson:
        made = lesson(text)
        for n, signal in enumerate(signals):
            say(callers[source], serve(account, f"task {n} of {text}", [made]).pk, signal)
        sweep()
        at = NOW - timedelta(days=days)
        LessonUsage.objects.filter(lesson=made).update(outcome_at=at)
        for name in ("last_win_at", "last_loss_at"):
            LessonStanding.objects.filter(lesson=made, **{f"{name}__isnull": False}).update(**{name: at})
        Lesson.objects.filter(pk=made.pk).update(created_at=at)
        return made

    return make


def found() -> list[Stale]:
    return [each for batch in stale(NOW) for each in batch]


def test_one_old_win_is_stale(judged) -> None:
    lesson = judged("accepted", days=75)
    (one,) = found()
    assert (one.lesson, one.source, one.mean_reward) == (lesson.pk, "caller", pytest.approx(0.8))
    assert one.days == pytest.approx(75, abs=0.01)
    assert one.effective == pytest.approx(0.8 * 0.5 ** (75 / 30) + 0.05, abs=1e-3)


@pytest.mark.parametrize(("days", "is_stale"), [(59.9, False), (60.1, False), (75, True), (400, True)])
def test_it_takes_both_time_and_little_worth_left(judged, days, is_stale) -> None:
    """At 60 days one win of 0.8 is worth 0.8 / 4 + 0.05: still above 0.2."""
    judged("accepted", days=days)
    assert bool(found()) is is_stale


def test_many_wins_outweigh_age(judged) -> None:
    judged(*["accepted"] * 5, days=400)
    assert found() == []


def test_a_lesson_that_never_did_well_is_not_stale(judged) -> None:
    judged("failed", "rejected", days=400)
    assert found() == []


def test_a_lesson_that_nobody_judged_is_not_stale(lesson) -> None:
    Lesson.objects.filter(pk=lesson(TEXT).pk).update(created_at=NOW - timedelta(days=400))
    assert found() == []


def test_only_outcomes_that_count_keep_a_lesson_fresh(judged, account) -> None:
    lesson = judged("accepted", days=75)
    say(make_callers(account)["attributed"], serve(account, "today", [lesson]).pk, "tests_passed")
    sweep()
    assert [each.lesson for each in found()] == [lesson.pk]


@pytest.mark.parametrize("state", ["candidate", "quarantined", "rejected", "superseded"])
def test_only_what_is_in_service_is_asked_about(judged, state) -> None:
    Lesson.objects.filter(pk=judged("accepted", days=75).pk).update(state=state)
    assert found() == []


def test_callers_are_asked_before_the_machine(judged, account) -> None:
    lesson = judged("accepted", days=75)
    callers = make_callers(account)
    for n in range(5):
        say(callers["machine"], serve(account, f"graded {n}", [lesson]).pk, "tests_passed")
    sweep()
    LessonStanding.objects.filter(lesson=lesson).update(last_win_at=NOW - timedelta(days=75))
    (one,) = found()
    assert (one.source, one.mean_reward) == ("caller", pytest.approx(0.8))


class TestTheJob:
    def test_it_asks_once_and_changes_nothing(self, judged) -> None:
        lesson = judged("accepted", days=75)
        events, outcomes = TrustEvent.objects.count(), Outcome.objects.count()
        assert staleness.run() == {"stale": 1, "asked": 1, "withdrawn": 0}
        assert staleness.run() == {"stale": 1, "asked": 0, "withdrawn": 0}
        item = ReviewItem.objects.get()
        assert (item.kind, item.subject, item.status) == ("stale", lesson.pk, "open")
        assert (state_of(lesson.pk), TrustEvent.objects.count(), Outcome.objects.count()) == (
            "active",
            events,
            outcomes,
        )

    def test_a_new_outcome_withdraws_the_question(self, judged, account) -> None:
        lesson = judged("accepted", days=75)
        staleness.run()
        say(make_callers(account)["caller"], serve(account, "today", [lesson]).pk, "accepted")
        sweep()
        assert staleness.run() == {"stale": 0, "asked": 0, "withdrawn": 1}
        assert ReviewItem.objects.get().status == "obsolete"

    def test_an_answer_stands_until_newer_evidence_has_grown_old(self, judged) -> None:
        lesson = judged("accepted", days=75)
        staleness.run()
        ReviewItem.objects.update(status="resolved", resolved_at=NOW)
        assert staleness.run()["asked"] == 0
        ReviewItem.objects.update(resolved_at=NOW - timedelta(days=80))
        assert staleness.run()["asked"] == 1
        assert ReviewItem.objects.filter(subject=lesson.pk, status="open").count() == 1

    def test_it_goes_through_all_standings_in_batches(self, judged, monkeypatch) -> None:
        monkeypatch.setattr(staleness, "BATCH", 2)
        for n in range(5):
            judged("accepted", days=75, text=f"Name index {n} after its table and its columns.")
        assert staleness.run()["stale"] == 5

    def test_the_task_records_its_run(self, judged) -> None:
        judged("accepted", days=75)
        maintenance_staleness()
        run = JobRun.objects.get(job="staleness")
        assert (run.outcome, run.figures) == ("done", {"stale": 1, "asked": 1, "withdrawn": 0})
