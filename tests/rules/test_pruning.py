"""Which lesson of a cluster is kept, who is in it, and whose row counts."""

import random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.pruning import Contender, Exposed, Member, best, clusters, counted, pair_of


def lesson(n: int, **figures: object) -> Contender:
    plain: dict[str, Any] = {"caller": 0, "machine": 0, "wins": 0, "length": 50, "created": 1000.0 + n}
    return Contender(lesson=UUID(int=n), **{**plain, **figures})


def near(a: int, b: int, cosine: float = 0.95):
    return pair_of(UUID(int=a), UUID(int=b), cosine)


def shape(found) -> list[tuple[int, list[int]]]:
    return [(cluster.keeper.int, [member.lesson.int for member in cluster.members]) for cluster in found]


class TestWhoIsKept:
    @pytest.mark.parametrize(
        ("kept", "gone"),
        [
            ({"caller": 1}, {"machine": 100, "wins": 100}),
            ({"caller": 3}, {"caller": 2, "machine": 50, "wins": 50}),
            ({"caller": 2, "machine": 1}, {"caller": 2, "wins": 2}),
            ({"machine": 1}, {"wins": 0, "length": 500, "created": 0.0}),
            ({"caller": 2, "wins": 2}, {"caller": 2, "wins": 1, "length": 500}),
            ({"length": 51}, {"length": 50, "created": 0.0}),
            ({"created": 10.0}, {"created": 11.0}),
        ],
    )
    def test_evidence_of_callers_then_of_machines_then_wins_then_length_then_age(self, kept, gone) -> None:
        assert best([lesson(1, **gone), lesson(2, **kept)]) == UUID(int=2)

    def test_of_two_that_are_equal_in_all_of_it_the_smaller_id_is_kept(self) -> None:
        assert best([lesson(2, created=0.0), lesson(1, created=0.0)]) == UUID(int=1)

    def test_classes_are_never_added_up(self) -> None:
        assert best([lesson(1, caller=1, machine=0, wins=0), lesson(2, caller=0, machine=1000, wins=1000)]).int == 1


class TestClusters:
    def test_two_that_say_the_same_are_one_cluster(self) -> None:
        found = clusters([lesson(1), lesson(2, caller=1)], [near(1, 2, 0.97)])
        assert shape(found) == [(2, [1])]
        assert found[0].members == (Member(lesson=UUID(int=1), cosine=0.97),)

    def test_a_chain_is_no_cluster(self) -> None:
        """1 is near 2 and 2 near 3, but 1 is far from 3: whoever is kept, the far one is left alone."""
        assert shape(clusters([lesson(1, caller=3), lesson(2), lesson(3)], [near(1, 2), near(2, 3)])) == [(1, [2])]
        assert shape(clusters([lesson(1), lesson(2), lesson(3, caller=3)], [near(1, 2), near(2, 3)])) == [(3, [2])]

    def test_the_middle_of_a_chain_keeps_both_ends_if_it_is_kept(self) -> None:
        assert shape(clusters([lesson(1), lesson(2, caller=3), lesson(3)], [near(1, 2, 0.94), near(2, 3)])) == [
            (2, [3, 1])
        ]

    def test_a_lesson_is_in_one_cluster_at_most(self) -> None:
        found = clusters([lesson(1, caller=9), lesson(2), lesson(3, caller=8)], [near(1, 2), near(2, 3)])
        assert shape(found) == [(1, [2])]

    def test_a_pair_without_a_contender_is_ignored(self) -> None:
        assert clusters([lesson(1)], [near(1, 2)]) == []

    def test_what_a_person_approved_is_not_removed_for_what_nobody_read(self) -> None:
        assert clusters([lesson(1, caller=9), lesson(2, reviewed=True)], [near(1, 2)]) == []

    def test_what_nobody_read_is_removed_for_what_a_person_approved(self) -> None:
        assert shape(clusters([lesson(1, caller=9, reviewed=True), lesson(2)], [near(1, 2)])) == [(1, [2])]

    @given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=20), st.integers(0, 2**32))
    def test_any_order_of_the_input_gives_the_same_clusters_of_near_lessons(self, edges, seed) -> None:
        pairs = [near(a, b, 0.9 + (a * b) / 1000) for a, b in edges if a != b]
        people = [lesson(n, caller=n % 4, machine=n % 3, reviewed=n == 5) for n in range(1, 10)]
        found = clusters(people, pairs)
        shuffled_pairs, shuffled_people = list(pairs), list(people)
        random.Random(seed).shuffle(shuffled_pairs)
        random.Random(seed).shuffle(shuffled_people)
        assert clusters(shuffled_people, shuffled_pairs) == found
        edges_of = {(pair.first, pair.second) for pair in pairs}
        seen: list[UUID] = []
        for cluster in found:
            assert cluster.members
            seen += [cluster.keeper, *(m.lesson for m in cluster.members)]
            contenders = [p for p in people if p.lesson in (cluster.keeper, *(m.lesson for m in cluster.members))]
            assert best(contenders) == cluster.keeper
            for member in cluster.members:
                assert tuple(sorted((cluster.keeper, member.lesson))) in edges_of
        assert len(seen) == len(set(seen))


class TestWhoseRowCounts:
    @pytest.mark.parametrize(
        ("keeper", "member", "who"),
        [
            (("out", False), ("out", False), "keeper"),
            (("held", False), ("held", False), "keeper"),
            (("out", False), ("held", False), "keeper"),
            (("held", False), ("out", False), "member"),
            (("out", False), ("out", True), "member"),
            (("out", True), ("out", True), "keeper"),
            (("out", False), ("held", True), "keeper"),
            (("held", True), ("out", False), "member"),
        ],
    )
    def test_handed_out_beats_withheld_then_a_persons_word_then_the_keepers_own(self, keeper, member, who) -> None:
        rows = [Exposed(handed_out=kind == "out", exempted=exempted) for kind, exempted in (keeper, member)]
        assert counted(*rows) == who
