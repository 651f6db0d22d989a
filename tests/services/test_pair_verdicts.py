"""What a person's verdict on two lessons that contradict each other does, and how an undo takes all of it back."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.errors import Conflict, Invalid
from memory.models import Account, Adjudication, Contradiction, EmbeddingSpace, Lesson, LessonTombstone, ReviewItem
from memory.models.vocabulary import TombstoneReason, Verdict
from memory.services import contradiction, rejection, tombstone
from memory.services.adjudication import Stale, decide, undo
from memory.services.authority import Person
from memory.services.erasure.run import erase
from tests.services.near import place, state_of
from tests.services.people import decision, member

pytestmark = pytest.mark.django_db

ALWAYS = "Always retry `fetch()` when it fails with a timeout."
NEVER = "Never retry `fetch()` when it fails with a timeout."
ONE = "Retry `fetch()` after a timeout only where the call is idempotent."
READS = "For reads, always retry `fetch()` when it fails with a timeout."
WRITES = "For writes, never retry `fetch()` when it fails with a timeout."


@pytest.fixture
def ana(account: Account) -> Person:
    return member(account, "reviewer", "ana")


@pytest.fixture
def ben(account: Account) -> Person:
    return member(account, "reviewer", "ben")


@pytest.fixture
def pair(lesson: Callable[..., Lesson], space: EmbeddingSpace) -> Contradiction:
    for text in (ALWAYS, NEVER):
        place(lesson(text), space, 0.95)
    contradiction.detect()
    return Contradiction.objects.get()


def question(pair: Contradiction) -> ReviewItem:
    return ReviewItem.objects.get(subject=pair.pk)


def settle(who: Person, pair: Contradiction, verdict: Verdict, **data: Any) -> Adjudication:
    return decide(decision(who, verdict, pair.pk, question(pair), data=data))


def states(pair: Contradiction) -> tuple[str, str]:
    return state_of(pair.first), state_of(pair.second)


def buried() -> set[tuple[Any, str, Any]]:
    return set(LessonTombstone.objects.values_list("source_lesson", "reason", "successor_lesson"))


def text_of(lesson: Any) -> str:
    return str(Lesson.objects.get(pk=lesson).text)


def everything() -> dict[str, Any]:
    """What an undo has to bring back."""
    lessons = Lesson.objects.filter(state="active").order_by("pk")
    return {
        "lessons": list(lessons.values("pk", "text", "reviewed_at", "reviewed_by")),
        "pairs": list(Contradiction.objects.order_by("pk").values()),
        "questions": list(ReviewItem.objects.order_by("pk").values("pk", "status", "resolved_by")),
        "buried": buried(),
    }


class TestOneLessonOfTwo:
    def test_takes_the_place_of_both_in_one_step(self, ana: Person, pair: Contradiction) -> None:
        made = settle(ana, pair, Verdict.MERGE_BOTH, text=ONE)
        new = Lesson.objects.get(text=ONE)
        assert (new.state, new.origin, new.reviewed_by_id) == ("active", "edited", ana.user_id)
        assert (new.supersedes, new.also_supersedes) == (pair.first, pair.second)
        assert states(pair) == ("superseded", "superseded")
        superseded = TombstoneReason.SUPERSEDED.value
        assert buried() == {(pair.first, superseded, new.pk), (pair.second, superseded, new.pk)}
        assert Contradiction.objects.get().verdict == "merge_both"
        assert question(pair).status == "resolved"
        assert made.before["successors"] == [str(new.pk)]

    def test_undo_takes_all_of_it_back(self, ana: Person, pair: Contradiction) -> None:
        before = everything()
        made = settle(ana, pair, Verdict.MERGE_BOTH, text=ONE)
        undo(made.pk, ana)
        new = Lesson.objects.get(text=ONE)
        assert new.state == "superseded"
        after = everything()
        assert after.pop("buried") == {(new.pk, "superseded", pair.first)}, "what was withdrawn stays known"
        assert before.pop("buried") == set()
        assert after == before

    def test_undo_gives_each_side_back_what_it_had_replaced_itself(
        self, ana: Person, pair: Contradiction, lesson: Callable[..., Lesson]
    ) -> None:
        older = [lesson(f"Mind the limit of `{name}()` at night.") for name in ("read", "write")]
        for old, side in zip(older, (pair.first, pair.second), strict=True):
            rejection.reject(old.pk, reviewer=ana.user_id, reason="wrong", successor=side)
        made = settle(ana, pair, Verdict.MERGE_BOTH, text=ONE)
        new = Lesson.objects.get(text=ONE)
        heirs = LessonTombstone.objects.filter(source_lesson__in=[old.pk for old in older])
        assert set(heirs.values_list("successor_lesson", flat=True)) == {new.pk}
        undo(made.pk, ana)
        found = dict(heirs.values_list("source_lesson", "successor_lesson"))
        assert found == {older[0].pk: pair.first, older[1].pk: pair.second}

    @pytest.mark.parametrize(
        ("text", "why"),
        [(ALWAYS, "exactly this"), ("  ", "write a sentence"), ("Ask joe@corp.example.com.", "private")],
    )
    def test_a_wording_that_a_hard_gate_refuses_changes_nothing(
        self, ana: Person, pair: Contradiction, text: str, why: str
    ) -> None:
        before = everything()
        with pytest.raises(Invalid, match=why) as refused:
            settle(ana, pair, Verdict.MERGE_BOTH, text=text)
        assert list(refused.value.errors) == ["text"]
        assert everything() == before

    def test_is_near_neither_of_the_two_for_the_gates(self, ana: Person, pair: Contradiction) -> None:
        """It says what one of them says, at length: what it replaces does not refuse or flag it."""
        settle(ana, pair, Verdict.MERGE_BOTH, text=ALWAYS.replace("a timeout", "a timeout or a reset"))
        assert not ReviewItem.objects.filter(kind="near_duplicate").exists()

    @pytest.mark.parametrize("side", ["first", "second"])
    def test_goes_with_either_of_the_two_when_that_is_erased(self, ana: Person, pair: Contradiction, side: str) -> None:
        settle(ana, pair, Verdict.MERGE_BOTH, text=ONE)
        erase("lesson", getattr(pair, side), account_id=None, actor="system")
        other = pair.second if side == "first" else pair.first
        assert list(Lesson.objects.values_list("pk", flat=True)) == [other]


class TestBothInTheirScopes:
    def test_each_is_given_the_wording_that_says_where_it_holds(self, ana: Person, pair: Contradiction) -> None:
        texts = {ALWAYS: READS, NEVER: WRITES}
        wordings = {"first_text": texts[text_of(pair.first)], "second_text": texts[text_of(pair.second)]}
        settle(ana, pair, Verdict.KEEP_BOTH, **wordings)
        assert states(pair) == ("superseded", "superseded")
        new = {old: Lesson.objects.get(supersedes=old) for old in (pair.first, pair.second)}
        assert {text_of(old): lesson.text for old, lesson in new.items()} == texts
        assert {lesson.state for lesson in new.values()} == {"active"}

    def test_the_detector_does_not_ask_about_the_new_wordings(
        self, ana: Person, pair: Contradiction, space: EmbeddingSpace
    ) -> None:
        settle(ana, pair, Verdict.KEEP_BOTH, first_text=text_of(pair.first) + " In reads.")
        place(Lesson.objects.get(supersedes=pair.first), space, 0.95)
        found = contradiction.detect()
        assert (found.pairs, found.raised) == (1, 0)
        assert set(Contradiction.objects.values_list("verdict", flat=True)) == {"keep_both"}

    def test_what_is_left_as_it_was_stays_the_same_lesson(self, ana: Person, pair: Contradiction) -> None:
        settle(ana, pair, Verdict.KEEP_BOTH, first_text=text_of(pair.first), second_text="  ")
        assert states(pair) == ("active", "active")
        assert Lesson.objects.count() == 2
        assert Contradiction.objects.get().verdict == "keep_both"

    def test_undo_takes_all_of_it_back(self, ana: Person, pair: Contradiction) -> None:
        before = everything()
        made = settle(ana, pair, Verdict.KEEP_BOTH, first_text=READS, second_text=WRITES)
        assert Contradiction.objects.count() == 2
        undo(made.pk, ana)
        after = everything()
        after.pop("buried"), before.pop("buried")
        assert after == before
        assert {text_of(pk) for pk in Lesson.objects.filter(state="active").values_list("pk", flat=True)} == {
            ALWAYS,
            NEVER,
        }

    def test_a_refused_wording_names_its_field_and_changes_nothing(self, ana: Person, pair: Contradiction) -> None:
        before = everything()
        with pytest.raises(Invalid) as refused:
            settle(ana, pair, Verdict.KEEP_BOTH, first_text=READS, second_text=READS)
        assert list(refused.value.errors) == ["second_text"]
        assert everything() == before


class TestMeanwhile:
    """Between looking at a pair and deciding about it somebody decides about one of the two."""

    @pytest.mark.parametrize("verdict", [Verdict.REJECT, Verdict.QUARANTINE])
    def test_who_saw_the_pair_before_is_told_what_was_decided(
        self, ana: Person, ben: Person, pair: Contradiction, verdict: Verdict
    ) -> None:
        seen = question(pair)
        elsewhere = decide(decision(ben, verdict, pair.first))
        with pytest.raises(Stale) as late:
            decide(decision(ana, Verdict.KEEP_FIRST, pair.pk, seen))
        assert late.value.by == elsewhere
        assert state_of(pair.second) == "active"

    def test_who_saw_a_lesson_before_its_pair_was_decided_is_told_so(
        self, ana: Person, ben: Person, pair: Contradiction
    ) -> None:
        seen = decision(ana, Verdict.QUARANTINE, pair.second)
        settled = settle(ben, pair, Verdict.KEEP_FIRST)
        with pytest.raises(Stale) as late:
            decide(seen)
        assert late.value.by == settled

    @pytest.mark.parametrize("verdict", contradiction.VERDICTS)
    def test_of_a_pair_with_one_side_out_of_service_nothing_is_decided(
        self, ana: Person, pair: Contradiction, verdict: Verdict
    ) -> None:
        rejection.reject(pair.first, reviewer=ana.user_id, reason="wrong")
        with pytest.raises(Conflict, match="out of service"):
            decide(decision(ana, verdict, pair.pk))
        assert (state_of(pair.second), Contradiction.objects.get().verdict) == ("active", None)

    def test_a_verdict_that_changed_no_lesson_leaves_the_other_pairs_as_they_were(
        self, ana: Person, pair: Contradiction, lesson: Callable[..., Lesson], space: EmbeddingSpace
    ) -> None:
        place(lesson("Do not retry `fetch()` when it fails with a timeout."), space, 0.95)
        contradiction.detect()
        other = Contradiction.objects.exclude(pk=pair.pk).get()
        version = question(other).version
        settle(ana, pair, Verdict.NOT_A_CONTRADICTION)
        assert question(other).version == version

    def test_undo_asks_again_what_had_become_idle_with_the_loser(
        self, ana: Person, pair: Contradiction, lesson: Callable[..., Lesson], space: EmbeddingSpace
    ) -> None:
        place(lesson("Do not retry `fetch()` when it fails with a timeout."), space, 0.95)
        contradiction.detect()
        shared = {pair.first, pair.second} & {
            side for row in Contradiction.objects.exclude(pk=pair.pk) for side in (row.first, row.second)
        }
        loses = Verdict.KEEP_SECOND if pair.first in shared else Verdict.KEEP_FIRST
        made = settle(ana, pair, loses)
        assert set(ReviewItem.objects.values_list("status", flat=True)) == {"resolved", "obsolete"}
        undo(made.pk, ana)
        assert set(ReviewItem.objects.values_list("status", flat=True)) == {"open"}
        assert tombstone.is_buried(None, Lesson.objects.get(pk=shared.pop()).text_sha256) is False
