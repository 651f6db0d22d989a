import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memory.embedding import EmbeddingUnavailable
from memory.embedding.base import encodable, unit_rows


@given(arrays(np.float64, (3, 4), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_rows_come_back_as_units_or_not_at_all(raw):
    if (raw != 0).any(axis=1).all():
        rows = unit_rows(raw, count=3, dimension=4, source="It")
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    else:
        with pytest.raises(EmbeddingUnavailable, match="It answered with a zero vector"):
            unit_rows(raw, count=3, dimension=4, source="It")


@pytest.mark.parametrize(
    "raw", [[[1.0, 2.0]], [[1.0, 2.0, 3.0]] * 2, [1.0, 2.0, 3.0], [[1.0, 2.0], [3.0]], "text", None]
)
def test_another_shape_is_refused(raw):
    with pytest.raises(EmbeddingUnavailable):
        unit_rows(raw, count=1, dimension=3, source="It")


def test_no_texts_are_no_rows():
    assert unit_rows([], count=0, dimension=5, source="It").shape == (0, 5)


@given(st.text(st.characters() | st.characters(categories=["Cs"])))
def test_any_text_can_be_encoded(text):
    assert encodable(text).encode() == text.encode("utf-8", "replace")
