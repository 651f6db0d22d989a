import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.relevance import GateResult, SupportGate, Thresholds, gate, lexical_gate, support, supported_gate

T = Thresholds(min_similarity=0.62, uncorroborated_min_similarity=0.70)
SUPPORTED = SupportGate(min_support=0.15, min_similarity=0.30)
cosines = st.floats(-1, 1)


@pytest.mark.parametrize(
    ("cosine", "anchors", "reason"),
    [
        (0.70, 0, ""),
        (0.699, 1, "uncorroborated"),
        (0.699, 2, ""),
        (0.62, 2, ""),
        (0.619, 9, "below_similarity"),
        (-1.0, 9, "below_similarity"),
        (None, 2, ""),
        (None, 1, "no_anchors"),
    ],
)
def test_the_gate_passes_at_the_threshold_and_names_what_is_missing_below(cosine, anchors, reason):
    assert gate(cosine=cosine, shared_anchors=anchors, thresholds=T) == GateResult(passed=not reason, reason=reason)


def test_a_cosine_that_is_no_number_does_not_pass():
    assert gate(cosine=float("nan"), shared_anchors=9, thresholds=T).reason == "below_similarity"


def test_without_an_embedding_two_shared_words_are_required():
    assert not lexical_gate(1).passed
    assert lexical_gate(2).passed


@given(cosine=cosines, higher=cosines, anchors=st.integers(0, 5), more=st.integers(0, 5))
def test_more_similarity_or_more_shared_words_never_close_the_gate(cosine, higher, anchors, more):
    if gate(cosine=cosine, shared_anchors=anchors, thresholds=T).passed:
        assert gate(cosine=max(cosine, higher), shared_anchors=anchors + more, thresholds=T).passed


@pytest.mark.parametrize(("low", "high"), [(0.7, 0.6), (-1.1, 0.5), (0.5, 1.1), (float("nan"), 0.5)])
def test_thresholds_out_of_order_or_range_are_refused(low, high):
    with pytest.raises(ValueError, match="ordered"):
        Thresholds(min_similarity=low, uncorroborated_min_similarity=high)


@pytest.mark.parametrize(("passed", "reason"), [(True, "no_anchors"), (False, "")])
def test_a_result_has_a_reason_exactly_when_it_is_a_refusal(passed, reason):
    with pytest.raises(ValueError, match="reason"):
        GateResult(passed=passed, reason=reason)


def supported(cosine, anchors, store_support):
    return supported_gate(
        cosine=cosine, shared_anchors=anchors, support=store_support, thresholds=T, supported=SUPPORTED
    ).reason


@pytest.mark.parametrize(
    ("cosine", "anchors", "store_support", "reason"),
    [
        (0.30, 0, 0.15, ""),  # a task of the store's kind
        (0.299, 0, 0.15, "below_similarity"),
        (0.30, 0, 0.149, "below_similarity"),  # one fair match, and no other
        (0.65, 1, 0.149, "uncorroborated"),
        (0.65, 2, 0.0, ""),  # the fixed gate still holds
        (0.70, 0, 0.0, ""),
        (None, 1, 0.9, "no_anchors"),
        (None, 2, 0.0, ""),
    ],
)
def test_support_opens_a_second_way_and_closes_none(cosine, anchors, store_support, reason):
    assert supported(cosine, anchors, store_support) == reason


@given(cosine=cosines, anchors=st.integers(0, 5), store_support=cosines)
def test_whatever_the_fixed_gate_passes_the_supported_gate_passes(cosine, anchors, store_support):
    if gate(cosine=cosine, shared_anchors=anchors, thresholds=T).passed:
        assert supported(cosine, anchors, store_support) == ""


@pytest.mark.parametrize(("least", "cosine"), [(1.1, 0.3), (0.1, -1.1), (float("nan"), 0.3)])
def test_a_support_gate_out_of_range_is_refused(least, cosine):
    with pytest.raises(ValueError, match="outside"):
        SupportGate(min_support=least, min_similarity=cosine)


def test_support_is_the_mean_of_the_highest_fifth():
    assert support([0.0, 0.1, 0.9, 0.2, 0.3, 0.1, 0.1, 0.7, 0.0, 0.0]) == pytest.approx(0.8)


def test_a_small_sample_is_supported_by_its_best_and_an_empty_one_by_nothing():
    assert support([0.2, 0.6]) == pytest.approx(0.6)
    assert support([]) == 0.0


@given(st.lists(cosines, min_size=1, max_size=60))
def test_support_lies_between_the_mean_and_the_maximum(values):
    assert sum(values) / len(values) - 1e-9 <= support(values) <= max(values) + 1e-9
