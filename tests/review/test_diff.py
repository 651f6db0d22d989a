"""The differences between two texts lose nothing of either."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.diff import ADDED, REMOVED, SAME, Span, inline, sides

texts = st.text(max_size=60) | st.lists(st.sampled_from(["a", "b", " ", "`c.d()`", "!", "😀", "אב"])).map("".join)


@given(before=texts, after=texts)
def test_leaving_out_what_is_added_or_removed_gives_either_text_back(before: str, after: str) -> None:
    spans = inline(before, after)
    assert "".join(span.text for span in spans if span.kind != ADDED) == before
    assert "".join(span.text for span in spans if span.kind != REMOVED) == after
    left, right = sides(before, after)
    assert ("".join(s.text for s in left), "".join(s.text for s in right)) == (before, after)
    for one in (spans, left, right):
        assert all(span.text for span in one)
        assert all(a.kind != b.kind for a, b in pairwise(one))


def test_only_the_words_that_differ_are_marked() -> None:
    left, right = sides("Always retry `fetch()` once.", "Never retry `fetch()` twice.")
    assert left == [
        Span(kind=REMOVED, text="Always"),
        Span(kind=SAME, text=" retry `fetch()` "),
        Span(kind=REMOVED, text="once"),
        Span(kind=SAME, text="."),
    ]
    assert [span.text for span in right if span.kind == ADDED] == ["Never", "twice"]


@pytest.mark.parametrize("text", ["", "x" * 2000, "😀" * 500])
def test_equal_texts_have_no_difference(text: str) -> None:
    assert inline(text, text) == ([Span(kind=SAME, text=text)] if text else [])
