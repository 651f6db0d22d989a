"""What a plan for pruning saw, and whether the store still is as it was seen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from memory.models import PrunePlan
from memory.models.sql import fetch
from memory.models.vocabulary import LessonState
from memory.rules.claim import same_claim, signature
from memory.rules.pruning import Cluster, Contender, Member, best
from memory.services.contradiction import Digests, kept_apart
from memory.services.pairs import Where

# The exact search and the index add a cosine up in different orders: it may differ in the seventh place.
ROUNDING: Final = 1e-6


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A lesson as a plan sees it."""

    text: str
    text_sha256: str
    state: str
    contender: Contender


_SEEN = """
    SELECT l.id, l.text, l.text_sha256, l.state, coalesce(c.n, 0), coalesce(m.n, 0),
        coalesce(c.n - c.losses, 0) + coalesce(m.n - m.losses, 0), extract(epoch FROM l.created_at)::float8,
        l.reviewed_at IS NOT NULL
    FROM lesson l
        LEFT JOIN lesson_source_sum c ON c.lesson_id = l.id AND c.source = 'caller'
        LEFT JOIN lesson_source_sum m ON m.lesson_id = l.id AND m.source = 'machine'
    WHERE l.id = ANY(%s)
"""


def see(lessons: Iterable[UUID]) -> dict[UUID, Seen]:
    """The lessons that still exist, with the evidence that decides which is kept."""
    return {
        pk: Seen(
            text=text,
            text_sha256=digest,
            state=state,
            contender=Contender(
                lesson=pk,
                caller=caller,
                machine=machine,
                wins=wins,
                length=len(text),
                created=created,
                reviewed=reviewed,
            ),
        )
        for pk, text, digest, state, caller, machine, wins, created, reviewed in fetch(_SEEN, [list(set(lessons))])
    }


def lessons_of(cluster: Cluster) -> list[UUID]:
    """The keeper, then the members."""
    return [cluster.keeper, *(member.lesson for member in cluster.members)]


def as_json(cluster: Cluster) -> dict[str, Any]:
    """A cluster as a plan stores it."""
    return {
        "keeper": str(cluster.keeper),
        "members": [{"lesson": str(m.lesson), "cosine": round(m.cosine, 4)} for m in cluster.members],
    }


def clusters_of(plan: PrunePlan) -> list[Cluster]:
    """The plan's clusters, best keeper first."""
    return [
        Cluster(
            keeper=UUID(stored["keeper"]),
            members=tuple(Member(lesson=UUID(m["lesson"]), cosine=m["cosine"]) for m in stored["members"]),
        )
        for stored in plan.clusters
    ]


def key_of(a: Seen, b: Seen) -> Digests:
    """The pair of two texts, as decisions about it are kept."""
    first, second = sorted((a.text_sha256, b.text_sha256))
    return first, second


def changes(plan: PrunePlan, where: Where, clusters: Sequence[Cluster]) -> dict[UUID, str]:
    """What of these clusters of the plan is not as the plan saw it, by lesson; empty if all is.

    `gone`, `text_changed`, `not_active`, `another_keeper` (evidence would keep another one now), `not_similar`,
    `another_claim`, `kept_apart`.
    """
    seen = see(lesson for cluster in clusters for lesson in lessons_of(cluster))
    digests = {UUID(lesson): digest for lesson, (digest, _) in plan.states["lessons"].items()}
    cosines = _cosines(where, clusters)
    apart = kept_apart(where.account_id, _keys(seen, clusters))
    found: dict[UUID, str] = {}
    for cluster in clusters:
        lessons = lessons_of(cluster)
        lost = {lesson: reason for lesson in lessons if (reason := _lost(seen.get(lesson), digests[lesson]))}
        found |= lost or _rearranged(cluster, seen)
        if not lost:
            for member in cluster.members:
                pair = seen[cluster.keeper], seen[member.lesson]
                cosine = cosines.get((cluster.keeper, member.lesson), -1.0)
                if reason := _parted(pair, cosine, where.space.prune_similarity, apart):
                    found[member.lesson] = reason
    return found


def _lost(seen: Seen | None, digest: str) -> str:
    if seen is None:
        return "gone"
    if seen.text_sha256 != digest:
        return "text_changed"
    return "" if seen.state == LessonState.ACTIVE else "not_active"


def _rearranged(cluster: Cluster, seen: Mapping[UUID, Seen]) -> dict[UUID, str]:
    contenders = [seen[lesson].contender for lesson in lessons_of(cluster)]
    keeper = seen[cluster.keeper].contender
    unread = any(c.reviewed and not keeper.reviewed for c in contenders)
    return {cluster.keeper: "another_keeper"} if unread or best(contenders) != cluster.keeper else {}


def _parted(pair: tuple[Seen, Seen], cosine: float, at_least: float, apart: set[Digests]) -> str:
    if cosine < at_least - ROUNDING:
        return "not_similar"
    if not same_claim(signature(pair[0].text), signature(pair[1].text)).same:
        return "another_claim"
    return "kept_apart" if key_of(*pair) in apart else ""


def _keys(seen: Mapping[UUID, Seen], clusters: Sequence[Cluster]) -> list[Digests]:
    return [
        key_of(seen[cluster.keeper], seen[member.lesson])
        for cluster in clusters
        for member in cluster.members
        if cluster.keeper in seen and member.lesson in seen
    ]


def _cosines(where: Where, clusters: Sequence[Cluster]) -> dict[tuple[UUID, UUID], float]:
    """Of each keeper with its members, exactly."""
    pairs = [(cluster.keeper, member.lesson) for cluster in clusters for member in cluster.members]
    rows = fetch(
        """
        SELECT p.keeper, p.member, 1 - (k.embedding <=> m.embedding)
        FROM unnest(%s::uuid[], %s::uuid[]) AS p(keeper, member)
            JOIN lesson_embedding k ON k.lesson_id = p.keeper AND k.space_id = %s
            JOIN lesson_embedding m ON m.lesson_id = p.member AND m.space_id = %s
        """,
        [[keeper for keeper, _ in pairs], [member for _, member in pairs], where.space.pk, where.space.pk],
    )
    return {(keeper, member): cosine for keeper, member, cosine in rows}
