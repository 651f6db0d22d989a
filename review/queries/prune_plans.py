"""Which plans there are, what one would have changed, and what comes near to being merged where there is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform
from django.utils import timezone

from memory.models import PrunePlan
from memory.models.sql import fetch
from memory.rules.claim import same_claim, signature
from memory.services import merging
from memory.services import pairs as near
from memory.services.duplicates import MERGED_BY
from memory.services.pairs import Where
from memory.services.planned import clusters_of, see

SIMULATED: Final = 1000  # interactions
NEWEST: Final = 50  # lessons around which the nearest candidates are looked for
CANDIDATES: Final = 5
BELOW: Final = 0.15  # how far below the threshold a pair still is a candidate


def latest(accounts: Sequence[UUID] | None) -> list[PrunePlan]:
    """The latest plan of each scope that the reader may see: the shared one, and those of their accounts. One query."""
    mine = Q(states__account=None)
    if accounts is None:
        mine = Q()
    elif accounts:
        mine |= Q(states__account__in=[str(account) for account in accounts])
    scope = KeyTextTransform("account", "states")
    plans = PrunePlan.objects.filter(mine).exclude(states__has_key=MERGED_BY).annotate(scope=scope)
    return list(plans.order_by("scope", "-pk").distinct("scope"))


@dataclass(frozen=True, kw_only=True)
class Applied:
    """A plan that can still be undone."""

    plan: PrunePlan
    lessons: int
    until: datetime
    by_person: bool


def restorable(accounts: Sequence[UUID] | None) -> list[Applied]:
    """Plans that were applied and can still be undone, latest first. One query."""
    ids = None if accounts is None else [str(account) for account in accounts]
    rows = fetch(
        f"""
        SELECT p.id, count(*), min(a.expires_at) FROM prune_archive a JOIN prune_plan p ON p.id = a.plan_id
        WHERE a.kind = '{merging.LESSON}' AND a.expires_at > %(now)s
            AND (%(everywhere)s OR p.states ->> 'account' IS NULL OR p.states ->> 'account' = ANY(%(ids)s))
        GROUP BY p.id ORDER BY p.id DESC LIMIT 20
        """,
        {"now": timezone.now(), "everywhere": ids is None, "ids": ids or []},
    )
    plans = PrunePlan.objects.in_bulk([plan for plan, _, _ in rows])
    return [
        Applied(plan=plans[plan], lessons=n, until=until, by_person=MERGED_BY in plans[plan].states)
        for plan, n, until in rows
    ]


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What the plan would have changed in the latest interactions."""

    interactions: int  # looked at
    touched: int  # in which one of the lessons that go was handed out
    servings: int  # of lessons that go
    beside: int  # of these, where the kept one was handed out as well: one lesson less


def simulate(plan: PrunePlan, accounts: Sequence[UUID] | None) -> Simulation:
    """Over the latest SIMULATED interactions of these accounts; None means every account. One query, a read."""
    pairs = [(m.lesson, cluster.keeper) for cluster in clusters_of(plan) for m in cluster.members]
    mine = "true" if accounts is None else "account_id = ANY(%(accounts)s)"
    ((interactions, touched, servings, beside),) = fetch(
        f"""
        WITH recent AS MATERIALIZED (SELECT id FROM interaction WHERE {mine} ORDER BY id DESC LIMIT {SIMULATED})
        SELECT (SELECT count(*) FROM recent), count(DISTINCT u.interaction_id), count(u.id), count(k.id)
        FROM recent r
            JOIN lesson_usage u ON u.interaction_id = r.id AND u.exposure IN ('served', 'probation')
            JOIN unnest(%(members)s::uuid[], %(keepers)s::uuid[]) AS p(member, keeper) ON p.member = u.lesson_id
            LEFT JOIN lesson_usage k ON k.interaction_id = r.id AND k.lesson_id = p.keeper
                AND k.exposure IN ('served', 'probation')
        """,
        {
            "accounts": list(accounts or []),
            "members": [member for member, _ in pairs],
            "keepers": [keeper for _, keeper in pairs],
        },
    )
    return Simulation(interactions=interactions, touched=touched, servings=servings, beside=beside)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Two lessons that come near to being merged."""

    first: UUID
    second: UUID
    texts: tuple[str, str]
    cosine: float
    why_not: str


def candidates(where: Where) -> list[Candidate]:
    """The nearest pairs around the newest lessons, and why each is no duplicate. Empty while there are no lessons."""
    rows = fetch(
        f"SELECT e.lesson_id FROM lesson_embedding e WHERE {where.condition()} ORDER BY e.lesson_id DESC LIMIT {NEWEST}"
    )
    threshold = where.space.prune_similarity
    steps = near.near_pairs(where, threshold - BELOW, [lesson for (lesson,) in rows]) if rows else ()
    found = sorted((pair for step in steps for pair in step.pairs), key=lambda pair: -pair.cosine)[:CANDIDATES]
    seen = see(lesson for pair in found for lesson in (pair.first, pair.second))
    lines = []
    for pair in found:
        if pair.first in seen and pair.second in seen:
            texts = seen[pair.first].text, seen[pair.second].text
            if not same_claim(signature(texts[0]), signature(texts[1])).same:
                why = "they make different claims"
            elif pair.cosine < threshold:
                why = "they are not near enough"
            else:
                why = "a person keeps them apart, or is to decide"
            lines.append(Candidate(first=pair.first, second=pair.second, texts=texts, cosine=pair.cosine, why_not=why))
    return lines
