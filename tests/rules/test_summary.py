"""Summaries: made of what was said, bounded, repeatable, and without anything private."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.privacy import find_private
from memory.rules.summary import MAX_SENTENCE, MAX_SENTENCES, Turn, split, summarise

MOST = 600
WORK = [
    Turn(
        task="Make the worker survive a lost database connection",
        response="I wrapped every call of the worker in `retry_once()`. The tests pass now.",
        signal="rejected",
        detail="The worker still dies when the connection is lost while it starts.",
    ),
    Turn(
        task="Make the start of the worker wait for the database connection",
        response="The worker now waits for the connection for at most 30 seconds before it starts.",
        signal="accepted",
    ),
]


class TestSentences:
    def test_are_those_of_the_prose(self) -> None:
        text = """# What I did with the file

I changed two things. The first one is `a.py`, e.g. its imports! Is that all of it?

```python
secret_function_call_that is not prose at all
```

> a quotation of somebody else's words
| a | table | of | words |
- [x] Renamed the third file too
2. Ran all of the tests
"""
        assert split(text) == [
            "I changed two things.",
            "The first one is `a.py`, e.g. its imports!",
            "Is that all of it?",
            "Renamed the third file too",
            "Ran all of the tests",
        ]

    def test_that_say_too_little_are_none(self) -> None:
        assert split("Done. All good! Yes\n\nTests passed now.") == ["Tests passed now."]

    def test_of_unspaced_scripts_are_found(self) -> None:
        assert split("接続が失われても動く。次にテストを書いた。") == ["接続が失われても動く。", "次にテストを書いた。"]

    def test_of_one_text_are_bounded(self) -> None:
        assert len(split("This is one more sentence. " * 500)) == MAX_SENTENCES


class TestASummary:
    def test_says_what_was_asked_answered_and_judged_in_the_order_of_the_work(self) -> None:
        assert summarise(WORK, MOST).split("\n") == [
            "Task (rejected): Make the worker survive a lost database connection",
            "Answer: I wrapped every call of the worker in `retry_once()`.",
            "Answer: The tests pass now.",
            "Judged rejected: The worker still dies when the connection is lost while it starts.",
            "Task (accepted): Make the start of the worker wait for the database connection",
            "Answer: The worker now waits for the connection for at most 30 seconds before it starts.",
        ]

    def test_keeps_the_most_telling_where_not_all_fits(self) -> None:
        assert summarise(WORK, 160).split("\n") == [
            "Task (rejected): Make the worker survive a lost database connection",
            "Answer: The worker now waits for the connection for at most 30 seconds before it starts.",
        ]

    def test_says_another_thing_rather_than_the_same_again(self) -> None:
        same = [Turn(task=f"Fix the parser of dates in file number {n}") for n in "abcdefgh"]
        other = Turn(task="Rename the billing module")
        told = summarise([*same, other], 140)
        assert "Rename the billing module" in told

    def test_says_a_repeated_sentence_once(self) -> None:
        assert summarise([Turn(task="Fix the parser of dates")] * 5, MOST) == "Task: Fix the parser of dates"

    def test_cuts_a_long_sentence_between_words(self) -> None:
        told = summarise([Turn(task="word and other " * 100)], MOST)
        assert told.endswith("\u2026")
        assert len(told) <= MAX_SENTENCE + len("Task: ")
        assert set(told.removeprefix("Task: ").rstrip("\u2026").split()) == {"word", "and", "other"}

    def test_of_nothing_is_empty(self) -> None:
        assert summarise([], MOST) == ""
        assert summarise([Turn(task="?"), Turn(task="x" * 5000)], MOST) == ""


PRIVATE = [
    "The key is ghp_abcdefghijklmnopqrstuvwxyz0123456789.",
    "Write to jane.doe@example.com about the parser of dates.",
    "The parser of dates is in /home/jane/projects/parser today.",
    "We set password=hunter2hunter2 for the parser of dates.",
]


class TestPrivateMatter:
    @pytest.mark.parametrize("sentence", PRIVATE)
    @pytest.mark.parametrize("part", ["task", "response", "detail"])
    def test_never_enters_while_what_stands_beside_it_does(self, sentence: str, part: str) -> None:
        assert find_private(sentence)
        turn = Turn(**{"task": "Fix it", "signal": "failed", part: f"{sentence} The parser of dates is mended."})
        told = summarise([turn], MOST)
        assert told.endswith("The parser of dates is mended.")
        assert not find_private(told)
        assert sentence not in told

    def test_is_seen_before_a_long_sentence_is_cut(self) -> None:
        sentence = "the parser of dates " * 11 + "reads ghp_abcdefghijklmnopqrstuvwxyz0123456789"
        assert summarise([Turn(task=sentence)], MOST) == ""

    def test_that_is_told_in_two_sentences_does_not_enter_whole(self) -> None:
        key = "-----BEGIN RSA PRIVATE KEY-----\nthese are words of a key\nand some more words\n"
        assert summarise([Turn(task=f"{key}-----END RSA PRIVATE KEY-----")], MOST) == ""
        assert summarise([Turn(task=key)], MOST) == ""

    @given(st.lists(st.sampled_from([*PRIVATE, "The parser of dates is mended.", "We wrote a test."]), max_size=12))
    def test_is_in_no_summary(self, sentences: list[str]) -> None:
        assert not find_private(summarise([Turn(task=s, response=s) for s in sentences], MOST))


texts = st.text(max_size=300) | st.lists(st.sampled_from(["parser", "date", "the", "`f()`", ".", "\n", "!"])).map(
    " ".join
)


@given(
    st.lists(
        st.builds(Turn, task=texts, response=texts, signal=st.sampled_from(["", "failed"]), detail=texts), max_size=6
    ),
    st.integers(0, 400),
)
def test_whatever_was_said_the_summary_is_bounded_and_the_same_each_time(turns: list[Turn], most: int) -> None:
    told = summarise(turns, most)
    assert len(told) <= most
    assert told == summarise(turns, most)
    told.encode()
    assert "\0" not in told
