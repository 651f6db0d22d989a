"""Which interactions teach something: work that was judged good, and failures that name their error."""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from memory.rules.anchors import anchors
from memory.rules.signals import SOURCES, Verdict, decide, is_good, reward_of
from memory.rules.text import legible

#: Whose good word makes an interaction worth learning from, strongest first. `attributed` and `unknown` may block a
#: lesson and never ground one: the first is a guess, and nobody signed the second.
GROUNDING: Final = ("caller", "machine", "self_curriculum")
#: Whose word that it failed makes an interaction a warning: an exam that the agent set itself is no such thing.
WARNING: Final = ("caller", "machine")
FAILED: Final = "failed"

#: Seconds from the making of a distillation until it may be tried a second time; each further wait is twice as long.
FIRST_WAIT: Final = 60.0

_ERROR: Final = re.compile(
    r"\b(?:errors?|exceptions?|traceback|panic(?:ked)?|crash(?:ed|es)?|segfault|deadlock|timeout|timed\s+out|assert\w*"
    r"|fail(?:ed|s|ure|ures)?|refused|denied|exit(?:ed)?\s+(?:code|status|with)|status\s+[45]\d\d)\b",
    re.IGNORECASE,
)
#: "Avoid X; do Y", "never X, but Y", or "Y instead of X".
_PITFALL: Final = re.compile(
    r"""\b(?:avoid|never|do\s+not|don't|stop)\b [^;,:\u2014\u2013]{3,}? (?:[;,:\u2014\u2013]|\s--?\s)\s*
      (?:(?:and|but|instead|rather)\b,?\s*)*
      (?!(?:or|because|since|as|which|that|who|so|when|while|if|unless|it|they|this|the|a|an|even|not|nor|for|to|e\.g)\b)
      \w
    | \b(?:avoid|never|do\s+not|don't|stop)\b .{3,} \binstead\b
    | \w.{3,} \b(?:instead\s+of|rather\s+than)\s+\w""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def standing(verdicts: Iterable[Verdict]) -> Mapping[str, Verdict]:
    """Source -> its latest word; a source that never judged, or withdrew what it said, is absent."""
    given = list(verdicts)
    latest = {source: decide(v for v in given if v.source == source) for source in SOURCES}
    return {source: verdict for source, verdict in latest.items() if verdict is not None}


def ground_of(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The good word on which a lesson may rest, of the strongest source that has one.

    None if there is none, or if any source's latest word is negative.
    """
    words = standing(verdicts)
    if any(reward_of(word.signal) < 0 for word in words.values()):
        return None
    grounding = (words[source] for source in GROUNDING if source in words)
    return next((word for word in grounding if is_good(reward_of(word.signal))), None)


def pitfall_of(verdicts: Iterable[Verdict], details: Mapping[UUID, str]) -> Verdict | None:
    """The word `failed`, with an error in its detail, on which a warning may rest; `details` are by outcome.

    None if there is none, or if any source's latest word is good: a contested failure warns of nothing.
    """
    words = standing(verdicts)
    if any(is_good(reward_of(word.signal)) for word in words.values()):
        return None
    failures = (words[source] for source in WARNING if source in words and words[source].signal == FAILED)
    return next((word for word in failures if names_error(details.get(word.id, ""))), None)


def names_error(detail: str) -> bool:
    """Whether a report says what went wrong: an error's name, or a word for one."""
    return bool(_ERROR.search(detail)) or "error" in anchors(detail)


def is_pitfall(text: str) -> bool:
    """Whether a text warns and advises: "avoid X; do Y", or "Y instead of X"."""
    return bool(_PITFALL.search(legible(text)))


def wait_after(attempts: int) -> float:
    """Seconds from the making of a distillation until it is due again after `attempts` (from 1): 60, 180, 420, 900.

    Counted from the making, because a row keeps no time of its last attempt: what has waited long already, such as
    after an outage, is due at once.
    """
    return FIRST_WAIT * float(2**attempts - 1)
