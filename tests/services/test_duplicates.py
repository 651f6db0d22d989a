"""A person says that one lesson repeats another: they become one as by a plan, and it can be taken back."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.errors import Conflict, Forbidden, Invalid
from memory.models import (
    Account,
    Contradiction,
    EmbeddingSpace,
    Lesson,
    LessonSourceSum,
    LessonTombstone,
    LessonUsage,
    PruneArchive,
    PrunePlan,
    ReviewItem,
    TrustEvent,
    UsageExemption,
)
from memory.models.vocabulary import ReviewKind, Verdict
from memory.services import applying, duplicates, pruning, questions
from memory.services.adjudication import decide, undo
from memory.services.authority import Person
from memory.services.credit import sweep
from memory.services.questions import Question
from memory.services.standing import differences
from tests.services.near import place
from tests.services.people import decision, member
from tests.services.play import make_callers, say, serve

ONE = "Pass `timeout=10` to `requests.get()` in every health check."
TWO = "Give `requests.get()` a `timeout` wherever a service is probed."

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana(account: Account) -> Person:
    return member(account, "reviewer", "ana")


@pytest.fixture
def kept(lesson: Callable[..., Lesson], space: EmbeddingSpace) -> Lesson:
    return place(lesson(ONE), space, 0.99, 1)


@pytest.fixture
def twin(lesson: Callable[..., Lesson], space: EmbeddingSpace) -> Lesson:
    """Says the same in other words: far away by the model's measure, so that no plan would propose it."""
    return place(lesson(TWO), space, 0.4, 1)


def merge(who: Person, twin: Lesson, kept: Lesson, **more: Any) -> Any:
    return decide(decision(who, Verdict.MERGE, twin.pk, data={"keeper": str(kept.pk)}, **more))


def judged(lesson: Lesson) -> dict[str, tuple[int, int]]:
    return {row.source: (row.n, row.losses) for row in LessonSourceSum.objects.filter(lesson=lesson)}


class TestMerging:
    def test_the_evidence_is_the_keepers_and_the_value_stays_known(
        self, ana: Person, account: Account, kept: Lesson, twin: Lesson
    ) -> None:
        callers = make_callers(account)
        say(callers["caller"], serve(account, "first", [kept]).pk, "accepted")
        say(callers["caller"], serve(account, "second", [twin]).pk, "failed")
        sweep()
        merge(ana, twin, kept, note="Both want a timeout.")
        assert list(Lesson.objects.all()) == [kept]
        assert judged(kept) == {"caller": (2, 1)}
        assert set(LessonUsage.objects.values_list("lesson_id", flat=True)) == {kept.pk}
        buried = LessonTombstone.objects.get()
        assert (buried.reason, buried.successor_lesson) == ("near_duplicate_pruned", kept.pk)
        merged = TrustEvent.objects.get(kind="merged", lesson=kept.pk)
        assert (merged.actor, merged.evidence["reason"]) == (ana.actor, "other: Both want a timeout.")
        assert merged.evidence["similarity"] < 0.93
        assert differences() == []

    def test_an_open_question_about_it_is_answered(self, ana: Person, kept: Lesson, twin: Lesson) -> None:
        asked = Question(
            kind=ReviewKind.NEAR_DUPLICATE, subject=twin.pk, account_id=None, severity=0.4, since=twin.created_at
        )
        questions.ask([asked])
        item = ReviewItem.objects.get()
        decide(decision(ana, Verdict.MERGE, twin.pk, item, data={"keeper": str(kept.pk)}))
        assert ReviewItem.objects.get().status == "resolved"

    def test_lessons_without_a_vector_can_be_merged_too(self, ana: Person, kept: Lesson, twin: Lesson) -> None:
        twin.lessonembedding_set.all().delete()
        merge(ana, twin, kept)
        assert PrunePlan.objects.get().clusters[0]["members"][0]["cosine"] == duplicates.UNKNOWN

    def test_no_search_takes_it_for_a_plan_of_its_own(self, ana: Person, kept: Lesson, twin: Lesson) -> None:
        merge(ana, twin, kept)
        assert pruning.current(None).clusters == []
        assert PrunePlan.objects.count() == 2

    @pytest.mark.parametrize("keeper", ["", "nothing", "00000000-0000-0000-0000-000000000000"])
    def test_a_keeper_is_needed(self, ana: Person, twin: Lesson, keeper: str) -> None:
        with pytest.raises(Invalid) as refused:
            decide(decision(ana, Verdict.MERGE, twin.pk, data={"keeper": keeper}))
        assert list(refused.value.errors) == ["keeper"]

    def test_a_lesson_is_no_duplicate_of_itself(self, ana: Person, twin: Lesson) -> None:
        with pytest.raises(Invalid, match="no duplicate of itself"):
            merge(ana, twin, twin)

    def test_scopes_are_never_mixed(
        self, account: Account, rival_account: Account, lesson: Callable[..., Lesson], settings: Any
    ) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        mine, theirs = lesson(ONE, account_id=account.pk), lesson(TWO, account_id=rival_account.pk)
        with pytest.raises(Invalid, match="beside this one"):
            merge(member(account, "reviewer", "ana"), mine, theirs)
        assert Lesson.objects.count() == 2

    @pytest.mark.parametrize("gone", ["kept", "twin"])
    def test_both_must_be_live(
        self, ana: Person, kept: Lesson, twin: Lesson, gone: str, request: pytest.FixtureRequest
    ) -> None:
        decide(decision(ana, Verdict.REJECT, request.getfixturevalue(gone).pk))
        with pytest.raises(Conflict, match="rejected by now"):
            merge(ana, twin, kept)

    def test_who_is_no_reviewer_is_refused(self, account: Account, kept: Lesson, twin: Lesson) -> None:
        with pytest.raises(Forbidden, match="needs the role reviewer"):
            merge(member(account, "judge", "jo"), twin, kept)
        assert Lesson.objects.count() == 2

    def test_a_persons_word_on_a_row_that_would_go_is_not_lost(
        self, ana: Person, account: Account, kept: Lesson, twin: Lesson
    ) -> None:
        say(make_callers(account)["caller"], serve(account, "both", [kept, twin]).pk, "failed")
        sweep()
        for row in LessonUsage.objects.all():
            UsageExemption.objects.create(usage=row, reviewer_id=ana.user_id, reason="not its fault")
        with pytest.raises(Conflict, match="excused a loss"):
            merge(ana, twin, kept)
        assert (Lesson.objects.count(), LessonTombstone.objects.count(), PrunePlan.objects.count()) == (2, 0, 0)


class TestTakingItBack:
    def test_an_undo_brings_the_lesson_and_its_rows_back_and_decides_nothing_about_the_pair(
        self, ana: Person, account: Account, kept: Lesson, twin: Lesson
    ) -> None:
        say(make_callers(account)["caller"], serve(account, "second", [twin]).pk, "failed")
        sweep()
        made = merge(ana, twin, kept)
        undo(made.pk, ana)
        assert set(Lesson.objects.all()) == {kept, twin}
        assert (judged(kept), judged(twin)) == ({}, {"caller": (1, 1)})
        assert not LessonTombstone.objects.exists()
        assert not Contradiction.objects.exists()
        assert differences() == []

    def test_what_was_undone_can_be_merged_again(self, ana: Person, kept: Lesson, twin: Lesson) -> None:
        undo(merge(ana, twin, kept).pk, ana)
        merge(ana, twin, kept)
        assert list(Lesson.objects.all()) == [kept]

    def test_a_quarantined_lesson_comes_back_quarantined_and_known_as_that(
        self, ana: Person, kept: Lesson, twin: Lesson
    ) -> None:
        decide(decision(ana, Verdict.QUARANTINE, twin.pk))
        made = merge(ana, twin, kept)
        assert LessonTombstone.objects.get().reason == "near_duplicate_pruned"
        undo(made.pk, ana)
        assert Lesson.objects.get(pk=twin.pk).state == "quarantined"
        assert LessonTombstone.objects.get().reason == "quarantined"

    def test_an_undo_is_refused_once_the_kept_lesson_has_changed(self, ana: Person, kept: Lesson, twin: Lesson) -> None:
        made = merge(ana, twin, kept)
        decide(decision(ana, Verdict.REJECT, kept.pk))
        with pytest.raises(Conflict, match="has changed since"):
            undo(made.pk, ana)
        assert Lesson.objects.get().pk == kept.pk

    def test_an_undo_is_refused_once_a_maintainer_has_restored_it(
        self, ana: Person, account: Account, kept: Lesson, twin: Lesson
    ) -> None:
        made = merge(ana, twin, kept)
        mia = member(account, "maintainer", "mia")
        restored = applying.restore(None, PrunePlan.objects.get().digest, reviewer=mia.user_id, reason="They differ.")
        assert restored == [twin.pk]
        assert TrustEvent.objects.get(kind="restored_by_reviewer").evidence["reason"] == "They differ."
        with pytest.raises(Conflict, match="nothing to undo"):
            undo(made.pk, ana)

    def test_a_chain_is_taken_back_from_its_end(
        self, ana: Person, kept: Lesson, twin: Lesson, lesson: Callable[..., Lesson]
    ) -> None:
        last = lesson("Close the `session` of `requests` after every probe.")
        first = merge(ana, twin, kept)
        second = merge(ana, kept, last)
        with pytest.raises(Conflict, match="changed since"):
            undo(first.pk, ana)
        undo(second.pk, ana)
        undo(first.pk, ana)
        assert set(Lesson.objects.all()) == {kept, twin, last}
        assert not PruneArchive.objects.exists()
