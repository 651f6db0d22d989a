"""What the server answers, as immutable values. A field that a newer server adds is not here, and does no harm."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson that was handed out."""

    id: UUID
    text: str  # as stored; a prompt should take the `context`, where it is fenced as data
    score: float  # what it was ranked by
    similarity: float | None  # cosine with the task, -1 to 1; None without an embedding
    lexical_rank: int | None  # place in the search by words, from 1; None if that did not find it
    standing: str  # active, trial or probation


@dataclass(frozen=True, kw_only=True)
class Preference:
    """What a person wants, for all work or for one project."""

    id: UUID
    scope: str  # global, or project:<slug>
    key: str
    text: str
    confidence: float  # 0 to 1


@dataclass(frozen=True, kw_only=True)
class StatedPreference(Preference):
    """A preference with its record."""

    evidence_count: int  # how often it was said
    enabled: bool  # whether it is handed out
    revision: int
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A statement about the project of an interaction that holds now."""

    id: UUID
    key: str | None  # what it is about
    text: str
    valid_from: datetime | None  # from when it is true; None: for ever before
    valid_until: datetime | None  # until before when; None: until further notice
    recorded_at: datetime  # from when it is believed


@dataclass(frozen=True, kw_only=True)
class ProjectFact(Fact):
    """A fact with its project, also one that is believed no longer."""

    project: str  # slug
    retracted_at: datetime | None  # until when it was believed
    supersedes: UUID | None  # the fact that it corrects


@dataclass(frozen=True, kw_only=True)
class Started:
    """A new interaction with all that was handed out for it."""

    id: UUID
    context: str  # the text for the prompt: it holds exactly these lessons, fenced as data; empty without any
    lessons: tuple[Lesson, ...]  # best first; none is a right answer
    mode: str  # hybrid: by meaning and words; lexical: by words alone; none: not asked
    preferences: tuple[Preference, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True)
class Interaction:
    """A piece of work."""

    id: UUID
    created_at: datetime
    task: str
    project: str | None  # slug
    session: str | None  # the agent's own id of the conversation
    tier: str
    model: str
    response: str | None
    tokens_in: int | None
    tokens_out: int | None
    token_source: str  # who counted
    retrieved_context: str | None  # what was handed out for it


@dataclass(frozen=True, kw_only=True)
class Reported:
    """An outcome as it was recorded."""

    id: UUID
    signal: str
    reward: float  # follows from the signal, -1 to 1
    source: str  # who judged; follows from the key


@dataclass(frozen=True, kw_only=True)
class Outcome(Reported):
    """An outcome with its place in the record."""

    interaction: UUID
    sequence: int  # this source's first, second, ... word on the interaction
    detail: str
    created_at: datetime
    credited_at: datetime | None  # None until the background has taken it up


@dataclass(frozen=True, kw_only=True)
class Considered:
    """A candidate with every number that decided about it."""

    id: UUID
    text: str
    reason: str  # why it is not in the answer; empty if it is
    cosine: float | None
    shared_anchors: int  # content words of the task that the lesson has
    coverage: float  # share of the task's word weight that they carry, 0 to 1
    semantic_rank: int | None
    lexical_rank: int | None
    fused_score: float
    usage_boost: float
    age_factor: float
    score: float
    gate: str  # what the relevance gate said
    mmr: float | None  # marginal relevance when it was picked


@dataclass(frozen=True, kw_only=True)
class Retrieved:
    """Lessons that were looked up without consequences."""

    lessons: tuple[Lesson, ...]
    mode: str  # hybrid or lexical
    note: str | None = None  # why meaning was not used, where it was not
    explain: tuple[Considered, ...] | None = None  # every candidate, where asked for


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Who of several agents has the turn in a session; nobody where the fields are None."""

    owner: str | None
    claimed_at: datetime | None
    expires_at: datetime | None
    token: UUID | None = None  # keeps and gives back the turn; answered once, to who claims it


@dataclass(frozen=True, kw_only=True)
class Session:
    """A conversation of an agent."""

    id: UUID
    external_id: str  # the agent's own id
    project: str | None  # slug, of the first interaction
    title: str
    summary: str
    summarized_through: UUID | None  # the last interaction that the summary tells of
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ProjectSummary:
    """What a session did in one project."""

    project: str  # slug
    summary: str
    summarized_through: UUID | None


@dataclass(frozen=True, kw_only=True)
class SessionDetail(Session):
    """A session with its summaries by project, and who has the turn."""

    project_summaries: tuple[ProjectSummary, ...]
    turn: Turn | None


@dataclass(frozen=True, kw_only=True)
class SessionTitle:
    """A session that was given a title."""

    id: UUID
    external_id: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """A to-do item of agents."""

    id: UUID
    title: str
    detail: str
    status: str  # pending, in_progress, blocked, done or cancelled
    priority: int  # 0 comes first, 9 last
    project: str | None  # slug
    owner: str  # who does it, in the agents' own words
    parent: UUID | None  # the task that it is a part of
    depends_on: tuple[UUID, ...]  # the tasks that must be done first
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class TaskEvent:
    """What happened to a task."""

    id: UUID
    task: UUID
    event: str
    note: str
    actor: str
    created_at: datetime
