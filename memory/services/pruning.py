"""Plans that make one lesson of several that say the same. Nothing here removes any.

A plan holds ids and digests, and no text. Its own digest covers the clusters and the states that it saw, so that what
a person read is what is applied.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from memory import conf
from memory.embedding.active import usable_space
from memory.models import PruneArchive, PrunePlan
from memory.models.sql import fetch
from memory.models.vocabulary import LessonState
from memory.rules.claim import same_claim, signature
from memory.rules.pruning import Pair, clusters
from memory.services import pairs as near
from memory.services.contradiction import kept_apart
from memory.services.pairs import Cursor, Where
from memory.services.planned import Seen, as_json, changes, clusters_of, key_of, lessons_of, see

MAX_PAIRS: Final = 20_000  # of one plan, the nearest first; what is left is the next plan's


@dataclass(frozen=True, kw_only=True)
class Step:
    """How far the making of a plan has come."""

    done: int  # lessons looked around
    total: int
    plan: PrunePlan | None = None  # with the last step


def scope(account_id: UUID | None) -> Where:
    """The active lessons of a scope, in the active space. Raises EmbeddingUnavailable without one."""
    return Where(space=usable_space(), account_id=account_id)


def current(account_id: UUID | None) -> PrunePlan:
    """The latest plan, if the store has not moved since; else a new one, after a bounded search."""
    where = scope(account_id)
    plan = _latest(where)
    if plan is not None and _is_current(plan, where):
        return plan
    return make(where)


def make(where: Where) -> PrunePlan:
    """A plan of now."""
    *_, last = making(where)
    assert last.plan is not None, "the last step has the plan"
    return last.plan


def making(where: Where, *, complete: bool = False) -> Iterator[Step]:
    """Makes a plan step by step. Raises EmbeddingUnavailable.

    In a large scope the search goes on where the latest plan's ended and keeps the pairs that it found, unless it is
    to be `complete`.
    """
    cursor, kept, probes = Cursor(), list[Pair](), None
    if not (complete or near.is_small(where)):
        cursor, kept = _search_of(_latest(where))
        by_account, cursor = near.next_probes(where.condition(), cursor, conf.current().job_probes)
        probes = by_account.get(where.account_id, [])
    found = {(pair.first, pair.second): pair for pair in kept}
    done = total = 0
    for step in near.near_pairs(where, where.space.prune_similarity, probes):
        found |= {(pair.first, pair.second): pair for pair in _same_claim(step.pairs)}
        done, total = step.done, step.total
        yield Step(done=done, total=total)
    if probes is None:
        cursor = Cursor(newest=_newest(where))
    yield Step(done=done, total=total, plan=_write(where, list(found.values()), cursor))


def _same_claim(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs whose texts make the same claim, read anew: what may be deleted is not left to a stored signature."""
    seen = see(lesson for pair in pairs for lesson in (pair.first, pair.second))
    claims = {lesson: signature(s.text) for lesson, s in seen.items()}
    present = (pair for pair in pairs if pair.first in claims and pair.second in claims)
    return [pair for pair in present if same_claim(claims[pair.first], claims[pair.second]).same]


def _write(where: Where, pairs: list[Pair], cursor: Cursor) -> PrunePlan:
    """The plan of these pairs; the same clusters in the same states are the same plan."""
    pairs = sorted(pairs, key=lambda pair: (-pair.cosine, pair.first, pair.second))[:MAX_PAIRS]
    seen = see(lesson for pair in pairs for lesson in (pair.first, pair.second))
    live = {lesson: s for lesson, s in seen.items() if s.state == LessonState.ACTIVE}
    pairs = [pair for pair in pairs if pair.first in live and pair.second in live]
    apart = _apart(where, live, pairs)
    made = clusters((s.contender for s in live.values()), (pair for pair in pairs if pair not in apart))
    lessons = [lesson for cluster in made for lesson in lessons_of(cluster)]
    body = {
        "account": None if where.account_id is None else str(where.account_id),
        "space": str(where.space.pk),
        "prune_similarity": where.space.prune_similarity,
        "lessons": {str(lesson): [live[lesson].text_sha256, live[lesson].state] for lesson in lessons},
    }
    stored = [as_json(cluster) for cluster in made]
    search = {
        "cursor": cursor.to_json(),
        "pairs": [[str(pair.first), str(pair.second), round(pair.cosine, 4)] for pair in pairs],
        "fingerprint": _fingerprint(where),
    }
    return store_plan(stored, body, search)


def store_plan(stored: list[dict[str, Any]], body: dict[str, Any], search: Mapping[str, Any]) -> PrunePlan:
    """The plan with these contents; not one that was applied: what has come back since is another matter."""
    while True:
        plan, new = PrunePlan.objects.get_or_create(
            digest=_digest(body, stored), defaults={"clusters": stored, "states": {**body, "search": search}}
        )
        if plan.applied_at is None:
            break
        body = {**body, "after": plan.digest}
    if not new:
        plan.states = {**plan.states, "search": search}
        plan.save(update_fields=["states"])
    return plan


def _apart(where: Where, live: Mapping[UUID, Seen], pairs: Sequence[Pair]) -> set[Pair]:
    """Pairs that a person keeps apart, or that contradict each other and nobody has decided."""
    keys = {pair: key_of(live[pair.first], live[pair.second]) for pair in pairs}
    apart = kept_apart(where.account_id, keys.values())
    return {pair for pair, key in keys.items() if key in apart}


def _digest(body: Mapping[str, Any], stored: Sequence[Mapping[str, Any]]) -> str:
    canonical = json.dumps([body, stored], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _latest(where: Where) -> PrunePlan | None:
    """The latest plan of the scope that was made with today's space and threshold."""
    plans = PrunePlan.objects.filter(
        states__account=None if where.account_id is None else str(where.account_id),
        states__space=str(where.space.pk),
        states__prune_similarity=where.space.prune_similarity,
    )
    return plans.order_by("-pk").first()


def _search_of(plan: PrunePlan | None) -> tuple[Cursor, list[Pair]]:
    """Where a plan's search ended, and what it had found."""
    if plan is None:
        return Cursor(), []
    search = plan.states["search"]
    pairs = [Pair(first=UUID(a), second=UUID(b), cosine=cosine) for a, b, cosine in search["pairs"]]
    return Cursor.from_json(search["cursor"]), pairs


def _is_current(plan: PrunePlan, where: Where) -> bool:
    """Whether a search of today would come to the same plan, as far as can be told without one."""
    if plan.applied_at is not None or plan.states["search"]["fingerprint"] != _fingerprint(where):
        return False
    return not changes(plan, where, clusters_of(plan))


def _fingerprint(where: Where) -> list[Any]:
    """Differs when a lesson was added to the scope or left it, or when a standing changed anywhere."""
    ((count, event),) = fetch(
        f"SELECT (SELECT count(*) FROM lesson_embedding e WHERE {where.condition()}), "
        "(SELECT id FROM trust_event ORDER BY id DESC LIMIT 1)"
    )
    return [count, str(_newest(where)), str(event)]


def _newest(where: Where) -> UUID:
    rows = fetch(
        f"SELECT e.lesson_id FROM lesson_embedding e WHERE {where.condition()} ORDER BY e.lesson_id DESC LIMIT 1"
    )
    return UUID(str(rows[0][0])) if rows else near.NOTHING


def run() -> dict[str, int]:
    """Makes today's plan of every scope; returns the figures of the run. Raises EmbeddingUnavailable."""
    plans = [make(where) for where in near.scopes(usable_space())]
    return {
        "plans": len(plans),
        "clusters": sum(len(plan.clusters) for plan in plans),
        "lessons": sum(len(cluster["members"]) for plan in plans for cluster in plan.clusters),
    }


def forget_old() -> dict[str, int]:
    """Deletes what can no longer be undone from the archive, and plans of the same age that were never applied."""
    now = timezone.now()
    archived = PruneArchive.objects.filter(expires_at__lt=now).delete()[0]
    old = now - timedelta(days=conf.current().prune_archive_days)
    plans = PrunePlan.objects.filter(applied_at__isnull=True, created_at__lt=old, prunearchive__isnull=True)
    return {"expired_archive": archived, "expired_plans": plans.delete()[0]}
