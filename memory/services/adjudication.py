"""A person's decision: checked for right, version and reason, carried out by one service, journalled.

An undo appends a decision that reverses it.

Everything that one decision does happens in one transaction under the scope's lock: of two reviewers with one item, one
decides and the other is told what happened.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Adjudication, Contradiction, Interaction, Lesson, ReviewItem
from memory.models.sql import fetch
from memory.models.vocabulary import REASONED_VERDICTS, ReviewKind, Role, Verdict
from memory.rules.reasons import reasons_for
from memory.services import (
    duplicates,
    lesson_verdicts,
    pair_verdicts,
    questions,
    rejection,
    snapshot,
    verdicts_on_outcomes,
)
from memory.services.authority import Person
from memory.services.scoping import lesson_account, lock_scope

NOTE_LIMIT: Final = 2000  # characters


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a person asks for."""

    person: Person
    verdict: Verdict
    subject: UUID  # a lesson, a contradiction or an interaction
    expected_version: int  # of the item, or of the subject where there is no item: what the person saw
    item: UUID | None = None
    reason_code: str = ""
    note: str = ""
    idempotency_key: str = ""  # the same key again gives the same result
    # text (edit, merge_both), first_text and second_text (keep_both), keeper (merge), usage (exempt_row), signal
    # (judge_outcome)
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """As journals keep it."""
        return ": ".join(filter(None, (self.reason_code, self.note)))


@dataclass(frozen=True, kw_only=True)
class Act:
    """How a verdict is carried out, and who may ask for it."""

    role: Role
    run: Callable[[Decision], dict[str, Any]]  # returns what the journal should keep beside the snapshots
    answers: tuple[ReviewKind, ...] = ()  # questions about the same subject that it answers too


class Stale(Conflict):
    """Somebody decided, or the subject changed, since the person looked."""

    def __init__(self, detail: str, by: Adjudication | None) -> None:
        super().__init__(detail)
        self.by = by


def _lesson(act: Callable[..., object]) -> Callable[[Decision], dict[str, Any]]:
    def run(decision: Decision) -> dict[str, Any]:
        act(decision.subject, reviewer=decision.person.user_id, reason=decision.reason)
        return {}

    return run


def _edit(decision: Decision) -> dict[str, Any]:
    text = str(decision.data.get("text", ""))
    written = rejection.supersede(decision.subject, text, reviewer=decision.person.user_id, reason=decision.reason)
    if written.lesson is None:
        raise rejection.WordingRefused("text", written.verdict)
    return {"lessons": [written.lesson.pk], "successor": str(written.lesson.pk)}


def _exempt(decision: Decision) -> dict[str, Any]:
    usage = UUID(str(decision.data["usage"]))
    lesson_verdicts.exempt(decision.subject, usage, reviewer=decision.person.user_id, reason=decision.reason)
    return {"usage": str(usage)}


def _merge(decision: Decision) -> dict[str, Any]:
    try:
        keeper = UUID(str(decision.data.get("keeper", "")))
    except ValueError:
        raise Invalid.field("keeper", "choose the lesson that this one repeats.") from None
    plan = duplicates.merge_into(decision.subject, keeper, reviewer=decision.person.user_id, reason=decision.reason)
    return {"plan": plan.digest, "keeper": snapshot.take([keeper])}


def _settle(decision: Decision) -> dict[str, Any]:
    who = decision.person.user_id
    return pair_verdicts.settle(decision.subject, decision.verdict, decision.data, reviewer=who, reason=decision.reason)


def _judge(decision: Decision) -> dict[str, Any]:
    signal = str(decision.data.get("signal", ""))
    return verdicts_on_outcomes.judge(decision.subject, decision.person, signal, decision.note)


NEW: Final = (ReviewKind.NEW_LESSON, ReviewKind.VAGUE, ReviewKind.NEAR_DUPLICATE, ReviewKind.STALE)
KEPT_OUT: Final = (ReviewKind.QUARANTINE, ReviewKind.SECOND_OPINION)
PAIR: Final = Act(role=Role.REVIEWER, run=_settle, answers=(ReviewKind.CONTRADICTION,))

ACTS: Final[Mapping[Verdict, Act]] = {
    Verdict.APPROVE: Act(role=Role.REVIEWER, run=_lesson(lesson_verdicts.approve), answers=NEW),
    Verdict.EDIT: Act(role=Role.REVIEWER, run=_edit, answers=(*NEW, *KEPT_OUT)),
    Verdict.REJECT: Act(role=Role.REVIEWER, run=_lesson(rejection.reject), answers=(*NEW, *KEPT_OUT)),
    Verdict.QUARANTINE: Act(role=Role.REVIEWER, run=_lesson(lesson_verdicts.quarantine), answers=NEW),
    Verdict.UPHOLD: Act(role=Role.REVIEWER, run=_lesson(lesson_verdicts.uphold), answers=KEPT_OUT),
    Verdict.RELEASE: Act(role=Role.REVIEWER, run=_lesson(lesson_verdicts.release), answers=KEPT_OUT),
    Verdict.RELEASE_TO_TRIAL: Act(role=Role.REVIEWER, run=_lesson(lesson_verdicts.release_to_trial), answers=KEPT_OUT),
    Verdict.MERGE: Act(role=Role.REVIEWER, run=_merge, answers=(*NEW, *KEPT_OUT)),
    Verdict.RESTORE: Act(role=Role.REVIEWER, run=_lesson(rejection.restore)),
    Verdict.EXEMPT_ROW: Act(role=Role.REVIEWER, run=_exempt),
    Verdict.KEEP_FIRST: PAIR,
    Verdict.KEEP_SECOND: PAIR,
    Verdict.KEEP_BOTH: PAIR,
    Verdict.MERGE_BOTH: PAIR,
    Verdict.NOT_A_CONTRADICTION: PAIR,
    Verdict.JUDGE_OUTCOME: Act(
        role=Role.JUDGE,
        run=_judge,
        answers=(ReviewKind.OUTCOME_NEEDED, ReviewKind.OUTCOME_CONFLICT),
    ),
}


def decide(decision: Decision) -> Adjudication:
    """Carries a decision out, or changes nothing.

    Raises Invalid naming the field, Forbidden, NotFound or Conflict (`Stale` where something changed meanwhile).
    """
    earlier = _earlier(decision)
    if earlier is not None:
        return earlier
    act = ACTS.get(decision.verdict)
    if act is None:
        raise Invalid.field("decision", f"choose one of {', '.join(verdict.value for verdict in ACTS)}.")
    _check_reason(decision)
    account = account_of(decision.subject)
    decision.person.need(act.role, account)
    try:
        with rejection.refusals_recorded(lesson_account(account), decision.person.actor), transaction.atomic():
            return _decide(decision, act, account)
    except IntegrityError as error:
        if "adjudication_key_unique" not in str(error):
            raise
        found = _earlier(decision)
        assert found is not None, "the key that stood in the way is there"
        return found


def _decide(decision: Decision, act: Act, account: UUID | None) -> Adjudication:
    lock_scope(lesson_account(account))
    earlier = _earlier(decision)  # the same key may have been faster to the lock
    if earlier is not None:
        return earlier
    item = _expect_version(decision)
    lessons = snapshot.lessons_of(decision.subject)
    before, asked = snapshot.take(lessons), questions.unresolved_about(lessons)
    kept = act.run(decision)
    after = snapshot.take([*lessons, *kept.pop("lessons", [])])
    answered = questions.answer(decision.subject, act.answers, item, asked, decision.person.user_id)
    if after != before:
        questions.touch_pairs(lessons)
    return Adjudication.objects.create(
        account_id=account,
        item=decision.item,
        subject=decision.subject,
        verdict=decision.verdict.value,
        reason_code=decision.reason_code,
        note=decision.note,
        before={"lessons": before, "items": answered, **kept},
        after={"lessons": after},
        reviewer_id=decision.person.user_id,
        idempotency_key=decision.idempotency_key,
    )


def _earlier(decision: Decision) -> Adjudication | None:
    if not decision.idempotency_key:
        return None
    return Adjudication.objects.filter(
        reviewer_id=decision.person.user_id, idempotency_key=decision.idempotency_key
    ).first()


def _check_reason(decision: Decision) -> None:
    codes = {code for code, _ in reasons_for(decision.verdict.value)}
    needed = decision.verdict.value in REASONED_VERDICTS or decision.verdict == Verdict.EXEMPT_ROW
    if decision.reason_code and decision.reason_code not in codes:
        raise Invalid.field("reason_code", f"choose one of {', '.join(sorted(codes))}.")
    if needed and not decision.reason_code:
        raise Invalid.field("reason_code", "choose a reason.")
    if len(decision.note) > NOTE_LIMIT:
        raise Invalid.field("note", f"at most {NOTE_LIMIT} characters.")


def account_of(subject: UUID) -> UUID | None:
    """Whose the subject is; None where it is global. Raises NotFound."""
    for model in (Lesson, Contradiction, Interaction):
        found = model._default_manager.filter(pk=subject).values_list("account_id", flat=True)
        for account_id in found:
            return account_id
    raise NotFound("What this decision is about is not there any more.")


def version_of(subject: UUID) -> int:
    """What a decision without an item expects: it grows with each event and each decision about the subject."""
    ((version,),) = fetch(
        "SELECT (SELECT count(*) FROM trust_event WHERE lesson = %(subject)s) "
        "+ (SELECT count(*) FROM adjudication WHERE subject = %(subject)s)",
        {"subject": subject},
    )
    return int(version)


def _expect_version(decision: Decision) -> ReviewItem | None:
    item = None
    if decision.item is not None:
        item = ReviewItem.objects.select_for_update().filter(pk=decision.item, subject=decision.subject).first()
        if item is None:
            raise NotFound("There is no such question.")
    version = item.version if item else version_of(decision.subject)
    if version != decision.expected_version or (item and item.status not in questions.UNRESOLVED):
        raise Stale(
            "This changed since you looked. Nothing was decided; see what happened and decide anew.",
            snapshot.latest_about(decision.subject),
        )
    return item


def undo(adjudication_id: UUID, person: Person, idempotency_key: str = "") -> Adjudication:
    """Takes a decision back by appending. Raises NotFound, Forbidden, or Conflict if something changed since."""
    made = Adjudication.objects.filter(pk=adjudication_id).first()
    if made is None:
        raise NotFound("There is no such decision.")
    act = ACTS.get(Verdict(made.verdict))
    if act is None:
        raise Conflict("An undo is not undone. Decide again instead.")
    person.need(act.role, made.account_id)
    if made.reviewer_id != person.user_id:
        person.need(Role.REVIEWER, made.account_id)
    with transaction.atomic():
        lock_scope(lesson_account(made.account_id))
        if Adjudication.objects.filter(reverts=made).exists():
            raise Conflict("This decision is undone already.")
        snapshot.put_back(made, person)
        _reverse(made, person)
        reopened = questions.reopen(made.before.get("items", []))
        return Adjudication.objects.create(
            account_id=made.account_id,
            subject=made.subject,
            verdict=Verdict.UNDO.value,
            before=made.after,
            after={**made.before, "items": reopened},
            reviewer_id=person.user_id,
            reverts=made,
            idempotency_key=idempotency_key,
        )


def _reverse(made: Adjudication, person: Person) -> None:
    """What a verdict did beside moving lessons."""
    if made.verdict == Verdict.EXEMPT_ROW.value:
        lesson_verdicts.take_back_exemption(UUID(made.before["usage"]), reviewer=person.user_id)
    elif made.verdict == Verdict.MERGE.value:
        scope, kept = lesson_account(made.account_id), made.before["keeper"]
        duplicates.separate(made.before["plan"], kept, scope, reviewer=person.user_id)
    elif made.verdict == Verdict.JUDGE_OUTCOME.value:
        verdicts_on_outcomes.take_back(made, person)
    elif ACTS[Verdict(made.verdict)] is PAIR:
        pair_verdicts.take_back(made.subject, made.before)


def latest_undoable(person: Person, limit: int = 20) -> list[Adjudication]:
    """Their decisions that are not undone, newest first."""
    undone = Adjudication.objects.filter(reverts=OuterRef("pk"))  # as a join it would read all that they ever decided
    mine = Adjudication.objects.filter(~Exists(undone), reviewer_id=person.user_id, reverts__isnull=True)
    return list(mine.order_by("-created_at", "-id")[:limit])
