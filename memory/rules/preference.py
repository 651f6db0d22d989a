"""Preferences: what a person's turn says about how they want things done, and how sure of it the store may be.

Extraction is conservative: a preference that was never meant annoys on every later task, a missed one will be said
again.
"""

import re
from dataclasses import dataclass
from typing import Final

from memory.rules.privacy import find_private
from memory.rules.text import EmptyText, normalise

MAX_WORDS: Final = 32
MAX_CHARACTERS: Final = 400  # of one wish; longer is no sentence that a person means as a rule
MAX_PER_TURN: Final = 5  # wishes kept of one turn; a list of hundreds is a document
MAX_CONFIDENCE: Final = 0.95

#: Openings that state a lasting wish, and what remains of the sentence once they are taken off.
_OPENINGS: Final = re.compile(
    r"^(?:please\s+)?(?:"
    r"i\s+(?:always\s+|really\s+|generally\s+|usually\s+)?(?:prefer|like|want|hate|dislike)\b"
    r"|i(?:'d| would)\s+(?:prefer|rather)\b"
    r"|(?:always|never)\b"
    r"|from\s+now\s+on\b|going\s+forward\b|in\s+future\b"
    r"|(?:you\s+can\s+)?call\s+me\b|address\s+me\b"
    r"|(?:don't|do\s+not)\s+ever\b"
    r"|remember\s+(?:that|to)\b"
    r"|my\s+(?:preferred|favou?rite)\b"
    r")",
    re.IGNORECASE,
)
#: A wish for this once: a task, a file, a day. It would be wrong tomorrow.
_BOUND: Final = re.compile(
    r"\b(?:this|that|these|those)\s+(?:\w+\s+)?(?:task|file|function|class|test|bug|issue|pr|branch|ticket|time|one|"
    r"line|method|module|commit|project|repo|page|screen|request|change|fix)\b"
    r"|\b(?:today|tonight|tomorrow|yesterday|this\s+(?:week|month|morning|afternoon|evening)|right\s+now|for\s+now|"
    r"just\s+once|until\s+\w+day|next\s+week|at\s+the\s+moment|here)\b"
    r"|\b\w+\.(?:py|js|ts|tsx|jsx|go|rs|java|rb|c|cc|cpp|h|hpp|cs|php|html|css|md|json|ya?ml|toml|sql|sh|txt)\b",
    re.IGNORECASE,
)
_OVERRIDE: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:previous|prior|above|earlier|all|any|your|system|"
    r"instructions?|rules?|prompts?)\b|\bsystem\s+prompt\b|\byou\s+are\s+now\b|\bact\s+as\b|\bjailbreak\b",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"`|```|[{};]\s*$|=>|->|\w+\([^)]*\)|</?\w+>|==|!=|:=|\$\(|^\s*(?:def|class|import|from)\s", re.M
)
_QUOTED: Final = re.compile(r"[\"“”«»]|(?:^|\s)'[^']+'(?:\s|$)|^\s*>")
_PATH: Final = re.compile(r"(?:^|\s)(?:~|\.{1,2})?/\w|\b[A-Za-z]:\\|https?://|www\.")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_FILLER: Final = frozenset(
    [
        "a",
        "an",
        "the",
        "i",
        "me",
        "my",
        "you",
        "your",
        "to",
        "of",
        "in",
        "on",
        "for",
        "with",
        "and",
        "or",
        "that",
        "it",
        "is",
        "be",
        "please",
        "always",
        "never",
        "prefer",
        "like",
        "want",
        "from",
        "now",
        "rather",
        "would",
        "really",
        "generally",
        "usually",
        "when",
        "if",
        "do",
        "dont",
        "ever",
        "remember",
        "going",
        "forward",
        "future",
        "call",
        "hate",
        "dislike",
    ]
)


#: Openings that say what is not wanted: the opposite wish must not count as the same one said again.
_AGAINST: Final = re.compile(r"\b(?:never|hate|dislike|don't|do\s+not|not)\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """A preference as it was said."""

    key: str  # what it is about: its content words, joined by hyphens; the same wish said again has the same key
    text: str  # the sentence


def extract(turn: str) -> tuple[Extracted, ...]:
    """The preferences that a person's turn states, in order, each key once. Usually none."""
    found: dict[str, Extracted] = {}
    if _OVERRIDE.search(turn):
        return ()  # a turn that tries to change the rules has nothing to teach
    for sentence in _SENTENCE.split(turn):
        if len(found) == MAX_PER_TURN:
            break
        if len(sentence) > MAX_CHARACTERS:
            continue  # before any pattern reads it
        text = " ".join(sentence.split())
        if is_preference(text) and (key := key_of(text)):
            found.setdefault(key, Extracted(key=key, text=text))
    return tuple(found.values())


def is_preference(sentence: str) -> bool:
    """Whether one sentence is a clear and lasting wish that is safe to keep."""
    return (
        len(sentence) <= MAX_CHARACTERS
        and 0 < len(sentence.split()) <= MAX_WORDS
        and _OPENINGS.match(sentence) is not None
        and not sentence.rstrip().endswith("?")
        and not any(pattern.search(sentence) for pattern in (_BOUND, _OVERRIDE, _CODE, _QUOTED, _PATH))
        and not find_private(sentence)
    )


def key_of(sentence: str) -> str:
    """The content words joined by hyphens, after `not-` where something is not wanted; empty if there are none."""
    try:
        words = re.findall(r"\w+", normalise(sentence).replace("'", ""))
    except EmptyText:
        return ""
    about = "-".join(word for word in words if word not in _FILLER)
    against = "not-" if about and _AGAINST.search(sentence) else ""
    return (against + about)[:100].rstrip("-")


def confidence(evidence: int) -> float:
    """How sure the store may be after a preference was said `evidence` times: min(0.95, 1 - 0.5 / evidence).

    Raises ValueError below 1.
    """
    if evidence < 1:
        raise ValueError(f"A preference that was said {evidence} times is none.")
    return min(MAX_CONFIDENCE, 1 - 0.5 / evidence)
