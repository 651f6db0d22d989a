"""Lessons come into being here, on every path, behind the same gates."""

from dataclasses import dataclass, replace
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import IntegrityError, transaction
from django.db.models import CharField, Func, Value
from django.utils import timezone
from pgvector import HalfVector

from memory.models import Lesson, LessonEmbedding, WriteRefusal
from memory.models.vocabulary import LessonState, Origin, ReviewKind
from memory.rules.claim import signature
from memory.rules.text import clean, identifiers
from memory.services import questions
from memory.services.gates import Meaning, Verdict, is_semantic_duplicate, quality_gates, text_gates, value_gates
from memory.services.nudge import nudge
from memory.services.questions import Question
from memory.services.scoping import lock_scope

EMBED = "embed"
# Chance of mattering to a reader: a vague lesson is a nuisance, a duplicate hides another's evidence.
PRIORITY = {ReviewKind.VAGUE: 0.2, ReviewKind.NEW_LESSON: 0.3, ReviewKind.NEAR_DUPLICATE: 0.4}


@dataclass(frozen=True, kw_only=True)
class NewLesson:
    """A text that wants to be a lesson."""

    text: str
    origin: Origin
    path: str  # which way it came: import, demo, distillation, ...
    actor: str
    state: LessonState = LessonState.ACTIVE
    account_id: UUID | None = None
    source_interaction: UUID | None = None
    source_import: UUID | None = None
    source_ref: str = ""
    task: str | None = None  # what it was learned from, which it must not merely restate
    meaning: Meaning | None = None  # where it lies, if it was embedded already; lets the gates compare meanings
    known: tuple[UUID, ...] = ()  # lessons handed out where it was learned: to repeat one is recall
    replaces: tuple[UUID, ...] = ()  # the lessons whose place a new wording takes, at most two


@dataclass(frozen=True, kw_only=True)
class Written:
    """What became of it."""

    lesson: Lesson | None  # None when refused
    verdict: Verdict


def store(new: NewLesson, *, strict: bool = False) -> Written:
    """Stores a lesson, flagged for review where it fails a quality gate; or records why it is refused.

    `strict` makes the quality gates refuse too, as automatic paths must. Writers of one scope take turns from the last
    gates to the insert, with each other and with whoever rejects a value there: of two that say the same the second
    is refused, and nothing that was rejected meanwhile comes back.
    """
    text = clean(new.text).strip()
    verdict = text_gates(text)
    quality = Verdict() if verdict.refusal else quality_gates(text, new.task)
    if strict and quality.flags:
        verdict = replace(quality, refusal="not_concrete", flags=(), digest=verdict.digest)
    if verdict.refusal:
        return _refuse(new, verdict)
    try:
        with transaction.atomic():
            lock_scope(new.account_id)
            verdict = _compared(new, text, replace(quality, digest=verdict.digest), strict)
            lesson = None if verdict.refusal else _insert(new, text, verdict)
    except IntegrityError as error:
        if "lesson_account_text_unique" not in str(error):
            raise
        # A writer that took no turn was faster with the same value.
        lesson, verdict = None, Verdict(refusal="exact_duplicate", digest=verdict.digest)
    return Written(lesson=lesson, verdict=verdict) if lesson else _refuse(new, verdict)


def _compared(new: NewLesson, text: str, verdict: Verdict, strict: bool) -> Verdict:
    """The verdict, after a look at what the store holds and has rejected."""
    assert verdict.digest is not None, "a text that passed has a digest"
    claim = signature(text)
    value = value_gates(verdict.digest, claim, new.account_id, new.meaning, new.known, new.replaces)
    if value.refusal or new.meaning is None:
        return value if value.refusal else verdict
    if not is_semantic_duplicate(claim, new.account_id, new.meaning, new.known, new.replaces):
        return verdict
    if strict:
        return Verdict(refusal="semantic_duplicate", digest=verdict.digest)
    return replace(verdict, flags=(*verdict.flags, "near_duplicate"))


def _insert(new: NewLesson, text: str, verdict: Verdict) -> Lesson:
    """The lesson, its vector if it is known, and the questions that it raises."""
    assert verdict.digest is not None, "a text that passed has a digest"
    claim = signature(text).to_json()
    first, second = (*new.replaces, None, None)[:2]
    lesson = Lesson.objects.create(
        account_id=new.account_id,
        text=text,
        text_sha256=verdict.digest,
        origin=new.origin.value,
        state=new.state.value,
        source_interaction=new.source_interaction,
        source_import_id=new.source_import,
        source_ref=new.source_ref,
        supersedes=first,
        also_supersedes=second,
        polarity=claim["polarity"],
        anchors=claim["anchors"],
        identifiers=Func(Value(identifiers(text), output_field=ArrayField(CharField())), function="array_to_tsvector"),
    )
    if new.meaning is None:
        nudge(EMBED, lesson.pk)
    else:
        vector = HalfVector(new.meaning.vector)
        LessonEmbedding.objects.create(lesson=lesson, space=new.meaning.space, embedding=vector)
    waits = [ReviewKind.NEW_LESSON] if new.state == LessonState.CANDIDATE else []  # for a reviewer, and nobody else
    for kind in (*waits, *map(ReviewKind, verdict.flags)):
        flag(lesson, kind)
    return lesson


def flag(lesson: Lesson, kind: ReviewKind) -> None:
    """Opens a question about a lesson, unless it is open or snoozed already."""
    question = Question(
        kind=kind, subject=lesson.pk, account_id=lesson.account_id, severity=PRIORITY[kind], since=timezone.now()
    )
    questions.ask([question])


def _refuse(new: NewLesson, verdict: Verdict) -> Written:
    note_refusal(verdict, account_id=new.account_id, path=new.path, actor=new.actor)
    return Written(lesson=None, verdict=verdict)


def note_refusal(verdict: Verdict, *, account_id: UUID | None, path: str, actor: str) -> None:
    """Records that a gate refused a text, and why; never the text."""
    WriteRefusal.objects.create(
        account_id=account_id, path=path, reason=verdict.refusal, digest=verdict.digest, actor=actor
    )
