"""Facts about a project, in two times: when something was true, and when the store believed it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Fact, Project
from memory.models.sql import fetch
from memory.rules.privacy import find_private


@dataclass(frozen=True, kw_only=True)
class NewFact:
    """What is to be believed from now on."""

    project: str  # slug; made on first use
    text: str
    key: str | None = None  # what the fact is about; one key has one value at a time
    valid_from: datetime | None = None  # None: for ever before
    valid_until: datetime | None = None  # None: until further notice; the moment itself is no longer included


@transaction.atomic
def record(account_id: UUID, new: NewFact) -> Fact:
    """Believes a fact from now on. Raises Invalid, or Conflict if another fact about its key is valid at that time."""
    return _believe(account_id, new)


def _believe(account_id: UUID, new: NewFact, corrected: Fact | None = None) -> Fact:
    """Records a fact; one that corrects another is believed from the very moment at which the other is no longer."""
    since = {"supersedes": corrected.pk, "recorded_at": corrected.retracted_at} if corrected else {}
    if find_private(new.text):
        raise Invalid.field("text", "holds a secret or an address. Facts are handed to agents; leave it out.")
    if new.valid_from is not None and new.valid_until is not None and new.valid_from >= new.valid_until:
        raise Invalid.field("valid_until", "must be after valid_from.")
    project, _ = Project.objects.get_or_create(account_id=account_id, slug=new.project, defaults={"name": new.project})
    try:
        with transaction.atomic():
            return Fact.objects.create(
                account_id=account_id,
                project=project,
                key=new.key,
                text=new.text,
                valid_from=new.valid_from,
                valid_until=new.valid_until,
                **since,
            )
    except IntegrityError as error:
        if "another unretracted fact" not in str(error):
            raise
        raise Conflict(
            f"Another fact about '{new.key}' is valid at that time. Correct or retract it, or use other times.",
            {"key": ["another fact about it is valid at that time."]},
        ) from None


@transaction.atomic
def retract(account_id: UUID, fact_id: UUID) -> Fact:
    """Stops believing a fact; it stays as what was believed. Raises NotFound, or Conflict if that was done before."""
    fact = Fact.objects.select_for_update().filter(pk=fact_id, account_id=account_id).first()
    if fact is None:
        raise NotFound("There is no such fact in your account.")
    if fact.retracted_at is not None:
        raise Conflict(f"The fact was retracted at {fact.retracted_at.isoformat()}.")
    ((fact.retracted_at,),) = fetch("SELECT clock_timestamp()")  # the clock that recorded_at is read from
    fact.save(update_fields=["retracted_at"])
    return fact


@dataclass(frozen=True, kw_only=True)
class Correction:
    """What was wrong about a fact; a field left out stays as it was."""

    changes: dict[str, object]  # of text, valid_from and valid_until


@transaction.atomic
def correct(account_id: UUID, fact_id: UUID, correction: Correction) -> Fact:
    """Retracts a fact and believes the corrected one from the same moment on: at each moment one of the two is."""
    old = retract(account_id, fact_id)
    fields = {"text": old.text, "valid_from": old.valid_from, "valid_until": old.valid_until, **correction.changes}
    if all(getattr(old, name) == value for name, value in fields.items()):
        raise Invalid.field("text", "the correction changes nothing.")
    new = NewFact(project=old.project.slug, key=old.key, **fields)  # type: ignore[arg-type]  # the API checked each
    return _believe(account_id, new, corrected=old)


def known(account_id: UUID, *, as_of: datetime | None = None, believed_at: datetime | None = None) -> QuerySet[Fact]:
    """Facts true at `as_of` (default: at any time) as the store believed at `believed_at` (default: now)."""
    facts = Fact.objects.filter(account_id=account_id)
    if believed_at is None:
        facts = facts.filter(retracted_at__isnull=True)
    else:
        still = Q(retracted_at__isnull=True) | Q(retracted_at__gt=believed_at)
        facts = facts.filter(still, recorded_at__lte=believed_at)
    if as_of is not None:
        begun = Q(valid_from__isnull=True) | Q(valid_from__lte=as_of)
        facts = facts.filter(begun, Q(valid_until__isnull=True) | Q(valid_until__gt=as_of))
    return facts
