"""Are the stored lessons fit to be there? What is vague, private, said twice, rejected before, or stale.

The gates refuse most of that at the door. What an operator brought in, what was stored while no model was there, and
what grew old is found here. Changes no lesson: a report, and questions for a person.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from memory.embedding.active import usable_space
from memory.errors import EmbeddingUnavailable
from memory.models import EmbeddingSpace, Lesson, LessonStanding, LessonTombstone
from memory.models.vocabulary import LessonState, ReviewKind
from memory.rules.claim import same_claim, signature
from memory.rules.concreteness import judge
from memory.rules.privacy import find_private
from memory.services import pairs as near
from memory.services import questions, similarity, staleness, tombstone
from memory.services.questions import Question

BATCH: Final = 1000  # lessons read at once
LIVE: Final = (LessonState.CANDIDATE.value, LessonState.ACTIVE.value, LessonState.QUARANTINED.value)
VAGUE, PRIVATE, DUPLICATE, REJECTED, STALE = "vague", "private", "duplicate", "rejected_value", "stale"
# How a person is asked about it, and the chance that it matters: a secret in a prompt is an incident.
ASKED: Final = {
    PRIVATE: (ReviewKind.NEW_LESSON, 1.0),
    REJECTED: (ReviewKind.NEW_LESSON, 0.7),
    DUPLICATE: (ReviewKind.NEAR_DUPLICATE, 0.4),
    STALE: (ReviewKind.STALE, staleness.SEVERITY),
    VAGUE: (ReviewKind.VAGUE, 0.2),
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong with one lesson. Without its text: a report may be passed on."""

    kind: str  # vague, private, duplicate, rejected_value or stale
    lesson: UUID
    why: tuple[str, ...]  # reasons of the rule that found it
    question: Question

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "lesson": str(self.lesson), "why": list(self.why)}


@dataclass(frozen=True, kw_only=True)
class Step:
    """How far an audit has come."""

    part: str  # texts, duplicates, rejected values or standings
    done: int
    total: int
    findings: list[Finding]  # of this step


def audit() -> Iterator[Step]:
    """Looks through every lesson that is served, waits or is quarantined, step by step.

    Without a usable embedding space the parts that compare meanings are left out.
    """
    yield from _texts()
    try:
        space = usable_space()
    except EmbeddingUnavailable:
        space = None
    if space is not None:
        yield from _duplicates(space)
        yield from _rejected(space)
    total = LessonStanding.objects.count()
    done = 0
    for batch in staleness.stale(timezone.now()):
        done = min(total, done + staleness.BATCH)
        yield Step(part="standings", done=done, total=total, findings=[_stale(found) for found in batch])


def ask(findings: Iterable[Finding]) -> int:
    """Asks a person about each; returns how many questions are new."""
    return questions.ask(finding.question for finding in findings)


def _finding(kind: str, lesson: Lesson, why: Iterable[str]) -> Finding:
    review, severity = ASKED[kind]
    about = kind if review == ReviewKind.NEW_LESSON else ""
    question = Question(
        kind=review,
        subject=lesson.pk,
        account_id=lesson.account_id,
        severity=severity,
        since=lesson.created_at,
        about=about,
    )
    return Finding(kind=kind, lesson=lesson.pk, why=tuple(why), question=question)


def _stale(found: staleness.Stale) -> Finding:
    why = (f"no outcome for {found.days:.0f} days", f"worth {found.effective:.2f} by {found.source} outcomes")
    return Finding(kind=STALE, lesson=found.lesson, why=why, question=staleness.question_about(found))


def _texts() -> Iterator[Step]:
    """What the rules say of each text alone."""
    live = Lesson.objects.filter(state__in=LIVE).order_by("pk")
    total, done, after = live.count(), 0, near.NOTHING
    while batch := list(live.filter(pk__gt=after).only("pk", "text", "account_id", "created_at")[:BATCH]):
        findings = []
        for lesson in batch:
            if private := find_private(lesson.text):
                findings.append(_finding(PRIVATE, lesson, private))
            if not (judgement := judge(lesson.text)).concrete:
                findings.append(_finding(VAGUE, lesson, judgement.reasons))
        done, after = done + len(batch), batch[-1].pk
        yield Step(part="texts", done=done, total=max(total, done), findings=findings)


def _duplicates(space: EmbeddingSpace) -> Iterator[Step]:
    """Active lessons that say the same; the younger of each pair is the one to ask about."""
    for where in near.scopes(space):
        for step in near.near_pairs(where, space.duplicate_similarity):
            lessons = Lesson.objects.in_bulk([lesson for pair in step.pairs for lesson in (pair.first, pair.second)])
            findings = []
            for pair in step.pairs:
                older, younger = lessons.get(pair.first), lessons.get(pair.second)  # ids ascend with time
                if older and younger and same_claim(signature(older.text), signature(younger.text)).same:
                    findings.append(_finding(DUPLICATE, younger, [f"says what lesson {older.pk} says"]))
            yield Step(part="duplicates", done=step.done, total=step.total, findings=findings)


def _rejected(space: EmbeddingSpace) -> Iterator[Step]:
    """Active lessons that repeat what was rejected: stored while no model could compare them."""
    total = LessonTombstone.objects.filter(space=space).count()
    done, after = 0, near.NOTHING
    while batch := similarity.near_tombstones(space, after, BATCH):
        lessons = Lesson.objects.in_bulk([lesson for _, hits in batch for lesson in hits])
        findings = [
            _finding(REJECTED, lessons[lesson], [f"repeats what tombstone {buried} remembers"])
            for buried, hits in batch
            for lesson in hits
            if lesson in lessons and tombstone.first_conflict([buried], signature(lessons[lesson].text))
        ]
        done, after = done + len(batch), batch[-1][0]
        yield Step(part="rejected values", done=done, total=max(total, done), findings=findings)
