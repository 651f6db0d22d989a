"""Which rows of a file come in: what is here already stays as it is here, with all that belongs to it."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from memory.models import (
    Contradiction,
    ImportedRow,
    LessonEmbedding,
    LessonUsage,
    Outcome,
    Preference,
    Project,
    ReviewItem,
    Session,
)
from memory.services.questions import UNRESOLVED
from memory.services.transfer import lessons
from memory.services.transfer.arrival import KEPT, Arrival

ALREADY: Final = "already"
#: Rows that belong to one other row: where that was here before, it stays as it is here.
PARENTS: Final[Mapping[str, tuple[str, str]]] = {
    "session_project_summary": ("session_id", "session"),
    "lesson_distillation": ("interaction_id", "interaction"),
    "lesson_usage": ("interaction_id", "interaction"),
    "usage_exemption": ("usage_id", "lesson_usage"),
    "credit": ("interaction_id", "interaction"),
    "refinement_history": ("preference_id", "preference"),
    "task_event": ("task_id", "task"),
    "task_dependency": ("task_id", "task"),
}


def reason(arrival: Arrival, name: str, row: dict[str, Any], taken: set[Any]) -> str:
    """Why a row that is not here stays out, or is another here; '' if it comes in."""
    if name in PARENTS:
        column, parent = PARENTS[name]
        if row[column] not in arrival.new[parent]:
            return arrival.refused.get(row.get("lesson_id", row[column]), KEPT)
    decide = REASONS.get(name)
    return decide(arrival, row, taken) if decide else ""


def _lesson(arrival: Arrival, row: dict[str, Any], _: set[Any]) -> str:
    return lessons.admit(arrival, row)


def _embedding(arrival: Arrival, row: dict[str, Any], _: set[Any]) -> str:
    there = LessonEmbedding.objects.filter(lesson=row["lesson_id"], space=row["space_id"]).exists()
    return ALREADY if there else lessons.stands(arrival, row["lesson_id"])


def _usage(arrival: Arrival, row: dict[str, Any], taken: set[Any]) -> str:
    """An exposure goes with its work, to the lesson of its value."""
    lesson, pair = row["lesson_id"], (row["lesson_id"], row["interaction_id"])
    if lesson in arrival.refused:
        return arrival.refused[lesson]
    known = LessonUsage.objects.filter(lesson=lesson, interaction=row["interaction_id"])
    if pair in taken or (lesson not in arrival.new["lesson"] and known.exists()):
        return KEPT
    taken.add(pair)
    arrival.judged.add(lesson)
    return ""


def _outcome(arrival: Arrival, row: dict[str, Any], _: set[Any]) -> str:
    """What was said of work that was here before comes along unless something else was said in its place."""
    if row["interaction_id"] in arrival.new["interaction"]:
        return ""
    place = {name: row[name] for name in ("interaction_id", "source", "sequence")}
    return KEPT if Outcome.objects.filter(**place).exists() else ""


def _of_lesson(arrival: Arrival, row: dict[str, Any], _: set[Any]) -> str:
    lesson: UUID = row["lesson"] if "lesson" in row else row["lesson_id"]
    return lessons.stands(arrival, lesson)


def _named(model: Any, *columns: str) -> Callable[[Arrival, dict[str, Any], set[Any]], str]:
    """A row that has a name in its account: one of that name here takes its place."""

    def decide(arrival: Arrival, row: dict[str, Any], _: set[Any]) -> str:
        here = model.objects.filter(account=arrival.account, **{name: row[name] for name in columns})
        found = here.values_list("pk", flat=True).first()
        if found is None:
            return ""
        arrival.same[row["id"]] = found
        return KEPT

    return decide


def _pair(arrival: Arrival, row: dict[str, Any], _: set[Any]) -> str:
    """A contradiction comes along with both its lessons, or with one to another that is here."""
    sides = (row["first"], row["second"])
    if any(side in arrival.refused or side in arrival.same for side in sides):
        return KEPT
    same = Contradiction.objects.filter(
        account=row["account_id"], first_digest=row["first_digest"], second_digest=row["second_digest"]
    )
    return KEPT if same.exists() or not any(side in arrival.new["lesson"] for side in sides) else ""


def _about(arrival: Arrival, row: dict[str, Any], taken: set[Any]) -> str:
    """What was asked, decided and written about something that has arrived; an undo with what it takes back."""
    subject, undone = row["subject"], row.get("reverts_id")
    if subject in arrival.refused:
        return arrival.refused[subject]
    has_arrived = any(subject in ids for ids in arrival.new.values())
    if not has_arrived or (undone and undone not in taken and undone not in arrival.new["adjudication"]):
        return KEPT
    taken.add(row["id"])
    return ""


def _question(arrival: Arrival, row: dict[str, Any], taken: set[Any]) -> str:
    asked = ReviewItem.objects.filter(kind=row["kind"], subject=row["subject"], status__in=UNRESOLVED)
    return _about(arrival, row, taken) or (KEPT if row["status"] in UNRESOLVED and asked.exists() else "")


REASONS: Final[Mapping[str, Callable[[Arrival, dict[str, Any], set[Any]], str]]] = {
    "project": _named(Project, "slug"),
    "session": _named(Session, "external_id"),
    "preference": _named(Preference, "scope", "key"),
    "imported_row": _named(ImportedRow, "kind", "legacy_id"),
    "outcome": _outcome,
    "lesson": _lesson,
    "lesson_embedding": _embedding,
    "lesson_tombstone": lambda arrival, row, _: lessons.bury(arrival, row),
    "lesson_usage": _usage,
    "lesson_standing": _of_lesson,
    "trust_event": _of_lesson,
    "contradiction": _pair,
    "review_item": _question,
    "adjudication": _about,
    "comment": _about,
    "second_opinion": _about,
}
