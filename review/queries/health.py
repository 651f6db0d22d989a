"""Whether quarantine can be trusted: what was expected against what came, the coin, and what became of quarantines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from memory.models.sql import fetch
from memory.models.vocabulary import Exposure
from memory.rules.health import DEFAULTS, Interval, wilson
from memory.services.ids import first_id
from memory.services.scoping import lesson_account
from review.charts.reliability import Bin
from review.context import QUEUES

BINS: Final = 10
ENOUGH: Final = 30
LEAST_VARIANCE: Final = ENOUGH / 4  # of falls of a coin: that many of an even one, more of an uneven one
#: An imbalance as improbable as this is looked at, and below the second is a fault: the usual bands of a check for a
#: sample ratio mismatch (Fabijan et al., Diagnosing Sample Ratio Mismatch in Online Controlled Experiments, KDD 2019).
UNLIKELY, FAULT = 0.01, 0.001
WITHHELD: Final = (Exposure.WITHHELD_TRIAL.value, Exposure.WITHHELD_QUARANTINE.value)
ENDS: Final = {
    "upheld": "upheld",
    "released_by_reviewer": "overturned",
    "released_to_trial": "overturned",
    "rehabilitated": "rehabilitated",
    "rejected_by_reviewer": "rejected",
}


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Judged exposures: losses and what was expected."""

    n: int = 0
    losses: int = 0
    expected: float = 0.0

    @property
    def share(self) -> float | None:
        return self.losses / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        return wilson(self.losses, self.n)


@dataclass(frozen=True, kw_only=True)
class Coin:
    """How the coin fell for lessons on trial, each time with the chance that the log notes beside it."""

    served: int
    withheld: int
    expected: float  # of them to be withheld: the sum of the chances
    variance: float  # of that number: the sum of chance * (1 - chance)

    @property
    def p(self) -> float:
        """Probability of a number at least as far from the expected one, if the chances are as noted (two-sided).

        The normal approximation to a sum of unequal coins, with the correction for continuity.
        """
        off = abs(self.withheld - self.expected) - 0.5
        return math.erfc(off / math.sqrt(2 * self.variance)) if off > 0 and self.variance > 0 else 1.0

    @property
    def standing(self) -> str:
        if self.variance < LEAST_VARIANCE:
            return "few"
        return "far" if self.p < FAULT else "watch" if self.p < UNLIKELY else "fine"


@dataclass(frozen=True, kw_only=True)
class Exposures:
    """What the exposure log of the window says."""

    served: tuple[Bin, ...]  # expected against observed loss, of lessons that were handed out
    withheld: tuple[Bin, ...]  # of lessons that were left out: what the expectation claims to know
    coin: Coin
    probation: Counted  # quarantined lessons that were let through
    kept_out: Counted  # the same kind of work without them


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What became of the quarantines that one rule opened."""

    rule: str  # a policy, or `a person`
    n: int
    ends: dict[str, int] = field(default_factory=dict)  # by what a person or the evidence said last

    @property
    def decided(self) -> int:
        return self.upheld + self.overturned

    @property
    def upheld(self) -> int:
        return self.ends.get("upheld", 0)

    @property
    def overturned(self) -> int:
        return self.ends.get("overturned", 0)

    @property
    def rehabilitated(self) -> int:
        return self.ends.get("rehabilitated", 0)

    @property
    def rejected(self) -> int:
        return self.ends.get("rejected", 0)

    @property
    def open(self) -> int:
        return self.n - sum(self.ends.values())


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Whether quarantine can be trusted, in a word and in sentences."""

    standing: str  # fine, few, watch or attention
    headline: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Ages:
    """How long the open questions of a queue have waited."""

    name: str
    waiting: int
    half: datetime | None  # half of them wait since then or longer
    tenth: datetime | None  # a tenth of them


def exposures(account_id: UUID | None, since: datetime) -> Exposures:
    """Exposures of interactions begun since then, of one account or of all, by judges whose word moves a lesson."""
    rows = fetch(
        f"""
        SELECT u.exposure, u.probability < 1, CASE WHEN u.reward <> 0 AND u.weight > 0 AND u.expected_loss IS NOT NULL
                THEN least({BINS - 1}, floor(u.expected_loss * {BINS}))::int END AS bin,
            count(*), count(*) FILTER (WHERE u.reward < 0), coalesce(sum(u.expected_loss), 0)::float8,
            sum(CASE u.exposure WHEN 'withheld_trial' THEN u.probability ELSE 1 - u.probability END)::float8,
            sum(u.probability * (1 - u.probability))::float8
        FROM interaction i JOIN lesson_usage u ON u.interaction_id = i.id
        WHERE i.id >= %(first)s AND i.created_at >= %(since)s
            AND (%(account)s::uuid IS NULL OR i.account_id = %(account)s)
        GROUP BY 1, 2, 3
        """,
        {"first": first_id(since), "since": since, "account": account_id},
    )
    tossed = [row for row in rows if row[1] and row[0] in (Exposure.SERVED, Exposure.WITHHELD_TRIAL)]
    return Exposures(
        served=_bins([row for row in rows if row[0] not in WITHHELD]),
        withheld=_bins([row for row in rows if row[0] in WITHHELD]),
        coin=Coin(
            served=sum(row[3] for row in tossed if row[0] == Exposure.SERVED),
            withheld=sum(row[3] for row in tossed if row[0] == Exposure.WITHHELD_TRIAL),
            expected=math.fsum(row[6] for row in tossed),
            variance=math.fsum(row[7] for row in tossed),
        ),
        probation=_counted([row for row in rows if row[0] == Exposure.PROBATION]),
        kept_out=_counted([row for row in rows if row[0] == Exposure.WITHHELD_QUARANTINE]),
    )


def _counted(rows: Sequence[tuple[Any, ...]]) -> Counted:
    judged = [row for row in rows if row[2] is not None]
    n, losses, expected = (sum(row[i] for row in judged) for i in (3, 4, 5))
    return Counted(n=n, losses=losses, expected=expected)


def _bins(rows: Sequence[tuple[Any, ...]]) -> tuple[Bin, ...]:
    found = []
    for place in sorted({row[2] for row in rows if row[2] is not None}):
        part = _counted([row for row in rows if row[2] == place])
        found.append(Bin(predicted=part.expected / part.n, hits=part.losses, n=part.n))
    return tuple(found)


def fates(account_id: UUID | None, since: datetime) -> list[Fate]:
    """Quarantines opened since then by the rule that opened them, and what was said last before the next one."""
    rows = fetch(
        """
        SELECT CASE q.kind WHEN 'quarantined' THEN coalesce(q.evidence ->> 'policy', 'an earlier rule')
                ELSE 'a person' END,
            last.kind, count(*)
        FROM trust_event q JOIN lesson l ON l.id = q.lesson
            LEFT JOIN LATERAL (
                SELECT e.kind FROM trust_event e
                WHERE e.lesson = q.lesson AND (e.created_at, e.id) > (q.created_at, q.id) AND e.kind = ANY(%(ends)s)
                    AND NOT EXISTS (
                        SELECT 1 FROM trust_event again WHERE again.lesson = q.lesson
                            AND again.kind IN ('quarantined', 'quarantined_by_reviewer')
                            AND (again.created_at, again.id) > (q.created_at, q.id)
                            AND (again.created_at, again.id) < (e.created_at, e.id))
                ORDER BY e.created_at DESC, e.id DESC LIMIT 1
            ) last ON true
        WHERE q.kind IN ('quarantined', 'quarantined_by_reviewer') AND q.id >= %(first)s AND q.created_at >= %(since)s
            AND (%(all)s OR l.account_id IS NOT DISTINCT FROM %(scope)s::uuid)
        GROUP BY 1, 2 ORDER BY 1
        """,
        {
            "ends": [*ENDS, "undone"],  # what was taken back leaves the quarantine open
            "first": first_id(since),
            "since": since,
            "all": account_id is None,
            "scope": lesson_account(account_id),
        },
    )
    found: list[Fate] = []
    for rule in dict.fromkeys(row[0] for row in rows):
        ends: dict[str, int] = {}
        for _, kind, n in (row for row in rows if row[0] == rule and row[1] in ENDS):
            ends[ENDS[kind]] = ends.get(ENDS[kind], 0) + n
        found.append(Fate(rule=rule, n=sum(row[2] for row in rows if row[0] == rule), ends=ends))
    return found


def decided(found: Sequence[Fate]) -> Counted:
    """Quarantines that people looked at, and how many of them they lifted."""
    return Counted(n=sum(fate.decided for fate in found), losses=sum(fate.overturned for fate in found))


def together(bins: Sequence[Bin]) -> Counted:
    """All bins in one."""
    return Counted(
        n=sum(each.n for each in bins),
        losses=sum(each.hits for each in bins),
        expected=sum(each.predicted * each.n for each in bins),
    )


def trust(found: Sequence[Fate], seen: Exposures) -> Trust:
    """The headline follows what people said of quarantines; samples and controls stand beside it."""
    opened = sum(fate.n for fate in found)
    looked = decided(found)
    sentences = [f"People looked at {looked.n} of the {opened} opened, and lifted {looked.losses}."] if opened else []
    if seen.probation.n and seen.kept_out.n:
        sentences.append(
            f"Let through as a sample, quarantined lessons lost {seen.probation.losses} of {seen.probation.n}; "
            f"the same kind of work without them {seen.kept_out.losses} of {seen.kept_out.n}."
        )
    if seen.coin.standing in ("watch", "far"):
        sentences.append("The coin of the trials falls wrongly, so figures that rest on it cannot be trusted.")
    standing, headline = _headline(opened, looked, seen.coin.standing)
    return Trust(standing=standing, headline=headline, sentences=tuple(sentences))


def _headline(opened: int, looked: Counted, coin: str) -> tuple[str, str]:
    watch, attention = DEFAULTS.overturned
    interval = looked.interval
    if coin == "far":
        return "attention", "Not as it stands: the coin is not fair."
    if not opened:
        return "few", "Nothing was quarantined in this window."
    if interval.low >= attention:
        return "attention", "No: people lift too many of the quarantines that they look at."
    if interval.low >= watch or coin == "watch":
        return "watch", "With care: look at the figures below."
    if interval.high > attention:
        return "few", "Too few were looked at to say."
    return "fine", "Yes: people uphold what it keeps out."


def ages(accounts: Sequence[UUID] | None) -> list[Ages]:
    """Every queue, also an empty one, by when its open questions were asked; None means those of every account."""
    rows = fetch(
        """
        SELECT held.queue, count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY r.created_at),
            percentile_disc(0.1) WITHIN GROUP (ORDER BY r.created_at)
        FROM review_item r JOIN unnest(%(kinds)s::text[], %(queues)s::text[]) AS held(kind, queue) ON held.kind = r.kind
        WHERE r.status = 'open' AND (%(all)s OR r.account_id IS NULL OR r.account_id = ANY(%(accounts)s::uuid[]))
        GROUP BY 1
        """,
        {
            "kinds": [kind.value for kinds in QUEUES.values() for kind in kinds],
            "queues": [queue for queue, kinds in QUEUES.items() for _ in kinds],
            "all": accounts is None,
            "accounts": list(accounts or ()),
        },
    )
    found = {queue: Ages(name=queue, waiting=n, half=half, tenth=tenth) for queue, n, half, tenth in rows}
    return [found.get(queue, Ages(name=queue, waiting=0, half=None, tenth=None)) for queue in QUEUES]


def durations(jobs: Sequence[str]) -> dict[str, timedelta]:
    """How long the last finished run of each job took."""
    rows = fetch(
        """
        SELECT wanted.job, last.took FROM unnest(%s::text[]) AS wanted(job) CROSS JOIN LATERAL (
            SELECT finished_at - started_at AS took FROM job_run
            WHERE job = wanted.job AND finished_at IS NOT NULL ORDER BY started_at DESC LIMIT 1) last
        """,
        [list(jobs)],
    )
    return dict(rows)
