"""Decisions of people: rights, versions, reasons, idempotency, undo, and two people at once."""

import math
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import connection

from memory.errors import Conflict, Forbidden, Invalid, NotFound
from memory.models import (
    Account,
    Adjudication,
    Contradiction,
    Lesson,
    LessonStanding,
    LessonTombstone,
    LessonUsage,
    Outcome,
    ReviewItem,
    TrustEvent,
    WriteRefusal,
)
from memory.models.vocabulary import LessonState, ReviewKind, TombstoneReason, TrustEventKind, Verdict
from memory.services import quarantine
from memory.services.adjudication import decide, latest_undoable, undo
from memory.services.authority import Person
from memory.services.credit import sweep
from memory.services.lesson import flag
from memory.services.lesson_verdicts import effect_of_excuse
from tests.services.people import decision, member
from tests.services.play import make_callers, say, serve

TEXT = "Pass `timeout=10` to every `requests.get()` call."
pytestmark = pytest.mark.django_db


@pytest.fixture
def ana(account: Account) -> Person:
    return member(account, "reviewer", "ana")


@pytest.fixture
def one(lesson: Callable[..., Lesson]) -> Lesson:
    return lesson(TEXT)


def move(lesson: Lesson, state: LessonState) -> None:
    quarantine.move(lesson.pk, LessonState(lesson.state), state)
    lesson.refresh_from_db()


def state(lesson: Lesson) -> str:
    return Lesson.objects.values_list("state", flat=True).get(pk=lesson.pk)


def buried(lesson: Lesson) -> list[str]:
    return list(LessonTombstone.objects.filter(source_lesson=lesson.pk).values_list("reason", flat=True))


def kinds(lesson: Lesson) -> list[str]:
    return list(TrustEvent.objects.filter(lesson=lesson.pk).order_by("created_at").values_list("kind", flat=True))


JOURNEYS = [
    ("candidate", Verdict.APPROVE, "active", [], "approved"),
    ("active", Verdict.REJECT, "rejected", ["rejected_by_reviewer"], "rejected_by_reviewer"),
    ("candidate", Verdict.REJECT, "rejected", ["rejected_by_reviewer"], "rejected_by_reviewer"),
    ("active", Verdict.QUARANTINE, "quarantined", ["quarantined"], "quarantined_by_reviewer"),
]


class TestEachVerdict:
    @pytest.mark.parametrize(("begin", "verdict", "end", "tombs", "kind"), JOURNEYS)
    def test_moves_the_lesson_journals_and_goes_back(
        self, ana: Person, one: Lesson, begin: str, verdict: Verdict, end: str, tombs: list[str], kind: str
    ) -> None:
        if begin == "candidate":
            move(one, LessonState.CANDIDATE)
        made = decide(decision(ana, verdict, one.pk))
        assert (state(one), buried(one), kinds(one)) == (end, tombs, [kind])
        undo(made.pk, ana)
        assert (state(one), buried(one)) == (begin, [])
        assert kinds(one) == [kind, "undone"]

    @pytest.mark.parametrize("verdict", [Verdict.RELEASE, Verdict.RELEASE_TO_TRIAL])
    def test_a_release_goes_back_to_the_same_quarantine(
        self, ana: Person, one: Lesson, verdict: Verdict, settings: object
    ) -> None:
        settings.SONDER_TRUST_POLICY = "trial"
        decide(decision(ana, Verdict.QUARANTINE, one.pk))
        since = LessonStanding.objects.get(pk=one.pk).quarantined_at
        made = decide(decision(ana, verdict, one.pk))
        assert (state(one), buried(one)) == ("active", [])
        assert LessonStanding.objects.get(pk=one.pk).quarantined_at is None
        undo(made.pk, ana)
        assert (state(one), buried(one)) == ("quarantined", ["quarantined"])
        assert LessonStanding.objects.get(pk=one.pk).quarantined_at == since

    def test_the_policy_reference_knows_no_trial_to_release_to(self, ana: Person, one: Lesson) -> None:
        decide(decision(ana, Verdict.QUARANTINE, one.pk))
        with pytest.raises(Invalid, match="knows no trial"):
            decide(decision(ana, Verdict.RELEASE_TO_TRIAL, one.pk))
        assert state(one) == "quarantined"

    def test_an_edit_makes_a_lesson_of_its_own_and_an_undo_takes_it_away(self, ana: Person, one: Lesson) -> None:
        made = decide(decision(ana, Verdict.EDIT, one.pk, data={"text": "Pass `timeout=30` to `requests.get()`."}))
        new = Lesson.objects.get(pk=made.before["successor"])
        assert (new.state, new.origin, new.reviewed_by_id) == ("active", "edited", ana.user_id)
        assert (state(one), buried(one)) == ("superseded", [TombstoneReason.SUPERSEDED.value])
        undo(made.pk, ana)
        assert (state(one), buried(one)) == ("active", [])
        assert (state(new), buried(new)) == ("superseded", [TombstoneReason.SUPERSEDED.value])

    def test_an_edit_that_a_hard_gate_refuses_changes_nothing(self, ana: Person, one: Lesson) -> None:
        with pytest.raises(Invalid, match="private") as refused:
            decide(decision(ana, Verdict.EDIT, one.pk, data={"text": "Write to joe.doe@corp.example.com."}))
        assert list(refused.value.errors) == ["text"]
        assert (state(one), Adjudication.objects.count(), kinds(one)) == ("active", 0, [])

    def test_a_restored_lesson_can_be_recalled_again_and_undone(self, ana: Person, one: Lesson) -> None:
        decide(decision(ana, Verdict.REJECT, one.pk))
        made = decide(decision(ana, Verdict.RESTORE, one.pk))
        assert (state(one), buried(one)) == ("active", [])
        undo(made.pk, ana)
        assert (state(one), buried(one)) == ("rejected", ["rejected_by_reviewer"])

    def test_an_excused_loss_leaves_the_ledger_and_comes_back(
        self, ana: Person, one: Lesson, account: Account, settings: object
    ) -> None:
        settings.SONDER_TRUST_POLICY = "trial"
        callers = make_callers(account)
        for task in range(8):
            say(callers["caller"], serve(account, f"task {task}", [one]).pk, "failed")
        sweep()
        before = LessonStanding.objects.get(pk=one.pk).s
        usage = LessonUsage.objects.filter(lesson=one).latest("credit_seq")
        foreseen = effect_of_excuse(one, usage.pk)
        made = decide(decision(ana, Verdict.EXEMPT_ROW, one.pk, data={"usage": usage.pk}))
        after = LessonStanding.objects.get(pk=one.pk).s
        assert after < before - 0.5
        assert foreseen.odds_before == pytest.approx(math.exp(before))
        assert foreseen.odds_after == pytest.approx(math.exp(after))
        with pytest.raises(Conflict, match="excused already"):
            decide(decision(ana, Verdict.EXEMPT_ROW, one.pk, data={"usage": usage.pk}))
        undo(made.pk, ana)
        assert LessonStanding.objects.get(pk=one.pk).s == pytest.approx(before)

    def test_a_verdict_on_work_is_an_outcome_of_a_caller_with_the_judge_in_it(
        self, account: Account, one: Lesson
    ) -> None:
        judge = member(account, "judge", "jo")
        make_callers(account)
        work = serve(account, "fix the timeout", [one])
        made = decide(decision(judge, Verdict.JUDGE_OUTCOME, work.pk, data={"signal": "rejected"}))
        said = Outcome.objects.get(interaction=work)
        assert (said.source, said.signal, said.judge_id) == ("caller", "rejected", judge.user_id)
        undo(made.pk, judge)
        assert list(Outcome.objects.order_by("sequence").values_list("signal", flat=True)) == ["rejected", "retracted"]

    @pytest.mark.parametrize(
        ("verdict", "loser"), [(Verdict.KEEP_FIRST, 1), (Verdict.KEEP_SECOND, 0), (Verdict.KEEP_BOTH, None)]
    )
    def test_a_contradiction_is_settled_and_reopened(
        self, ana: Person, lesson: Callable[..., Lesson], verdict: Verdict, loser: int | None
    ) -> None:
        pair = sorted(
            [lesson(TEXT), lesson("Never pass `timeout=10` to `requests.get()`.")], key=lambda a: a.text_sha256
        )
        row = Contradiction.objects.create(
            first=pair[0].pk, second=pair[1].pk, first_digest=pair[0].text_sha256,
            second_digest=pair[1].text_sha256, similarity=0.9, basis="polarity",
        )  # fmt: skip
        made = decide(decision(ana, verdict, row.pk))
        states = [state(one) for one in pair]
        assert states == ["rejected" if n == loser else "active" for n in range(2)]
        undo(made.pk, ana)
        assert [state(one) for one in pair] == ["active", "active"]
        assert Contradiction.objects.get(pk=row.pk).verdict is None


class TestWhoMayDecide:
    @pytest.mark.parametrize("role", ["viewer", "judge"])
    def test_who_is_no_reviewer_is_refused_and_told_who_can_change_that(
        self, account: Account, one: Lesson, role: str
    ) -> None:
        with pytest.raises(Forbidden, match="needs the role reviewer"):
            decide(decision(member(account, role, "vic"), Verdict.REJECT, one.pk))
        assert state(one) == "active"

    def test_a_role_in_one_account_is_none_in_another(
        self, rival_account: Account, account: Account, lesson: Callable[..., Lesson], settings: object
    ) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        own = lesson(TEXT, account_id=account.pk)
        with pytest.raises(Forbidden):
            decide(decision(member(rival_account, "maintainer", "ron"), Verdict.REJECT, own.pk))
        decide(decision(member(account, "reviewer", "ana"), Verdict.REJECT, own.pk))

    def test_what_is_gone_cannot_be_decided(self, ana: Person, account: Account) -> None:
        with pytest.raises(NotFound):
            decide(decision(ana, Verdict.REJECT, account.pk))


class TestVersionsAndReasons:
    def test_a_decision_on_what_changed_since_is_refused_and_says_who_was_faster(
        self, ana: Person, account: Account, one: Lesson
    ) -> None:
        flag(one, ReviewKind.VAGUE)
        item = ReviewItem.objects.get()
        seen = decision(member(account, "reviewer", "ben"), Verdict.REJECT, one.pk, item)
        made = decide(decision(ana, Verdict.APPROVE, one.pk, item))
        with pytest.raises(Conflict, match="changed since you looked") as late:
            decide(seen)
        assert late.value.by == made
        assert state(one) == "active"

    def test_news_about_the_lesson_makes_a_decision_stale(self, ana: Person, one: Lesson) -> None:
        flag(one, ReviewKind.VAGUE)
        seen = decision(ana, Verdict.APPROVE, one.pk, ReviewItem.objects.get())
        quarantine.journal(one.pk, TrustEventKind.TRIAL_OPENED, {})
        with pytest.raises(Conflict):
            decide(seen)

    @pytest.mark.parametrize(
        "verdict", [Verdict.REJECT, Verdict.QUARANTINE, Verdict.RELEASE, Verdict.RESTORE, Verdict.EXEMPT_ROW]
    )
    def test_a_reason_is_needed_and_comes_from_the_list(self, ana: Person, one: Lesson, verdict: Verdict) -> None:
        for reason in ("", "because"):
            with pytest.raises(Invalid) as refused:
                decide(decision(ana, verdict, one.pk, reason_code=reason))
            assert list(refused.value.errors) == ["reason_code"]

    def test_the_same_key_is_the_same_decision(self, ana: Person, one: Lesson) -> None:
        asked = decision(ana, Verdict.REJECT, one.pk)
        assert decide(asked) == decide(asked)
        assert (Adjudication.objects.count(), len(kinds(one))) == (1, 1)

    def test_a_decision_answers_the_other_questions_about_the_lesson_and_an_undo_asks_them_again(
        self, ana: Person, one: Lesson
    ) -> None:
        for kind in (ReviewKind.VAGUE, ReviewKind.NEAR_DUPLICATE):
            flag(one, kind)
        made = decide(decision(ana, Verdict.APPROVE, one.pk, ReviewItem.objects.get(kind="vague")))
        assert set(ReviewItem.objects.values_list("status", flat=True)) == {"resolved"}
        undo(made.pk, ana)
        assert set(ReviewItem.objects.values_list("status", flat=True)) == {"open"}


class TestUndo:
    def test_is_refused_once_somebody_decided_again(self, ana: Person, account: Account, one: Lesson) -> None:
        made = decide(decision(ana, Verdict.APPROVE, one.pk))
        decide(decision(member(account, "reviewer", "ben"), Verdict.REJECT, one.pk))
        with pytest.raises(Conflict, match="changed after this decision"):
            undo(made.pk, ana)
        assert state(one) == "rejected"

    def test_happens_once(self, ana: Person, one: Lesson) -> None:
        made = decide(decision(ana, Verdict.REJECT, one.pk))
        undo(made.pk, ana)
        with pytest.raises(Conflict, match="undone already"):
            undo(made.pk, ana)
        assert latest_undoable(ana) == []

    def test_is_no_way_around_a_missing_right(self, ana: Person, account: Account, one: Lesson) -> None:
        made = decide(decision(ana, Verdict.REJECT, one.pk))
        with pytest.raises(Forbidden):
            undo(made.pk, member(account, "viewer", "vic"))
        assert state(one) == "rejected"


def test_a_refused_wording_is_on_record_although_the_decision_was_taken_back(ana: Person, one: Lesson) -> None:
    with pytest.raises(Invalid, match="private"):
        decide(
            decision(ana, Verdict.EDIT, one.pk, data={"text": "Ask jane.doe@example.org before you run `deploy()`."})
        )
    refusal = WriteRefusal.objects.get()
    assert (refusal.path, refusal.reason, refusal.actor, refusal.digest) == ("edit", "private", ana.actor, None)
    assert not Adjudication.objects.exists()
    assert state(one) == "active"


def test_a_note_without_a_reason_is_kept_as_it_was_written(ana: Person, one: Lesson) -> None:
    decide(decision(ana, Verdict.APPROVE, one.pk, note="Read it twice."))
    assert TrustEvent.objects.get(lesson=one.pk, kind="approved").evidence["reason"] == "Read it twice."


@pytest.mark.django_db(transaction=True)
def test_of_two_reviewers_with_one_item_exactly_one_decides(account: Account, lesson: Callable[..., Lesson]) -> None:
    one = lesson(TEXT)
    flag(one, ReviewKind.VAGUE)
    item = ReviewItem.objects.get()
    asked = [
        decision(member(account, "reviewer", "ana"), Verdict.APPROVE, one.pk, item),
        decision(member(account, "reviewer", "ben"), Verdict.REJECT, one.pk, item),
    ]
    asked += [replace(each, idempotency_key=each.idempotency_key) for each in asked] * 2
    ends: list[str] = []
    gate = threading.Barrier(len(asked))

    def work(each: object) -> None:
        gate.wait()
        try:
            ends.append(decide(each).verdict)
        except Conflict:
            ends.append("late")
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(each,)) for each in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = {end for end in ends if end != "late"}
    assert len(won) == 1
    assert (Adjudication.objects.count(), sorted(ends).count("late")) == (1, 3)
    assert state(one) == {"approve": "active", "reject": "rejected"}[won.pop()]
