"""Who has which role in which account: granted, changed and taken away by its maintainers, and journalled."""

import json
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Account, Membership
from memory.models.vocabulary import Role
from memory.services.authority import Person

#: Of each change: the flag of the journal that operators read too.
FLAGS: Final = {"role_granted": ADDITION, "role_changed": CHANGE, "role_removed": DELETION}


@dataclass(frozen=True, kw_only=True)
class Change:
    """A role that somebody gets, or with `role` None loses."""

    by: Person
    account_id: UUID
    user_id: int
    role: Role | None
    expected: str = ""  # the role that was seen; empty for somebody without one


def grant(by: Person, account_id: UUID, username: str, role: str) -> Membership:
    """Gives a person who has none here a role. Raises Invalid, Forbidden, NotFound, or Conflict if they have one."""
    by.need(Role.MAINTAINER, account_id)
    user = get_user_model().objects.filter(username=username, is_active=True).first()
    if user is None:
        raise Invalid.field("username", "there is no such person who can log in. An operator makes logins.")
    made = change(Change(by=by, account_id=account_id, user_id=user.pk, role=_role(role)))
    assert made is not None, "a grant leaves a role"
    return made


def change(asked: Change) -> Membership | None:
    """Grants, changes or takes away a role; returns what the person has then.

    Raises Forbidden, NotFound, and Conflict if the role is not the one that was seen, or if the account would be left
    without a maintainer.
    """
    asked.by.need(Role.MAINTAINER, asked.account_id)
    with transaction.atomic():
        account = Account.objects.select_for_update().filter(pk=asked.account_id).first()
        if account is None:
            raise NotFound("There is no such account.")
        member = Membership.objects.filter(account=account, user_id=asked.user_id).select_related("user").first()
        _check(asked, member)
        return _carry_out(asked, account, member)


def _check(asked: Change, member: Membership | None) -> None:
    has = member.role if member else ""
    if has != asked.expected:
        raise Conflict(f"This person's role changed meanwhile: it is {has or 'none'} now. Nothing was changed.")
    if has == Role.MAINTAINER and asked.role != Role.MAINTAINER:
        others = Membership.objects.filter(
            account_id=asked.account_id, role=Role.MAINTAINER.value, user__is_active=True
        ).exclude(user_id=asked.user_id)
        if not others.exists():
            raise Conflict("The account would be left without a maintainer. Make somebody else one first.")


def _carry_out(asked: Change, account: Account, member: Membership | None) -> Membership | None:
    if asked.role is None:
        if member is None:
            raise NotFound("This person has no role here.")
        _journal(asked, "role_removed", member, member.role)
        member.delete()
        return None
    if member is None:
        member = Membership.objects.create(account=account, user_id=asked.user_id, role=asked.role.value)
        _journal(asked, "role_granted", member, member.role)
    elif member.role != asked.role:
        before, member.role = member.role, asked.role.value
        member.save(update_fields=["role"])
        _journal(asked, "role_changed", member, f"{before} to {member.role}")
    return member


def _journal(asked: Change, action: str, member: Membership, role: str) -> None:
    message = {"action": action, "role": role, "person": member.user.get_username(), "account": str(member.account_id)}
    LogEntry.objects.create(
        user_id=asked.by.user_id,
        content_type=ContentType.objects.get_for_model(Membership),
        object_id=str(member.pk),
        object_repr=str(member)[:200],
        action_flag=FLAGS[action],
        change_message=json.dumps(message),
    )


def _role(word: str) -> Role:
    if word not in Role.values:
        raise Invalid.field("role", f"choose one of {', '.join(Role.values)}.")
    return Role(word)


def role_or_none(word: str) -> Role | None:
    """A role as a form sends it; empty takes the role away. Raises Invalid."""
    return _role(word) if word else None
