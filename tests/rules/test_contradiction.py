"""When two similar lessons may contradict each other, and which side is handed out meanwhile."""

from typing import Any

import pytest

from memory.rules.claim import AXES, signature
from memory.rules.contradiction import CLASSES, Judged, basis, standing_in_answer

RETRY = "Always retry `fetch()` when it fails with a timeout."
NEVER = "Never retry `fetch()` when it fails with a timeout."
AGAIN = "Retry `fetch()` whenever it fails with a timeout."


def judged(**classes: tuple[int, float]) -> dict[str, Judged]:
    return {source: Judged(n=n, reward=n * mean) for source, (n, mean) in classes.items()}


@pytest.mark.parametrize(
    ("texts", "a", "b", "expected"),
    [
        ((RETRY, NEVER), {}, {}, "polarity_only:prohibition"),
        ((RETRY, NEVER), judged(caller=(3, 0.8)), {}, "polarity_only:prohibition"),
        ((RETRY, NEVER), judged(caller=(3, 0.8)), judged(machine=(3, -1.0)), "polarity_only:prohibition"),
        ((RETRY, NEVER), judged(caller=(3, 0.8)), judged(caller=(1, 0.5)), "polarity:prohibition"),
        (
            (RETRY, NEVER),
            judged(caller=(3, 0.8)),
            judged(caller=(1, -0.5)),
            "both:prohibition,caller",
        ),
        ((RETRY, AGAIN), {}, {}, ""),
        ((RETRY, AGAIN), judged(caller=(3, 0.8)), judged(caller=(2, -1.0)), "evidence:caller"),
        ((RETRY, AGAIN), judged(machine=(3, 0.8)), judged(machine=(2, -1.0)), "evidence:machine"),
        ((RETRY, AGAIN), judged(caller=(3, 0.8)), judged(machine=(2, -1.0)), ""),
        ((RETRY, AGAIN), judged(attributed=(9, 1.0)), judged(attributed=(9, -1.0)), ""),
        ((RETRY, AGAIN), judged(unknown=(9, 1.0)), judged(unknown=(9, -1.0)), ""),
        # Callers judged both and agree: what machines say of them is not asked.
        (
            (RETRY, AGAIN),
            judged(caller=(1, 0.8), machine=(9, 1.0)),
            judged(caller=(1, 0.8), machine=(9, -1.0)),
            "",
        ),
        # A mean of exactly 0 is opposite to nothing.
        ((RETRY, AGAIN), judged(caller=(2, 0.0)), judged(caller=(2, -1.0)), ""),
        ((RETRY, "Retry `other()` when it fails with a timeout."), {}, {}, ""),
    ],
)
def test_the_basis_names_what_speaks_for_a_contradiction(texts: Any, a: Any, b: Any, expected: str) -> None:
    first, second = (signature(text) for text in texts)
    assert basis(first, second, a, b) == expected
    assert basis(second, first, b, a) == expected


def test_the_longest_basis_fits_its_column() -> None:
    both = judged(self_curriculum=(3, 0.8)), judged(self_curriculum=(3, -0.8))
    assert basis(signature(RETRY), signature(NEVER), *both) == "both:prohibition,self_curriculum"
    assert max(len(f"both:{axis},{source}") for axis in AXES for source in CLASSES) <= 40


class TestWhichSideIsHandedOut:
    def test_callers_who_liked_it_beat_nobody_and_nobody_beats_callers_who_did_not(self) -> None:
        liked, nobody, disliked = Judged(n=2, reward=1.6), Judged(), Judged(n=2, reward=-1.0)
        assert standing_in_answer(liked) > standing_in_answer(nobody) > standing_in_answer(disliked)

    def test_many_good_words_beat_one_that_is_a_little_better(self) -> None:
        assert standing_in_answer(Judged(n=20, reward=15.0)) > standing_in_answer(Judged(n=1, reward=0.8))
