"""Anchors: the parts of a sentence that can be checked word for word, such as names, numbers and flags."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from memory.rules.text import find_code, is_code, legible

AnchorKind = Literal["identifier", "number", "complexity", "flag", "path", "error"]
KINDS: Final[tuple[AnchorKind, ...]] = get_args(AnchorKind)


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """One anchor found in a text."""

    kind: AnchorKind  # what it is
    values: frozenset[str]  # its normalised spellings: two anchors are the same thing if they share one
    has_unit: bool  # a number with a unit of measurement; False for the other kinds
    start: int  # offset of its first character in the text
    end: int  # offset after its last one


_COMPLEXITY: Final = re.compile(r"(?<!\w)[OΘΩ]\((?:[^()]|\([^()]*\))*\)")
_COMPLEXITY_NOISE: Final = re.compile("[\\s*^\u00b7\u00d7]")
_PATH: Final = re.compile(
    r"""
      (?<![\w)\]}/.<-])(?:~|\.{1,2})?/[\w.{}*-]+(?:/[\w.{}*-]*)*          # /etc/hosts, ~/.ssh, ../data, /orders/{id}
    | \b[A-Za-z]:\\[\w.\\-]+                                             # C:\temp
    | (?<![\w.])(?:[\w*.-]+/)*[\w*-]+\.(?:cfg|conf|cpp|css|csv|html|ini|java|js|json|jsx|md|py|sql|toml|ts|tsx|txt|xml
      |ya?ml)\b(?!\.\w|\()                                               # src/app.py, config.json
    | (?<![\w*])\*\.\w+                                                  # *.log
    """,
    re.VERBOSE,
)
_ERROR: Final = re.compile(
    r"^(?:[A-Z]\w+(?:Error|Exception|Warning|Interrupt|Iteration|Exit|Fault)|E[A-Z0-9]{3,}|SIG[A-Z]{3,})$"
)
_SIGNAL: Final = re.compile(r"\b(?:SIG(?:HUP|INT|QUIT|ILL|ABRT|FPE|KILL|SEGV|PIPE|ALRM|TERM|CHLD|USR[12]|BUS))\b")

#: Unit as written -> canonical unit. A number alone and the same number with a unit are different anchors.
_UNITS: Final[Mapping[str, str]] = {
    spelling: unit
    for unit, spellings in {
        "ns": "ns nanosecond nanoseconds",
        "us": "us μs microsecond microseconds",
        "ms": "ms msec millisecond milliseconds",
        "s": "s sec secs second seconds",
        "min": "min mins minute minutes",
        "h": "h hr hrs hour hours",
        "d": "day days",
        "w": "week weeks",
        "b": "b byte bytes",
        "bit": "bit bits",
        "kb": "kb kib",
        "mb": "mb mib",
        "gb": "gb gib",
        "tb": "tb tib",
        "%": "% percent",
        "x": "x times attempts retries tries",
        "k": "k",
        "hz": "hz",
    }.items()
    for spelling in spellings.split()
}
_UNIT_PATTERN: Final = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
#: Not an operand: the numbers of `dp[i-1]` or `n//2` say nothing alone. SHA-256 and `timeout=30` do.
_NUMBER: Final = re.compile(
    r"(?<![\w.\[+*/<>&|^%])(?<!\W-)(?<!\b\w-)"
    rf"(?P<number>\d+(?:,\d{{3}})*(?:\.\d+)*(?:e[+-]?\d+)?)(?:[ -]?(?P<unit>{_UNIT_PATTERN}))?(?![\w\]*/^])",
    re.IGNORECASE,
)
_NUMBER_WORDS: Final[Mapping[str, str]] = {
    word: str(n)
    for n, word in enumerate(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], start=2)
}
#: "One" is left out: it is an article more often than a number.
_NUMBER_WORD: Final = re.compile(
    rf"\b(?P<number>{'|'.join(_NUMBER_WORDS)})(?:[ -](?P<unit>{_UNIT_PATTERN}))?\b", re.IGNORECASE
)


def anchors(text: str) -> Mapping[str, frozenset[str]]:
    """The normalised anchors of a text by kind; a kind without any is absent.

    Look-alike letters and invisible characters do not hide one. A dotted name counts as a whole, and its last part
    too if that is code by its looks: `functools.lru_cache` also matches `lru_cache`, and never `functools.cache`.
    """
    return by_kind(find_anchors(legible(text)))


def by_kind(found: Iterable[Anchor]) -> Mapping[str, frozenset[str]]:
    """The values of anchors, by kind."""
    values: dict[str, frozenset[str]] = {}
    for anchor in found:
        values[anchor.kind] = values.get(anchor.kind, frozenset()) | anchor.values
    return values


def find_anchors(text: str) -> list[Anchor]:
    """The anchors of a legible text, in order. Kinds that contain others' characters are looked for first."""
    found: list[Anchor] = []
    rest = text
    for search in (_complexities, _paths, _code, _signals, _numbers):
        matches = list(search(rest))
        found += matches
        for anchor in matches:
            rest = rest[: anchor.start] + "\0" * (anchor.end - anchor.start) + rest[anchor.end :]
    return sorted(found, key=lambda anchor: anchor.start)


def _complexities(text: str) -> Iterator[Anchor]:
    for match in _COMPLEXITY.finditer(text):
        yield _anchor("complexity", {_COMPLEXITY_NOISE.sub("", match[0]).casefold()}, *match.span())


def _paths(text: str) -> Iterator[Anchor]:
    for match in _PATH.finditer(text):
        path = match[0].rstrip("./\\-")
        if len(path) > 1:
            yield _anchor("path", {path.casefold()}, match.start(), match.start() + len(path))


def _code(text: str) -> Iterator[Anchor]:
    for code in find_code(text):
        if code.is_flag:
            yield _anchor("flag", {f"{code.name}={code.value}" if code.value else code.name}, code.start, code.end)
            continue
        last = code.name.replace("::", ".").rsplit(".", 1)[-1]
        if _ERROR.match(last):
            yield _anchor("error", {last.casefold()}, code.start, code.end)
        else:
            yield _anchor("identifier", set(_spellings(code.name, last)), code.start, code.end)


def _spellings(name: str, last: str) -> Iterator[str]:
    yield name.replace("::", ".").casefold()
    if is_code(last):
        yield last.casefold()


def _signals(text: str) -> Iterator[Anchor]:
    for match in _SIGNAL.finditer(text):
        yield _anchor("error", {match[0].casefold()}, *match.span())


def _numbers(text: str) -> Iterator[Anchor]:
    for match in _NUMBER.finditer(text):
        yield _number(match, match["number"].replace(",", ""))
    for match in _NUMBER_WORD.finditer(text):
        yield _number(match, _NUMBER_WORDS[match["number"].lower()])


def _number(match: re.Match[str], digits: str) -> Anchor:
    unit = _UNITS.get((match["unit"] or "").lower(), "")
    value = frozenset({digits + unit})
    return Anchor(kind="number", values=value, has_unit=bool(unit), start=match.start(), end=match.end())


def _anchor(kind: AnchorKind, values: set[str], start: int, end: int) -> Anchor:
    return Anchor(kind=kind, values=frozenset(values), has_unit=False, start=start, end=end)
