"""Text as digests, full text search and the claim rules see it.

Two views of the same text:

* `normalise` is for equality. It folds everything that a reader would not see as a difference, and its result is not
  meant to be read: `m` becomes `rn`, `1` becomes `l`. A digest of it is stored for good and cannot be computed again
  where the text is gone, so its result must never change for any text.
* `legible` is for reading: look-alikes of ASCII letters become those letters, everything else stays.

Sources: UAX 15 (NFKD), Unicode 17 chapter 3.13 (case folding), UTS 39 section 4 (skeleton).
"""

import errno
import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Final


class EmptyText(ValueError):
    """Nothing is left of a text that could tell it from another."""


#: Controls but white space, lone surrogates, and Default_Ignorable_Code_Point (Unicode 17; bidi marks are among them).
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
#: What `clean` removes: controls but tab and line feed, and lone surrogates.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NEWLINES: Final = re.compile("\r\n?")

#: Greek capitals beta, eta, mu, nu, upsilon look Latin; their small letters look like another letter, or like none.
_LATIN_CAPITALS: Final = str.maketrans("\u0392\u0397\u039c\u039d\u03a5", "BHMNY")
_WORD: Final = re.compile(r"[^\W\d_]+")
#: A word with an ASCII letter, or only of Greek capitals that look like ASCII letters.
_LATIN_LOOKING: Final = re.compile(
    "[^A-Za-z]*[A-Za-z]|[\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7]+$"
)
_ASCII_LETTER: Final = re.compile("[A-Za-z]")
#: The micro sign, a Greek mu, must not become an m: five microseconds are not five milliseconds.
_MU: Final = "\u03bc"


def _prototypes() -> dict[int, str]:
    """Code point -> UTS 39 prototype, but for entries that would make different texts equal.

    Left out: a letter or digit that would become punctuation, which is stripped at the ends (Arabic-Indic zero looks
    like a full stop, Hebrew yod like an apostrophe), punctuation that would become something else (a dash looks like
    the Japanese length mark), and a picture that would become another picture (emoji).
    """
    table: dict[int, str] = {}
    for line in files("memory.rules").joinpath("confusables.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        source, *target = (int(code, 16) for code in line.split())
        prototype = "".join(map(chr, target))
        kinds = {unicodedata.category(c)[0] for c in prototype}
        match unicodedata.category(chr(source)):
            case "So" if not prototype[0].isalnum():
                continue
            case category if category[0] in "LNM" and kinds.isdisjoint("LNM"):
                continue
            case category if category[0] == "P" and kinds != {"P"}:
                continue
        table[source] = prototype
    return table


def _fold_table(prototypes: Mapping[int, str]) -> dict[int, str]:
    """The prototypes, and small letters whose capital looks like an ASCII letter folded to that letter.

    UTS 39 works on cased text. Folding case first would lose a Cyrillic capital Te (U+0422) in an English word: it
    looks like T, but its small letter like a small capital (U+1D1B).
    """
    # A Braille blank is white space in all but name, and em dash and horizontal bar are dashes, as the others are.
    table = {**prototypes, 0x2800: " ", 0x2014: "-", 0x2015: "-"}
    for source, prototype in prototypes.items():
        small = chr(source).casefold()
        if small == chr(source) or not (len(prototype) == 1 and prototype.isascii() and prototype.isalnum()):
            continue
        shape = prototypes.get(ord(small), small) if len(small) == 1 else ""
        if len(shape) == 1 and not shape.isascii() and shape != _MU:
            table[ord(shape)] = prototype
    return table


_PROTOTYPES: Final[Mapping[int, str]] = MappingProxyType(_prototypes())
_FOLD: Final[Mapping[int, str]] = MappingProxyType(_fold_table(_PROTOTYPES))
#: Latin, Greek, Cyrillic and Armenian letters that look like one ASCII letter or digit, and typographic quotes.
_LEGIBLE: Final[Mapping[int, str]] = MappingProxyType(
    {code: shape for code, shape in _PROTOTYPES.items() if 0x7F < code < 0x590 and shape.isascii() and shape.isalnum()}
    | {ord(c): "'" for c in "\u2018\u2019\u201b"}
    | {ord(c): '"' for c in "\u201c\u201d\u201f"}
)


def clean(text: str) -> str:
    """The text without NUL and other control characters, tab and line feed excepted, and without lone surrogates.

    CR LF and CR become LF. The result always encodes to UTF-8 and fits a PostgreSQL text column.
    """
    return _CONTROLS.sub("", _NEWLINES.sub("\n", text))


def normalise(text: str) -> str:
    """The form in which two texts are the same text; a fixed point of itself.

    Compatibility decomposition, case folding, UTS 39 look-alikes folded, invisible characters removed, white space
    collapsed, punctuation at both ends stripped. Case never matters, but for Greek capitals that look Latin in a
    Latin text, where the look decides.

    Raises EmptyText when no letter, digit or picture is left.
    """
    visible = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text))
    folded, previous = _WORD.sub(_latin_look, visible) if _ASCII_LETTER.search(visible) else visible, ""
    while folded != previous:
        previous, folded = folded, _fold(folded)
    stripped = _strip(folded)
    if all(unicodedata.category(c)[0] in "PZM" or unicodedata.category(c) in {"Sc", "Sk", "Sm"} for c in stripped):
        raise EmptyText("The text has no letter, digit or picture.")
    return stripped


def digest(text: str) -> str:
    """SHA-256 of the normalised text's UTF-8, 64 lower-case hexadecimal digits. Raises EmptyText."""
    return hashlib.sha256(normalise(text).encode()).hexdigest()


def _latin_look(word: re.Match[str]) -> str:
    return word[0].translate(_LATIN_CAPITALS) if _LATIN_LOOKING.match(word[0]) else word[0]


def _fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    visible = _INVISIBLE.sub("", decomposed.translate(_FOLD).casefold())
    return " ".join(unicodedata.normalize("NFKD", visible).split())


def _strip(text: str) -> str:
    start, end = 0, len(text)
    while start < end and _is_outer(text[start]):
        start += 1
    while end > start and _is_outer(text[end - 1]):
        end -= 1
    # C# and 50% end in a sign that belongs to them.
    return text[start : end + 1] if text.startswith(("#", "%"), end) and start < end else text[start:end]


def _is_outer(character: str) -> bool:
    return character.isspace() or unicodedata.category(character).startswith("P")


def legible(text: str) -> str:
    """The text in NFKC with invisible characters removed and look-alikes of ASCII letters and quotes made plain."""
    if text.isascii():
        return _CONTROLS.sub("", text)
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_LEGIBLE)


_CODE: Final = re.compile(
    r"""
      `@?(?P<quoted>[a-z_][\w-]*)(?:\(\))?`                     # a single word in backticks
    | (?<![\w./)\]&|=+*<>%,\[-])(?<![&|=+*/<>%]\ )                        # not a minus
      (?P<flag>--[a-z][\w-]*|-[a-z](?![\w-])|-[a-z]\w*(?==)|(?<=\s)-[a-z]\w*)
      (?P<value>=[\w./:-]*\w)?
    | (?<![\w'-])(?P<decorator>@)?
      (?P<name>[a-z_]\w*(?:(?:\.|::)[a-z_]\w*)*)
      (?P<call>\((?!e?s\)))?                                    # f( is a call, lock(s) is a plural
    """,
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
_ABBREVIATIONS: Final = frozenset({"e.g", "i.e", "a.k.a", "a.m", "p.m", "u.s", "w.r.t", "c.f", "n.b"})
_SEPARATOR: Final = re.compile(r"\.|::")
#: An inner capital (lruCache, OrderedDict, JSONEncoder, but not APIs), or letters followed by digits (sha256).
_CAMEL: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}|^[A-Za-z]{2,}\d")
_SYSTEM_ERRORS: Final = frozenset(errno.errorcode.values())


@dataclass(frozen=True, kw_only=True)
class Code:
    """A name of code or a command line flag found in prose."""

    name: str  # as written, without backticks, call parentheses and a flag's value
    value: str  # a flag's value, else empty
    is_flag: bool  # a flag keeps its dashes
    start: int  # offset of its first character in the text
    end: int  # offset after its last one


def find_code(text: str) -> Iterator[Code]:
    """Code in legible text, in order: dotted.name, snake_case, CamelCase, f(), `quoted`, error names, --flags.

    Ordinary words are none, nor is the O of a complexity.
    """
    for match in _CODE.finditer(text):
        start, end = match.span()
        if flag := match["flag"]:
            yield Code(name=flag, value=(match["value"] or "")[1:], is_flag=True, start=start, end=end)
            continue
        name = match["quoted"] or match["name"]
        called = match["call"] and name != "O"
        if match["quoted"] or match["decorator"] or called or is_code(name):
            yield Code(name=name, value="", is_flag=False, start=start, end=end - bool(match["call"]))


def is_code(name: str) -> bool:
    """Whether an ASCII name is code by its looks alone: dotted, with an underscore, in camel case, an errno name."""
    if _SEPARATOR.search(name):
        return name.lower() not in _ABBREVIATIONS and any(len(part) > 1 for part in _SEPARATOR.split(name))
    return "_" in name.strip("_") or name.startswith("__") or bool(_CAMEL.search(name)) or name in _SYSTEM_ERRORS


def identifiers(text: str) -> list[str]:
    """Code identifiers for full text search: lower case, unique, in order of appearance.

    A dotted name gives itself, its last part, then its other parts: `functools.lru_cache` gives
    `functools.lru_cache`, `lru_cache`, `functools`. A flag keeps its dashes.
    """
    found: dict[str, None] = {}
    for code in find_code(legible(text)):
        *others, last = _SEPARATOR.split(code.name)
        for part in (code.name, last, *others):
            found.setdefault(part.lower())
    return list(found)
