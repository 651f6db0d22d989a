"""The places of a longer text that a sentence rests on."""

import re
from typing import Final

LONGEST: Final = 240  # characters of a quoted span
_WORD: Final = re.compile(r"\w{3,}")
_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")


def quotes(sentence: str, text: str, limit: int = 3) -> list[str]:
    """The spans of `text` that share the most words with `sentence`, at most `limit`, in the order of the text.

    A span is a sentence or a line; it must share at least two words of three letters or more. What is longer than 240
    characters is cut with an ellipsis.
    """
    wanted = set(_WORD.findall(sentence.lower()))
    spans = [span.strip() for span in _END.split(text)]
    shared = [(len(wanted.intersection(_WORD.findall(span.lower()))), n) for n, span in enumerate(spans)]
    best = sorted((count, -n) for count, n in shared if count >= 2)[-limit:] if limit else []
    return [_cut(spans[n]) for n in sorted(-n for _, n in best)]


def _cut(span: str) -> str:
    return span if len(span) <= LONGEST else span[: LONGEST - 1].rstrip() + "…"
