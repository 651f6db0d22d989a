"""Who has which role."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from memory.models import Account, Membership
from memory.models.vocabulary import Role
from memory.services.authority import RANKS, Person

SHOWN: Final = 500  # members of one account
PAGE: Final = 50  # accounts


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


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some of the accounts, in the order of their slugs."""

    teams: tuple[Team, ...]
    further: str  # slug of the account that the next page begins with; empty on the last one


def teams(person: Person, since: str = "") -> Page:
    """A page of a person's accounts, for an operator of all, with everybody in them. Two queries."""
    found = list(_accounts(person).filter(slug__gte=since).order_by("slug")[: PAGE + 1])
    shown = found[:PAGE]
    rows = Membership.objects.filter(account__in=shown, user__is_active=True).select_related("user")
    members: dict[UUID, list[Membership]] = {account.pk: [] for account in shown}
    for row in rows.order_by("user__username"):
        members[row.account_id].append(row)
    return Page(
        teams=tuple(_team(account, members[account.pk], person) for account in shown),
        further=found[PAGE].slug if len(found) > PAGE else "",
    )


def _accounts(person: Person) -> QuerySet[Account]:
    ids = person.accounts()
    return Account.objects.all() if ids is None else Account.objects.filter(pk__in=ids)


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
    return _accounts(person).filter(pk=account_id).first()


def page_of(person: Person, account: Account) -> str:
    """Where the page begins that has this account: at itself, or at the first where one page has them all."""
    return account.slug if _accounts(person).order_by("slug")[PAGE : PAGE + 1].exists() else ""
