"""Is a candidate a lesson at all: one sentence that tells an agent in another task what to do."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from memory.rules.anchors import find_anchors
from memory.rules.text import legible

Reason = Literal[
    "too_short",
    "too_long",
    "several_sentences",
    "code_fence",
    "vague",
    "restates_task",
    "not_implemented",
    "literal_calls",
]

MIN_WORDS: Final = 5
MAX_WORDS: Final = 60
MAX_CHARACTERS: Final = 500
#: Share of a lesson's words, by stem, that may stand in its task before it only repeats it.
MAX_TASK_SHARE: Final = 0.8


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Whether a candidate is concrete, and what speaks against it."""

    concrete: bool
    reasons: tuple[Reason, ...]  # stable codes in the order of `Reason`; empty if concrete


_FENCE: Final = re.compile(r"```|~~~")
_QUOTATION: Final = re.compile(r"`[^`]*`|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)")
_ABBREVIATION: Final = r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\betc)(?<!\bcf)(?<!\bapprox)(?<!\bresp)(?<!\bincl)(?<!\.\.)"
_SENTENCE_END: Final = re.compile(
    rf"""{_ABBREVIATION}[.!?]["')\]]*\s+(?=\S*\w) | \betc\.\s+(?=[A-Z]) | [\u3002\uff01\uff1f](?=\s*\S)
    | \n\s*(?:\n|[-*\u2022]\s|\d+[.)]\s)""",
    re.VERBOSE,
)
#: Han, kana and Thai are written without spaces: two characters count as a word.
_UNSPACED: Final = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")

_VAGUE: Final = re.compile(
    r"""\b(?: appropriate(?:ly)? | suitabl[ey] | proper(?:ly)?(?!\s+(?:sorted|nested|ordered)) | efficien(?:t|tly|cy)
      | be\s+(?:very\s+)?careful | carefully | robust(?:ly|ness)? | elegant(?:ly)? | best\s+practices? | edge\s+cases?
      | handl(?:e|ing)\s+(?:\w+\s+)?(?:errors?|exceptions?|failures?)
      | (?:handl|manag|deal|process)\w*\b[^.;]*\bgracefully
      | (?:clean|good|clear|readable|quality|maintainable)(?:er)?\s+(?:code|naming|names|design|structure|practices?)
      | (?:as|if|when|where|whenever)\s+(?:needed|necessary|required|appropriate|possible|applicable)
      | pay\s+attention | keep\s+in\s+mind | think\s+about | it\s+depends )\b""",
    re.VERBOSE | re.IGNORECASE,
)
#: Anything in backticks, and a generic type.
_CODE: Final = re.compile(r"`[^`\s][^`]*`|\w<[\w:<>, *&]+>")
_UNIMPLEMENTED: Final = re.compile(
    r"\b(?:not\s+(?:yet\s+|been\s+|fully\s+)*implemented|unimplemented|NotImplementedError|placeholder|stubs?|TODO)\b",
    re.IGNORECASE,
)
_IMPLEMENT_IT: Final = re.compile(
    r"\b(?:implement|complete|finish|fill\s+in)\s+(?:it|them|this|that|the|all|every|each|any)\b"
    r"|\b(?:real|actual|working|full|proper)\s+implementation\b",
    re.IGNORECASE,
)
_LITERAL: Final = r"(?:-?\d[\w.]*|'[^']*'|\"[^\"]*\"|True|False|None|\[[^\[\]]*\])"
_CALL: Final = rf"`?(?:[A-Za-z_]\w*\.)*\w+\({_LITERAL}(?:,\s*{_LITERAL})*\)`?"
_RESULT: Final = r"\s*(?:==|=|->|=>|\u2192|\breturns|\bgives|\byields|\bis)\s*[^\s,;]+"
_THEN: Final = r"\s*(?:[,;]|->|=>|\u2192|\band\b|\bthen\b|\bfollowed\s+by\b|\s)+\s*"
#: Three calls in a row, or two with their results.
_CALL_SEQUENCE: Final = re.compile(
    rf"{_CALL}(?:(?:{_RESULT})?{_THEN}{_CALL}){{2}}|{_CALL}{_RESULT}{_THEN}{_CALL}{_RESULT}"
)
_SENTENCE: Final = re.compile(r"[.!?](?:\s|$)|\n")
_WORD: Final = re.compile(r"[^\W_]{3,}")
_ENDING: Final = re.compile(r"(?:ing|ed|es|s|e)$")
_FUNCTION_WORD: Final = re.compile(
    r"the|and|for|with|that|this|from|into|use|using|always|never|should|must|your|its|when|then|make|sure|are|can"
)


def judge(text: str, *, task: str | None = None) -> Judgement:
    """Judge a candidate lesson; `task` is what it was learned from.

    Refused are: fewer than 5 or more than 60 words, more than 500 characters, more than one sentence, a code fence,
    vague wording without an anchor, a restatement of the task, "not implemented, implement it", and a sequence of
    calls with literal arguments, which only fits the one instance. An anchor is code, a complexity, a number with a
    unit, a flag, a path or an error name; it makes a wordy sentence concrete.
    """
    if len(text) > MAX_CHARACTERS:
        return Judgement(concrete=False, reasons=("too_long",))
    plain = legible(text.strip())
    words = _count_words(plain)
    checks: dict[Reason, bool] = {
        "too_short": words < MIN_WORDS,
        "too_long": words > MAX_WORDS,
        "several_sentences": bool(_SENTENCE_END.search(_QUOTATION.sub("x", plain))),
        "code_fence": bool(_FENCE.search(plain)),
        "vague": bool(_VAGUE.search(plain)) and not _has_anchor(plain),
        "restates_task": task is not None and _restates(plain, legible(task)),
        "not_implemented": bool(_UNIMPLEMENTED.search(plain) and _IMPLEMENT_IT.search(plain)),
        "literal_calls": bool(_CALL_SEQUENCE.search(plain)),
    }
    reasons = tuple(reason for reason, found in checks.items() if found)
    return Judgement(concrete=not reasons, reasons=reasons)


def _count_words(text: str) -> int:
    unspaced = len(_UNSPACED.findall(text))
    spaced = _UNSPACED.sub(" ", text).split()
    return sum(any(c.isalnum() for c in word) for word in spaced) + (unspaced + 1) // 2


def _has_anchor(text: str) -> bool:
    return bool(_CODE.search(text)) or any(a.kind != "number" or a.has_unit for a in find_anchors(text))


def _restates(text: str, task: str) -> bool:
    """Compared sentence by sentence: a long task has most words somewhere."""
    words = _stems(text)
    overlaps = (len(words & _stems(sentence)) for sentence in _SENTENCE.split(task))
    return bool(words) and max(overlaps) / len(words) >= MAX_TASK_SHARE


def _stems(text: str) -> set[str]:
    words = {word.lower() for word in _WORD.findall(text)}
    return {_ENDING.sub("", word) for word in words if not _FUNCTION_WORD.fullmatch(word)}
