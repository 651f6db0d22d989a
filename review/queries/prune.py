"""Plans for pruning: what would go and into what, how risky each row is, and whether the store still is as it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from memory.errors import Conflict, EmbeddingUnavailable
from memory.models import Account, PruneArchive, PrunePlan
from memory.models.sql import fetch
from memory.rules.difference import Difference, difference
from memory.rules.pruning import Cluster, why_kept
from memory.services import applying, merging, pruning
from memory.services.applying import Outcome
from memory.services.duplicates import MERGED_BY
from memory.services.planned import Seen, clusters_of, lessons_of, see

SHOWN: Final = 200  # rows, the riskiest first; an export has all
RISKIEST: Final = 3
FEW: Final = 10  # judged servings below which a record is not compared

#: What `changes` and a merge say of a lesson, in words.
CHANGES: Final[Mapping[str, str]] = {
    "gone": "is gone",
    "text_changed": "was reworded",
    "not_active": "left service",
    "another_keeper": "is not the best proven one any more",
    "not_similar": "is not near enough any more",
    "another_claim": "makes another claim by now",
    "kept_apart": "is kept apart by a person",
    "exempted": "has an excused loss that would be lost",
}


@dataclass(frozen=True, kw_only=True)
class Side:
    """A lesson of a plan, as it is now; of one that was merged, as the archive has it."""

    lesson: UUID
    text: str  # empty if nothing has it any more
    state: str  # empty if it is not there
    reviewed: bool
    wins: int
    losses: int
    servings: int  # handed out, in its whole life
    rows: int  # of evidence, withheld ones too
    last_served: datetime | None

    @property
    def judged(self) -> int:
        return self.wins + self.losses

    @property
    def loss_rate(self) -> float | None:
        """In [0, 1]; None where nobody judged it."""
        return self.losses / self.judged if self.judged else None


@dataclass(frozen=True, kw_only=True)
class Row:
    """What would go."""

    side: Side
    cosine: float  # with the lesson that is kept
    change: str  # what has changed about it since the plan, or hindered the merge; empty if nothing
    result: str  # merged, kept, skipped, restored; empty before the plan is applied
    better: bool  # its record is better than that of what is kept

    @property
    def risk(self) -> float:
        """Servings that would carry another text, times how far apart the two texts are."""
        return self.side.servings * max(0.0, 1 - self.cosine)


@dataclass(frozen=True, kw_only=True)
class Group:
    """A lesson that is kept, with what would go into it, riskiest first."""

    keeper: Side
    why: str  # why it is this one that is kept
    change: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A plan as people read it."""

    plan: PrunePlan
    account: UUID | None
    groups: tuple[Group, ...]  # riskiest first
    riskiest: tuple[tuple[Row, Group], ...]  # three rows at most
    going: int  # lessons that would go
    moved: Mapping[UUID, str]  # what has changed, by lesson
    blocked: str  # why it cannot be applied, beside what has changed; empty if nothing else hinders
    status: str  # open, stale, applied, restored or expired
    done: int  # lessons that an interrupted run has merged already
    restorable_until: datetime | None
    by_person: bool  # a person called them the same, no search
    newer: PrunePlan | None  # a later plan of the scope

    @property
    def evidence(self) -> int:
        """Rows that would move."""
        return sum(row.side.rows for group in self.groups for row in group.rows)

    @property
    def merged(self) -> int:
        """Lessons that were merged when it was applied, also where they are back by now."""
        return sum(row.result in ("merged", "restored") for group in self.groups for row in group.rows)

    @property
    def servings(self) -> int:
        return sum(row.side.servings for group in self.groups for row in group.rows)

    @property
    def shown(self) -> tuple[Group, ...]:
        """As many groups as a page holds."""
        found: list[Group] = []
        rows = 0
        for group in self.groups:
            if found and rows + len(group.rows) > SHOWN:
                break
            found.append(group)
            rows += len(group.rows)
        return tuple(found)

    @property
    def hidden(self) -> int:
        """Rows that the page does not hold."""
        return self.going - sum(len(group.rows) for group in self.shown)

    @property
    def expected(self) -> Difference | None:
        """Share of losses of what is kept less that of what goes; None where either was judged too rarely."""
        kept, gone = ([g.keeper for g in self.groups], [r.side for g in self.groups for r in g.rows])
        n, m = sum(side.judged for side in kept), sum(side.judged for side in gone)
        if min(n, m) < FEW:
            return None
        return difference(sum(side.losses for side in kept), n, sum(side.losses for side in gone), m)


def account_of(plan: PrunePlan) -> UUID | None:
    """Whose lessons it is about; None where they are shared."""
    account = plan.states["account"]
    return None if account is None else UUID(account)


def name_of(account: UUID | None) -> str:
    """The scope, as people call it."""
    if account is None:
        return "Shared by all accounts"
    return Account.objects.filter(pk=account).values_list("name", flat=True).first() or "An account that is gone"


def read(plan: PrunePlan) -> Reading:
    """The plan with the texts and figures as they are now. A constant number of queries."""
    account, made = account_of(plan), clusters_of(plan)
    ids = [lesson for cluster in made for lesson in lessons_of(cluster)]
    archive = _archived(plan)
    sides = _sides(ids, archive)
    moved, blocked = ({}, "") if plan.applied_at else _moved(plan, account, made)
    outcomes = {UUID(o["keeper"]): Outcome.from_json(o) for o in plan.states.get("outcome", [])}
    seen = see(ids) if plan.applied_at is None else {}
    groups = sorted(
        (_group(cluster, sides, moved, outcomes.get(cluster.keeper), archive, seen) for cluster in made),
        key=lambda group: -max((row.risk for row in group.rows), default=0.0),
    )
    ranked = sorted(((row, g) for g in groups for row in g.rows), key=lambda pair: -pair[0].risk)
    return Reading(
        plan=plan,
        account=account,
        groups=tuple(groups),
        riskiest=tuple(ranked[:RISKIEST]),
        going=sum(len(cluster.members) for cluster in made),
        moved=moved,
        blocked=blocked,
        status=_status(plan, bool(moved or blocked), archive),
        done=0 if plan.applied_at else len(archive),
        restorable_until=min((until for _, until in archive.values()), default=None),
        by_person=MERGED_BY in plan.states,
        newer=_newer(plan),
    )


def _archived(plan: PrunePlan) -> dict[UUID, tuple[dict[str, Any], datetime]]:
    """The merged lessons that can still come back: their row, and until when."""
    rows = PruneArchive.objects.filter(plan=plan, kind=merging.LESSON, expires_at__gt=timezone.now())
    columns = rows.values_list("lesson", "payload", "expires_at")
    return {lesson: (payload["row"], until) for lesson, payload, until in columns}


def _status(plan: PrunePlan, stale: bool, archive: Mapping[UUID, Any]) -> str:
    if plan.applied_at is None:
        return "stale" if stale else "open"
    if archive:
        return "applied"
    pruned = [UUID(lesson) for outcome in plan.states["outcome"] for lesson in outcome["pruned"]]
    return "restored" if see(pruned) else "expired"


def _moved(plan: PrunePlan, account: UUID | None, made: list[Cluster]) -> tuple[Mapping[UUID, str], str]:
    try:
        return applying.moved(plan, pruning.scope(account), made), ""
    except (EmbeddingUnavailable, Conflict) as refusal:
        return {}, refusal.detail


def _newer(plan: PrunePlan) -> PrunePlan | None:
    later = PrunePlan.objects.filter(states__account=plan.states["account"], pk__gt=plan.pk)
    return later.exclude(states__has_key=MERGED_BY).order_by("-pk").first()


def _sides(ids: Sequence[UUID], archive: Mapping[UUID, tuple[dict[str, Any], datetime]]) -> dict[UUID, Side]:
    """Figures of lessons, whether they are there or in the archive. One query."""
    rows = fetch(
        """
        SELECT i.id, l.text, l.state, l.reviewed_at IS NOT NULL, coalesce(s.wins, 0), coalesce(s.losses, 0),
            coalesce(u.servings, 0), coalesce(u.total, 0), u.latest
        FROM unnest(%s::uuid[]) AS i(id)
            LEFT JOIN lesson l ON l.id = i.id
            LEFT JOIN lesson_standing s ON s.lesson_id = i.id
            LEFT JOIN (
                SELECT lesson_id, count(*) AS total,
                    count(*) FILTER (WHERE exposure IN ('served', 'probation')) AS servings,
                    max(created_at) FILTER (WHERE exposure IN ('served', 'probation')) AS latest
                FROM lesson_usage WHERE lesson_id = ANY(%s) GROUP BY lesson_id
            ) u ON u.lesson_id = i.id
        """,
        [list(ids), list(ids)],
    )
    found = {}
    for lesson, text, state, reviewed, wins, losses, servings, total, last in rows:
        kept = archive[lesson][0] if text is None and lesson in archive else {}
        found[lesson] = Side(
            lesson=lesson,
            text=text or kept.get("text", ""),
            state=state or "",
            reviewed=bool(reviewed),
            wins=wins,
            losses=losses,
            servings=servings,
            rows=total,
            last_served=last,
        )
    return found


def _group(
    cluster: Cluster,
    sides: Mapping[UUID, Side],
    moved: Mapping[UUID, str],
    outcome: Outcome | None,
    archive: Mapping[UUID, Any],
    seen: Mapping[UUID, Seen],
) -> Group:
    keeper = sides[cluster.keeper]
    rows = []
    for member in cluster.members:
        side = sides[member.lesson]
        change = moved.get(member.lesson, "") or (outcome.skipped.get(member.lesson, "") if outcome else "")
        rows.append(
            Row(
                side=side,
                cosine=member.cosine,
                change=CHANGES.get(change, change),
                result=_result(member.lesson, outcome, archive, side),
                better=_better(side, keeper),
            )
        )
    best = seen.get(cluster.keeper)
    others = [seen[m.lesson].contender for m in cluster.members if m.lesson in seen]
    why = why_kept(best.contender, others) if best and others else ""
    change = CHANGES.get(moved.get(cluster.keeper, ""), "")
    return Group(keeper=keeper, why=why, change=change, rows=tuple(sorted(rows, key=lambda row: -row.risk)))


def _result(lesson: UUID, outcome: Outcome | None, archive: Mapping[UUID, Any], side: Side) -> str:
    if lesson in archive:
        return "merged"
    if outcome is None:
        return ""
    if lesson in outcome.pruned:
        return "restored" if side.state else "merged"
    return "kept" if lesson in outcome.excluded else "skipped"


def _better(side: Side, keeper: Side) -> bool:
    rates = side.loss_rate, keeper.loss_rate
    if None in rates or min(side.judged, keeper.judged) < FEW:
        return False
    return bool(side.losses * keeper.judged < keeper.losses * side.judged)
