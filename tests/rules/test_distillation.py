import random
import time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.distillation import ground_of, is_pitfall, names_error, pitfall_of, standing, wait_after
from memory.rules.signals import SIGNALS, SOURCES, Verdict


def say(*words: str) -> list[Verdict]:
    """`caller:accepted` and so on, in the order in which they were said."""
    said: list[Verdict] = []
    for number, word in enumerate(words, start=1):
        source, signal = word.split(":")
        sequence = 1 + sum(v.source == source for v in said)
        said.append(Verdict(id=UUID(int=number), source=source, sequence=sequence, signal=signal))
    return said


def shown(verdict: Verdict | None) -> str | None:
    return f"{verdict.source}:{verdict.signal}" if verdict else None


@pytest.mark.parametrize(
    ("said", "ground"),
    [
        ([], None),
        (["caller:accepted"], "caller:accepted"),
        (["machine:tests_passed"], "machine:tests_passed"),
        (["self_curriculum:used"], "self_curriculum:used"),
        (["attributed:tests_passed"], None),
        (["unknown:tests_passed"], None),
        (["caller:compiled"], None),
        (["caller:edited"], "caller:edited"),
        (["caller:rejected"], None),
        # the strongest source with a good word, although another one decides the credit
        (["self_curriculum:used", "machine:copied"], "machine:copied"),
        (["caller:compiled", "machine:tests_passed"], "machine:tests_passed"),
        (["attributed:used", "machine:tests_passed"], "machine:tests_passed"),
        # any source's negative word blocks
        (["caller:accepted", "machine:failed"], None),
        (["caller:accepted", "attributed:failed"], None),
        (["caller:accepted", "unknown:rejected"], None),
        # the latest word of a source counts, and a retraction leaves none
        (["caller:rejected", "caller:accepted"], "caller:accepted"),
        (["caller:accepted", "caller:rejected"], None),
        (["caller:accepted", "caller:retracted"], None),
        (["machine:tests_passed", "caller:failed", "caller:retracted"], "machine:tests_passed"),
        (["caller:accepted", "attributed:failed", "attributed:retracted"], "caller:accepted"),
    ],
)
def test_a_lesson_rests_on_the_strongest_good_word_that_nobody_contradicts(said: list[str], ground: str | None) -> None:
    assert shown(ground_of(say(*said))) == ground


VERDICTS = st.lists(st.tuples(st.sampled_from(SOURCES), st.sampled_from(SIGNALS)), max_size=8)


@given(VERDICTS, st.randoms(use_true_random=False))
def test_the_ground_depends_on_what_was_said_and_not_on_the_order_of_the_rows(
    pairs: list[tuple[str, str]], shuffle: random.Random
) -> None:
    said = say(*(f"{source}:{signal}" for source, signal in pairs))
    details = {v.id: "KeyError: 'x'" for v in said}
    mixed = shuffle.sample(said, len(said))
    assert ground_of(mixed) == ground_of(said)
    assert pitfall_of(mixed, details) == pitfall_of(said, details)


@given(VERDICTS)
def test_nothing_is_a_lesson_and_a_warning_at_once(pairs: list[tuple[str, str]]) -> None:
    said = say(*(f"{source}:{signal}" for source, signal in pairs))
    both = (ground_of(said), pitfall_of(said, {v.id: "KeyError: 'x'" for v in said}))
    assert None in both


def test_a_source_that_withdrew_its_word_never_judged() -> None:
    said = say("caller:failed", "machine:used", "caller:retracted")
    assert {source: v.signal for source, v in standing(said).items()} == {"machine": "used"}


@pytest.mark.parametrize(
    ("said", "detail", "ground"),
    [
        (["caller:failed"], "TypeError: unhashable type", "caller:failed"),
        (["machine:failed"], "exit code 2", "machine:failed"),
        (["machine:failed"], "", None),
        (["machine:failed"], "I do not like it.", None),
        (["caller:rejected"], "TypeError: unhashable type", None),
        (["self_curriculum:failed"], "TypeError: unhashable type", None),
        (["attributed:failed"], "TypeError: unhashable type", None),
        (["unknown:failed"], "TypeError: unhashable type", None),
        (["caller:rejected", "machine:failed"], "TypeError: unhashable type", "machine:failed"),
        (["caller:accepted", "machine:failed"], "TypeError: unhashable type", None),
        (["machine:failed", "machine:tests_passed"], "TypeError: unhashable type", None),
        (["machine:failed", "machine:retracted"], "TypeError: unhashable type", None),
    ],
)
def test_a_warning_rests_on_an_uncontested_failure_that_names_its_error(
    said: list[str], detail: str, ground: str | None
) -> None:
    verdicts = say(*said)
    assert shown(pitfall_of(verdicts, {v.id: detail for v in verdicts})) == ground


@pytest.mark.parametrize(
    ("detail", "named"),
    [
        ("Traceback (most recent call last): ...", True),
        ("it crashed on start", True),
        ("ECONNRESET by peer", True),
        ("killed by SIGSEGV", True),
        ("answered with status 502", True),
        ("3 tests failed", True),
        ("not what I asked for", False),
        ("", False),
    ],
)
def test_an_error_is_a_name_or_a_word_for_one(detail: str, named: bool) -> None:
    assert names_error(detail) == named


WARNINGS = [
    "Avoid `yaml.load` on untrusted input; use `yaml.safe_load`.",
    "Never share a connection between threads: open one for each thread.",
    "Don't compare floats with ==, but use math.isclose with a tolerance.",
    "Do not sleep in a test \u2014 wait for the condition with a deadline.",
    "Use `pathlib.Path` instead of joining paths with plus signs.",
    "Return a tuple rather than a list where the caller hashes it.",
    "Avoid mutable default arguments, and instead default to None.",
]
NO_WARNINGS = [
    "Use `yaml.safe_load` for everything that comes from outside.",
    "Never share a connection between threads.",
    "Never share a connection between threads, because psycopg serialises them.",
    "Avoid `eval` on input, or an attacker runs code.",
    "Never trust a header, even if the proxy sets it.",
    "",
]


@pytest.mark.parametrize("text", WARNINGS)
def test_a_pitfall_says_what_to_avoid_and_what_to_do(text: str) -> None:
    assert is_pitfall(text)


@pytest.mark.parametrize("text", NO_WARNINGS)
def test_advice_without_a_warning_and_a_warning_without_advice_are_no_pitfall(text: str) -> None:
    assert not is_pitfall(text)


@pytest.mark.parametrize("unit", ["avoid x ", "never a, ", "don't ", "a instead ", "rather than", "fail", "do not -"])
def test_hostile_repetition_is_judged_quickly(unit: str) -> None:
    start = time.perf_counter()
    is_pitfall((unit * 2000)[:2000])
    names_error((unit * 10_000)[:10_000])
    assert time.perf_counter() - start < 0.5


def test_each_further_attempt_waits_twice_as_long_as_the_one_before() -> None:
    due = [wait_after(attempts) for attempts in (1, 2, 3, 4)]
    assert due == [60, 180, 420, 900]
    waits = [later - earlier for earlier, later in zip([0, *due], due, strict=False)]
    assert waits == [60, 120, 240, 480]
