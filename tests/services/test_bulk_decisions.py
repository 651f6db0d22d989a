"""One decision about many lessons: who is left out, what becomes of each, and the way back."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from memory.errors import Invalid
from memory.models import Account, Adjudication, Lesson, ReviewItem
from memory.models.base import new_id
from memory.models.vocabulary import LessonState, ReviewKind, Verdict
from memory.services import bulk_decisions as bulk
from memory.services import quarantine, review_queue, second_opinion
from memory.services.adjudication import decide, version_of
from memory.services.authority import Person
from memory.services.bulk_decisions import Act, Order, Wanted, carry_out, look, undo_each, verdict_for
from memory.services.lesson import flag
from memory.services.questions import touch
from memory.services.review_queue import Until
from tests.services.people import decision, member
from tests.services.play import make_lessons

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana(account: Account) -> Person:
    return member(account, "reviewer", "ana")


def asked(n: int) -> list[Wanted]:
    """So many lessons with a question each, as a page shows them."""
    lessons = make_lessons(n)
    for one in lessons:
        flag(one, ReviewKind.VAGUE)
    items = {item.subject: item for item in ReviewItem.objects.all()}
    return [Wanted(subject=one.pk, item=items[one.pk].pk, version=items[one.pk].version) for one in lessons]


def states(wanted: list[Wanted]) -> set[str]:
    return set(Lesson.objects.filter(pk__in=[each.subject for each in wanted]).values_list("state", flat=True))


def order(act: Act, **more: object) -> Order:
    return Order(**{"act": act, "reason_code": "wrong", "key": uuid4().hex, **more})


REACHED = [
    (Act.SERVE, LessonState.CANDIDATE, Verdict.APPROVE),
    (Act.SERVE, LessonState.ACTIVE, Verdict.APPROVE),
    (Act.SERVE, LessonState.QUARANTINED, Verdict.RELEASE_TO_TRIAL),
    (Act.RELEASE, LessonState.QUARANTINED, Verdict.RELEASE),
    (Act.RELEASE, LessonState.ACTIVE, None),
    (Act.KEEP_OUT, LessonState.QUARANTINED, Verdict.UPHOLD),
    (Act.KEEP_OUT, LessonState.CANDIDATE, Verdict.QUARANTINE),
    (Act.REJECT, LessonState.QUARANTINED, Verdict.REJECT),
    (Act.REJECT, LessonState.REJECTED, None),
    (Act.SERVE, LessonState.SUPERSEDED, None),
    (Act.SNOOZE, LessonState.ACTIVE, None),
]


class TestWhatAKeyMeans:
    @pytest.mark.parametrize(("act", "state", "verdict"), REACHED)
    def test_a_key_means_a_result_whatever_the_state(
        self, act: Act, state: LessonState, verdict: Verdict | None, settings: object
    ) -> None:
        settings.SONDER_TRUST_POLICY = "trial"
        assert verdict_for(act, state) == verdict

    def test_without_a_trial_a_quarantined_lesson_is_released(self) -> None:
        assert verdict_for(Act.SERVE, LessonState.QUARANTINED) == Verdict.RELEASE


class TestCarryingOut:
    def test_of_thirty_with_one_held_and_one_changed_twenty_eight_are_decided_and_the_two_are_named(
        self, ana: Person, account: Account
    ) -> None:
        wanted = asked(30)
        review_queue.claim(wanted[3].item, member(account, "reviewer", "ben"))
        touch(wanted[7].subject)
        preview = look(ana, Act.REJECT, wanted)
        left_out = {n: entry.refusal for n, entry in enumerate(preview) if entry.refusal}
        assert left_out == {3: "ben is reviewing it.", 7: "It changed since you looked."}
        done = carry_out(ana, order(Act.REJECT), wanted)
        assert [n for n, entry in enumerate(done) if entry.refusal] == [3, 7]
        assert sum(entry.made is not None for entry in done) == Adjudication.objects.count() == 28
        assert Lesson.objects.filter(state="rejected").count() == 28
        assert ReviewItem.objects.filter(status="open").count() == 2

    def test_the_same_order_again_is_the_same_decisions(self, ana: Person) -> None:
        wanted, once = asked(3), order(Act.REJECT)
        first, again = carry_out(ana, once, wanted), carry_out(ana, once, wanted)
        assert [entry.made for entry in first] == [entry.made for entry in again]
        assert not any(entry.refusal for entry in again)
        assert Adjudication.objects.count() == 3

    def test_what_waits_for_a_second_opinion_is_left_out(self, ana: Person, account: Account) -> None:
        wanted = asked(2)
        second_opinion.request(wanted[0].subject, member(account, "reviewer", "ben"))
        done = carry_out(ana, order(Act.SERVE, reason_code=""), wanted)
        assert [entry.refusal for entry in done] == ["It waits for a second opinion.", ""]

    def test_a_lesson_without_a_question_is_decided_by_its_own_version(self, ana: Person) -> None:
        (one,) = make_lessons(1)
        seen = Wanted(subject=one.pk, item=None, version=version_of(one.pk))
        assert carry_out(ana, order(Act.KEEP_OUT), [seen])[0].made
        assert look(ana, Act.REJECT, [seen])[0].refusal == "It changed since you looked."

    def test_a_mixed_lot_reaches_the_same_result_from_where_each_stands(self, ana: Person) -> None:
        wanted = asked(2)
        quarantine.move(wanted[0].subject, LessonState.ACTIVE, LessonState.QUARANTINED)
        codes, needed = bulk.reasons(look(ana, Act.SERVE, wanted))
        assert (codes[0][0], needed) == ("hard_work", True)
        done = carry_out(ana, order(Act.SERVE, reason_code="hard_work"), wanted)
        assert [entry.verdict for entry in done] == [Verdict.RELEASE, Verdict.APPROVE]
        assert (states(wanted), [entry.refusal for entry in done]) == ({"active"}, ["", ""])

    def test_a_reason_is_asked_for_before_anything_is_done(self, ana: Person) -> None:
        wanted = asked(2)
        with pytest.raises(Invalid, match="choose a reason"):
            carry_out(ana, order(Act.REJECT, reason_code=""), wanted)
        assert states(wanted) == {"active"}

    def test_what_is_not_decided_is_let_go(self, ana: Person) -> None:
        wanted = asked(1)
        done = carry_out(ana, order(Act.REJECT, note="x" * 3000), wanted)
        assert "at most 2000 characters" in done[0].refusal
        assert ReviewItem.objects.get().claimed_by is None

    def test_many_can_be_put_off(self, ana: Person) -> None:
        wanted = asked(3)
        done = carry_out(ana, order(Act.SNOOZE, until=Until(servings=5)), wanted)
        assert not any(entry.refusal for entry in done)
        assert set(ReviewItem.objects.values_list("status", flat=True)) == {"snoozed"}

    def test_what_the_person_may_not_see_or_decide_stays(
        self, account: Account, rival_account: Account, ana: Person
    ) -> None:
        wanted = asked(2)
        Lesson.objects.filter(pk=wanted[0].subject).update(account=rival_account)
        entries = look(ana, Act.REJECT, [*wanted, Wanted(subject=new_id(), item=None, version=0)])
        assert [(bool(entry.text), entry.refusal) for entry in entries] == [
            (False, "It is not there any more."),
            (True, ""),
            (False, "It is not there any more."),
        ]
        viewer = member(account, "viewer", "vic")
        assert carry_out(viewer, order(Act.REJECT), wanted[1:])[0].refusal == "This needs the role reviewer."

    def test_nothing_and_too_much_are_refused(self, ana: Person) -> None:
        many = [Wanted(subject=new_id(), item=None, version=0)] * (bulk.LIMIT + 1)
        for wanted in ([], many):
            with pytest.raises(Invalid) as refused:
                look(ana, Act.REJECT, wanted)
            assert list(refused.value.errors) == ["marked"]

    def test_looking_costs_the_same_for_few_and_many(
        self, ana: Person, django_assert_num_queries: Callable[..., object]
    ) -> None:
        wanted = asked(40)
        for some in (wanted[:1], wanted):
            with django_assert_num_queries(5):
                look(ana, Act.REJECT, some)


class TestUndo:
    def test_reports_each_and_leaves_what_changed_since(self, ana: Person, account: Account) -> None:
        wanted = asked(3)
        made = [entry.made for entry in carry_out(ana, order(Act.REJECT), wanted)]
        decide(decision(member(account, "reviewer", "ben"), Verdict.RESTORE, wanted[1].subject))
        results = undo_each(ana, made)
        assert [pk for pk, _ in results] == made
        assert [bool(why) for _, why in results] == [False, True, False]
        assert "changed after this decision" in results[1][1]
        assert states(wanted) == {"active"}
        assert ReviewItem.objects.filter(status="open").count() == 2
