"""Lessons come into being here, on every path, behind the same gates."""

from dataclasses import dataclass
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import IntegrityError, transaction
from django.db.models import CharField, Func, Value

from memory.models import Lesson, ReviewItem, WriteRefusal
from memory.models.vocabulary import LessonState, Origin, ReviewKind, ReviewStatus
from memory.rules.claim import signature
from memory.rules.text import clean, identifiers
from memory.services.gates import Verdict, hard_gates, quality_gates
from memory.services.nudge import nudge

EMBED = "embed"
# Chance of mattering to a reader: a vague lesson is a nuisance, a duplicate hides another's evidence.
PRIORITY = {ReviewKind.VAGUE: 0.2, ReviewKind.NEAR_DUPLICATE: 0.4}


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


@dataclass(frozen=True, kw_only=True)
class Written:
    """What became of it."""

    lesson: Lesson | None  # None when refused
    verdict: Verdict


def store(new: NewLesson, *, strict: bool = False) -> Written:
    """Stores a lesson, flagged for review where it fails a quality gate; or records why it is refused.

    `strict` makes the quality gates refuse too, as automatic paths must.
    """
    text = clean(new.text).strip()
    verdict = hard_gates(text, new.account_id)
    quality = quality_gates(text) if not verdict.refusal else Verdict()
    if strict and quality.flags:
        verdict = Verdict(refusal="not_concrete", details=quality.details, digest=verdict.digest)
    if verdict.refusal:
        return _refuse(new, verdict)
    digest = verdict.digest
    assert digest is not None, "a text that passed has a digest"
    verdict = Verdict(flags=quality.flags, details=quality.details, digest=digest)
    try:
        with transaction.atomic():
            lesson = _insert(new, text, digest)
            if "vague" in verdict.flags:
                flag(lesson, ReviewKind.VAGUE)
    except IntegrityError as error:
        if "lesson_account_text_unique" not in str(error):
            raise
        # Another writer was faster with the same value.
        return _refuse(new, Verdict(refusal="exact_duplicate", digest=digest))
    nudge(EMBED, lesson.pk)
    return Written(lesson=lesson, verdict=verdict)


def _insert(new: NewLesson, text: str, digest: str) -> Lesson:
    claim = signature(text).to_json()
    return Lesson.objects.create(
        account_id=new.account_id,
        text=text,
        text_sha256=digest,
        origin=new.origin.value,
        state=new.state.value,
        source_interaction=new.source_interaction,
        source_import_id=new.source_import,
        source_ref=new.source_ref,
        polarity=claim["polarity"],
        anchors=claim["anchors"],
        identifiers=Func(Value(identifiers(text), output_field=ArrayField(CharField())), function="array_to_tsvector"),
    )


def flag(lesson: Lesson, kind: ReviewKind) -> None:
    """Opens a question about a lesson, unless it is open already."""
    ReviewItem.objects.get_or_create(
        kind=kind.value,
        subject=lesson.pk,
        status=ReviewStatus.OPEN.value,
        defaults={
            "account_id": lesson.account_id,
            "priority": PRIORITY[kind],
            "priority_parts": {"severity": PRIORITY[kind]},
        },
    )


def _refuse(new: NewLesson, verdict: Verdict) -> Written:
    WriteRefusal.objects.create(
        account_id=new.account_id, path=new.path, reason=verdict.refusal, digest=verdict.digest, actor=new.actor
    )
    return Written(lesson=None, verdict=verdict)
