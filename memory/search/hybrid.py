"""Retrieval: exclude, search by meaning and by words, fuse, gate, diversify. Reads only."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np

from memory import conf
from memory.embedding import Vectors
from memory.rules.decay import age_factor
from memory.rules.fusion import reciprocal_rank_fusion, usage_boost
from memory.rules.mmr import Selection, mmr
from memory.rules.relevance import GateResult, Thresholds, gate, lexical_gate, supported_gate
from memory.search.conflicts import Conflict, conflicts, losers
from memory.search.details import details, vectors_of
from memory.search.lexical import lexical
from memory.search.semantic import semantic
from memory.search.support import task_support
from memory.search.terms import query_terms
from memory.search.types import Candidate, EmbeddedQuery, Found, Ranked, Scope

QUARANTINED = "quarantined"


@dataclass(frozen=True, kw_only=True)
class Retrieved:
    """What to hand out, what was held back, and everything that was considered."""

    chosen: tuple[Found, ...]  # the answer, at most k, best first
    withheld: tuple[Found, ...]  # lessons on trial that the coin left out
    controls: tuple[Found, ...]  # quarantined lessons that would have been in the answer
    considered: tuple[tuple[Ranked, str], ...]  # each candidate with why it is out; '' for the chosen
    mode: str  # 'hybrid' or 'lexical'


def nobody(_: Candidate) -> bool:
    """Admits no quarantined lesson: a reading without consequences tosses no coin."""
    return False


def find(
    query: EmbeddedQuery,
    scope: Scope,
    k: int,
    now: datetime,
    *,
    admits: Callable[[Candidate], bool] = nobody,
    withholds: Callable[[Candidate], bool] = nobody,
) -> Retrieved:
    """The at most `k` lessons that fit a task.

    `admits` says of a quarantined lesson whether probation lets it through this time, `withholds` of one in service
    whether the coin of its trial leaves it out. Must run in a transaction.
    """
    candidates, mode = _candidates(query, scope, k)
    relevant = _relevance(query, scope, mode)
    depth = list_depth(k)
    open_to_all: list[Candidate] = []
    kept_out: list[Candidate] = []
    for candidate in candidates:
        served = candidate.state != QUARANTINED or admits(candidate)
        (open_to_all if served else kept_out).append(candidate)
    weights = {c.lesson_id: weigh(c, relevant, now) for c in candidates}
    ranked = rank(open_to_all, mode, depth, weights)
    everything = rank(candidates, mode, depth, weights) if kept_out else ranked
    within_reach = {r.candidate.lesson_id for r in [*_pool(ranked, k), *_pool(everything, k)]}
    vectors = _vectors(query, mode, within_reach)
    disputes = conflicts(within_reach)
    chosen, withheld, contradicted = _agreeing(ranked, vectors, k, withholds, disputes)
    controls: tuple[Found, ...] = ()
    if kept_out:
        barred = {c.lesson_id for c in kept_out}
        would_be, _, _ = _agreeing(everything, vectors, k, withholds, disputes)
        controls = tuple(f for f in would_be if f.ranked.candidate.lesson_id in barred)
        ranked += [r for r in everything if r.candidate.lesson_id in barred]
    kept = dict.fromkeys((f.ranked.candidate.lesson_id for f in withheld), "withheld_trial")
    kept |= dict.fromkeys((c.lesson_id for c in kept_out), QUARANTINED)
    kept |= dict.fromkeys(contradicted, "contradicted")
    return Retrieved(
        chosen=chosen, withheld=withheld, controls=controls, considered=_explain(ranked, chosen, kept), mode=mode
    )


def list_depth(k: int) -> int:
    """How many lessons each of the two searches contributes: enough that excluded ones cannot starve the valid."""
    return max(40, 8 * k)


def _candidates(query: EmbeddedQuery, scope: Scope, k: int) -> tuple[list[Candidate], str]:
    """Every candidate, in the order of ids, and whether vectors had a part in finding them."""
    limit = list_depth(k)
    terms = query_terms(query.text)
    near = semantic(query.space, query.vector, scope, limit) if query.space and query.vector is not None else []
    scores = {hit.lesson_id: hit.score for hit in lexical(terms, scope, limit)}
    ids = {*(hit.lesson_id for hit in near), *scores}
    # A store none of whose vectors is of this space is searched by words alone.
    return details(query, terms, ids, scores), "hybrid" if near else "lexical"


def _places(scores: Sequence[float | None], depth: int) -> dict[int, int]:
    """Each score's place in one ranking, from 1, by its index; none beyond `depth`. Ties keep their order."""
    present = [(score, i) for i, score in enumerate(scores) if score is not None]
    present.sort(key=lambda pair: -pair[0])
    return {i: place for place, (_, i) in enumerate(present[:depth], start=1)}


class Weight(NamedTuple):
    """What a candidate brings to any ranking that it is part of."""

    boost: float
    age_factor: float
    reason: str  # why the relevance gate refused it; empty when it passed


def weigh(candidate: Candidate, relevant: Callable[[Candidate], GateResult], now: datetime) -> Weight:
    return Weight(
        boost=usage_boost(mean_reward=candidate.evidence.mean, n=candidate.evidence.n),
        age_factor=age_factor(_age_days(candidate, now), conf.current().half_life_days),
        reason=relevant(candidate).reason,
    )


def rank(candidates: list[Candidate], mode: str, depth: int, weights: Mapping[UUID, Weight]) -> list[Ranked]:
    """Every candidate with its fused score and the gate's verdict, best first; ties by cosine, then by id.

    `candidates` come in the order of ids, which every sort keeps where scores are equal.
    """
    k = conf.current().rrf_k
    semantic_places = _places([c.cosine if mode == "hybrid" else None for c in candidates], depth)
    lexical_places = _places([c.lexical_score for c in candidates], depth)
    ranked = []
    for i, c in enumerate(candidates):
        near, worded, weight = semantic_places.get(i), lexical_places.get(i), weights[c.lesson_id]
        fused = reciprocal_rank_fusion(near, worded, k=k)
        ranked.append(
            Ranked(
                candidate=c,
                semantic_rank=near,
                lexical_rank=worded,
                fused=fused,
                boost=weight.boost,
                age_factor=weight.age_factor,
                score=(fused + weight.boost) * weight.age_factor,
                reason=weight.reason,
            )
        )
    return sorted(ranked, key=lambda r: (-r.score, -(r.candidate.cosine or 0.0)))


def _age_days(candidate: Candidate, now: datetime) -> float:
    """Days since the latest win, else since creation; never negative, whatever a clock says."""
    return max(0.0, (now.timestamp() - candidate.fresh_at) / 86400)


def _relevance(query: EmbeddedQuery, scope: Scope, mode: str) -> Callable[[Candidate], GateResult]:
    """The relevance gate for this task: by words alone, by the space's thresholds, or by its calibrated gate."""
    space, vector = query.space, query.vector
    if mode == "lexical" or space is None or vector is None:
        return lambda c: lexical_gate(c.shared_anchors)
    thresholds = Thresholds(
        min_similarity=space.min_similarity, uncorroborated_min_similarity=space.uncorroborated_min_similarity
    )
    known = task_support(space, scope, vector)

    def relevant(c: Candidate) -> GateResult:
        if c.cosine is None:
            return GateResult(passed=False, reason="not_embedded")
        if known is None:
            return gate(cosine=c.cosine, shared_anchors=c.shared_anchors, thresholds=thresholds)
        support, supported = known
        return supported_gate(
            cosine=c.cosine,
            shared_anchors=c.shared_anchors,
            support=support,
            thresholds=thresholds,
            supported=supported,
        )

    return relevant


def _pool(ranked: list[Ranked], k: int) -> list[Ranked]:
    """What the answer is chosen from: the best that passed the gate, more than enough for `k` different ones."""
    return [r for r in ranked if not r.reason][: 4 * k]


def _vectors(query: EmbeddedQuery, mode: str, ids: set[UUID]) -> dict[UUID, Vectors]:
    """The vectors that MMR compares; none where words alone decide."""
    return vectors_of(query.space, ids) if mode == "hybrid" and query.space is not None and ids else {}


def _agreeing(
    ranked: list[Ranked],
    vectors: Mapping[UUID, Vectors],
    k: int,
    withholds: Callable[[Candidate], bool],
    disputes: Collection[Conflict],
) -> tuple[tuple[Found, ...], tuple[Found, ...], set[UUID]]:
    """As `choose`, without both sides of an open contradiction: the weaker one's place goes to the next candidate.

    Also returns who was left out for it.
    """
    out: set[UUID] = set()
    reachable = _pool(ranked, k) if vectors else ranked
    while True:
        chosen, withheld = choose([r for r in reachable if r.candidate.lesson_id not in out], vectors, k, withholds)
        lost = losers(disputes, [f.ranked.candidate.lesson_id for f in chosen]) if disputes else set()
        if not lost:
            return chosen, withheld, out
        out |= lost


def choose(
    ranked: list[Ranked], vectors: Mapping[UUID, Vectors], k: int, withholds: Callable[[Candidate], bool] = nobody
) -> tuple[tuple[Found, ...], tuple[Found, ...]]:
    """At most `k` of the candidates that passed the gate, and those that were picked but are withheld.

    By MMR where there are vectors, else by score. A withheld pick fills no place: the next candidate takes it.

    MMR's relevance is the fused score on the scale of a cosine (the best candidate's is kept): the cosine alone would
    undo the fusion, and hand out the right lesson less often.
    """
    pool = _pool(ranked, k)
    if not vectors or not pool:
        return _first([r for r in ranked if not r.reason], k, withholds)
    # What was erased or merged since it was found has no vector any more.
    pool = [r for r in pool if r.candidate.lesson_id in vectors]
    if not pool:
        return (), ()
    best = max(r.score for r in pool)
    # Below zero where nothing but a bad record speaks: there is no scale then, and the order is all that counts.
    scale = max(r.candidate.cosine or 0.0 for r in pool) / best if best > 0 else 1.0
    relevances = np.array([r.score * scale for r in pool], dtype=np.float32)
    directions = np.stack([vectors[r.candidate.lesson_id] for r in pool])
    selection: Selection = mmr(
        relevances, directions, k, conf.current().lambda_mmr, withheld=lambda i: withholds(pool[i].candidate)
    )
    chosen, withheld = (
        tuple(Found(ranked=pool[pick.index], rank=i, mmr=pick.value) for i, pick in enumerate(picks, start=1))
        for picks in (selection.chosen, selection.withheld)
    )
    return chosen, withheld


def _first(
    passed: list[Ranked], k: int, withholds: Callable[[Candidate], bool]
) -> tuple[tuple[Found, ...], tuple[Found, ...]]:
    """The best by score."""
    chosen: list[Found] = []
    withheld: list[Found] = []
    for ranked in passed:
        if len(chosen) == k:
            break
        picks = withheld if withholds(ranked.candidate) else chosen
        picks.append(Found(ranked=ranked, rank=len(picks) + 1, mmr=None))
    return tuple(chosen), tuple(withheld)


def _explain(ranked: list[Ranked], chosen: tuple[Found, ...], kept: dict[UUID, str]) -> tuple[tuple[Ranked, str], ...]:
    """Each candidate with why it is not in the answer; '' for those that are. `kept`: who was held back, and how."""
    handed = {f.ranked.candidate.lesson_id for f in chosen}
    least = min((f.ranked.candidate.cosine or 0.0 for f in chosen), default=0.0)
    reasons = []
    for r in ranked:
        c = r.candidate
        if c.lesson_id in handed:
            reason = ""
        elif c.lesson_id in kept:
            reason = kept[c.lesson_id]
        else:
            # More relevant than something chosen, and still out: it says what a chosen one says.
            reason = r.reason or ("redundant" if (c.cosine or 0.0) > least else "outranked")
        reasons.append((r, reason))
    return tuple(reasons)
