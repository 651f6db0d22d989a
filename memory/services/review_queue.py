"""Who works on which question: held for ten minutes, handed on, put off until something happens, given to somebody.

Each write is one conditional UPDATE whose row count decides, by the database's clock: of two people who reach for a
question one has it, and the other is told who.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Comment, LessonStanding, LessonUsage, Membership, ReviewItem
from memory.models.sql import fetch
from memory.models.vocabulary import COHORT, ReviewKind, ReviewStatus, Role
from memory.rules.attribution import TOLERANCE
from memory.rules.text import clean
from memory.services.adjudication import account_of
from memory.services.authority import RANKS, Person
from memory.services.questions import UNRESOLVED

CLAIM: Final = timedelta(minutes=10)
COMMENT_LIMIT: Final = 2000  # characters
SERVINGS_LIMIT: Final = 100_000


class Held(Conflict):
    """Somebody else is at it."""

    def __init__(self, by: str, until: datetime) -> None:
        super().__init__(f"{by} is reviewing this until {until:%H:%M} UTC. You may read it, or take it over.")
        self.by = by
        self.until = until


@dataclass(frozen=True, kw_only=True)
class Until:
    """When a snoozed question returns; exactly one of the three."""

    date: datetime | None = None  # at this moment
    servings: int | None = None  # when its lesson was handed out so many more times, >= 1
    worse: bool = False  # when its lesson's S exceeds what it is now


def role_for(kind: str) -> Role:
    """Who may work on a question of this kind."""
    judged = (ReviewKind.OUTCOME_NEEDED.value, ReviewKind.OUTCOME_CONFLICT.value)
    return Role.JUDGE if kind in judged else Role.REVIEWER


def claim(item_id: UUID, person: Person) -> None:
    """Holds a question for ten minutes from now; the person's other questions are let go.

    Raises NotFound, Forbidden, Held, or Conflict if it is answered already or is the person's own request.
    """
    _permitted(item_id, person)
    if not claim_each([item_id], person):
        raise _why_not(item_id, person)
    _claimed_by(person).exclude(pk=item_id).update(claimed_by=None, claim_expires_at=None)


def claim_each(items: Iterable[UUID], person: Person) -> set[UUID]:
    """Holds those that nobody else holds, and says which; the rights are the caller's business."""
    wanted = list(items)
    free = Q(claimed_by__isnull=True) | Q(claimed_by=person.user_id) | Q(claim_expires_at__lte=Now())
    open_ones = ReviewItem.objects.filter(free, pk__in=wanted, status__in=UNRESOLVED)
    open_ones.exclude(requested_by=person.user_id).update(**_mine(person))
    return set(_claimed_by(person).filter(pk__in=wanted).values_list("pk", flat=True))


def take_over(item_id: UUID, person: Person) -> None:
    """Holds a question that somebody else may hold. Raises NotFound, Forbidden or Conflict."""
    _permitted(item_id, person)
    open_one = ReviewItem.objects.filter(pk=item_id, status__in=UNRESOLVED).exclude(requested_by=person.user_id)
    if not open_one.update(**_mine(person)):
        raise _why_not(item_id, person)


def release(item_id: UUID, person: Person) -> bool:
    """Lets a question go; returns whether the person held it."""
    held = _claimed_by(person).filter(pk=item_id)
    return bool(held.update(claimed_by=None, claim_expires_at=None))


def release_all(user_id: int) -> int:
    """Lets go what a person holds, as when they log out; returns how many questions."""
    return ReviewItem.objects.filter(claimed_by=user_id).update(claimed_by=None, claim_expires_at=None)


def snooze(item_id: UUID, person: Person, until: Until) -> None:
    """Puts a question off and lets it go. Raises NotFound, Forbidden, Held, Conflict, or Invalid naming the field."""
    item = _permitted(item_id, person)
    condition = _condition(item, until)
    free = Q(claimed_by__isnull=True) | Q(claimed_by=person.user_id) | Q(claim_expires_at__lte=Now())
    changed = ReviewItem.objects.filter(free, pk=item_id, status__in=UNRESOLVED).update(
        status=ReviewStatus.SNOOZED.value,
        version=F("version") + 1,
        claimed_by=None,
        claim_expires_at=None,
        **condition,
    )
    if not changed:
        raise _why_not(item_id, person)


def _condition(item: ReviewItem, until: Until) -> dict[str, datetime | float | int | None]:
    nothing = {"snoozed_until": None, "snoozed_servings": None, "snoozed_s": None}
    if [until.date is not None, until.servings is not None, until.worse].count(True) != 1:
        raise Invalid.field("until", "choose one: a date, a number of servings, or until it worsens.")
    if until.date is not None:
        ((now,),) = fetch("SELECT now()")
        if until.date <= now:
            raise Invalid.field("date", "choose a day that is still to come.")
        return {**nothing, "snoozed_until": until.date}
    if until.servings is not None:
        if not 1 <= until.servings <= SERVINGS_LIMIT:
            raise Invalid.field("servings", f"a whole number from 1 to {SERVINGS_LIMIT:,}.")
        served = LessonUsage.objects.filter(lesson=item.subject, exposure__in=COHORT).count()
        return {**nothing, "snoozed_servings": served + until.servings}
    standing = LessonStanding.objects.filter(pk=item.subject).values_list("policy", "s").first()
    policy, s = standing or ("trial", 0.0)
    if policy != "trial":
        raise Invalid.field("until", "the policy in force keeps no odds that could worsen. Choose a date or servings.")
    return {**nothing, "snoozed_s": s or 0.0}


def due() -> QuerySet[ReviewItem]:
    """Snoozed questions that are back: their date has come, or their lesson was handed out enough or has got worse."""
    s = LessonStanding.objects.filter(pk=OuterRef("subject")).values("s")
    handed_out = LessonUsage.objects.filter(lesson=OuterRef("subject"), exposure__in=COHORT).order_by().values("lesson")
    servings = Coalesce(Subquery(handed_out.annotate(n=Count("pk")).values("n")), 0)
    worse = Q(snoozed_s__lt=Subquery(s) - TOLERANCE)
    back = Q(snoozed_until__lte=Now()) | worse | Q(snoozed_servings__lte=servings)
    return ReviewItem.objects.filter(back, status=ReviewStatus.SNOOZED.value)


def wake() -> int:
    """Opens the snoozed questions that are due; returns how many. What each waited for stays, to say why it is back."""
    return due().update(status=ReviewStatus.OPEN.value)


def cancel_snooze(item_id: UUID, person: Person) -> None:
    """Opens a snoozed question at once. Raises NotFound, Forbidden, or Conflict if it is not snoozed any more."""
    _permitted(item_id, person)
    snoozed = ReviewItem.objects.filter(pk=item_id, status=ReviewStatus.SNOOZED.value)
    nothing = {"snoozed_until": None, "snoozed_servings": None, "snoozed_s": None}
    if not snoozed.update(status=ReviewStatus.OPEN.value, **nothing):
        raise Conflict("This is not snoozed any more.")


def assign(item_id: UUID, person: Person, to: int | None) -> None:
    """Gives a question to somebody who may answer it, None to nobody. Raises NotFound, Forbidden, Invalid, Conflict."""
    item = _permitted(item_id, person)
    if to is not None and to not in assignable(item, person):
        raise Invalid.field("to", "choose somebody who may answer this.")
    if not ReviewItem.objects.filter(pk=item_id, status__in=UNRESOLVED).update(assigned_to=to):
        raise _why_not(item_id, person)


def assignable(item: ReviewItem, person: Person) -> dict[int, str]:
    """Who may answer this question, by user id: members with the role where it belongs, and the person who asks."""
    enough = [role.value for role in RANKS if RANKS.index(role) >= RANKS.index(role_for(item.kind))]
    members = Membership.objects.filter(role__in=enough, user__is_active=True)
    if item.account_id is not None:
        members = members.filter(account=item.account_id)
    elif (mine := person.accounts()) is not None:
        members = members.filter(account__in=mine)  # whom a person shares no account with, they do not see
    found = {user: name for user, name in members.values_list("user", "user__username") if user != item.requested_by_id}
    return {person.user_id: person.name, **found} if person.user_id != item.requested_by_id else found


def comment(subject: UUID, person: Person, text: str) -> Comment:
    """Says something about a subject to whoever looks at it; said again at once, it is said once.

    Raises NotFound, Forbidden, or Invalid naming `text`.
    """
    person.need(Role.JUDGE, account_of(subject))
    said = clean(text).strip()
    if not said or len(said) > COMMENT_LIMIT:
        raise Invalid.field("text", f"write something, at most {COMMENT_LIMIT:,} characters.")
    latest = Comment.objects.filter(subject=subject).order_by("-created_at").first()
    if latest is not None and (latest.author_id, latest.text) == (person.user_id, said):
        return latest  # sent once more, because the first answer was lost
    return Comment.objects.create(subject=subject, author_id=person.user_id, text=said)


def _permitted(item_id: UUID, person: Person) -> ReviewItem:
    item = ReviewItem.objects.filter(pk=item_id).first()
    if item is None or not person.may(Role.VIEWER, item.account_id):
        raise NotFound("There is no such question.")
    person.need(role_for(item.kind), item.account_id)
    return item


def _claimed_by(person: Person) -> QuerySet[ReviewItem]:
    return ReviewItem.objects.filter(claimed_by=person.user_id)


def _mine(person: Person) -> dict[str, object]:
    return {"claimed_by": person.user_id, "claim_expires_at": Now() + CLAIM}


def _why_not(item_id: UUID, person: Person) -> Conflict:
    """What stood in the way of a conditional update."""
    item = ReviewItem.objects.filter(pk=item_id).select_related("claimed_by").first()
    if item is None or item.status not in UNRESOLVED:
        return Conflict("This has been answered meanwhile.")
    if item.requested_by_id == person.user_id:
        return Conflict("You asked for this second opinion, so somebody else gives it.")
    if item.claimed_by is not None and item.claim_expires_at is not None:
        return Held(item.claimed_by.get_username(), item.claim_expires_at)
    return Conflict("This changed while you reached for it. Try again.")
