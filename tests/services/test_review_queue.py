"""Questions in people's hands: held, handed on, put off, given away, and a second opinion on them."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from memory.errors import Conflict, Forbidden, Invalid, NotFound
from memory.models import Account, JobRun, Lesson, LessonStanding, ReviewItem, SecondOpinion
from memory.models.vocabulary import LessonState, Origin, ReviewKind, Verdict
from memory.services import review_queue as queue
from memory.services import second_opinion
from memory.services.adjudication import Stale, decide
from memory.services.authority import Person
from memory.services.lesson import NewLesson, flag, store
from memory.services.questions import Question, ask, touch
from memory.services.review_priority import weigh
from memory.services.review_queue import Held, Until
from memory.tasks import maintenance_review_queue
from tests.services.people import decision, member
from tests.services.play import make_callers, serve

TEXT = "Pass `timeout=10` to every `requests.get()` call."
pytestmark = pytest.mark.django_db


@pytest.fixture
def ana(account: Account) -> Person:
    return member(account, "reviewer", "ana")


@pytest.fixture
def ben(account: Account) -> Person:
    return member(account, "reviewer", "ben")


@pytest.fixture
def one(lesson: Callable[..., Lesson]) -> Lesson:
    return lesson(TEXT)


@pytest.fixture
def item(one: Lesson) -> ReviewItem:
    flag(one, ReviewKind.VAGUE)
    return ReviewItem.objects.get()


def holder(item: ReviewItem) -> int | None:
    return ReviewItem.objects.values_list("claimed_by", flat=True).get(pk=item.pk)


def status(item: ReviewItem) -> str:
    return ReviewItem.objects.values_list("status", flat=True).get(pk=item.pk)


def due() -> list[object]:
    return list(queue.due().values_list("pk", flat=True))


def expire(item: ReviewItem) -> None:
    ReviewItem.objects.filter(pk=item.pk).update(claim_expires_at=timezone.now() - timedelta(seconds=1))


def standing(lesson: Lesson, s: float | None, policy: str = "trial") -> None:
    LessonStanding.objects.update_or_create(
        pk=lesson.pk, defaults={"policy": policy, "wins": 0, "losses": 0, "s": s, "on_trial": False, "version": 1}
    )


class TestClaims:
    def test_a_question_is_held_for_ten_minutes_by_one_person(self, ana: Person, ben: Person, item: ReviewItem) -> None:
        queue.claim(item.pk, ana)
        with pytest.raises(Held, match="ana is reviewing") as held:
            queue.claim(item.pk, ben)
        left = held.value.until - timezone.now()
        assert timedelta(minutes=9, seconds=50) < left <= timedelta(minutes=10)
        assert (holder(item), held.value.by) == (ana.user_id, "ana")

    def test_a_claim_does_not_make_what_others_read_stale(self, ana: Person, ben: Person, item: ReviewItem) -> None:
        queue.claim(item.pk, ana)
        assert decide(decision(ben, Verdict.APPROVE, item.subject, item)).verdict == "approve"

    def test_is_renewed_by_use(self, ana: Person, item: ReviewItem) -> None:
        queue.claim(item.pk, ana)
        almost = timezone.now() + timedelta(minutes=1)
        ReviewItem.objects.update(claim_expires_at=almost)
        queue.claim(item.pk, ana)
        assert ReviewItem.objects.get().claim_expires_at > almost + timedelta(minutes=8)

    def test_lapses_by_itself(self, ana: Person, ben: Person, item: ReviewItem) -> None:
        queue.claim(item.pk, ana)
        expire(item)
        queue.claim(item.pk, ben)
        assert holder(item) == ben.user_id

    def test_may_be_taken_over(self, ana: Person, ben: Person, item: ReviewItem) -> None:
        queue.claim(item.pk, ana)
        queue.take_over(item.pk, ben)
        assert holder(item) == ben.user_id
        assert not queue.release(item.pk, ana)
        assert queue.release(item.pk, ben)
        assert holder(item) is None

    def test_the_next_question_lets_the_last_one_go(
        self, ana: Person, item: ReviewItem, lesson: Callable[..., Lesson]
    ) -> None:
        queue.claim(item.pk, ana)
        flag(lesson("Run `git fetch` before every `git rebase`."), ReviewKind.VAGUE)
        other = ReviewItem.objects.exclude(pk=item.pk).get()
        queue.claim(other.pk, ana)
        assert (holder(item), holder(other)) == (None, ana.user_id)

    def test_ends_with_the_decision_and_with_the_session(self, ana: Person, item: ReviewItem) -> None:
        queue.claim(item.pk, ana)
        assert queue.release_all(ana.user_id) == 1
        queue.claim(item.pk, ana)
        decide(decision(ana, Verdict.APPROVE, item.subject, item))
        assert holder(item) is None
        with pytest.raises(Conflict, match="answered meanwhile"):
            queue.claim(item.pk, ana)

    def test_needs_the_right_to_decide(
        self, account: Account, rival_account: Account, one: Lesson, item: ReviewItem
    ) -> None:
        with pytest.raises(Forbidden, match="needs the role reviewer"):
            queue.claim(item.pk, member(account, "judge", "jo"))
        ReviewItem.objects.update(account=account)
        with pytest.raises(NotFound):
            queue.claim(item.pk, member(rival_account, "maintainer", "ron"))
        assert holder(item) is None

    def test_a_judge_may_hold_work_that_waits_for_a_judgement(self, account: Account, item: ReviewItem) -> None:
        ReviewItem.objects.update(kind="outcome_needed")
        jo = member(account, "judge", "jo")
        queue.claim(item.pk, jo)
        assert holder(item) == jo.user_id


@pytest.mark.django_db(transaction=True)
def test_of_several_people_who_reach_for_one_question_exactly_one_has_it(
    account: Account, lesson: Callable[..., Lesson]
) -> None:
    flag(lesson(TEXT), ReviewKind.VAGUE)
    item = ReviewItem.objects.get()
    people = [member(account, "reviewer", name) for name in ("ana", "ben", "cleo", "dan")]
    gate, got = threading.Barrier(len(people)), []

    def reach(person: Person) -> None:
        gate.wait()
        try:
            queue.claim(item.pk, person)
            got.append(person.user_id)
        except Held as held:
            got.append(held.by)
        finally:
            connection.close()

    threads = [threading.Thread(target=reach, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [each for each in got if isinstance(each, int)]
    assert winners == [holder(item)]
    assert set(got) - set(winners) == {person.name for person in people if person.user_id in winners}


class TestSnooze:
    def test_until_a_date(self, ana: Person, item: ReviewItem) -> None:
        queue.claim(item.pk, ana)
        queue.snooze(item.pk, ana, Until(date=timezone.now() + timedelta(days=1)))
        assert (status(item), holder(item), queue.wake()) == ("snoozed", None, 0)
        ReviewItem.objects.update(snoozed_until=timezone.now() - timedelta(seconds=1))
        assert due() == [item.pk]
        assert (queue.wake(), status(item), due()) == (1, "open", [])

    def test_until_it_was_handed_out_so_often_more(
        self, ana: Person, account: Account, one: Lesson, item: ReviewItem
    ) -> None:
        make_callers(account)
        serve(account, "before", [one])
        queue.snooze(item.pk, ana, Until(servings=2))
        serve(account, "withheld", [], withheld=[one])
        serve(account, "one", [one])
        assert queue.wake() == 0
        serve(account, "two", [one], exposure="probation")
        assert (due(), queue.wake(), status(item)) == ([item.pk], 1, "open")

    def test_until_it_worsens(self, ana: Person, one: Lesson, item: ReviewItem) -> None:
        standing(one, 5.5)
        queue.snooze(item.pk, ana, Until(worse=True))
        for s in (5.5, 1.0):
            standing(one, s)
            assert queue.wake() == 0
        standing(one, 5.6)
        assert (due(), queue.wake(), status(item)) == ([item.pk], 1, "open")

    def test_a_lesson_without_a_record_worsens_at_its_first_odds(
        self, ana: Person, one: Lesson, item: ReviewItem
    ) -> None:
        queue.snooze(item.pk, ana, Until(worse=True))
        assert queue.wake() == 0
        standing(one, 0.8)
        assert queue.wake() == 1

    def test_a_policy_without_odds_offers_no_waiting_for_them(self, ana: Person, one: Lesson, item: ReviewItem) -> None:
        standing(one, None, "reference")
        with pytest.raises(Invalid, match="no odds"):
            queue.snooze(item.pk, ana, Until(worse=True))
        assert status(item) == "open"

    def test_can_be_cancelled_once(self, ana: Person, item: ReviewItem) -> None:
        queue.snooze(item.pk, ana, Until(servings=5))
        queue.cancel_snooze(item.pk, ana)
        found = ReviewItem.objects.get()
        assert (found.status, found.snoozed_servings) == ("open", None)
        with pytest.raises(Conflict, match="not snoozed"):
            queue.cancel_snooze(item.pk, ana)

    @pytest.mark.parametrize(
        ("until", "field"),
        [
            (Until(), "until"),
            (Until(servings=3, worse=True), "until"),
            (Until(servings=0), "servings"),
            (Until(date=timezone.now() - timedelta(days=1)), "date"),
        ],
    )
    def test_says_what_is_wrong(self, ana: Person, item: ReviewItem, until: Until, field: str) -> None:
        with pytest.raises(Invalid) as refused:
            queue.snooze(item.pk, ana, until)
        assert list(refused.value.errors) == [field]
        assert status(item) == "open"

    def test_what_another_holds_is_not_put_off(self, ana: Person, ben: Person, item: ReviewItem) -> None:
        queue.claim(item.pk, ben)
        with pytest.raises(Held):
            queue.snooze(item.pk, ana, Until(servings=1))

    def test_the_job_wakes_what_is_due_and_leaves_a_trace(self, ana: Person, item: ReviewItem) -> None:
        queue.snooze(item.pk, ana, Until(servings=1))
        ReviewItem.objects.update(snoozed_servings=0)
        maintenance_review_queue()
        assert status(item) == "open"
        assert JobRun.objects.get(job="review_queue").figures == {"woken": 1, "weighed": 1, "webhooks_told": 0}


class TestAssigning:
    def test_gives_it_to_a_reviewer_and_back_to_nobody(self, ana: Person, ben: Person, item: ReviewItem) -> None:
        queue.assign(item.pk, ana, ben.user_id)
        assert ReviewItem.objects.get().assigned_to_id == ben.user_id
        queue.assign(item.pk, ana, None)
        assert ReviewItem.objects.get().assigned_to_id is None

    def test_only_to_somebody_who_may_answer(
        self, ana: Person, account: Account, rival_account: Account, item: ReviewItem
    ) -> None:
        ReviewItem.objects.update(account=account)
        for other in (member(account, "judge", "jo"), member(rival_account, "reviewer", "ron")):
            with pytest.raises(Invalid, match="may answer"):
                queue.assign(item.pk, ana, other.user_id)
        assert queue.assignable(ReviewItem.objects.get(), ana) == {ana.user_id: "ana"}

    def test_strangers_of_other_accounts_are_not_named(
        self, ana: Person, ben: Person, rival_account: Account, item: ReviewItem
    ) -> None:
        member(rival_account, "reviewer", "ron")
        assert set(queue.assignable(item, ana).values()) == {"ana", "ben"}


class TestComments:
    def test_are_kept_as_written(self, ana: Person, one: Lesson) -> None:
        assert queue.comment(one.pk, ana, "  <b>שלום</b> 🦉 ").text == "<b>שלום</b> 🦉"

    @pytest.mark.parametrize("text", ["", " \n", "x" * 2001])
    def test_must_say_something_short(self, ana: Person, one: Lesson, text: str) -> None:
        with pytest.raises(Invalid):
            queue.comment(one.pk, ana, text)

    def test_a_viewer_reads_only(self, account: Account, one: Lesson) -> None:
        with pytest.raises(Forbidden):
            queue.comment(one.pk, member(account, "viewer", "vic"), "hm")


class TestSecondOpinions:
    def test_somebody_else_answers_and_whoever_asked_gets_the_question_back(
        self, ana: Person, ben: Person, one: Lesson, item: ReviewItem
    ) -> None:
        asked = second_opinion.request(one.pk, ana, Verdict.REJECT)
        for refused in (
            lambda: queue.claim(asked.pk, ana),
            lambda: queue.take_over(asked.pk, ana),
            lambda: second_opinion.save(asked.pk, ana, Verdict.REJECT, asked.version),
        ):
            with pytest.raises(Conflict, match="somebody else gives it"):
                refused()
        assert second_opinion.opinions(one.pk) == []
        queue.claim(asked.pk, ben)
        second_opinion.save(asked.pk, ben, Verdict.APPROVE, asked.version)
        said = [(each.author_id, each.verdict) for each in second_opinion.opinions(one.pk)]
        assert said == [(ana.user_id, "reject"), (ben.user_id, "approve")]
        assert (status(asked), status(item)) == ("resolved", "open")
        assert ReviewItem.objects.get(pk=item.pk).assigned_to_id == ana.user_id
        assert Lesson.objects.get(pk=one.pk).state == "active"

    def test_is_asked_for_once_at_a_time(self, ana: Person, ben: Person, one: Lesson) -> None:
        asked = second_opinion.request(one.pk, ana)
        with pytest.raises(Conflict, match="already"):
            second_opinion.request(one.pk, ben)
        second_opinion.save(asked.pk, ben, Verdict.APPROVE, asked.version)
        again = second_opinion.request(one.pk, ben)
        assert second_opinion.opinions(one.pk) == []
        second_opinion.save(again.pk, ana, Verdict.REJECT, again.version)
        assert SecondOpinion.objects.count() == 2

    def test_on_what_changed_since_is_not_saved(self, ana: Person, ben: Person, one: Lesson) -> None:
        asked = second_opinion.request(one.pk, ana)
        touch(one.pk)
        with pytest.raises(Stale):
            second_opinion.save(asked.pk, ben, Verdict.APPROVE, asked.version)
        assert not SecondOpinion.objects.exists()

    def test_says_what_a_decision_could_say(self, ana: Person, ben: Person, one: Lesson) -> None:
        asked = second_opinion.request(one.pk, ana)
        with pytest.raises(Invalid):
            second_opinion.save(asked.pk, ben, Verdict.EDIT, asked.version)
        assert status(asked) == "open"


class TestPriorities:
    def test_each_question_is_weighed_by_its_lesson_and_what_is_nearest_comes_first(
        self, account: Account, one: Lesson, item: ReviewItem, lesson: Callable[..., Lesson]
    ) -> None:
        busy = lesson("Run `git fetch` before every `git rebase`.")
        flag(busy, ReviewKind.VAGUE)
        make_callers(account)
        for n in range(8):
            serve(account, f"task {n}", [busy])
        assert weigh() == 2
        parts = {row.subject: row.priority_parts for row in ReviewItem.objects.all()}
        assert [parts[pk]["reach"] for pk in (one.pk, busy.pk)] == [0.1, 0.5]
        assert parts[one.pk] == {"severity": 0.2, "reach": 0.1, "uncertainty": 1.0, "age": pytest.approx(0.5, abs=1e-4)}
        assert list(ReviewItem.objects.order_by("-priority").values_list("subject", flat=True)) == [busy.pk, one.pk]
        assert weigh() == 0

    def test_weighing_changes_no_version_and_does_not_make_a_question_seem_less_severe(
        self, one: Lesson, item: ReviewItem
    ) -> None:
        weigh()
        again = {"kind": ReviewKind.VAGUE, "subject": one.pk, "account_id": None, "since": timezone.now()}
        ask([Question(**again, severity=0.2)])
        assert ReviewItem.objects.get().version == item.version
        ask([Question(**again, severity=0.7)])
        found = ReviewItem.objects.get()
        assert (found.version, found.priority_parts["severity"]) == (item.version + 1, 0.7)
        weigh()
        assert ReviewItem.objects.get().priority == pytest.approx(0.7 * 0.1 * 0.5, abs=1e-4)

    def test_what_the_question_is_about_stays_beside_the_parts(self, item: ReviewItem) -> None:
        ReviewItem.objects.update(priority_parts={"severity": 1.0, "private": 1.0})
        weigh()
        assert {"severity", "private", "reach", "uncertainty", "age"} == ReviewItem.objects.get().priority_parts.keys()

    def test_a_pair_and_a_piece_of_work_are_weighed_by_the_lessons_in_them(
        self, account: Account, one: Lesson, item: ReviewItem
    ) -> None:
        make_callers(account)
        work = serve(account, "task", [one])
        for n in range(7):
            serve(account, f"task {n}", [one])
        ReviewItem.objects.update(kind="outcome_needed", subject=work.pk)
        weigh()
        assert ReviewItem.objects.get().priority_parts["reach"] == 0.5


class TestNewLessons:
    @pytest.mark.parametrize(
        ("state", "origin", "asked"),
        [
            (LessonState.CANDIDATE, Origin.DISTILLED, ["new_lesson"]),
            (LessonState.CANDIDATE, Origin.IMPORTED, ["new_lesson"]),
            (LessonState.ACTIVE, Origin.IMPORTED, []),
        ],
    )
    def test_what_waits_for_a_reviewer_is_a_question_and_an_import_is_none(
        self, space: object, state: LessonState, origin: Origin, asked: list[str]
    ) -> None:
        store(NewLesson(text=TEXT, origin=origin, path="test", actor="system", state=state))
        assert list(ReviewItem.objects.values_list("kind", flat=True)) == asked
