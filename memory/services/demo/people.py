"""The part of the story that people play: what they asked and decided, and what the scheduled jobs found meanwhile."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from memory.errors import EmbeddingUnavailable
from memory.models import Adjudication, Comment, Outcome, Preference, ReviewItem
from memory.models.base import present, told_at
from memory.models.vocabulary import ReviewKind, ReviewStatus, Verdict
from memory.services import (
    adjudication,
    contradiction,
    judging,
    preference,
    pruning,
    review_priority,
    review_queue,
    second_opinion,
    staleness,
)
from memory.services.adjudication import Decision, version_of
from memory.services.demo import play
from memory.services.demo.stage import Stage, lessons_of
from memory.services.demo.story import MARK
from memory.services.preference import Refinement
from memory.services.review_queue import Until

Lessons = Mapping[str, UUID]
LAST: Final = f"{MARK}last"  # key of the last decision: after it everything has been told


@dataclass(frozen=True, kw_only=True)
class Change:
    """A refinement of a preference."""

    ago: float  # days
    by_person: bool
    changes: Mapping[str, object]
    why: str
    hoped: str  # what should get better


REFINEMENTS: Final = (
    Change(
        ago=33.0,
        by_person=False,
        changes={"text": "I prefer short answers in plain English."},
        why="An answer in Latin was sent back.",
        hoped="No answer is sent back for its language.",
    ),
    Change(
        ago=21.5,
        by_person=True,
        changes={"text": "I prefer answers of at most 5 sentences in plain English."},
        why="Short means something else to everybody.",
        hoped="Answers are read to their end.",
    ),
    Change(
        ago=12.3,
        by_person=False,
        changes={"text": "I prefer answers of at most 5 sentences in plain English, with the command that was run."},
        why="Three people asked which command it was.",
        hoped="Nobody has to ask for the command.",
    ),
    Change(
        ago=2.1,
        by_person=True,
        changes={"text": "I prefer answers of at most 5 sentences in plain English, with the command and its result."},
        why="A command without its result says little.",
        hoped="A failed command is seen without asking.",
    ),
)
OFF: Final = Change(
    ago=8.0,
    by_person=True,
    changes={"enabled": False},
    why="A hook checks it now.",
    hoped="One preference less to read.",
)


def review(stage: Stage) -> Iterator[tuple[int, int]]:
    """What waits for a person, and what one of them has done about it; yields how many of how many parts are done.

    Once: later it is theirs.
    """
    told = Adjudication.objects.filter(reviewer_id=stage.ana.user_id, idempotency_key=LAST).exists()
    parts = () if told else (_before, _last_week, _last_night, _this_morning)
    for done, part in enumerate(parts, start=1):
        part(stage, lessons_of(stage))
        yield done, len(parts)


def _before(stage: Stage, lessons: Lessons) -> None:
    """An agent and a person change one preference in turns, a person switches another off and approves a lesson."""
    answers, commits = (
        Preference.objects.get(account=stage.account, key=key) for key in ("answer-language", "commit-messages")
    )
    for version, refinement in enumerate(REFINEMENTS, start=1):
        _refine(stage, answers, version, refinement)
    _refine(stage, commits, 1, OFF)
    with told_at(stage.at(12.0)):
        _decide(stage, lessons["keyset-pages"], Verdict.APPROVE, note="Checked on the events table.")


def _refine(stage: Stage, subject: Preference, version: int, change: Change) -> None:
    """The change of a preference that is at this version."""
    subject.refresh_from_db()
    if subject.revision != version:
        return
    evidence = [{"kind": "note", "text": change.why}]
    said = Outcome.objects.filter(interaction__account=stage.account, source="caller")
    outcome = said.filter(created_at__lt=stage.at(change.ago)).order_by("id").last()
    if not change.by_person and outcome is not None:
        evidence.append({"kind": "outcome", "id": str(outcome.pk)})
    request = Refinement(
        expected_version=version, changes=change.changes, evidence=evidence, expected_outcome=change.hoped
    )
    actor = stage.ana.actor if change.by_person else stage.callers["caller"].actor
    with told_at(stage.at(change.ago)):
        preference.refine(stage.account.pk, subject.pk, request, actor)


def _last_week(stage: Stage, lessons: Lessons) -> None:
    """Lessons that came later, a rejection, a comment, and a second opinion that somebody else is to give."""
    play.store_later(stage)
    with told_at(stage.at(1.6)):
        note = "It turns the check off instead of renewing."
        _decide(stage, lessons["verify-false"], Verdict.REJECT, reason="harmful", note=note)
    with told_at(stage.at(1.2)):
        if not Comment.objects.filter(subject=lessons["square-thumbnail"]).exists():
            review_queue.comment(lessons["square-thumbnail"], stage.ana, "See what became of the orchestra.")
        asked = ReviewItem.objects.filter(kind=ReviewKind.SECOND_OPINION.value, subject=lessons["sleep-in-test"])
        if not asked.exists():
            second_opinion.request(lessons["sleep-in-test"], stage.ana, Verdict.QUARANTINE)


def _last_night(stage: Stage, lessons: Lessons) -> None:
    """What the scheduled jobs find, in the whole store as always, and now: what is not the demo's is dated by nobody.

    Those that compare meanings have nothing to compare without a usable model.
    """
    try:
        with told_at(stage.at(0.4)):
            pruning.make(pruning.scope(stage.scope))
        contradiction.detect()
    except EmbeddingUnavailable:
        pass
    staleness.run()
    judging.run()


def _this_morning(stage: Stage, lessons: Lessons) -> None:
    """What is put off, and a rejection that makes last night's plan stale."""
    with told_at(stage.at(0.1)):
        item = ReviewItem.objects.filter(subject=lessons["image-digest"], status=ReviewStatus.OPEN.value).first()
        if item is not None:
            review_queue.snooze(item.pk, stage.ana, Until(date=present() + timedelta(days=6)))
        note = "The other wording is enough."
        _decide(stage, lessons["bulk-insert-too"], Verdict.REJECT, reason="other", note=note, key=LAST)
    review_priority.run()


def _decide(stage: Stage, lesson: UUID, verdict: Verdict, *, reason: str = "", note: str = "", key: str = "") -> None:
    """A decision by its own key: made once."""
    decision = Decision(
        person=stage.ana,
        verdict=verdict,
        subject=lesson,
        expected_version=version_of(lesson),
        reason_code=reason,
        note=note,
        idempotency_key=key or f"{MARK}{verdict.value}",
    )
    adjudication.decide(decision)
