"""Lessons that may contradict each other: found, listed for a person, and never decided here without one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memory import conf
from memory.embedding.active import usable_space
from memory.errors import Conflict, Invalid, NotFound
from memory.models import Contradiction, JobRun, Lesson, ReviewItem
from memory.models.scope import scoped
from memory.models.sql import fetch
from memory.models.vocabulary import ReviewKind, ReviewStatus, Verdict
from memory.rules.contradiction import CLASSES, Judged, basis
from memory.rules.pruning import Pair
from memory.services import pairs as near
from memory.services import questions, rejection
from memory.services.pairs import Cursor, Where
from memory.services.questions import Question
from memory.services.scoping import lock_scope
from memory.services.similarity import stored_claim
from memory.services.webhooks import events

JOB = "contradictions"
NEAR_DUPLICATE = "near_duplicate"  # basis of a pair that a person keeps apart although both say the same
VERDICTS = (Verdict.KEEP_FIRST, Verdict.KEEP_SECOND, Verdict.KEEP_BOTH, Verdict.NOT_A_CONTRADICTION)
# Chance of mattering: one of two opposite lessons is wrong somewhere, and outcomes that agree with that say so louder.
SEVERITY, SEVERITY_WITH_EVIDENCE = 0.6, 0.8

Digests = tuple[str, str]  # of the texts of two lessons, the smaller first


@dataclass(frozen=True, kw_only=True)
class Detected:
    """What a run came to."""

    looked_at: int  # lessons
    pairs: int  # near pairs that were compared
    raised: int  # questions
    withdrawn: int  # questions whose lessons are out of service, or agree by now
    cursor: Cursor

    def figures(self) -> dict[str, Any]:
        """As a job's record keeps it."""
        return {**vars(self), "cursor": self.cursor.to_json()}


def detect() -> Detected:
    """Looks around the next lessons, and flags what may contradict each other. Raises EmbeddingUnavailable.

    At most `SONDER_JOB_PROBES` lessons in a run; the next one goes on where the last one's record says.
    """
    space = usable_space()
    last = JobRun.objects.filter(job=JOB, figures__has_key="cursor").order_by("-started_at").first()
    since = Cursor.from_json(last.figures["cursor"] if last else None)
    probes, cursor = near.next_probes(near.everywhere(space), since, conf.current().job_probes)
    compared = raised = withdrawn = 0
    for account, lessons in probes.items():
        where = Where(space=space, account_id=account)
        for found in near.near_pairs(where, space.contradiction_similarity, lessons):
            compared += len(found.pairs)
            new, faded = _flag(account, found.pairs)
            raised, withdrawn = raised + new, withdrawn + faded
    return Detected(
        looked_at=sum(map(len, probes.values())),
        pairs=compared,
        raised=raised,
        withdrawn=withdrawn + _withdraw_idle(),
        cursor=cursor,
    )


@transaction.atomic
def _flag(account_id: UUID | None, pairs: Sequence[Pair]) -> tuple[int, int]:
    """Keeps a row for each pair that may contradict itself; returns how many questions were raised and withdrawn."""
    compared = _compare(account_id, pairs)
    known = _known(account_id, compared)
    faded = [row.pk for key, row in known.items() if row.verdict is None and not compared[key].basis]
    withdrawn = questions.withdraw([ReviewKind.CONTRADICTION], faded)
    Contradiction.objects.filter(pk__in=faded).delete()
    suspects = {key: row for key, row in compared.items() if row.basis}
    Contradiction.objects.bulk_create(
        [row for key, row in suspects.items() if key not in known],
        ignore_conflicts=True,  # another run may have been faster
    )
    for key, row in known.items():
        if key in suspects and row.basis != suspects[key].basis:
            Contradiction.objects.filter(pk=row.pk, verdict__isnull=True).update(basis=suspects[key].basis)
    undecided = [row for row in _known(account_id, suspects).values() if row.verdict is None]
    made = {row.pk for key, row in suspects.items() if key not in known}
    events.contradictions(row for row in undecided if row.pk in made)
    return questions.ask(map(_question, undecided)), withdrawn


def _compare(account_id: UUID | None, pairs: Sequence[Pair]) -> dict[Digests, Contradiction]:
    """A row for each pair, not stored yet; its basis is empty where the two lessons agree."""
    ids = {lesson for pair in pairs for lesson in (pair.first, pair.second)}
    lessons = Lesson.objects.in_bulk(list(ids))
    judged = _judged(ids)
    rows = {}
    for pair in pairs:
        if pair.first not in lessons or pair.second not in lessons:
            continue
        first, second = _ordered(lessons[pair.first], lessons[pair.second])
        rows[first.text_sha256, second.text_sha256] = Contradiction(
            account_id=account_id,
            first=first.pk,
            second=second.pk,
            first_digest=first.text_sha256,
            second_digest=second.text_sha256,
            similarity=pair.cosine,
            basis=basis(
                stored_claim(first.polarity, first.anchors),
                stored_claim(second.polarity, second.anchors),
                judged.get(first.pk, {}),
                judged.get(second.pk, {}),
            ),
        )
    return rows


def _ordered(a: Lesson, b: Lesson) -> tuple[Lesson, Lesson]:
    """By the digests of their texts, as a contradiction has them."""
    return (a, b) if a.text_sha256 < b.text_sha256 else (b, a)


def _judged(lessons: Iterable[UUID]) -> dict[UUID, dict[str, Judged]]:
    """What each class of judges made of each lesson."""
    found: dict[UUID, dict[str, Judged]] = {}
    for lesson, source, n, reward in fetch(
        "SELECT lesson_id, source, n, reward FROM lesson_source_sum WHERE lesson_id = ANY(%s) AND source = ANY(%s)",
        [list(lessons), list(CLASSES)],
    ):
        found.setdefault(lesson, {})[source] = Judged(n=n, reward=float(reward))
    return found


def _known(account_id: UUID | None, keys: Iterable[Digests]) -> dict[Digests, Contradiction]:
    wanted = set(keys)
    rows = Contradiction.objects.filter(
        scoped(account_id),
        first_digest__in={first for first, _ in wanted},
        second_digest__in={second for _, second in wanted},
    )
    return {key: row for row in rows if (key := (row.first_digest, row.second_digest)) in wanted}


def _question(row: Contradiction) -> Question:
    return Question(
        kind=ReviewKind.CONTRADICTION,
        subject=row.pk,
        account_id=row.account_id,
        severity=SEVERITY_WITH_EVIDENCE if row.basis.startswith(("evidence", "both")) else SEVERITY,
        since=row.created_at,
    )


def _withdraw_idle() -> int:
    """Withdraws questions about pairs of which one is out of service; it is asked again if that one returns."""
    rows = fetch(
        """
        SELECT i.subject FROM review_item i
            LEFT JOIN contradiction c ON c.id = i.subject AND c.verdict IS NULL
            LEFT JOIN lesson a ON a.id = c.first AND a.state IN ('active', 'quarantined')
            LEFT JOIN lesson b ON b.id = c.second AND b.state IN ('active', 'quarantined')
        WHERE i.kind = 'contradiction' AND i.status IN ('open', 'snoozed') AND (a.id IS NULL OR b.id IS NULL)
        """
    )
    return questions.withdraw([ReviewKind.CONTRADICTION], [subject for (subject,) in rows])


@transaction.atomic
def settle(contradiction_id: UUID, verdict: Verdict, *, reviewer: int, reason: str) -> None:
    """A person's verdict on a pair. It holds for these two wordings; the loser is rejected, with a link to the other.

    Raises NotFound, Invalid naming `verdict`, or Conflict if it is decided already or a side is out of service.
    """
    if verdict not in VERDICTS:
        raise Invalid.field("verdict", f"choose one of {', '.join(v.value for v in VERDICTS)}.")
    row = mark(contradiction_id, verdict, reviewer)
    if verdict == Verdict.KEEP_FIRST:
        rejection.reject(row.second, reviewer=reviewer, reason=reason, successor=row.first)
    elif verdict == Verdict.KEEP_SECOND:
        rejection.reject(row.first, reviewer=reviewer, reason=reason, successor=row.second)


@transaction.atomic
def mark(contradiction_id: UUID, verdict: Verdict, reviewer: int) -> Contradiction:
    """Notes the verdict on a pair of which both sides may still be handed out, and closes the question.

    What the verdict does to the lessons is the caller's business, in the same transaction. Raises NotFound or Conflict.
    """
    row = Contradiction.objects.filter(pk=contradiction_id).first()
    if row is None:
        raise NotFound("There is no such contradiction.")
    lock_scope(row.account_id)
    decided = Contradiction.objects.filter(pk=row.pk, verdict__isnull=True).update(
        verdict=verdict.value, decided_by=reviewer
    )
    if not decided:
        raise Conflict("Somebody has decided this pair meanwhile. Look at it again.")
    if Lesson.objects.filter(pk__in=(row.first, row.second), state__in=rejection.LIVE).count() < 2:
        raise Conflict("One of the two is out of service by now, so there is nothing to decide.")
    ReviewItem.objects.filter(
        kind=ReviewKind.CONTRADICTION.value, subject=row.pk, status__in=questions.UNRESOLVED
    ).update(status=ReviewStatus.RESOLVED.value, resolved_by=reviewer, resolved_at=timezone.now())
    return row


def reopen(contradiction_id: UUID) -> None:
    """Takes the verdict on a pair back; who decides again finds it undecided."""
    Contradiction.objects.filter(pk=contradiction_id).update(verdict=None, decided_by=None)


def kept_apart(account_id: UUID | None, keys: Iterable[Digests]) -> set[Digests]:
    """Which of these pairs must not become one lesson: a person keeps both, or nobody has decided yet."""
    keep = (None, Verdict.KEEP_BOTH.value)
    return {key for key, row in _known(account_id, keys).items() if row.verdict in keep}


def keep_both(
    a: Lesson, b: Lesson, similarity: float, reviewer: int | None, basis: str = NEAR_DUPLICATE
) -> Contradiction:
    """Notes that somebody keeps two lessons apart, so that no plan proposes them and no detector asks again."""
    first, second = _ordered(a, b)
    row, _ = Contradiction.objects.update_or_create(
        account=a.account,
        first_digest=first.text_sha256,
        second_digest=second.text_sha256,
        defaults={"verdict": Verdict.KEEP_BOTH.value, "decided_by_id": reviewer},
        create_defaults={
            "first": first.pk,
            "second": second.pk,
            "similarity": similarity,
            "basis": basis,
            "verdict": Verdict.KEEP_BOTH.value,
            "decided_by_id": reviewer,
        },
    )
    return row
