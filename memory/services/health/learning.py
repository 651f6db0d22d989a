"""What the store learns from, and what came of it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from memory.models.vocabulary import Exposure as Exposures
from memory.models.vocabulary import OutcomeSource, TrustEventKind
from memory.rules.bands import live_rate
from memory.rules.health import wilson
from memory.services.health.report import (
    Band,
    EvidenceClass,
    Exposure,
    Funnel,
    Quarantine,
    Share,
    Verdicts,
    Week,
    Work,
)
from memory.services.health.view import WEEKS, View

SETTLED = timedelta(days=1)  # time in which somebody could judge
# Which seven days, counted back from now, an interaction was begun in.
_WEEK = f"least({WEEKS - 1}, floor(extract(epoch FROM %(now)s - i.created_at) / 604800))::int"

Said = Sequence[tuple[Any, ...]]  # week, source, wins, losses, retracted


def verdicts(view: View) -> Said:
    """The latest word of each source on each recent interaction, counted by week and source."""
    return view.fetch(
        f"""
        SELECT week, source, count(*) FILTER (WHERE reward > 0), count(*) FILTER (WHERE reward < 0),
            count(*) FILTER (WHERE reward = 0)
        FROM (
            SELECT DISTINCT ON (o.interaction_id, o.source) {_WEEK} AS week, o.source, o.reward
            FROM interaction i JOIN outcome o ON o.interaction_id = i.id
            WHERE {view.recent} ORDER BY o.interaction_id, o.source, o.sequence DESC
        ) latest GROUP BY week, source
        """
    )


def classes(said: Said) -> tuple[EvidenceClass, ...]:
    """Every class of evidence, strongest first, also one that said nothing."""
    return tuple(_class(source, [row[2:] for row in said if row[1] == source]) for source in OutcomeSource.values)


def _class(source: str, rows: Sequence[tuple[Any, ...]]) -> EvidenceClass:
    wins, losses, retracted = (sum(row[i] for row in rows) for i in range(3))
    interval = wilson(wins, wins + losses)
    return EvidenceClass(
        source=source,
        wins=wins,
        losses=losses,
        retracted=retracted,
        win_rate=wins / (wins + losses) if wins + losses else None,
        low=interval.low,
        high=interval.high,
    )


def weeks_and_work(view: View, said: Said) -> tuple[tuple[Week, ...], Work]:
    """Recent interactions by week with who judged them, and in all."""
    rows = view.fetch(
        f"""
        SELECT {_WEEK}, count(*), count(*) FILTER (WHERE i.created_at <= %(settled)s),
            count(*) FILTER (WHERE i.created_at <= %(settled)s
                AND NOT EXISTS (SELECT 1 FROM outcome o WHERE o.interaction_id = i.id))
        FROM interaction i WHERE {view.recent} GROUP BY 1
        """,
        settled=view.now - SETTLED,
    )
    begun = {week: n for week, n, _, _ in rows}
    weeks = tuple(
        Week(
            since=view.now - timedelta(weeks=week + 1),
            interactions=begun.get(week, 0),
            provenance=tuple(
                Share(source=source, judged=sum(r[2] + r[3] for r in said if r[:2] == (week, source)))
                for source in OutcomeSource.values
            ),
        )
        for week in range(WEEKS)
    )
    return weeks, Work(
        interactions=sum(begun.values()),
        settled=sum(settled for _, _, settled, _ in rows),
        without_outcome=sum(unjudged for *_, unjudged in rows),
    )


def funnel(view: View) -> tuple[Funnel, ...]:
    """Distillations of recent work by how they ended."""
    rows = view.fetch(
        f"""
        SELECT d.state, d.result_reason, count(*) FROM interaction i
            JOIN lesson_distillation d ON d.interaction_id = i.id
        WHERE {view.recent} GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
        """
    )
    return tuple(Funnel(state=state, reason=reason, n=n) for state, reason, n in rows)


def exposures(view: View) -> tuple[Exposure, ...]:
    """What became of the lessons that fitted recent work, for every kind of exposure."""
    rows = view.fetch(
        f"""
        SELECT u.exposure, u.outcome_source, count(*), count(*) FILTER (WHERE u.reward > 0),
            count(*) FILTER (WHERE u.reward < 0)
        FROM interaction i JOIN lesson_usage u ON u.interaction_id = i.id WHERE {view.recent} GROUP BY 1, 2 ORDER BY 2
        """
    )
    return tuple(
        Exposure(
            exposure=kind,
            n=sum(n for exposure, _, n, _, _ in rows if exposure == kind),
            credited=tuple(
                Verdicts(source=source, wins=wins, losses=losses)
                for exposure, source, _, wins, losses in rows
                if exposure == kind and source is not None
            ),
        )
        for kind in Exposures.values
    )


def quarantine(view: View) -> Quarantine:
    """What happened to quarantines in the window. An account's report counts lessons that are still there."""
    mine = "" if view.account_id is None else f"JOIN lesson l ON l.id = e.lesson AND {view.visible('l')}"
    rows = view.fetch(
        f"SELECT e.kind, count(*) FROM trust_event e {mine} WHERE e.id >= %(first)s AND e.created_at >= %(since)s "
        "GROUP BY 1"
    )
    n = dict(rows)

    def happened(*kinds: TrustEventKind) -> int:
        return sum(n.get(kind.value, 0) for kind in kinds)

    return Quarantine(
        opened=happened(TrustEventKind.QUARANTINED),
        opened_by_reviewer=happened(TrustEventKind.QUARANTINED_BY_REVIEWER),
        upheld=happened(TrustEventKind.UPHELD),
        overturned=happened(TrustEventKind.RELEASED_BY_REVIEWER, TrustEventKind.RELEASED_TO_TRIAL),
        rehabilitated=happened(TrustEventKind.REHABILITATED),
        probation_losses=happened(TrustEventKind.PROBATION_LOSS),
    )


def bands(view: View) -> tuple[Band, ...]:
    """The loss rate of each band as it was last measured; an operator's are of all scopes together."""
    rows = view.fetch(
        f"""
        SELECT b.lower, b.upper, b.prior, sum(b.scored)::bigint, sum(b.losses)::bigint, min(b.measured_at)
        FROM band_rate b WHERE {view.visible("b")} GROUP BY 1, 2, 3 ORDER BY 1
        """
    )
    return tuple(_band(*row) for row in rows)


def _band(lower: int, upper: int | None, prior: float, n: int, losses: int, measured_at: Any) -> Band:
    interval = wilson(losses, n)
    return Band(
        lower=lower,
        upper=upper,
        n=n,
        losses=losses,
        rate=live_rate(prior=prior, losses=losses, scored=n),
        low=interval.low,
        high=interval.high,
        measured_at=measured_at,
    )
