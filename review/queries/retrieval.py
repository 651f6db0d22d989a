"""A look-up with everything that made its answer: scores in their parts, and why the others are out. Writes nothing."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.models import Account
from memory.models.base import new_id
from memory.models.sql import fetch
from memory.models.vocabulary import Exposure
from memory.rules.relevance import MIN_ANCHORS
from memory.search import Candidate, EmbeddedQuery, Found, Ranked, Retrieved, embed_query, find
from memory.services.sampling import sampling
from memory.services.scoping import search_scope
from review.charts.bars import Part

LEFT_OUT_SHOWN: Final = 20
K: Final = 5


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is looked up."""

    text: str
    account: Account
    now: datetime  # ages are counted to here
    k: int = K
    probation: bool = False  # also quarantined lessons that a sample may let through by now
    quarantined: bool = False  # also every quarantined lesson


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A lesson of the answer."""

    rank: int
    lesson: Candidate
    parts: tuple[Part, ...]  # add up to the score
    score: float
    mmr: float | None  # by which it was picked; None where words alone decide
    numbers: tuple[tuple[str, str], ...]  # name and value of everything that was looked at


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A lesson that was considered and is not in the answer."""

    lesson: Candidate
    score: float
    why: str  # a sentence


@dataclass(frozen=True, kw_only=True)
class Behind:
    """Lessons that only their words can find yet."""

    lessons: int
    oldest: datetime | None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Everything that the page shows."""

    hits: tuple[Hit, ...]
    misses: tuple[Miss, ...]  # the best, at most `LEFT_OUT_SHOWN`
    reasons: tuple[tuple[str, int], ...]  # how many are out for what, most first
    considered: int
    mode: str  # hybrid or lexical
    note: str  # why there is no vector; empty where there is one
    behind: Behind
    top: float  # the highest score, on which all bars are drawn


def ask(asked: Asked) -> Answer:
    """Looks up as retrieval does, with nobody withheld by a coin."""
    query = embed_query(asked.text)  # before the transaction: a model may be slow
    with transaction.atomic():
        found = find(query, search_scope(asked.account), asked.k, asked.now, admits=_admits(asked))
        behind = _behind(query, search_scope(asked.account).account_id)
    out = [(ranked, reason) for ranked, reason in found.considered if reason]
    counted = Counter(SHORT.get(reason, reason) for _, reason in out)
    places = {each.ranked.candidate.lesson_id: each.rank for each in found.controls}
    return Answer(
        hits=tuple(_hit(each) for each in found.chosen),
        misses=tuple(_miss(ranked, reason, query, places) for ranked, reason in _nearest(out, found)[:LEFT_OUT_SHOWN]),
        reasons=tuple(counted.most_common()),
        considered=len(found.considered),
        mode=found.mode,
        note=query.note,
        behind=behind,
        top=max((each.ranked.score for each in found.chosen), default=0.0),
    )


def _nearest(out: list[tuple[Ranked, str]], found: Retrieved) -> list[tuple[Ranked, str]]:
    """Best first; what quarantine or a contradiction keeps out of this very answer before everything else."""
    would_be = {each.ranked.candidate.lesson_id for each in found.controls}

    def order(pair: tuple[Ranked, str]) -> tuple[int, float]:
        ranked, reason = pair
        return (0 if ranked.candidate.lesson_id in would_be or reason == "contradicted" else 1, -ranked.score)

    return sorted(out, key=order)


def _admits(asked: Asked) -> Callable[[Candidate], bool]:
    rule = sampling(new_id(), asked.text, asked.now)

    def admits(candidate: Candidate) -> bool:
        on_probation = asked.probation and rule.probability(candidate, Exposure.PROBATION) > 0
        return asked.quarantined or on_probation

    return admits


def parts_of(ranked: Ranked) -> tuple[Part, ...]:
    """What adds up to the score: a share of each ranking that holds it, what its past use adds, what its age takes."""
    k = conf.current().rrf_k
    lists = (("Meaning", ranked.semantic_rank), ("Words", ranked.lexical_rank))
    parts = [Part(name=f"{name} (place {place})", value=1 / (k + place)) for name, place in lists if place is not None]
    if ranked.boost:
        parts.append(Part(name="Past use", value=ranked.boost))
    aged = ranked.score - ranked.fused - ranked.boost
    if round(aged, 4):  # as far as the bar prints it
        parts.append(Part(name="Age", value=aged))
    return tuple(parts)


def _hit(found: Found) -> Hit:
    ranked, lesson = found.ranked, found.ranked.candidate
    numbers = (
        ("Similarity (cosine)", "no vector" if lesson.cosine is None else f"{lesson.cosine:.3f}"),
        ("Shared words", f"{lesson.shared_anchors}, {lesson.coverage:.0%} of the task's weight"),
        ("Past use", f"mean reward {lesson.evidence.mean:.2f} over {lesson.evidence.n:,}"),
        ("Age factor", f"{ranked.age_factor:.3f}"),
        ("Score", f"{ranked.score:.5f}"),
        ("Picked at", "by score" if found.mmr is None else f"{found.mmr:.3f} (marginal relevance)"),
    )
    parts = parts_of(ranked)
    return Hit(rank=found.rank, lesson=lesson, parts=parts, score=ranked.score, mmr=found.mmr, numbers=numbers)


#: Reasons in a word or two, for the count of each.
SHORT: Final = {
    "quarantined": "quarantined",
    "contradicted": "contradicted",
    "redundant": "says the same",
    "outranked": "further down",
    "below_similarity": "not similar enough",
    "uncorroborated": "too few shared words",
    "no_anchors": "too few shared words",
    "not_embedded": "no vector yet",
}


def _miss(ranked: Ranked, reason: str, query: EmbeddedQuery, places: dict[UUID, int]) -> Miss:
    why = _why(ranked.candidate, reason, query, places.get(ranked.candidate.lesson_id))
    return Miss(lesson=ranked.candidate, score=ranked.score, why=why)


def _why(lesson: Candidate, reason: str, query: EmbeddedQuery, place: int | None) -> str:
    shared = f"{lesson.shared_anchors} shared {'word' if lesson.shared_anchors == 1 else 'words'}"
    space = query.space
    match reason:
        case "quarantined" if place is not None:
            return f"Would rank {place}, quarantined."
        case "quarantined":
            return "Quarantined, and not among the best either."
        case "contradicted":
            return "Contradicts a lesson of the answer that callers speak better of; only one of the two is handed out."
        case "redundant":
            return "Similar to the task, but it says what a chosen one says (marginal relevance)."
        case "outranked":
            return "Passed every gate; others rank before it."
        case "below_similarity" if space is not None:
            return f"Similarity {lesson.cosine or 0:.2f}; at least {space.min_similarity:.2f} is needed."
        case "uncorroborated" if space is not None:
            alone = space.uncorroborated_min_similarity
            return (
                f"Similarity {lesson.cosine or 0:.2f} with {shared}; {MIN_ANCHORS} are needed below a similarity of "
                f"{alone:.2f}."
            )
        case "not_embedded":
            return "It has no vector in the active space yet."
    return f"{shared.capitalize()}; without vectors at least {MIN_ANCHORS} are needed."


def _behind(query: EmbeddedQuery, account_id: UUID | None) -> Behind:
    if query.space is None:
        return Behind(lessons=0, oldest=None)
    ((n, oldest),) = fetch(
        """
        SELECT count(*), min(l.created_at) FROM lesson l
        WHERE l.state IN ('active', 'quarantined') AND l.account_id IS NOT DISTINCT FROM %s
            AND NOT EXISTS (SELECT 1 FROM lesson_embedding e WHERE e.lesson_id = l.id AND e.space_id = %s)
        """,
        [account_id, query.space.pk],
    )
    return Behind(lessons=n, oldest=oldest)
