"""Who has which role."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory.models import Account, Membership
from memory.models.vocabulary import Role
from memory.services.authority import RANKS, Person

SHOWN = 500  # members of one account


@dataclass(frozen=True, kw_only=True)
class Member:
    """A person in an account."""

    user_id: int
    name: str
    role: str
    since: datetime
    last_login: datetime | None
    me: bool
    last_maintainer: bool  # nobody else could give roles


@dataclass(frozen=True, kw_only=True)
class Team:
    """An account and its people, those with the most rights first."""

    account: Account
    members: tuple[Member, ...]
    mine: bool  # the reader gives roles here


def teams(person: Person) -> list[Team]:
    """The accounts of a person, for an operator all, with everybody in them. Two queries."""
    ids = person.accounts()
    accounts = Account.objects.all() if ids is None else Account.objects.filter(pk__in=ids)
    found = list(accounts.order_by("slug"))
    rows = Membership.objects.filter(account__in=found, user__is_active=True).select_related("user")
    members = list(rows.order_by("user__username"))
    return [_team(account, [m for m in members if m.account_id == account.pk], person) for account in found]


def _team(account: Account, rows: Sequence[Membership], person: Person) -> Team:
    maintainers = sum(row.role == Role.MAINTAINER for row in rows)
    members = tuple(
        Member(
            user_id=row.user_id,
            name=row.user.get_username(),
            role=row.role,
            since=row.created_at,
            last_login=row.user.last_login,
            me=row.user_id == person.user_id,
            last_maintainer=row.role == Role.MAINTAINER and maintainers == 1,
        )
        for row in sorted(rows, key=lambda row: -RANKS.index(Role(row.role)))[:SHOWN]
    )
    return Team(account=account, members=members, mine=person.may(Role.MAINTAINER, account.pk))


def account_named(person: Person, account_id: UUID) -> Account | None:
    """An account that the person may see."""
    ids = person.accounts()
    return Account.objects.filter(pk=account_id).first() if ids is None or account_id in ids else None
