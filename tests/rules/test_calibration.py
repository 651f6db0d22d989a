"""Fitting a relevance gate: what it keeps out, what it lets through, and that it never goes astray."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.rules.calibration import (
    ENOUGH,
    LEAST_MARGIN,
    Expected,
    Gate,
    Pair,
    Question,
    cross_validated,
    expect,
    expected_beyond,
    fit,
    folds,
    missing,
    tail_bound,
)
from memory.rules.relevance import SupportGate, Thresholds

patient = settings(deadline=None, max_examples=50)  # questions with pairs take long to draw
cosines = st.floats(-1, 0.99)
supports = st.none() | st.floats(-0.5, 0.9)


def question(*found: float, support: float | None = None, fits: bool = False, anchors: int = 0) -> Question:
    pairs = [Pair(cosine=cosine, shared_anchors=anchors, fits=fits and not i) for i, cosine in enumerate(found)]
    return Question(pairs=tuple(pairs), support=support)


@st.composite
def questions(draw: st.DrawFn, *, fits: bool, least: int = 1) -> list[Question]:
    pair = st.builds(Pair, cosine=cosines, shared_anchors=st.integers(0, 4), fits=st.just(False))
    made = []
    for _ in range(draw(st.integers(least, 12))):
        pairs = draw(st.lists(pair, max_size=4))
        if fits:
            pairs.append(draw(st.builds(Pair, cosine=cosines, shared_anchors=st.integers(0, 4), fits=st.just(True))))
        made.append(Question(pairs=tuple(pairs), support=draw(supports)))
    return made


def numbers(gate: Gate) -> list[float]:
    more = [gate.supported.min_support, gate.supported.min_similarity] if gate.supported else []
    return [gate.thresholds.min_similarity, gate.thresholds.uncorroborated_min_similarity, *more]


@patient
@given(tasks=questions(fits=True), off_domain=questions(fits=False))
def test_no_off_domain_question_that_a_gate_was_fitted_to_gets_a_lesson(
    tasks: list[Question], off_domain: list[Question]
) -> None:
    gate = fit(tasks, off_domain)
    assert [q for q in off_domain if gate.answer(q, 50)] == []


@patient
@given(tasks=questions(fits=True), off_domain=questions(fits=False))
def test_the_thresholds_are_finite_in_range_and_in_order(tasks: list[Question], off_domain: list[Question]) -> None:
    gate = fit(tasks, off_domain)
    assert all(math.isfinite(value) and -1 <= value <= 1 for value in numbers(gate))
    if gate.supported:
        assert gate.supported.min_similarity <= gate.thresholds.min_similarity
    assert gate.thresholds.min_similarity <= gate.thresholds.uncorroborated_min_similarity


@patient
@given(
    tasks=questions(fits=True),
    off_domain=questions(fits=False),
    rate=st.floats(0.001, 0.2),
    other=st.floats(0.001, 0.2),
)
def test_who_wants_fewer_mistakes_gets_no_lower_threshold(
    tasks: list[Question], off_domain: list[Question], rate: float, other: float
) -> None:
    strict, lenient = (fit(tasks, off_domain, false_rate=each) for each in sorted((rate, other)))
    if strict.supported and lenient.supported:
        assert strict.supported.min_support >= lenient.supported.min_support
    assert numbers(strict)[0] >= numbers(lenient)[0]
    assert numbers(strict)[1] >= numbers(lenient)[1]


@given(scores=st.lists(cosines, min_size=1, max_size=40), higher=st.floats(0, 0.5), rate=st.floats(0.001, 0.5))
def test_a_bound_follows_the_scores_and_lies_above_them(scores: list[float], higher: float, rate: float) -> None:
    bound = tail_bound(scores, rate)
    assert bound >= max(scores) + LEAST_MARGIN
    assert tail_bound([score + higher for score in scores], rate) == pytest.approx(bound + higher)


def test_beyond_the_scores_the_tail_goes_on_as_it_began() -> None:
    """40 scores; the highest ten exceed 0.3 by 0.05 on average, and ln(10 / (40 * 0.0025)) is ln 100."""
    scores = [0.1] * 29 + [0.3] + [0.35] * 10
    assert expected_beyond(scores, 0.0025) == pytest.approx(0.3 + 0.05 * math.log(100))
    assert expected_beyond(scores, 0.5) == 0.1


@given(
    st.builds(Pair, cosine=cosines, shared_anchors=st.integers(0, 4)), cosines, st.integers(0, 3), st.floats(-1, 1),
    st.floats(0, 1),
)  # fmt: skip
def test_a_fitted_gate_never_closes_to_more(
    pair: Pair, cosine: float, more: int, support: float, higher: float
) -> None:
    gate = fit([question(0.6, support=0.3, fits=True)], [question(0.2, support=0.1, anchors=2)])
    better = Pair(cosine=max(pair.cosine, cosine), shared_anchors=pair.shared_anchors + more)
    if gate.passes(Question(pairs=(), support=support), pair):
        assert gate.passes(Question(pairs=(), support=min(1.0, support + higher)), better)


def test_a_gate_is_as_a_space_applies_it() -> None:
    gate = Gate(
        thresholds=Thresholds(min_similarity=0.4, uncorroborated_min_similarity=0.5),
        supported=SupportGate(min_support=0.15, min_similarity=0.25),
    )
    assert gate.answer(question(0.3, 0.2, 0.26, support=0.15), 5) == list(question(0.3, 0.26).pairs)
    assert gate.answer(question(0.3, 0.5, 0.49, support=0.14), 5) == list(question(0.5).pairs)
    assert gate.answer(question(0.4, 0.39, support=None, anchors=2), 5) == list(question(0.4, anchors=2).pairs)
    assert len(gate.answer(question(0.9, 0.9, 0.9), 2)) == 2


def test_where_no_support_is_known_none_is_asked() -> None:
    assert fit([question(0.6, fits=True)], [question(0.2)]).supported is None
    assert fit([question(0.6, fits=True, support=0.3)], [question(0.2)]).supported is None


def test_what_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(ValueError, match="says what a lesson says"):
        fit([question(0.6, fits=True)], [question(1.0)])
    for tasks, off_domain in (
        ([], [question(0.1)]),
        ([question(0.5)], [question(0.1)]),
        ([question(0.5, fits=True)], []),
    ):
        with pytest.raises(ValueError, match="wanting"):
            fit(tasks, off_domain)
    with pytest.raises(ValueError, match="No scores"):
        expected_beyond([], 0.1)


@given(n=st.integers(0, 60))
def test_every_question_is_left_out_once(n: int) -> None:
    parts = folds(n)
    assert sorted(i for part in parts for i in part) == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_question_is_judged_by_a_gate_that_did_not_see_it() -> None:
    """One off-domain question stands out. A gate that was fitted to it keeps it out, one that was not lets it in."""
    tasks = [question(0.4, fits=True)] * 10
    off_domain = [*[question(0.1)] * 9, question(0.8)]
    assert expect(fit(tasks, off_domain), tasks, off_domain, 5).noisy == 0
    judged = cross_validated(tasks, off_domain, 5)
    assert (judged.noisy, judged.off_domain, judged.tasks) == (1, 10, 10)


def test_shares_come_with_their_intervals_also_of_nothing() -> None:
    does = Expected(tasks=78, found=74, off_domain=48, noisy=0)
    assert does.recall == pytest.approx((0.9487, 0.8754, 0.9799), abs=1e-4)
    assert does.noise == pytest.approx((0.0, 0.0, 0.0741), abs=1e-4)
    assert Expected(tasks=0, found=0, off_domain=0, noisy=0).recall == (0.0, 0.0, 1.0)


def test_what_is_missing_for_a_fit_is_counted() -> None:
    assert missing(0, ENOUGH - 1) == (ENOUGH, 1)
    assert missing(ENOUGH, 2 * ENOUGH) == (0, 0)
