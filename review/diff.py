"""What differs between two texts, word by word (Ratcliff and Obershelp, as `difflib` has it)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

SAME, ADDED, REMOVED = "same", "added", "removed"
_TOKEN: Final = re.compile(r"`[^`\n]+`|\w+|\s+|[^\w\s]")  # code is one word: half of a name is no name


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of text that is in both, only in the later or only in the earlier one."""

    kind: str  # same, added or removed
    text: str  # never empty


def word_diff(before: str, after: str) -> list[Span]:
    """The way from one text to the other: without what is added it is `before`, without what is removed `after`."""
    return list(_merged(_spans(before, after)))


def _spans(before: str, after: str) -> Iterator[Span]:
    a, b = _TOKEN.findall(before), _TOKEN.findall(after)
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        old, new = "".join(a[i:j]), "".join(b[k:m])
        if tag == "equal":
            yield Span(kind=SAME, text=old)
            continue
        if old:
            yield Span(kind=REMOVED, text=old)
        if new:
            yield Span(kind=ADDED, text=new)


def _merged(spans: Iterator[Span]) -> Iterator[Span]:
    """Neighbours of one kind as one span, so that a reader hears "added" once."""
    held: Span | None = None
    for span in spans:
        if held is not None and held.kind == span.kind:
            held = Span(kind=held.kind, text=held.text + span.text)
            continue
        if held is not None:
            yield held
        held = span
    if held is not None:
        yield held
