"""The differences between two texts lose nothing of either."""

from itertools import pairwise

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from review.diff import ADDED, REMOVED, SAME, Span, word_diff

texts = st.text(max_size=60) | st.lists(st.sampled_from(["a", "b", " ", "`c.d()`", "!", "😀", "אב"])).map("".join)


@given(before=texts, after=texts)
def test_leaving_out_what_is_added_or_removed_gives_either_text_back(before: str, after: str) -> None:
    spans = word_diff(before, after)
    assert "".join(span.text for span in spans if span.kind != ADDED) == before
    assert "".join(span.text for span in spans if span.kind != REMOVED) == after
    assert all(span.text for span in spans)
    assert all(a.kind != b.kind for a, b in pairwise(spans))


def test_only_the_words_that_differ_are_marked() -> None:
    assert word_diff("Always retry `fetch()`.", "Never retry `fetch()`!") == [
        Span(kind=REMOVED, text="Always"),
        Span(kind=ADDED, text="Never"),
        Span(kind=SAME, text=" retry `fetch()`"),
        Span(kind=REMOVED, text="."),
        Span(kind=ADDED, text="!"),
    ]


def shown(**context: object) -> str:
    return render_to_string(
        "review/parts/diff.html", {"spans": word_diff("<b>old</b> tea", "<b>new</b> tea"), **context}
    )


def test_the_page_says_in_words_what_is_added_and_removed_and_escapes_both() -> None:
    page = shown()
    assert "<ins" in page
    assert "<del" in page
    assert page.count("added: ") == page.count("removed: ") == 1
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_either_side_can_be_shown_alone() -> None:
    assert "new" not in shown(only="before")
    assert "old" not in shown(only="after")


@pytest.mark.parametrize("text", ["", "x" * 2000, "😀" * 500])
def test_equal_texts_have_no_difference(text: str) -> None:
    assert word_diff(text, text) == ([Span(kind=SAME, text=text)] if text else [])
