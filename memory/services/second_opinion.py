"""Second opinions: somebody else looks without knowing what the first thought, and then both see both."""

from typing import Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from memory.errors import Conflict, Invalid, NotFound
from memory.models import ReviewItem, SecondOpinion
from memory.models.vocabulary import ReviewKind, ReviewStatus, Role, Verdict
from memory.services.adjudication import ACTS, Stale, account_of
from memory.services.authority import Person
from memory.services.questions import UNRESOLVED

#: What an opinion may say: what a decision could, without doing it.
OPINIONS: Final = (
    Verdict.APPROVE, Verdict.QUARANTINE, Verdict.REJECT, Verdict.UPHOLD, Verdict.RELEASE, Verdict.RELEASE_TO_TRIAL,
    Verdict.KEEP_FIRST, Verdict.KEEP_SECOND, Verdict.KEEP_BOTH, Verdict.NOT_A_CONTRADICTION,
)  # fmt: skip
PRIORITY: Final = 0.5  # chance that it matters: somebody was not sure


def request(subject: UUID, person: Person, own: Verdict | None = None) -> ReviewItem:
    """Asks somebody else about a subject; `own` is what the person thinks, hidden until the other has answered.

    Raises NotFound, Forbidden, Invalid, or Conflict if an opinion is being waited for already.
    """
    account = account_of(subject)
    person.need(Role.REVIEWER, account)
    try:
        with transaction.atomic():
            item = ReviewItem.objects.create(
                account_id=account,
                kind=ReviewKind.SECOND_OPINION.value,
                subject=subject,
                priority=PRIORITY,
                priority_parts={"severity": PRIORITY},
                status=ReviewStatus.OPEN.value,
                requested_by_id=person.user_id,
            )
            if own is not None:
                _record(subject, person, own)
    except IntegrityError as error:
        if "review_item_one_unresolved" not in str(error):
            raise
        raise Conflict("Somebody has been asked for a second opinion already.") from None
    return item


def save(item_id: UUID, person: Person, verdict: Verdict, expected_version: int) -> SecondOpinion:
    """Records what the person thinks and answers the request; whoever asked gets the question back, with both views.

    Raises NotFound, Forbidden, Invalid, Stale if the subject changed, or Conflict.
    """
    item = ReviewItem.objects.filter(pk=item_id, kind=ReviewKind.SECOND_OPINION.value).first()
    if item is None or not person.may(Role.VIEWER, item.account_id):
        raise NotFound("There is no such question.")
    person.need(Role.REVIEWER, item.account_id)
    if item.requested_by_id == person.user_id:
        raise Conflict("You asked for this second opinion, so somebody else gives it.")
    with transaction.atomic():
        free = Q(claimed_by__isnull=True) | Q(claimed_by=person.user_id) | Q(claim_expires_at__lte=Now())
        answered = ReviewItem.objects.filter(free, pk=item_id, version=expected_version, status__in=UNRESOLVED).update(
            status=ReviewStatus.RESOLVED.value,
            version=F("version") + 1,
            resolved_by=person.user_id,
            resolved_at=Now(),
            claimed_by=None,
            claim_expires_at=None,
        )
        if not answered:
            raise Stale("This changed since you looked, or somebody else is at it. Your opinion was not saved.", None)
        _return_to(item)
        return _record(item.subject, person, verdict)


def _return_to(item: ReviewItem) -> None:
    """Whoever asked finds the questions about the subject among theirs, unless somebody else has them."""
    waiting = ReviewItem.objects.filter(subject=item.subject, status__in=UNRESOLVED, assigned_to__isnull=True)
    waiting.update(assigned_to=item.requested_by_id)


def _record(subject: UUID, person: Person, verdict: Verdict) -> SecondOpinion:
    if verdict not in OPINIONS or verdict not in ACTS:
        raise Invalid.field("decision", f"choose one of {', '.join(v.value for v in OPINIONS)}.")
    made, _ = SecondOpinion.objects.update_or_create(
        subject=subject, author_id=person.user_id, defaults={"verdict": verdict.value, "created_at": Now()}
    )
    return made


def opinions(subject: UUID) -> list[SecondOpinion]:
    """What people think, oldest first; nothing while somebody is asked and has not answered."""
    asked = ReviewItem.objects.filter(
        subject=OuterRef("subject"), kind=ReviewKind.SECOND_OPINION.value, status__in=UNRESOLVED
    )
    said = SecondOpinion.objects.filter(~Exists(asked), subject=subject).select_related("author")
    return list(said.order_by("created_at", "pk"))
