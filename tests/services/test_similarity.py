"""Near and the same claim: which lessons and tombstones speak against a text."""

import pytest

from memory.models import Lesson, LessonTombstone
from memory.models.vocabulary import TombstoneReason
from memory.rules.claim import signature
from memory.services import tombstone
from memory.services.similarity import matching_tombstone, near_lessons, semantic_duplicate
from tests.services.near import place, vector

pytestmark = pytest.mark.django_db

RETRY = "Always retry `fetch()` when it fails with a timeout."
NEVER = "Never retry `fetch()` when it fails with a timeout."
AGAIN = "Retry `fetch()` whenever it fails with a timeout."


@pytest.fixture
def asked(space):
    """A text at the first axis."""
    return lambda cosine=1.0: vector(cosine, space.dimension)


class TestDuplicates:
    def test_a_near_lesson_with_the_same_claim_is_one(self, lesson, space, asked) -> None:
        known = place(lesson(AGAIN), space, 0.95)
        assert semantic_duplicate(asked(), signature(RETRY), None, space) == known.pk

    def test_an_opposite_is_none_however_near_it_is(self, lesson, space, asked) -> None:
        place(lesson(NEVER), space, 1.0)
        assert semantic_duplicate(asked(), signature(RETRY), None, space) is None

    def test_opposites_that_are_nearer_do_not_hide_it(self, lesson, space, asked) -> None:
        for n in range(12):
            place(lesson(f"Never retry `fetch()` when it fails with a timeout, case {n}."), space, 0.99)
        known = place(lesson(AGAIN), space, 0.93)
        assert semantic_duplicate(asked(), signature(RETRY), None, space) == known.pk

    @pytest.mark.parametrize(("cosine", "found"), [(0.925, True), (0.915, False)])
    def test_the_threshold_is_the_spaces(self, lesson, space, asked, cosine, found) -> None:
        place(lesson(AGAIN), space, cosine)
        assert bool(semantic_duplicate(asked(), signature(RETRY), None, space)) is found

    @pytest.mark.parametrize("state", ["candidate", "active", "quarantined"])
    def test_what_waits_and_what_is_quarantined_counts_too(self, lesson, space, asked, state) -> None:
        known = place(lesson(AGAIN), space, 0.95)
        Lesson.objects.filter(pk=known.pk).update(state=state)
        assert semantic_duplicate(asked(), signature(RETRY), None, space) == known.pk

    @pytest.mark.parametrize("state", ["rejected", "superseded"])
    def test_what_is_out_of_service_does_not(self, lesson, space, asked, state) -> None:
        Lesson.objects.filter(pk=place(lesson(AGAIN), space, 0.95).pk).update(state=state)
        assert semantic_duplicate(asked(), signature(RETRY), None, space) is None

    def test_another_scope_does_not(self, lesson, space, asked, account, rival_account) -> None:
        own = place(lesson(AGAIN, account_id=account.pk), space, 0.95)
        for elsewhere in (None, rival_account.pk):
            assert semantic_duplicate(asked(), signature(RETRY), elsewhere, space) is None
        assert semantic_duplicate(asked(), signature(RETRY), account.pk, space) == own.pk

    def test_the_lesson_that_is_replaced_does_not(self, lesson, space, asked) -> None:
        old = place(lesson(AGAIN), space, 0.95)
        assert semantic_duplicate(asked(), signature(RETRY), None, space, skip=[old.pk]) is None

    def test_the_nearest_of_several_is_told(self, lesson, space, asked) -> None:
        place(lesson(AGAIN), space, 0.94)
        nearest = place(lesson("Retry `fetch()` each time that it fails with a timeout."), space, 0.97)
        assert semantic_duplicate(asked(), signature(RETRY), None, space) == nearest.pk
        assert [near.cosine for near in near_lessons(asked(), None, space, 0.9)] == pytest.approx(
            [0.97, 0.94], abs=1e-3
        )


def bury(lesson, reason=TombstoneReason.REJECTED_BY_REVIEWER, successor=None) -> LessonTombstone:
    tombstone.write(lesson.pk, reason, successor)
    return LessonTombstone.objects.get(source_lesson=lesson.pk)


class TestTombstones:
    def test_a_paraphrase_of_a_buried_value_is_refused(self, lesson, space, asked) -> None:
        buried = bury(place(lesson(AGAIN), space, 0.95))
        assert matching_tombstone(asked(), signature(RETRY), None, space) == buried.pk

    def test_its_opposite_is_not(self, lesson, space, asked) -> None:
        bury(place(lesson(NEVER), space, 1.0))
        assert matching_tombstone(asked(), signature(RETRY), None, space) is None

    def test_the_same_advice_about_another_function_is_not(self, lesson, space, asked) -> None:
        bury(place(lesson(AGAIN), space, 1.0))
        assert matching_tombstone(asked(), signature("Retry `other()` on a timeout."), None, space) is None

    def test_an_opposite_that_is_nearer_does_not_hide_it(self, lesson, space, asked) -> None:
        bury(place(lesson(NEVER), space, 1.0))
        buried = bury(place(lesson(AGAIN), space, 0.93))
        assert matching_tombstone(asked(), signature(RETRY), None, space) == buried.pk

    @pytest.mark.parametrize("change", [{"mac_key_id": "lost"}, {"signature_version": 99}])
    def test_one_that_cannot_be_read_refuses_what_is_near_whatever_it_claims(
        self, lesson, space, asked, change
    ) -> None:
        buried = bury(place(lesson(NEVER), space, 0.95))
        assert matching_tombstone(asked(), signature(RETRY), None, space) is None
        LessonTombstone.objects.update(**change)
        assert matching_tombstone(asked(), signature(RETRY), None, space) == buried.pk

    @pytest.mark.parametrize(("cosine", "found"), [(0.925, True), (0.915, False)])
    def test_the_threshold_is_the_spaces(self, lesson, space, asked, cosine, found) -> None:
        bury(place(lesson(AGAIN), space, cosine))
        assert bool(matching_tombstone(asked(), signature(RETRY), None, space)) is found

    def test_the_successor_is_not_refused_by_what_it_replaced(self, lesson, space, asked) -> None:
        successor = lesson("Prefer a queue to waiting in a loop of `sleep()` calls.")
        buried = bury(place(lesson(AGAIN), space, 0.95), TombstoneReason.SUPERSEDED, successor.pk)
        assert matching_tombstone(asked(), signature(RETRY), None, space) == buried.pk
        assert matching_tombstone(asked(), signature(RETRY), None, space, skip_successors=[successor.pk]) is None
        assert matching_tombstone(asked(), signature(RETRY), None, space, skip_successors=[buried.pk]) == buried.pk

    def test_another_scopes_tombstone_refuses_nothing(self, lesson, space, asked, account, rival_account) -> None:
        buried = bury(place(lesson(AGAIN, account_id=account.pk), space, 0.95))
        for elsewhere in (None, rival_account.pk):
            assert matching_tombstone(asked(), signature(RETRY), elsewhere, space) is None
        assert matching_tombstone(asked(), signature(RETRY), account.pk, space) == buried.pk

    def test_a_tombstone_without_a_vector_refuses_its_very_value_alone(self, lesson, space, asked) -> None:
        written = place(lesson(AGAIN), space, 0.95)
        written.lessonembedding_set.all().delete()
        bury(written)
        assert matching_tombstone(asked(), signature(RETRY), None, space) is None
        assert tombstone.is_buried(None, written.text_sha256)
