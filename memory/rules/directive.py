"""The grammar of a lesson: where its directive is, what it forbids, and what it rejects. English only.

A lesson reads: an optional condition, a directive, optional reasons. "On Windows, never bind with SO_REUSEADDR -
sockets co-bind silently." The sign of each axis is read from the directive alone.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from memory.rules.anchors import Anchor, find_anchors
from memory.rules.text import legible


def _phrases(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.VERBOSE | re.IGNORECASE)


#: Conditions in front of the directive, up to their comma, and lists in them.
_CONDITION: Final = _phrases(
    r"""\s*(?: (?:only\s|even\s)?(?:when|whenever|if|while|where|unless|until|once|since|because|given|as|after|before)
      | for | in | on | at | during | under | to | with | without | within | by | inside | from | across
      | instead\s+of | rather\s+than )\b
      (?: (?!\b(?:never|always|avoid|prefer)\b) [^,;:\u2014\u2013] )*,
      (?: (?:[^,;:\u2014\u2013]{1,40},){0,4}? \s*(?:and|or)\s[^,;:\u2014\u2013]{1,40}, )?\s*"""
)
_LABEL: Final = _phrases(r"\s*(?!never|don't|do\b|avoid|use\b) \w[\w'-]* (?:\s+\w[\w'-]*)? \s*:\s+")
#: Openers that leave the directive as it is.
_OPENER: Final = _phrases(
    r"""\s*(?: (?:please|always|also|just|simply|instead|then|first|rather|ideally)\b,?
      | (?:make|be)\s+(?:sure|certain|careful)(?:\s+(?:that|to))? | take\s+care\s+(?:that|to)
      | (?:ensure|check|verify|assert|remember|note)(?:\s+that)? | (?:remember|try|aim|prefer)\s+to
      | it(?:'s|\s+is)\s+\w+\s+(?:that|to) | you\s+(?:should|must|need\s+to|have\s+to|ought\s+to)(?!\s+n) )\s+"""
)
#: Where the directive ends and its reasons begin.
_REASON: Final = _phrases(
    r"""[;\u2014\u2013] | \s--?\s | (?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\betc)[.!?](?=\s) | ,?\s+or\s+else\b
      | \b(?:because|since|so|otherwise|lest|whereas)\b | ,\s*(?:or|and)\s+(?:it|they|you|the|this|that|its|their)\b
      | ,\s*(?:which|as)\b"""
)
_NEGATOR: Final = _phrases(
    r"""\b(?: never | \w+n't | cannot | dont | prefer\s+not
      | (?:do|does|did|must|should|can|could|will|would|may|is|are|be|to|need|shall|has|have)\s+not
      | (?:important|essential|crucial|best|better|wise|safer?)\s+not | nobody | no\s+one | no\s+longer
      | avoid(?:s|ing|ed)? | refrain(?:s|ing)? | (?:is|are|be)\s+(?:forbidden|prohibited|discouraged) )\b"""
)
#: Verbs that forbid, when a directive starts with them.
_FORBIDDING: Final = _phrases(r"\s*(?: (?:forbid|prohibit|ban|disallow|deny|reject|refuse|no|not) | stop\s+\w+ing )\b")
#: Verbs of omission: a negation of their own, as the directive's verb.
_OMISSION: Final = _phrases(
    r"""(?: ^\s* | \b(?:never|should|must|always|avoid|not|ever)\s+ | n't\s+ )
      (?: skip(?:ping)? | omit(?:ting)? | forget(?:ting)? | neglect(?:ing)? | ignor(?:e|ing) | disregard(?:ing)?
      | bypass(?:ing)? )\b"""
)
#: Where the reach of a negation ends.
_SCOPE_END: Final = _phrases(
    r"""[,;:] | \b(?:when|whenever|where|while|if|unless|until|that|which|who|whose|as|by|to|than|instead|rather
      | for)\b"""
)
#: A condition at the end, or an infinitive of purpose. "To the", "to each" and "to requests" are none.
_AFTERTHOUGHT: Final = _phrases(
    r"""\b(?:when|whenever|if|while|until|unless|once)\b
      | \bto\s+(?!(?:a|an|the|each|every|any|all|both|its|your|their|one|be)\b) (?![a-z]+[a-rt-z]s\b) [a-z]+\b"""
)
#: "A instead of B": a negation turns the whole round.
_INSTEAD: Final = _phrases(r"\b(?:instead\s+of | rather\s+than | in\s+place\s+of | as\s+opposed\s+to)\b")
_OVER: Final = _phrases(
    r"\s*(?:(?:do\s+not|don't|never|always)\s+)?(?:prefer|choose|pick|select|favou?r)\b(?!\s+not\b)[^,;:]*?"
    r"\s(?P<marker>over|to(?!\s+(?:avoid|prevent|keep|reduce|save|get|make|be)\b)(?=(?:\s\S+){1,3}[.,;:]?$))\s"
)
_REPLACE: Final = _phrases(
    r"""\s*(?:(?:do\s+not|don't|never|avoid)\s+)?(?:replac|swap|substitut|exchang)(?:e|p?ing)?\s+
      (?P<old>[^,;:]+?)\s+(?:with|by|for)\s+(?P<new>[^,;:]+)
    | \s*(?:migrate|switch|move|change)\s+from\s+(?P<origin>[^,;:]+?)\s+to\s+(?P<target>[^,;:]+)"""
)
#: "A, not B", "A - never B", "A (not B)" without its brackets, "A avoiding B": an alternative is named and rejected.
_NOT: Final = _phrases(
    r"""(?: [,;:\u2014\u2013]\s*(?:and\s+|but\s+)? | \s--?\s+ ) (?:never|not|don't|do\s+not|avoid)\b
      | (?<!\bdo)(?<!\bis)(?<!\bbe)(?<!\bto)(?<!\bif)(?<!\bare)(?<!\bdid)(?<!\bcan)(?<!\bmay)(?<!\bhas)(?<!\bdoes)
        (?<!\bmust)(?<!\bwill)(?<!\bhave)(?<!\bneed)(?<!\bshould)(?<!\bprefer)(?<!\bbetter) (?<=\w)\s+not\b(?!\s+to\b)
      | \s+avoiding\b"""
)

_UP: Final = _phrases(
    r"""\b(?: increas(?:e|es|ing) | enlarg(?:e|es|ing) | grow(?:s|ing)? | maximi[sz](?:e|es|ing) | lengthen
      | larger | largest | bigger | biggest | higher | highest | longer | longest | greater | greatest
      | ascending | upwards? | forwards? | (?:scal|round|count)(?:e|ing)?\s+up | raise\s+(?:the|its|your) )\b"""
)
_DOWN: Final = _phrases(
    r"""\b(?: decreas(?:e|es|ing) | reduc(?:e|es|ing) | shrink(?:s|ing)? | minimi[sz](?:e|es|ing) | shorten
      | smaller | smallest | lower | lowest | shorter | shortest | fewer | fewest
      | descending | downwards? | backwards? | (?:scal|round|count)(?:e|ing)?\s+down )\b"""
)
_WITH: Final = _phrases(
    r"""(?<!-)(?<!\bstart\s)(?<!\bdeal\s)(?<!\balong\s)(?<!\btogether\s)\bwith\b
      | ^(?:never\s|don't\s|do\snot\s)?(?:enable|include)\b"""
)
_WITHOUT: Final = _phrases(r"(?<!-)\bwithout\b | ^(?:never\s|don't\s|do\snot\s)?(?:disable|exclude)\b")
_BEFORE: Final = _phrases(r"(?<!-)\b(?:before|prior\s+to)\b")
_AFTER: Final = _phrases(r"(?<!-)\bafter\b")

_PHRASE_END: Final = re.compile(r"[,;:.\u2014\u2013](?=\s|$)|\s--?\s|$")
_ADJUNCT: Final = _phrases(r"\s(?:for|to|when|whenever|while|if|unless|until|because|since|so|that|which)\s")
_PREPOSITION: Final = _phrases(r"\s(?:in|on|with|at|by|into|from|via|inside|onto|through|across)\s")
_WORD: Final = re.compile(r"[a-z][a-z0-9_+#]+", re.IGNORECASE)
_PLAIN_WORD: Final = _phrases(
    r"""a|an|the|and|or|any|each|every|its|your|their|use|using|used|uses|prefer|choose|pick|select|favou?r|always|never
      |not|only|just|instead|than|rather|per|one|all|of|be|is|are|do"""
)
_ENDING: Final = re.compile(r"(?:ing|ed|es|s|e)$")
_BACKTICKED: Final = re.compile(r"`+[^`]*`+")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)")
_BRACKETED: Final = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """What a directive chooses and what it rejects, as slices of its text."""

    chosen: slice
    rejected: slice
    marker: int  # offset at which the rejection is announced
    of_equals: bool  # "A instead of B", which a negation turns round; False for "A, not B"


class Directive:
    """A lesson, read. Signs are 1, -1, or 0 where the directive does not touch the axis."""

    def __init__(self, text: str) -> None:
        self._text = " ".join(legible(text).split())
        self._anchors = find_anchors(self._text)
        self._masked = _mask(self._text, self._anchors)
        self._start = _start(self._masked)
        reason = _REASON.search(self._masked, self._start)
        self._end = reason.start() if reason else len(self._text)
        contrast = self._find_contrast()
        self.prohibition = self._prohibition(contrast.marker if contrast else self._end)
        #: The rejected alternative. A prohibition that goes on with "..., never B" has none: it forbids both.
        self.contrast = contrast if contrast and (self.prohibition > 0 or contrast.of_equals) else None

    def _prohibition(self, marker: int) -> int:
        """-1 if the directive forbids, else 1. Two negations cancel: "never skip"."""
        scope = self._masked[self._start : min(self._end, max(marker, self._start))]
        cut = _SCOPE_END.search(scope)
        scope = scope[: cut.start()] if cut else scope
        negations = len(_NEGATOR.findall(scope)) + bool(_FORBIDDING.match(scope)) + bool(_OMISSION.search(scope))
        return -1 if negations % 2 else 1

    def inclusion(self) -> int:
        """1 for with, -1 for without."""
        return _sign(self._core(), _WITH, _WITHOUT)

    def direction(self) -> int:
        """1 for more, larger, up, forwards; -1 for their opposites."""
        return _sign(self._core(), _UP, _DOWN)

    def order(self) -> int:
        """1 for before, -1 for after.

        Where names of code stand on both sides, the order of the two names is told, so that "f before g" equals
        "g after f". Between plain words the preposition decides.
        """
        body = self._accepted()[: self._end]
        sign = _sign(body, _BEFORE, _AFTER)
        match = _BEFORE.search(body) or _AFTER.search(body)
        if not sign or not match:
            return 0
        fronted = match.start() < self._start
        first = slice(self._start, self._end) if fronted else slice(self._start, match.start())
        second = slice(match.end(), self._start if fronted else self._end)
        return sign * (_compare(self._name(first, -1), self._name(second, 0)) or 1)

    def preference(self) -> int:
        """Which of two alternatives is chosen: swapping them changes the sign.

        Two names of code, or else the key words of two phrases: 1 if the chosen one sorts first, -1 if last. One name
        against a phrase: 1 if the name is chosen, -1 if the phrase.
        """
        if not self.contrast:
            return 0
        chosen, rejected = self._phrase(self.contrast.chosen), self._phrase(self.contrast.rejected)
        names = self._name(chosen, -1), self._name(rejected, 0)
        if any(names):
            return _compare(*names) if all(names) else bool(names[0]) - bool(names[1])
        # The chosen phrase stands right before the contrast, the rejected one right after it.
        choices, refusals = (
            [stems for part in _PREPOSITION.split(self._text[phrase]) if (stems := _stems(part))]
            for phrase in (chosen, rejected)
        )
        if not choices or not refusals:
            return 0
        return _compare(_longest(choices[-1] - refusals[0]), _longest(refusals[0] - choices[-1]))

    def claimed_anchors(self, rejected: slice | None) -> list[Anchor]:
        """The anchors of condition and directive; for a demand without any, those of the whole text.

        A rejected alternative's are left out, and what a prohibition recommends after its comma.
        """
        end = self._end
        if self.prohibition < 0 and rejected is None and (cut := re.search("[,:]", self._masked[self._start : end])):
            end = self._start + cut.start()
        kept = [a for a in self._anchors if rejected is None or not rejected.start <= a.start < rejected.stop]
        claimed = [a for a in kept if a.start < end]
        return claimed or (kept if self.prohibition > 0 else [])

    def _find_contrast(self) -> Contrast | None:
        masked, start = self._masked, self._start
        if (fronted := _INSTEAD.match(masked)) and start:
            rejected = slice(fronted.end(), start)
            return Contrast(chosen=slice(start, self._end), rejected=rejected, marker=self._end, of_equals=True)
        if swap := _REPLACE.match(masked, start, self._end):
            old, new = ("old", "new") if swap["old"] else ("origin", "target")
            rejected = slice(swap.start(old), swap.start(new))  # with its preposition, which is no inclusion
            return Contrast(chosen=slice(*swap.span(new)), rejected=rejected, marker=self._end, of_equals=True)
        over = _OVER.match(masked, start)
        spans = [over.span("marker")] if over else []
        spans += [match.span() for pattern in (_INSTEAD, _NOT) if (match := pattern.search(masked, start + 1))]
        if not spans or min(spans)[0] > self._end:
            return None
        at, after = min(spans)
        boundary = _PHRASE_END.search(masked, after)
        rejected = slice(after, boundary.start() if boundary else len(masked))
        equals = not _NOT.match(masked, at)
        return Contrast(chosen=slice(start, at), rejected=rejected, marker=at, of_equals=equals)

    def _accepted(self) -> str:
        if not self.contrast:
            return self._masked
        rejected = self.contrast.rejected
        return _blank(self._masked, rejected.start, rejected.stop)

    def _core(self) -> str:
        core = self._accepted()[self._start : self._end]
        afterthought = _AFTERTHOUGHT.search(core)
        return core[: afterthought.start()] if afterthought else core

    def _phrase(self, part: slice) -> slice:
        """The part without a purpose or condition at its end."""
        adjunct = _ADJUNCT.search(self._masked, part.start, part.stop)
        return slice(part.start, adjunct.start() if adjunct else part.stop)

    def _name(self, phrase: slice, position: int) -> str:
        """The first (0) or last (-1) name of code in a part of the text, or the empty string."""
        names = (anchor for anchor in self._anchors if anchor.kind not in {"number", "complexity"})
        inside = [anchor for anchor in names if phrase.start <= anchor.start < phrase.stop]
        return max(inside[position].values, key=len) if inside else ""


def _mask(text: str, anchors: Iterable[Anchor]) -> str:
    """The text with code, quotations and brackets blanked: their words are no grammar. Offsets stay."""
    for anchor in anchors:
        if anchor.kind != "number":
            text = _blank(text, anchor.start, anchor.end)
    for pattern in (_BACKTICKED, _QUOTED, _BRACKETED, _BRACKETED, _BRACKETED):  # brackets nest
        text = pattern.sub(lambda match: "\0" * len(match[0]), text)
    return text


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + "\0" * (end - start) + text[end:]


def _start(masked: str) -> int:
    label = _LABEL.match(masked)
    start = label.end() if label else 0
    while match := _CONDITION.match(masked, start) or _OPENER.match(masked, start):
        start = match.end()
    return start


def _sign(text: str, positive: re.Pattern[str], negative: re.Pattern[str]) -> int:
    return bool(positive.search(text)) - bool(negative.search(text))


def _compare(first: str, second: str) -> int:
    return (first < second) - (first > second) if first and second else 0


def _stems(text: str) -> set[str]:
    words = {word.lower() for word in _WORD.findall(text)}
    return {_ENDING.sub("", word) if len(word) > 4 else word for word in words if not _PLAIN_WORD.fullmatch(word)}


def _longest(words: set[str]) -> str:
    return max(words, key=lambda word: (len(word), word), default="")
