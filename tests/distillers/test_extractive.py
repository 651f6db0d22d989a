import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.distillers import Material
from memory.distillers.extractive import MAX_CANDIDATES, ExtractiveDistiller, candidates


def propose(response: str, task: str = "Mend it.", error: str = "") -> str | None:
    return ExtractiveDistiller().propose(Material(task=task, response=response, error=error))


REPORT = """\
I've fixed the flaky test. What I changed:

1. Replaced `time.sleep(1)` with a poll on the queue.
2. Added a deadline.

```python
# Always close the pool before forking, because its sockets are shared.
time.sleep(1)
```

Run `pytest -k flaky` to see it. All tests pass now.

**Lesson:** wait for the condition with a deadline instead of sleeping in tests, because a fixed sleep is too short on a
busy machine and too long on every other.
"""


def test_the_advice_in_a_report_is_found_and_nothing_else_of_it() -> None:
    assert [c.text for c in candidates(REPORT)] == [propose(REPORT)]
    assert propose(REPORT) == (
        "Wait for the condition with a deadline instead of sleeping in tests, because a fixed sleep is too short on a "
        "busy machine and too long on every other."
    )


@pytest.mark.parametrize(
    "sentence",
    [
        'When reading CSV from Excel, open it with `encoding="utf-8-sig"` so that no byte order mark stays.',
        "Close every `psycopg` cursor before commit, or the server keeps the portal open.",
        "You should pin `numpy<2` until the extension is rebuilt, otherwise the import fails.",
        "Never force-push a shared branch: it rewrites commits that others built on.",
        "Don't compare floats with `==`.",
        "Prefer `pathlib.Path` to joined strings.",
        "Make sure that the lock is released before the callback runs.",
        "In Python 3.11, import `tomllib` instead of vendoring a parser.",
    ],
)
def test_a_directive_with_a_reason_or_for_all_cases_is_a_candidate(sentence: str) -> None:
    assert propose(sentence) == sentence
    assert propose(f"Done.\n\n- [x] {sentence}\n- tidied up") == sentence
    assert propose(f"I mended it. {sentence} That was all.") == sentence
    assert propose(f"Note: {sentence[0].lower()}{sentence[1:]}") == sentence


@pytest.mark.parametrize(
    "response",
    [
        "",
        "   \n",
        "Done.",
        "I used `dateutil` because the format varies.",
        "Run `make test`.",
        "Update src/app.py to call the new function.",
        "Test results are green because the mock is gone.",
        "Build passed after the third attempt.",
        "Set up is complete because I ran it.",
        "Use of globals is fine when nothing else is at hand.",
        "Order matters, so I kept it.",
        "Should I always use `uv` instead of pip?",
        "Always do it in this order:",
        "## Always use type hints, because they help",
        "> Never trust a quotation, because its words are another's.",
        "| Always use `x` because | it is so |",
        "```\nAlways use `x` because it is so.\n```",
        "~~~\nAlways use `x` because it is so.",
        "Always " + "and again " * 60 + "because.",
        "总是使用连接池因为它更快。",
    ],
)
def test_what_advises_nobody_yields_nothing(response: str) -> None:
    assert propose(response) is None


def test_a_concrete_directive_beats_a_vague_one_wherever_it_stands() -> None:
    vague = "Always be careful with shared state."
    concrete = "Guard `_cache` with a lock, because two threads fill it."
    assert propose(f"{vague} {concrete}") == concrete
    assert propose(f"{concrete} {vague}") == concrete
    assert propose(vague) == vague


def test_a_restatement_of_the_task_comes_last() -> None:
    task = "Always sort the invoices by date before totals are computed."
    other = "Sort with `key=`, because `cmp` is gone."
    assert propose(f"{task} {other}", task=task) == other


def test_what_the_agent_called_a_lesson_beats_what_it_merely_said() -> None:
    said = "Never share `conn` between threads, because it is not safe."
    labelled = "Open one `conn` for each thread, because it is not safe."
    assert propose(f"{said}\n\nLesson: {labelled}") == labelled


def test_of_equals_the_first_is_taken() -> None:
    first, second = "Never share `a` between threads.", "Never share `b` between threads."
    assert propose(f"{first} {second}") == first


def test_a_warning_must_say_what_to_avoid_and_what_to_do() -> None:
    advice = "Always pass `timeout=` to `requests.get`, because a dead peer blocks."
    warning = "Avoid `eval` on input; use `ast.literal_eval`."
    assert propose(f"{advice} {warning}", error="ValueError: malformed") == warning
    assert propose(advice, error="ValueError: malformed") is None


def test_no_response_is_searched_without_end() -> None:
    assert len(candidates("Never share `a` between threads. " * 3000)) == MAX_CANDIDATES


@given(st.text(max_size=600), st.text(max_size=100))
def test_what_is_proposed_stands_in_the_response(response: str, task: str) -> None:
    proposed = propose(response, task)
    assert proposed is None or proposed[1:] in " ".join(response.replace("**", "").replace("__", "").split())


@pytest.mark.parametrize(
    "unit",
    ["Never a, ", "```", "when a b, ", "**", "- ", "__a", "> \n", "1. a\n", "note: ", "Use it because.\n", "~~~\n"],
)
def test_hostile_repetition_is_searched_quickly(unit: str) -> None:
    start = time.perf_counter()
    propose((unit * 200_000)[:200_000])
    assert time.perf_counter() - start < 3
