"""Without a model: the best directive that the agent wrote down itself, or none.

English only. An answer that gives no advice yields nothing, which is right far more often than not: what is proposed
here was said in so many words.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from memory.distillers.base import Material
from memory.rules.anchors import find_anchors
from memory.rules.concreteness import judge
from memory.rules.distillation import is_pitfall
from memory.rules.text import legible

MAX_CANDIDATES = 200  # directives weighed in one response; bounds the work
MAX_SENTENCE = 600  # characters; a longer one is no lesson

_FENCED: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
#: Headings, quotations, tables: not the agent's own sentences.
_NO_PROSE: Final = re.compile(r"^\s*(?:#{1,6}\s|>|\||[-=*_]{3,}\s*$)")
_BULLET: Final = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,3}[.)])\s+(?:\[[ x]\]\s+)?")
_BOLD: Final = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)\s+(?=[\"'`(]?[A-Z])")
_LABEL: Final = re.compile(
    r"(?:(?:key\s+|main\s+)?(?:lessons?(?:\s+learned)?|takeaways?|insight|rule(?:\s+of\s+thumb)?|tip|note|remember"
    r"|pitfall|gotcha|warning|important|in\s+(?:general|short)|next\s+time|for\s+the\s+future|bottom\s+line))\s*[:,\u2014-]\s*",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"(?:when|whenever|if|for|in|on|at|before|after|to|with|while|during|under|unless|inside|once|since|because|instead"
    r"|rather)\s(?:[^,;:.]|\.(?=\S)){2,120},\s+",
    re.IGNORECASE,
)
_OPENER: Final = re.compile(r"(?:please|also|instead|simply|just|then|first|so)\b,?\s+", re.IGNORECASE)
#: What holds beyond one case.
_UNIVERSAL: Final = re.compile(
    r"(?:always|never|avoid|prefer|do\s+not|don't|(?:be|make)\s+sure|ensure|remember\s+to|you\s+(?:should|must|need\s+to))\b",
    re.IGNORECASE,
)
#: Verbs that open directives. A noun of the same spelling is followed by what `_NO_VERB` has.
_VERB_LIST: Final = """
accept acknowledge acquire add address adopt alert align allocate allow append apply archive assert assign assume
attach audit authenticate authorize back balance base batch benchmark bind bisect block bound branch break bubble
buffer build bump bundle bypass cache calculate calibrate call cancel cap capture cast catch centralize chain change
check choose chunk clamp clean clear clone close coalesce collapse collect combine commit compare compile compose
compress compute configure confirm connect consider constrain construct consult convert copy count cover create
cross-check cut debounce debug declare decode decompose decouple decrement dedup dedupe deduplicate default defend
defer define degrade delegate delete denormalize deploy deprecate derive describe design detect determine diagnose diff
disable discard disconnect distinguish divide document download drain drop dry-run dump emit emulate enable encode
encrypt enforce enumerate escape evaluate exclude execute expect expire exploit export expose express extend extract
factor fail fall favor feed fetch filter find fix flag flatten flush fold follow force form format forward frame free
freeze fuse fuzz gate generate get give grant ground group guard handle hash have hide hoist hold identify ignore
implement import include increment index infer init initialize inject inline insert inspect install instrument
interleave intersect invalidate invert invoke isolate iterate join judge keep key label lay let lift limit link list
listen load localize lock log look loop lower maintain make map mark mask match materialize measure memoize merge
migrate minimize mirror mock model monitor mount move mutate name negotiate normalize note observe omit open optimize
order override overwrite own pack pad paginate pair parametrize parse partition pass patch perform persist pick pin
pipe place plan poll pool pop populate precompute predict prefetch prefix prepare preserve prevent prime probe process
profile project promote propagate protect prototype prove provide prune publish pull purge push put query queue quote
raise randomize rate-limit re-encode re-export re-raise re-run read rebase rebuild recognize recompute reconstruct
record recover recycle redact redirect reduce refactor reference refresh refuse register reject relax release reload
rely remember remove rename render repeat replace replay replicate report represent reproduce require rerun reserve
reset resolve respect restart restore restrict resume retry return reuse reverse revert review revoke rewrite roll
rotate round route run sample sandbox sanitize save scale scan schedule scope scrub search seed seek segment select
send separate serialize serve set shard share shift ship short-circuit show shrink shuffle sign simplify simulate size
skip slice snapshot solve sort specify split stack stage stamp standardize start state stay step stop store stream
stress strip structure stub subclass subtract suffix sum support suppress swap switch symbolize sync synchronize tag
take target terminate test throttle throw tie trace track transform translate transpose trap traverse treat trigger
trim truncate try tune turn type unify unregister unset unwrap update upgrade upload use utilize validate vary vendor
verify version visit wait walk warm watch widen wipe wire wrap write yield zero
"""
_VERBS: Final = frozenset(_VERB_LIST.split())
_FIRST_WORD: Final = re.compile(r"[A-Za-z][a-z]*(?:-[a-z]+)*")
_NO_VERB: Final = re.compile(
    r"""\w+(?:\s+(?:up|out|off|\w+s))?\s+
      (?: of | is | are | was | were | has | have | had | will | would | can | could | may | might | did | does
      | matters? | fails? | failed | pass(?:es|ed)? | work(?:s|ed)? | ran | runs
      | and\s+\w+\s+(?:are|were|have|pass(?:ed)?|fail(?:ed)?) )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_REASON: Final = re.compile(
    r"\b(?:because|since|so|otherwise|to\s+(?:avoid|prevent|keep)|instead\s+of|rather\s+than|or\s+else|when|whenever"
    r"|unless|until|before|after|without)\b|[;\u2014\u2013]|\s--?\s|,\s+(?:so|or|not|but|which|as|never)\s",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A directive found in a response."""

    text: str  # without its label
    labelled: bool  # the agent called it a lesson, a rule, a note
    universal: bool  # always, never, avoid, prefer, must
    reasoned: bool  # says why, when, or what instead


class ExtractiveDistiller:
    """Takes the directive that is worth most: concrete, reasoned, universal, rich in anchors; of equals the first.

    An imperative without a reason or a word such as "always" is an instruction for the case at hand and no candidate.
    For a warning, the directive must say what to avoid and what to do.
    """

    def propose(self, material: Material) -> str | None:
        found = [c for c in candidates(material.response) if not material.error or is_pitfall(c.text)]
        best = max(found, key=lambda candidate: worth(candidate, material.task), default=None)
        return best.text if best else None


def worth(candidate: Candidate, task: str) -> tuple[bool, int]:
    """Concrete ones first; among these by what else speaks for them."""
    anchors = len(find_anchors(legible(candidate.text)))
    points = 3 * candidate.labelled + 2 * candidate.reasoned + 2 * candidate.universal + min(anchors, 3)
    return judge(candidate.text, task=task).concrete, points


def candidates(response: str) -> list[Candidate]:
    """The directives of a response, in order."""
    found: list[Candidate] = []
    for sentence in _sentences(response):
        candidate = _directive(sentence)
        if candidate is not None:
            found.append(candidate)
        if len(found) == MAX_CANDIDATES:
            break
    return found


def _directive(sentence: str) -> Candidate | None:
    label = _LABEL.match(sentence)
    text = sentence[label.end() :] if label else sentence
    if len(text) > MAX_SENTENCE or text.endswith(("?", ":")):
        return None
    condition = _CONDITION.match(text)
    core = text[condition.end() :] if condition else text
    opener = _OPENER.match(core)
    core = core[opener.end() :] if opener else core
    universal = bool(_UNIVERSAL.match(core))
    if not universal and not _is_imperative(core):
        return None
    reasoned = bool(condition or _REASON.search(core))
    if not (universal or reasoned or label):
        return None
    return Candidate(
        text=text[:1].upper() + text[1:], labelled=label is not None, universal=universal, reasoned=reasoned
    )


def _is_imperative(text: str) -> bool:
    """Whether a clause opens with the bare form of a verb."""
    first = _FIRST_WORD.match(text)
    return first is not None and first[0].lower() in _VERBS and not _NO_VERB.match(text)


def _sentences(response: str) -> Iterator[str]:
    """The sentences of a response's prose: no code, no headings, no quotations; list items on their own."""
    for block in _blocks(_FENCED.sub("\n\n", response)):
        plain = _BOLD.sub(r"\2", " ".join(block.split()))
        yield from (part.strip() for part in _SENTENCE_END.split(plain) if part.strip())


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs and list items, their wrapped lines joined."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        bullet = _BULLET.match(line)
        starts = not line.strip() or bullet or _NO_PROSE.match(line)
        if starts and block:
            yield " ".join(block)
            block = []
        if line.strip() and not _NO_PROSE.match(line):
            block.append(line[bullet.end() :] if bullet else line)
    # The empty line at the end closed the last block.
