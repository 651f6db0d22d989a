"""One decision about many lessons: who is left out and why is said before, and what became of each one after.

Each lesson is decided by itself, in its own transaction: what fails does not hold up the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.db.models import Count
from django.utils import timezone

from memory import conf
from memory.errors import Invalid, SonderError
from memory.models import Adjudication, Lesson, ReviewItem, TrustEvent
from memory.models.vocabulary import REASONED_VERDICTS, LessonState, ReviewKind, Role, Verdict
from memory.rules.reasons import reasons_for
from memory.services import review_queue
from memory.services.adjudication import Decision, decide, undo
from memory.services.authority import Person
from memory.services.questions import UNRESOLVED
from memory.services.rejection import LIVE
from memory.services.review_queue import Until

LIMIT: Final = 500  # lessons at once


class Act(StrEnum):
    """What a key means on every screen: a result, whatever the state that it starts from."""

    SERVE = "serve"
    RELEASE = "release"  # serve, and begin its ledger anew
    KEEP_OUT = "keep_out"
    REJECT = "reject"
    SNOOZE = "snooze"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A lesson that a person marked, as they saw it."""

    subject: UUID
    item: UUID | None  # the question that it came up with, if one was open
    version: int  # of the question, or of the lesson where there was none


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What an act would do to a marked lesson, or what became of it."""

    wanted: Wanted
    text: str  # of the lesson; empty where the person may not see it
    verdict: Verdict | None  # None for a snooze, and where nothing can be done
    refusal: str = ""  # why it is left out; empty where it is not
    made: UUID | None = None  # the decision, once there is one


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to do with those that are not left out."""

    act: Act
    reason_code: str = ""
    note: str = ""
    until: Until | None = None  # for a snooze
    key: str = ""  # the same key again gives the same decisions


def verdict_for(act: Act, state: LessonState) -> Verdict | None:
    """The decision that brings a lesson in this state to the result; None where none does."""
    if state not in LIVE:
        return None
    if act == Act.REJECT:
        return Verdict.REJECT
    if state != LessonState.QUARANTINED:
        return {Act.SERVE: Verdict.APPROVE, Act.KEEP_OUT: Verdict.QUARANTINE}.get(act)
    softly = Verdict.RELEASE_TO_TRIAL if conf.current().trust_policy == "trial" else Verdict.RELEASE
    return {Act.SERVE: softly, Act.RELEASE: Verdict.RELEASE, Act.KEEP_OUT: Verdict.UPHOLD}.get(act)


def look(person: Person, act: Act, wanted: Sequence[Wanted]) -> list[Entry]:
    """What the act would do to each, in the order given, in a constant number of reads. Raises Invalid."""
    if not wanted:
        raise Invalid.field("marked", "mark at least one row first.")
    if len(wanted) > LIMIT:
        raise Invalid.field("marked", f"at most {LIMIT} at once. Decide about these first.")
    seen = _Seen.read(wanted)
    return [seen.entry(person, act, each) for each in wanted]


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """How the marked lessons stand now."""

    lessons: dict[UUID, Lesson]
    items: dict[UUID, ReviewItem]
    asked: dict[UUID, ReviewItem]  # second opinions that are being waited for, by lesson
    versions: dict[UUID, int]

    @classmethod
    def read(cls, wanted: Sequence[Wanted]) -> "_Seen":
        subjects = [each.subject for each in wanted]
        items = ReviewItem.objects.filter(pk__in=[each.item for each in wanted if each.item])
        asked = ReviewItem.objects.filter(
            subject__in=subjects, kind=ReviewKind.SECOND_OPINION.value, status__in=UNRESOLVED
        )
        return cls(
            lessons=Lesson.objects.in_bulk(subjects),
            items={item.pk: item for item in items.select_related("claimed_by")},
            asked={item.subject: item for item in asked},
            versions=versions(subjects),
        )

    def entry(self, person: Person, act: Act, wanted: Wanted) -> Entry:
        lesson = self.lessons.get(wanted.subject)
        if lesson is None or not person.may(Role.VIEWER, lesson.account_id):
            return Entry(wanted=wanted, text="", verdict=None, refusal="It is not there any more.")
        verdict = verdict_for(act, LessonState(lesson.state))
        refusal = self._refusal(person, act, wanted, lesson, verdict)
        return Entry(wanted=wanted, text=lesson.text, verdict=verdict, refusal=refusal)

    def _refusal(self, person: Person, act: Act, wanted: Wanted, lesson: Lesson, verdict: Verdict | None) -> str:
        item = self.items.get(wanted.item) if wanted.item else None
        if not person.may(Role.REVIEWER, lesson.account_id):
            return "This needs the role reviewer."
        if wanted.item and (item is None or item.status not in UNRESOLVED or item.version != wanted.version):
            return "It changed since you looked."
        if not wanted.item and self.versions.get(lesson.pk, 0) != wanted.version:
            return "It changed since you looked."
        if item and (holder := holder_of(item, person.user_id)):
            return f"{holder} is reviewing it."
        if lesson.pk in self.asked:
            return "It waits for a second opinion."
        if act == Act.SNOOZE:
            return "" if item else "No question about it is open."
        return "" if verdict else "Nothing does that to it as it is."


def holder_of(item: ReviewItem, user_id: int) -> str:
    """The name of somebody else who holds a question now; empty if nobody does."""
    if item.claimed_by is None or item.claimed_by_id == user_id:
        return ""
    assert item.claim_expires_at is not None, "PostgreSQL holds the two together"
    return item.claimed_by.get_username() if item.claim_expires_at > timezone.now() else ""


def versions(subjects: Sequence[UUID]) -> dict[UUID, int]:
    """The version of each subject, as `adjudication.version_of` counts it for one."""
    events = TrustEvent.objects.filter(lesson__in=subjects).order_by().values_list("lesson").annotate(n=Count("pk"))
    made = Adjudication.objects.filter(subject__in=subjects).order_by().values_list("subject").annotate(n=Count("pk"))
    counts = dict.fromkeys(subjects, 0)
    for rows in (events, made):
        for subject, n in rows:
            counts[subject] += n
    return counts


def reasons(entries: Sequence[Entry]) -> tuple[tuple[tuple[str, str], ...], bool]:
    """The reasons to choose from, and whether one is needed: those of the verdicts among the entries, each once."""
    verdicts = {entry.verdict for entry in entries if entry.verdict and not entry.refusal}
    needing = {verdict for verdict in verdicts if verdict in REASONED_VERDICTS}
    codes = {code: words for verdict in sorted(needing or verdicts) for code, words in reasons_for(verdict.value)}
    return tuple(codes.items())[:6], bool(needing)


def carry_out(person: Person, order: Order, wanted: Sequence[Wanted]) -> list[Entry]:
    """Does it to each that is not left out; says what became of every one, in the order given. Raises Invalid."""
    before = _made_before(person, order, wanted)
    entries = [
        replace(entry, refusal="", made=before[entry.wanted.subject]) if entry.wanted.subject in before else entry
        for entry in look(person, order.act, wanted)
    ]
    if order.act != Act.SNOOZE and reasons(entries)[1] and not order.reason_code:
        raise Invalid.field("reason_code", "choose a reason.")
    if order.act == Act.SNOOZE and order.until is None:
        raise Invalid.field("until", "choose until when.")
    items = [entry.wanted.item for entry in entries if entry.wanted.item and not (entry.refusal or entry.made)]
    held = review_queue.claim_each(items, person)
    done = [_one(person, order, entry, held) for entry in entries]
    ReviewItem.objects.filter(pk__in=items, claimed_by=person.user_id).update(claimed_by=None, claim_expires_at=None)
    return done


def _key(order: Order, wanted: Wanted) -> str:
    return f"{order.key[:31]}:{wanted.subject.hex}" if order.key else ""


def _made_before(person: Person, order: Order, wanted: Sequence[Wanted]) -> dict[UUID, UUID]:
    """The decisions that this very order has led to already, by lesson."""
    keys = [key for each in wanted if (key := _key(order, each))]
    made = Adjudication.objects.filter(reviewer_id=person.user_id, idempotency_key__in=keys)
    return dict(made.values_list("subject", "pk"))


def _one(person: Person, order: Order, entry: Entry, held: set[UUID]) -> Entry:
    item = entry.wanted.item
    if entry.refusal or entry.made:
        return entry
    if item and item not in held:
        return replace(entry, refusal="Somebody else has just taken it.")
    try:
        if order.act == Act.SNOOZE:
            assert item is not None, "what has no question is left out of a snooze"
            review_queue.snooze(item, person, order.until or Until())
            return entry
        return replace(entry, made=decide(_decision(person, order, entry)).pk)
    except SonderError as refusal:
        return replace(entry, refusal=refusal.detail)


def _decision(person: Person, order: Order, entry: Entry) -> Decision:
    assert entry.verdict is not None, "what has no verdict is left out"
    fits = order.reason_code in dict(reasons_for(entry.verdict.value))
    return Decision(
        person=person,
        verdict=entry.verdict,
        subject=entry.wanted.subject,
        item=entry.wanted.item,
        expected_version=entry.wanted.version,
        reason_code=order.reason_code if fits else "",
        note=order.note,
        idempotency_key=_key(order, entry.wanted),
    )


def undo_each(person: Person, decisions: Sequence[UUID]) -> list[tuple[UUID, str]]:
    """Takes decisions back one by one; with each why it could not be taken back, or nothing."""
    if len(decisions) > LIMIT:
        raise Invalid.field("made", f"at most {LIMIT} at once.")
    return [(made, _undone(made, person)) for made in decisions]


def _undone(made: UUID, person: Person) -> str:
    try:
        undo(made, person)
    except SonderError as refusal:
        return refusal.detail
    return ""
