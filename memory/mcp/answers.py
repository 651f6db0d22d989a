"""What a tool answers. A model reads it: lessons have their wording in `context` alone, where it is fenced as data."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from memory.models import Fact, Outcome, Preference
from memory.search import Found

Mode = Annotated[
    Literal["hybrid", "lexical"],
    Field(description="hybrid: found by meaning and words; lexical: by words alone, as there was no embedding."),
]
Context = Annotated[
    str, Field(description="The lessons' wording, each under its id, fenced as data; empty if there are none.")
]
Next = Annotated[str, Field(description="What to do with this answer.")]


class Answer(BaseModel):
    """Base of every answer: immutable, and JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def described(cls) -> dict[str, Any]:
        """JSON Schema 2020-12."""
        return cls.model_json_schema(mode="serialization")


class HandedOut(Answer):
    """A lesson, without its wording."""

    id: UUID
    score: Annotated[float, Field(description="What it was ranked by.")]
    similarity: Annotated[float | None, Field(description="Cosine with the task, -1 to 1.")]
    lexical_rank: Annotated[int | None, Field(description="Its place in the search by words, from 1.")]
    standing: Annotated[
        Literal["active", "trial", "probation"],
        Field(description="active: trusted; trial and probation: doubted, and handed out to find out."),
    ]


class PreferenceAnswer(Answer):
    id: UUID
    scope: Annotated[str, Field(description="global, or project:<slug>.")]
    key: str
    text: str
    confidence: Annotated[float, Field(description="0 to 1.")]


class FactAnswer(Answer):
    id: UUID
    key: str | None
    text: str
    valid_from: datetime | None
    valid_until: datetime | None
    recorded_at: datetime


class Started(Answer):
    interaction_id: Annotated[UUID, Field(description="Names this piece of work in later calls.")]
    context: Context
    lessons: list[HandedOut]
    mode: Mode
    preferences: list[PreferenceAnswer]
    facts: list[FactAnswer]
    next: Next


class Finished(Answer):
    interaction_id: UUID
    has_response: Annotated[bool, Field(description="Whether it has an answer now.")]
    tokens_in: int | None
    tokens_out: int | None
    next: Next


class Recorded(Answer):
    id: Annotated[UUID, Field(description="The outcome.")]
    interaction_id: UUID
    signal: str
    reward: Annotated[float, Field(description="Follows from the signal, -1 to 1.")]
    source: Annotated[str, Field(description="Who judged. Follows from the key.")]
    new: Annotated[bool, Field(description="false: this source's latest word was the same.")]
    next: Next


class Retrieved(Answer):
    context: Context
    lessons: list[HandedOut]
    mode: Mode
    note: Annotated[str | None, Field(description="Why meaning was not used, where it was not.")]
    next: Next


class Preferences(Answer):
    preferences: list[PreferenceAnswer]


class Facts(Answer):
    facts: list[FactAnswer]


def handed_out(found: Found) -> HandedOut:
    candidate = found.ranked.candidate
    trial: Literal["trial", "active"] = "trial" if candidate.on_trial else "active"
    return HandedOut(
        id=candidate.lesson_id,
        score=found.ranked.score,
        similarity=candidate.cosine,
        lexical_rank=found.ranked.lexical_rank,
        standing="probation" if candidate.state == "quarantined" else trial,
    )


def preference(row: Preference) -> PreferenceAnswer:
    return PreferenceAnswer(
        id=row.pk, scope=row.scope, key=row.key, text=row.text, confidence=float(row.confidence)
    )  # fmt: skip


def fact(row: Fact) -> FactAnswer:
    return FactAnswer(
        id=row.pk,
        key=row.key,
        text=row.text,
        valid_from=row.valid_from,
        valid_until=row.valid_until,
        recorded_at=row.recorded_at,
    )


def recorded(row: Outcome, *, new: bool, following: str) -> Recorded:
    return Recorded(
        id=row.pk,
        interaction_id=row.interaction_id,
        signal=row.signal,
        reward=float(row.reward),
        source=row.source,
        new=new,
        next=following,
    )
