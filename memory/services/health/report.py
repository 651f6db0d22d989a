"""The report's figures. Classes of evidence stand side by side and are never added up."""

from dataclasses import dataclass
from datetime import datetime

from memory.rules.health import Reason


@dataclass(frozen=True, kw_only=True)
class EvidenceClass:
    """What one kind of judge said of recent work: the latest word of each on each interaction."""

    source: str
    wins: int
    losses: int
    retracted: int  # withdrawn without another word; neither won nor lost
    win_rate: float | None  # in [0, 1]; null where nothing was judged
    low: float  # 95% Wilson interval of the win rate
    high: float


@dataclass(frozen=True, kw_only=True)
class Share:
    """How many interactions one kind of judge judged."""

    source: str
    judged: int


@dataclass(frozen=True, kw_only=True)
class Week:
    """Seven days, and who judged the work begun in them."""

    since: datetime
    interactions: int
    provenance: tuple[Share, ...]


@dataclass(frozen=True, kw_only=True)
class Work:
    """Recent interactions."""

    interactions: int
    settled: int  # begun a day ago or earlier
    without_outcome: int  # of the settled ones


@dataclass(frozen=True, kw_only=True)
class Funnel:
    """Distillations of recent work that ended, or are, in one way."""

    state: str
    reason: str | None  # null while it is open
    n: int


@dataclass(frozen=True, kw_only=True)
class LessonAges:
    """Lessons in one state, by age."""

    state: str
    n: int
    week: int  # younger than 7 days
    month: int  # than 28
    quarter: int  # than 84
    older: int
    on_trial: int  # of n, those for which a coin decides; 0 outside of the state active


@dataclass(frozen=True, kw_only=True)
class Quarantine:
    """What recently happened to quarantines."""

    opened: int  # by the policy
    opened_by_reviewer: int
    upheld: int  # a person confirmed it
    overturned: int  # a person lifted it
    rehabilitated: int  # its evidence lifted it
    probation_losses: int


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """Exposures that one kind of judge decided."""

    source: str
    wins: int
    losses: int


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What became of lessons that fitted recent work."""

    exposure: str
    n: int
    credited: tuple[Verdicts, ...]  # by who decided, where somebody did


@dataclass(frozen=True, kw_only=True)
class Band:
    """Loss rate of the lessons that were scored `lower` to `upper` times."""

    lower: int
    upper: int | None  # null: no limit
    n: int  # their scored retrievals
    losses: int
    rate: float  # with its prior, as decisions use it
    low: float  # 95% Wilson interval of losses of n, without the prior
    high: float
    measured_at: datetime


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Work that waits."""

    name: str  # credit, distillation, review or contradiction
    waiting: int
    late: int  # of them older than the queue should ever get; a contradiction waits as a review item
    oldest_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """Whether meaning can be searched."""

    space: str | None  # the active one
    calibrated_at: datetime | None  # when its thresholds were last fitted to this store; null: never
    lessons: int
    missing: int  # lessons without a vector in it, five minutes old or older
    in_other_spaces: int  # vectors that nothing compares any more
    tombstones_left_behind: int  # without a vector in it: they refuse their very value and no paraphrase


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """Whether other systems hear what they want to hear."""

    endpoints: int  # that are on
    failing: int  # of them, those that took nothing since a failure
    failing_since: datetime | None  # the longest of them
    disabled: int  # switched off because they took nothing for days, or said that they want no more
    waiting: int  # deliveries
    failed: int  # recent deliveries that were given up


@dataclass(frozen=True, kw_only=True)
class JobState:
    """A scheduled job."""

    job: str
    every_seconds: float
    standing: str  # on_time, waiting, failed, late or never_ran
    started_at: datetime | None  # its last run
    outcome: str  # of it: done, failed, or empty while it runs
    done_at: datetime | None  # when its last good run began


@dataclass(frozen=True, kw_only=True)
class HealthReport:
    """Everything; rates and counts are of the work begun since `since`."""

    state: str  # building, healthy, watch or attention
    reasons: tuple[Reason, ...]
    measured_at: datetime
    since: datetime
    classes: tuple[EvidenceClass, ...]
    weeks: tuple[Week, ...]  # newest first
    work: Work
    distillations: tuple[Funnel, ...]
    lessons: tuple[LessonAges, ...]
    quarantine: Quarantine
    exposures: tuple[Exposure, ...]
    bands: tuple[Band, ...]
    queues: tuple[Queue, ...]
    vectors: Vectors
    webhooks: Webhooks
    jobs: tuple[JobState, ...]
