"""People who decide: a reviewer, a judge, a viewer, a maintainer, and somebody of another account."""

from typing import Any
from uuid import uuid4

from django.contrib.auth import get_user_model

from memory.models import Account, Membership, ReviewItem
from memory.models.vocabulary import Verdict
from memory.rules.reasons import reasons_for
from memory.services.adjudication import Decision, version_of
from memory.services.authority import Person, person


def member(account: Account, role: str, name: str) -> Person:
    """A person with a role in an account; their password is their name."""
    user = get_user_model().objects.create_user(name, password=name)
    Membership.objects.create(account=account, user=user, role=role)
    return person(user.pk, name)


def decision(who: Person, verdict: Verdict, subject: Any, item: ReviewItem | None = None, **more: Any) -> Decision:
    """A decision that has seen the present version."""
    version = item.version if item else version_of(subject)
    reason = "other" if reasons_for(verdict.value) else ""
    fields = {"reason_code": reason, "expected_version": version, "idempotency_key": uuid4().hex, **more}
    return Decision(person=who, verdict=verdict, subject=subject, item=item.pk if item else None, **fields)
