import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.concreteness import MAX_CHARACTERS, MAX_WORDS, judge

CONCRETE = [
    "Use cursor-based pagination instead of offset/limit — offsets skip rows when items are deleted mid-scroll.",
    "Never force-push a shared branch: it rewrites commits other clones already built on.",
    "Set an explicit timeout on every outbound call; an unbounded wait exhausts the thread pool.",
    "Use maximal munch when lexing, e.g. '==' before '=', to avoid splitting multi-char operators.",
    "Call `git bisect run <script>` so each step is decided by the script's exit code.",
    "In Python 3.11 import tomllib, i.e. no third-party parser, vs. vendoring tomli.",
    "Degrade gracefully: serve a cached response when a non-critical dependency times out.",
    "In a rotated sorted array, binary search by checking which half is properly sorted before recursing.",
    "Split only at '. ' and '? ' when the text has no markup.",
    "Use f.seek(0) and then f.truncate(0) before rewriting a file in place.",
    "Compare floats with math.isclose(a, b) because 0.1+0.2 is not 0.3 in binary64.",
    "Raise NotImplementedError in the base class so that a missing override fails loudly.",
    "Alert on user-facing symptoms such as p99 latency, not on causes such as CPU load!",
    "使用连接池并为每个外部调用设置超时以免线程耗尽。",
    "Wrap long text at a blank\nso that a line break inside one sentence is fine.",
    # wordy, but an anchor saves them
    "Use `try-except EOFError` to handle end-of-input gracefully.",
    "Handle errors of the lookup with contextlib.suppress around it.",
    "Sort the intervals efficiently in O(n log n) before merging.",
    "Use an appropriate timeout of 30 seconds for each call.",
    "Be careful with --force after a rebase of main.",
    "Keep settings in /etc/app as best practices demand.",
    "Use vector<pair<int,string>> for efficient mapping of numerals.",
]

REFUSED = [
    ("Close the file.", ("too_short",)),
    ("关闭文件。", ("too_short",)),
    ("word " * 61, ("too_long",)),
    ("x" * (MAX_CHARACTERS + 1), ("too_long",)),
    ("字" * 121, ("too_long",)),
    ("Use a set for membership tests. Use a dict for counting.", ("several_sentences",)),
    ("Is the list sorted already? Then use bisect for the lookup.", ("several_sentences",)),
    ("Prefer Python 3.11. It has tomllib in the standard library.", ("several_sentences",)),
    ("永远不要记录令牌。也不要记录任何密码和密钥。", ("several_sentences",)),
    ("Lessons learned in this task\n- use a set here\n- use a dict there", ("several_sentences",)),
    ("Use a set for membership tests\n\nand a dict for counting", ("several_sentences",)),
    ("Sort with a key function like ```sorted(x, key=len)``` here.", ("code_fence",)),
    ("Use appropriate data structures for the job at hand.", ("vague",)),
    ("Always be careful when you change shared code.", ("vague",)),
    ("Always handle errors and exceptions in your code.", ("vague",)),
    ("Follow best practices when you write a parser.", ("vague",)),
    ("Make sure that resources are properly released afterwards.", ("vague",)),
    ("Use bit manipulation efficiently with bitwise operations and loops.", ("vague",)),
    ("Handle exceptions gracefully with try-except blocks to ensure robustness.", ("vague",)),
    ("Check constraints and ensure edge cases are covered.", ("vague",)),
    ("Add retries where necessary and log as needed.", ("vague",)),
    ("The parse function is not implemented yet, implement it.", ("not_implemented",)),
    ("Replace the stub in the parser with a real implementation.", ("not_implemented",)),
    ("Call put(1, 1), put(2, 2), get(1), then put(3, 3) to evict.", ("literal_calls",)),
    ("Make sure add(2, 3) == 5 and add(-1, 1) == 0 both hold.", ("literal_calls",)),
    ("Run `push('a')` -> `push('b')` -> `pop(0)` in this order.", ("literal_calls",)),
    ("Be careful. Use best practices.", ("several_sentences", "vague")),
]


@pytest.mark.parametrize("text", CONCRETE)
def test_a_sentence_that_tells_what_to_do_is_concrete(text: str) -> None:
    judgement = judge(text)
    assert judgement.reasons == ()
    assert judgement.concrete


@pytest.mark.parametrize(("text", "reasons"), REFUSED)
def test_what_is_no_lesson_is_refused_with_its_reasons(text: str, reasons: tuple[str, ...]) -> None:
    judgement = judge(text)
    assert judgement.reasons == reasons
    assert not judgement.concrete


@pytest.mark.parametrize("words", [5, MAX_WORDS])
def test_the_bounds_on_words_are_inclusive(words: int) -> None:
    assert judge("word " * words).concrete
    assert not judge("word " * (words + 1 if words == MAX_WORDS else words - 1)).concrete


def test_five_hundred_characters_pass_and_one_more_does_not() -> None:
    text = ("abcdefghi " * 50)[:MAX_CHARACTERS]
    assert judge(text).concrete
    assert judge(text + "j").reasons == ("too_long",)


@pytest.mark.parametrize(
    ("text", "task", "restates"),
    [
        ("Write a function that reverses a string.", "Write a function to reverse a string.", True),
        ("Reverse a string in a function.", "Hello!\nPlease write a function reversing a string. Thanks.", True),
        ("Reverse a string with slicing s[::-1], not a loop.", "Write a function to reverse a string.", False),
        (
            "Validate the email, hash the password and store it.",
            "Add sign-up. Validate emails. Hash passwords. Store.",
            False,
        ),
        ("Set a timeout on every outbound HTTP call.", "", False),
    ],
)
def test_a_restatement_of_the_task_is_refused(text: str, task: str, restates: bool) -> None:
    assert ("restates_task" in judge(text, task=task).reasons) == restates
    assert "restates_task" not in judge(text).reasons


def test_look_alike_letters_do_not_hide_vague_wording() -> None:
    assert judge("Always b\u0435 c\u0430reful when you change shared code.").reasons == ("vague",)
    assert judge("Always be care\u200bful when you change shared code.").reasons == ("vague",)


@given(st.text(max_size=700), st.none() | st.text(max_size=200))
def test_any_text_is_judged_and_reasons_speak_against_it(text: str, task: str | None) -> None:
    judgement = judge(text, task=task)
    assert judgement.concrete == (not judgement.reasons)
    assert len(set(judgement.reasons)) == len(judgement.reasons)


@pytest.mark.parametrize("unit", ["f(1),", "'a' ", "(a", "a<", "process ", "put(1, 1) ", "e.g. ", "`a", "x. ", "/a.b-"])
def test_hostile_repetition_is_judged_quickly(unit: str) -> None:
    start = time.perf_counter()
    judge((unit * MAX_CHARACTERS)[:MAX_CHARACTERS])
    assert time.perf_counter() - start < 0.5
