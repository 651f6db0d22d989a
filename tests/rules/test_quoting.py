"""Quoted spans: what a sentence rests on, and nothing else."""

from memory.rules.quoting import quotes

LESSON = "Pass `timeout=10` to every `requests.get()` call."
TEXT = """The report hung. I saw that requests.get() had no timeout, so I passed timeout=10.
Then the weather was fine.
Every call to requests.get() in this file has a timeout now! Done."""


def test_the_spans_that_share_most_words_come_in_the_order_of_the_text() -> None:
    assert quotes(LESSON, TEXT) == [
        "I saw that requests.get() had no timeout, so I passed timeout=10.",
        "Every call to requests.get() in this file has a timeout now!",
    ]


def test_the_best_are_kept_where_there_are_many() -> None:
    assert quotes(LESSON, TEXT, limit=1) == ["Every call to requests.get() in this file has a timeout now!"]
    assert quotes(LESSON, TEXT, limit=0) == []


def test_what_shares_nothing_is_not_quoted() -> None:
    assert quotes(LESSON, "Nothing here. Or there.") == quotes(LESSON, "") == quotes("", TEXT) == []


def test_a_long_span_is_cut() -> None:
    (span,) = quotes("alpha beta", "alpha beta " + "x" * 500)
    assert (len(span), span[-1]) == (240, "…")
