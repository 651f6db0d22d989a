"""What some turns of work were about, in their own most telling sentences and in the order in which they were said.

Which sentences tell most is SumBasic (Nenkova and Vanderwende 2005, The Impact of Frequency on Summarization,
MSR-TR-2005-101): a sentence weighs as much as its words are frequent on average, and the words of a chosen sentence
are squared, so that the next one says something else.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memory.rules.anchors import find_anchors
from memory.rules.privacy import find_private
from memory.rules.text import clean, legible

MAX_SENTENCE = 240  # characters; what is longer is cut between words
MAX_SENTENCES = 40  # of one text; bounds the work
MIN_WORDS = 3  # what is shorter says nothing by itself: a heading, a key, "Done."

#: What was asked says most of all what work was about; why it was judged so says more than an answer's own words.
TASK, JUDGEMENT, ANSWER = 1.5, 1.25, 1.0
#: A name, a number or an error in a sentence is something to go on.
CONCRETE: Final = 1.25

_FENCED: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_KEY_BLOCK: Final = re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL)
#: Headings, quotations, tables: not sentences.
_NO_PROSE: Final = re.compile(r"^\s*(?:#{1,6}\s|>|\||[-=*_]{3,}\s*$)")
_BULLET: Final = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,3}[.)])\s+(?:\[[ x]\]\s+)?")
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)\s+(?=[\"'`(]?[^\W_a-z])|(?<=[\u3002\uff01\uff1f])"
)
#: Han, kana and Thai are written without spaces: each character counts as a word.
_UNSPACED: Final = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
_WORD: Final = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W\d_])+")
_FUNCTION_WORD: Final = re.compile(
    r"a|about|after|all|also|an|and|any|are|as|at|be|been|before|but|by|can|could|did|do|does|for|from|had|has|have|"
    r"he|her|here|his|how|i|if|in|into|is|it|its|just|me|more|my|no|not|now|of|on|one|or|our|out|she|should|so|some|"
    r"than|that|the|their|them|then|there|these|they|this|to|up|us|was|we|were|what|when|where|which|who|will|with|"
    r"would|you|your"
)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One interaction, as far as a summary needs it. All of it is text that others wrote."""

    task: str  # what was to be done
    response: str = ""  # what the agent answered
    signal: str = ""  # the word of the judge that counts; empty while nobody has judged
    detail: str = ""  # what that judge wrote


@dataclass(frozen=True, kw_only=True)
class _Sentence:
    """A sentence that may be chosen."""

    place: int  # in the order of everything that was said
    line: str  # as the summary has it: cut to length, with what it is
    whole: str  # as it was written, which is what must hold nothing private
    words: tuple[str, ...]  # content words, lower case
    emphasis: float  # factor on its weight


def summarise(turns: Sequence[Turn], most: int) -> str:
    """At most `most` characters: one line for each chosen sentence, saying whether it was asked, answered or judged.

    Empty if no sentence can be used. What holds something private is left out (`memory.rules.privacy`). The same turns
    always give the same summary.
    """
    waiting = list(_sentences(turns))
    frequency = Counter(word for sentence in waiting for word in sentence.words)
    total = sum(frequency.values())
    share = {word: n / total for word, n in frequency.items()}
    chosen: list[_Sentence] = []
    room = most
    while best := _next(waiting, share, room, chosen):
        chosen.append(best)
        room -= len(best.line) + 1
        for word in set(best.words):
            share[word] **= 2
    return _joined(chosen)


def _next(
    waiting: list[_Sentence], share: dict[str, float], room: int, chosen: Sequence[_Sentence]
) -> _Sentence | None:
    """The most telling sentence that fits and is fit to be kept; it, and what is not, no longer wait."""
    waiting.sort(key=lambda s: (-s.emphasis * sum(share[word] for word in s.words) / len(s.words), s.place))
    lines = {sentence.line for sentence in chosen}
    for sentence in list(waiting):
        if len(sentence.line) > room:
            continue
        waiting.remove(sentence)
        # A secret that is told in two sentences is seen once both are together.
        if sentence.line not in lines and not find_private(sentence.whole + "\n" + _joined([*chosen, sentence])):
            return sentence
    return None


def _joined(sentences: Sequence[_Sentence]) -> str:
    return "\n".join(sentence.line for sentence in sorted(sentences, key=lambda s: s.place))


def _sentences(turns: Sequence[Turn]) -> Iterator[_Sentence]:
    place = 0
    for turn in turns:
        for label, text, emphasis in (
            (f"Task ({turn.signal})" if turn.signal else "Task", turn.task, TASK),
            ("Answer", turn.response, ANSWER),
            (f"Judged {turn.signal}", turn.detail, JUDGEMENT),
        ):
            for whole in split(text):
                words = _content(whole)
                if words:
                    concrete = CONCRETE if _is_concrete(whole) else 1.0
                    line = f"{label}: {_cut(whole)}"
                    yield _Sentence(place=place, line=line, whole=whole, words=words, emphasis=emphasis * concrete)
                    place += 1


def split(text: str) -> list[str]:
    """The sentences of a text, without code blocks, headings, tables and bullets; the first MAX_SENTENCES of them."""
    prose = _FENCED.sub("\n", _KEY_BLOCK.sub("\n", clean(text)))
    lines = (_BULLET.sub("", line) for line in prose.split("\n") if not _NO_PROSE.match(line))
    found = (" ".join(part.split()) for line in lines for part in _SENTENCE_END.split(line))
    return [sentence for sentence in found if len(_WORD.findall(sentence)) >= MIN_WORDS][:MAX_SENTENCES]


def _content(sentence: str) -> tuple[str, ...]:
    words = (word.lower() for word in _WORD.findall(sentence))
    return tuple(word for word in words if not _FUNCTION_WORD.fullmatch(word))


def _is_concrete(sentence: str) -> bool:
    return any(anchor.kind != "number" or anchor.has_unit for anchor in find_anchors(legible(sentence)))


def _cut(sentence: str) -> str:
    if len(sentence) <= MAX_SENTENCE:
        return sentence
    return sentence[: MAX_SENTENCE - 1].rsplit(" ", 1)[0] + "\u2026"
