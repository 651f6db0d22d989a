"""What a decision about lessons may change, as it was and as it became: an undo goes back only from there."""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from memory.errors import Conflict
from memory.models import Adjudication, Contradiction, Lesson, LessonStanding
from memory.models.vocabulary import LessonState, TrustEventKind
from memory.services import questions, tombstone
from memory.services.authority import Person
from memory.services.quarantine import journal, move
from memory.services.rejection import bury_as, held

OF_LESSON: Final = ("state", "reviewed_at", "reviewed_by_id")
OF_STANDING: Final = ("quarantined_at", "ledger_from_seq", "released_seq", "released_s")

Snapshot = dict[str, dict[str, Any]]  # by lesson id, as JSON


def lessons_of(subject: UUID) -> list[UUID]:
    """The lessons that a decision about this subject may move: itself, or both sides of a contradiction."""
    pair = Contradiction.objects.filter(pk=subject).values_list("first", "second").first()
    ids = pair or (subject,)
    return list(Lesson.objects.filter(pk__in=ids).order_by("pk").values_list("pk", flat=True))


def latest_about(subject: UUID) -> Adjudication | None:
    """The latest decision about a subject, or about what contradicts it: either may have changed the other."""
    lessons = lessons_of(subject)
    either = Q(first__in=lessons) | Q(second__in=lessons)
    pairs = Contradiction.objects.filter(either).values("pk")
    made = Adjudication.objects.filter(Q(subject__in=[subject, *lessons]) | Q(subject__in=pairs))
    return made.order_by("-created_at", "-id").first()


def take(lessons: Iterable[UUID]) -> Snapshot:
    """How these lessons stand now."""
    ids = list(lessons)
    standings = {
        row.pop("lesson_id"): row for row in LessonStanding.objects.filter(pk__in=ids).values("lesson_id", *OF_STANDING)
    }
    nothing = dict.fromkeys(OF_STANDING)
    return {
        str(row.pop("id")): _as_json({**row, **standings.get(pk, nothing)})
        for row in Lesson.objects.filter(pk__in=ids).order_by("pk").values("id", *OF_LESSON)
        for pk in (row["id"],)
    }


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if hasattr(value, "isoformat") else value for key, value in row.items()}


def put_back(made: Adjudication, person: Person) -> None:
    """Puts the lessons of a decision back as they were before it, if nothing has changed since. Raises Conflict.

    A lesson that the decision made is taken out of service; the one it replaced takes its place again.
    """
    before, after = made.before.get("lessons", {}), made.after.get("lessons", {})
    if take(UUID(pk) for pk in after) != after:
        raise Conflict("The lesson changed after this decision, so it cannot be undone. Decide about it as it is now.")
    for pk in after:
        lesson = held(UUID(pk), tuple(LessonState))
        if pk in before:
            _restore(lesson, before[pk])
        else:
            _withdraw(lesson)
        if before.get(pk) != after[pk]:
            evidence = {"undone": str(made.pk), "verdict": made.verdict}
            journal(lesson.pk, TrustEventKind.UNDONE, evidence, person.actor)


def _restore(lesson: Lesson, was: dict[str, Any]) -> None:
    state = LessonState(was["state"])
    if state != lesson.state:
        move(lesson.pk, LessonState(lesson.state), state)
        bury_as(lesson, state)
    Lesson.objects.filter(pk=lesson.pk).update(**{key: was[key] for key in OF_LESSON if key != "state"})
    LessonStanding.objects.filter(pk=lesson.pk).update(**{key: was[key] for key in OF_STANDING})


def _withdraw(lesson: Lesson) -> None:
    """Takes a wording out of service; the one that it had replaced, or the first of two, takes its place again."""
    assert lesson.supersedes is not None, "a decision makes no lesson but in the place of another"
    move(lesson.pk, LessonState(lesson.state), LessonState.SUPERSEDED)
    bury_as(lesson, LessonState.SUPERSEDED, lesson.supersedes)
    tombstone.inherit(lesson.pk, lesson.supersedes)
    questions.withdraw_about([lesson.pk])
