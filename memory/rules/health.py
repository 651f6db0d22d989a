"""Does the store learn? Intervals for its rates, and one state with the reasons for it.

Figures of different judges are never added up: each class of evidence is looked at by itself.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memory.rules.words import count

State = Literal["healthy", "building", "watch", "attention"]
#: From the state that every worse one overrules to the one that overrules all.
STATES: Final[tuple[State, ...]] = ("healthy", "building", "watch", "attention")

#: Whose word moves a lesson into or out of quarantine.
MOVING: Final = ("caller", "machine", "self_curriculum")

#: 0.975 quantile of the standard normal distribution: two-sided intervals of 95%.
Z: Final = 1.959963984540054


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Where a proportion plausibly lies."""

    low: float  # in [0, 1]
    high: float  # in [low, 1]


def wilson(successes: int, n: int, z: float = Z) -> Interval:
    """The score interval of a proportion; all of [0, 1] where nothing was counted.

    Source: Wilson 1927, Probable inference, the law of succession, and statistical inference, JASA 22:209-212. Raises
    ValueError unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} cannot be.")
    if n == 0:
        return Interval(low=0.0, high=1.0)
    p, spread = successes / n, z * z / n
    centre = p + spread / 2
    half = z * math.sqrt(p * (1 - p) / n + spread / (4 * n))
    # At the ends the bounds are exactly 0 and 1, which rounding would miss.
    low = 0.0 if successes == 0 else (centre - half) / (1 + spread)
    high = 1.0 if successes == n else (centre + half) / (1 + spread)
    return Interval(low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one class of judges said: the latest word of each on each interaction."""

    wins: int
    losses: int

    @property
    def n(self) -> int:
        return self.wins + self.losses


@dataclass(frozen=True, kw_only=True)
class Job:
    """A scheduled job, as far as its punctuality goes."""

    name: str
    every_hours: float
    age_hours: float  # since its last good run began; without one, since the store was made
    ran: bool  # it has had a good run
    failed: bool  # its last finished run failed


@dataclass(frozen=True, kw_only=True)
class Signs:
    """The figures that the state follows from. Ages are in hours, and 0 where nothing waits."""

    judged: Mapping[str, Record]  # by source, of recent work
    in_service: int  # active lessons
    settled: int  # recent interactions that somebody had a day to judge
    unjudged: int  # of them without any outcome
    uncredited_hours: float  # age of the oldest outcome that was not credited
    distillation_hours: float  # of the oldest distillation that is not closed
    failed_distillations: int  # recent ones that wait for an operator
    review_hours: float  # of the oldest open question
    upheld: int  # recent quarantines that a person confirmed
    overturned: int  # and that a person lifted
    exposures: int  # lessons that fitted recent work
    kept_out: int  # of them kept out by quarantine
    lessons: int
    without_vector: int  # lessons that only words can find, for minutes already
    unlike_space: int  # tombstones that no paraphrase of their value meets
    jobs: Sequence[Job]
    webhook_hours: float = 0.0  # for how long an endpoint of webhooks has taken nothing
    webhooks_disabled: int = 0  # endpoints that were switched off because they failed
    webhooks_failed: int = 0  # recent deliveries that were given up


@dataclass(frozen=True, kw_only=True)
class Limits:
    """From which value on, inclusively, something is worth a look (watch) or somebody's time today (attention)."""

    # A 95% interval around one half is then 34 points wide: good and bad work can be told apart, no more.
    enough: int = 30
    # Below one caller's word in ten the store mostly believes itself.
    caller_share: float = 0.1
    # What nobody judges teaches nothing.
    unjudged: tuple[float, float] = (0.5, 0.9)
    # Credit takes a second, and a lost message thirty more.
    uncredited_hours: tuple[float, float] = (5 / 60, 1.0)
    # All attempts of a distillation, with the waits between them, take a quarter of an hour.
    distillation_hours: tuple[float, float] = (1.0, 24.0)
    review_hours: tuple[float, float] = (7 * 24.0, 28 * 24.0)
    # A receiver that restarts is back in minutes; after three days deliveries are lost.
    webhook_hours: tuple[float, float] = (1.0, 24.0)
    # About one quarantine in six is wrong by design; the lower bound of the interval is compared, so few say little.
    overturned: tuple[float, float] = (0.2, 0.4)
    # Quarantine is to withhold 2% of good servings at most; the lower bound is compared.
    kept_out: tuple[float, float] = (0.05, 0.2)
    without_vector: float = 0.1  # share of the lessons from which it needs attention; one is worth a look
    # Missed runs in a row, after a job's own time.
    late: tuple[float, float] = (3.0, 10.0)
    job_hours: float = 10 / 60  # what the longest job takes


DEFAULTS: Final = Limits()


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why the store is in a state."""

    state: State
    code: str  # the check
    words: str  # a sentence
    about: str = ""  # what exactly, where the code does not say it

    @property
    def alert(self) -> str:
        """Names the warning: the same one in the next report has the same name, whatever its figures are then."""
        return f"{self.code}:{self.about}" if self.about else self.code


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The worst state that a reason speaks for; healthy without one."""

    state: State
    reasons: tuple[Reason, ...]  # worst first


def judge(signs: Signs, limits: Limits = DEFAULTS) -> Judgement:
    """The state of a store."""
    found = [reason for check in CHECKS for reason in check(signs, limits)]
    reasons = sorted(found, key=lambda reason: -STATES.index(reason.state))
    return Judgement(state=reasons[0].state if reasons else "healthy", reasons=tuple(reasons))


def review_state(hours: float, limits: Limits = DEFAULTS) -> State:
    """What it means that the oldest open question has waited so long."""
    return _level(hours, limits.review_hours)


def standing_of_job(job: Job, limits: Limits = DEFAULTS) -> str:
    """`on_time`, `waiting` (it had no time to run yet), `failed`, `late` or `never_ran`."""
    if job.age_hours >= _overdue(job, limits, 0):
        return "late" if job.ran else "never_ran"
    if job.failed:
        return "failed"
    return "on_time" if job.ran else "waiting"


def _overdue(job: Job, limits: Limits, level: int) -> float:
    return limits.late[level] * job.every_hours + limits.job_hours


def _level(value: float, bounds: tuple[float, float]) -> State:
    watch, attention = bounds
    return "attention" if value >= attention else "watch" if value >= watch else "healthy"


def _if_bad(state: State, code: str, words: str) -> Iterable[Reason]:
    return () if state == "healthy" else (Reason(state=state, code=code, words=words),)


def _building(signs: Signs, limits: Limits) -> Iterable[Reason]:
    most = max((signs.judged[source].n for source in MOVING if source in signs.judged), default=0)
    if most < limits.enough:
        yield Reason(
            state="building",
            code="few_judged",
            words=f"{count(most, 'interaction was', 'interactions were')} judged by one kind of judge; "
            f"{limits.enough - most} more are needed before rates say much.",
        )
    if not signs.in_service:
        yield Reason(state="building", code="no_lessons", words="No lesson is in service yet.")


def _judges(signs: Signs, limits: Limits) -> Iterable[Reason]:
    callers = signs.judged.get("caller", Record(wins=0, losses=0)).n
    judged = sum(record.n for record in signs.judged.values())
    moving = sum(signs.judged[source].n for source in MOVING if source in signs.judged)
    if judged and not callers:
        yield Reason(
            state="watch",
            code="self_graded",
            words="No caller has judged recent work: this is a store that grades itself, and such a store finds "
            "everything good. Report outcomes with a key of the source `caller`.",
        )
    elif moving >= limits.enough and callers < limits.caller_share * moving:
        yield Reason(
            state="watch",
            code="few_callers",
            words=f"Callers judged {callers} of {moving}: the store mostly believes what it says of itself.",
        )


def _win_rates(signs: Signs, limits: Limits) -> Iterable[Reason]:
    for source in MOVING:
        record = signs.judged.get(source)
        if record and record.n >= limits.enough and wilson(record.wins, record.n).high < 0.5:
            words = f"By the word of {source}, {record.losses} of {record.n} were lost: more is lost than won."
            yield Reason(state="watch", code=f"losing_{source}", words=words)


def _unjudged(signs: Signs, limits: Limits) -> Iterable[Reason]:
    if signs.settled < limits.enough:
        return ()
    words = f"{signs.unjudged} of {signs.settled} interactions that are a day old have no outcome; they teach nothing."
    return _if_bad(_level(signs.unjudged / signs.settled, limits.unjudged), "unjudged", words)


def _queues(signs: Signs, limits: Limits) -> Iterable[Reason]:
    for code, hours, bounds, words in (
        ("uncredited", signs.uncredited_hours, limits.uncredited_hours, "An outcome has waited {} to be credited."),
        ("undistilled", signs.distillation_hours, limits.distillation_hours, "A distillation has waited {}."),
        ("unreviewed", signs.review_hours, limits.review_hours, "A question has waited {} for a reviewer."),
    ):
        yield from _if_bad(_level(hours, bounds), code, words.format(age(hours)))
    if failed := signs.failed_distillations:
        words = f"{count(failed, 'distillation')} failed and {'waits' if failed == 1 else 'wait'} for an operator."
        yield Reason(state="watch", code="failed_distillations", words=words)


def _quarantine(signs: Signs, limits: Limits) -> Iterable[Reason]:
    decided = signs.upheld + signs.overturned
    words = f"People lifted {signs.overturned} of the {count(decided, 'quarantine')} that they looked at."
    yield from _if_bad(_level(wilson(signs.overturned, decided).low, limits.overturned), "overturned", words)
    words = f"Quarantine kept out {signs.kept_out} of {count(signs.exposures, 'lesson')} that fitted recent work."
    yield from _if_bad(_level(wilson(signs.kept_out, signs.exposures).low, limits.kept_out), "kept_out", words)


def _vectors(signs: Signs, limits: Limits) -> Iterable[Reason]:
    if missing := signs.without_vector:
        share = missing / signs.lessons
        state: State = "attention" if share >= limits.without_vector else "watch"
        words = f"{count(missing, 'lesson has', 'lessons have')} no vector in the active space: only words find them."
        yield Reason(state=state, code="without_vector", words=words)
    if left := signs.unlike_space:
        words = (
            f"{count(left, 'tombstone has', 'tombstones have')} no vector in the active space: a paraphrase of what "
        )
        yield Reason(state="watch", code="tombstones", words=words + "was rejected could return.")


def _webhooks(signs: Signs, limits: Limits) -> Iterable[Reason]:
    words = f"An endpoint of webhooks has taken nothing for {age(signs.webhook_hours)}."
    yield from _if_bad(_level(signs.webhook_hours, limits.webhook_hours), "webhook_failing", words)
    if off := signs.webhooks_disabled:
        words = f"{count(off, 'endpoint')} of webhooks {'was' if off == 1 else 'were'} switched off for failing."
        yield Reason(state="attention", code="webhook_disabled", words=words)
    if lost := signs.webhooks_failed:
        words = f"{count(lost, 'delivery', 'deliveries')} of webhooks {'was' if lost == 1 else 'were'} given up."
        yield Reason(state="watch", code="webhooks_failed", words=words)


def _jobs(signs: Signs, limits: Limits) -> Iterable[Reason]:
    for job in signs.jobs:
        standing = standing_of_job(job, limits)
        if standing in ("late", "never_ran"):
            state: State = "attention" if job.age_hours >= _overdue(job, limits, 1) else "watch"
            since = f"last ran well {age(job.age_hours)} ago" if job.ran else "has never run well"
            words = f"The job {job.name} {since}; it is due every {age(job.every_hours)}."
            yield Reason(state=state, code=f"job_{standing}", words=words, about=job.name)
        elif standing == "failed":
            words = f"The last run of the job {job.name} failed."
            yield Reason(state="watch", code="job_failed", words=words, about=job.name)


CHECKS: Final[tuple[Callable[[Signs, Limits], Iterable[Reason]], ...]] = (
    _jobs, _queues, _judges, _win_rates, _unjudged, _quarantine, _vectors, _webhooks, _building,
)  # fmt: skip


def age(hours: float) -> str:
    """`40 seconds`, `12 minutes`, `5 hours`, `9 days`: rounded down to the unit that says most."""
    for unit, size in (("day", 24.0), ("hour", 1.0), ("minute", 1 / 60)):
        if hours >= size:
            return count(int(hours / size + 1e-9), unit)
    return count(int(hours * 3600 + 1e-9), "second")
