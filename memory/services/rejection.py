"""What a reviewer takes out of service or puts back: reject, replace by another wording, restore."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from memory.embedding.active import provider, usable_space
from memory.errors import Conflict, EmbeddingUnavailable, Invalid, NotFound
from memory.models import Lesson, LessonStanding
from memory.models.vocabulary import Exposure, LessonState, Origin, TombstoneReason, TrustEventKind
from memory.rules.text import clean
from memory.services import questions, tombstone
from memory.services.evidence import Occasion
from memory.services.gates import Meaning, Verdict, text_gates
from memory.services.lesson import NewLesson, Written, note_refusal, store
from memory.services.quarantine import evaluate, journal, move
from memory.services.scoping import lock_scope
from memory.services.weights import weight_of

LIVE = (LessonState.CANDIDATE, LessonState.ACTIVE, LessonState.QUARANTINED)
GONE = (LessonState.REJECTED, LessonState.SUPERSEDED)
EDIT = "edit"
TOMBSTONE_OF = {
    LessonState.QUARANTINED: TombstoneReason.QUARANTINED,
    LessonState.REJECTED: TombstoneReason.REJECTED_BY_REVIEWER,
    LessonState.SUPERSEDED: TombstoneReason.SUPERSEDED,
}


@transaction.atomic
def reject(lesson_id: UUID, *, reviewer: int, reason: str, successor: UUID | None = None) -> None:
    """Takes a lesson out of service for good and buries its value; `successor` is what was kept in its place, if any.

    Raises NotFound, or Conflict if it is out of service already.
    """
    lesson = held(lesson_id, LIVE)
    before = LessonState(lesson.state)
    _retire(lesson, LessonState.REJECTED, TombstoneReason.REJECTED_BY_REVIEWER, successor)
    evidence = {"reason": reason, "before": before.value, "successor": str(successor) if successor else None}
    journal(lesson.pk, TrustEventKind.REJECTED_BY_REVIEWER, evidence, f"user:{reviewer}")


def supersede(lesson_id: UUID, text: str, *, reviewer: int, reason: str = "", also: UUID | None = None) -> Written:
    """Replaces a lesson by a new wording: a lesson of its own, active, approved, without the old one's evidence.

    `also` is another lesson of the same scope whose place it takes too. The new text passes the hard gates, or nothing
    changes and the answer says which refused it. The old values are buried. Raises NotFound, or Conflict if an old
    lesson is out of service already.
    """
    wording = clean(text).strip()
    meaning = _meaning(wording)  # before any lock: a model may be slow
    ids = [lesson_id] if also is None else [lesson_id, also]
    with transaction.atomic():
        by_id = {pk: held(pk, LIVE) for pk in sorted(ids)}
        old = [by_id[pk] for pk in ids]
        written = store(_edited(old, wording, meaning, reviewer))
        if written.lesson is None:
            return written
        new = written.lesson
        Lesson.objects.filter(pk=new.pk).update(reviewed_at=Now(), reviewed_by=reviewer)
        for lesson in old:
            before = LessonState(lesson.state)
            _retire(lesson, LessonState.SUPERSEDED, TombstoneReason.SUPERSEDED, new.pk)
            evidence = {"reason": reason, "before": before.value, "successor": str(new.pk)}
            journal(lesson.pk, TrustEventKind.EDITED, evidence, f"user:{reviewer}")
        replaced = dict(zip(("supersedes", "also_supersedes"), map(str, ids), strict=False))
        journal(new.pk, TrustEventKind.EDITED, {"reason": reason, **replaced}, f"user:{reviewer}")
    return written


@transaction.atomic
def restore(lesson_id: UUID, *, reviewer: int, reason: str) -> None:
    """Puts a rejected or superseded lesson back into service, and lifts its tombstone.

    Its evidence judges it at once. Raises NotFound, or Conflict if it is in service.
    """
    lesson = held(lesson_id, GONE)
    before = LessonState(lesson.state)
    move(lesson.pk, before, LessonState.ACTIVE)
    Lesson.objects.filter(pk=lesson.pk).update(reviewed_at=Now(), reviewed_by=reviewer)
    lifted = tombstone.lift(lesson.pk, TombstoneReason.REJECTED_BY_REVIEWER, TombstoneReason.SUPERSEDED)
    evidence = {"reason": reason, "before": before.value, "tombstones_lifted": lifted}
    journal(lesson.pk, TrustEventKind.RESTORED_BY_REVIEWER, evidence, f"user:{reviewer}")
    evaluate({lesson.pk: looked_at()}, lesson.account_id)


#: What a reviewer is told when a hard gate refuses their wording.
WHY_REFUSED = {
    "private": "it holds something private, such as a secret, an address or a home path.",
    "rejected_value": "one like it was rejected before, or is in quarantine. If it is right, bring that one back.",
    "exact_duplicate": "another lesson says exactly this.",
    "empty": "write a sentence.",
    "too_long": "at most 2,000 characters.",
}


class WordingRefused(Invalid):
    """A gate refused a reviewer's wording."""

    def __init__(self, field: str, verdict: Verdict) -> None:
        why = WHY_REFUSED.get(verdict.refusal, f"refused: {verdict.refusal}.")
        super().__init__(f"{field}: {why}", {field: [why]})
        self.verdict = verdict


@contextmanager
def refusals_recorded(account_id: UUID | None, actor: str) -> Iterator[None]:
    """Around the transaction of a decision: a refusal ends it, and is on record although all it wrote is taken back."""
    try:
        yield
    except WordingRefused as refusal:
        note_refusal(refusal.verdict, account_id=account_id, path=EDIT, actor=actor)
        raise


def bury_as(lesson: Lesson, state: LessonState, successor: UUID | None = None) -> None:
    """Leaves the lesson with the one tombstone that its state calls for, or none where it serves."""
    tombstone.lift(lesson.pk, *TombstoneReason)
    reason = TOMBSTONE_OF.get(state)
    if reason is not None:
        tombstone.write(lesson.pk, reason, successor)


def looked_at() -> Occasion:
    """An occasion on which no outcome came, but evidence moved: it may free a lesson, and brings no loss of its own."""
    weight = weight_of("caller")
    return Occasion(exposure=Exposure.SERVED.value, weight=weight, loss=None, weight_before=weight)


def held(lesson_id: UUID, states: tuple[LessonState, ...]) -> Lesson:
    """The lesson under its scope's lock and its own, so that no credit, plan or colleague moves it meanwhile."""
    account = Lesson.objects.filter(pk=lesson_id).values_list("account_id", flat=True)
    if not account:
        raise NotFound("There is no such lesson.")
    lock_scope(account[0])
    lesson = Lesson.objects.select_for_update(no_key=True).filter(pk=lesson_id).first()
    if lesson is None:
        raise NotFound("There is no such lesson.")
    if lesson.state not in states:
        raise Conflict(f"The lesson is {lesson.state} by now. Look at it again before you decide.")
    return lesson


def _retire(lesson: Lesson, state: LessonState, reason: TombstoneReason, successor: UUID | None) -> None:
    move(lesson.pk, LessonState(lesson.state), state)
    LessonStanding.objects.filter(pk=lesson.pk).update(quarantined_at=None)
    tombstone.write(lesson.pk, reason, successor)
    if successor is not None:
        tombstone.inherit(lesson.pk, successor)
    questions.withdraw_about([lesson.pk])


def _meaning(text: str) -> Meaning | None:
    """Where the text lies; None where no model is there, and the background embeds the lesson later.

    What the text alone forbids to store does not reach a model.
    """
    if text_gates(text).refusal:
        return None
    try:
        space = usable_space()
        return Meaning(vector=provider().embed([text])[0], space=space)
    except EmbeddingUnavailable:
        return None


def _edited(replaced: Sequence[Lesson], text: str, meaning: Meaning | None, reviewer: int) -> NewLesson:
    """The new wording, with the source of the first that has one. Erasing either's source finds it as a wording."""
    old = next((lesson for lesson in replaced if lesson.source_interaction), replaced[0])
    return NewLesson(
        text=text,
        origin=Origin.EDITED,
        path=EDIT,
        actor=f"user:{reviewer}",
        account_id=old.account_id,
        source_interaction=old.source_interaction,  # what erases the source erases the edit too
        source_import=old.source_import_id,
        source_ref=old.source_ref,
        meaning=meaning,
        replaces=tuple(lesson.pk for lesson in replaced),
    )
