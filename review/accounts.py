"""Which account a page is about, where it can be about only one."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.http import HttpRequest

from memory.errors import NotFound
from memory.models import Account
from memory.models.vocabulary import Role
from review.access import person_of

LISTED: Final = 200  # accounts to choose from; where there are more, their slugs are typed


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The account that the address names, and the others that the reader could look at."""

    account: Account | None  # None: the whole installation, which only an operator sees
    options: tuple[Account, ...]  # the first LISTED in the order of their slugs
    many: bool  # whether there are more
    everywhere: bool  # the reader may look at the whole installation

    @property
    def account_id(self) -> UUID | None:
        return self.account.pk if self.account else None

    @property
    def name(self) -> str:
        return self.account.name if self.account else "the whole installation"


def choose(request: HttpRequest, role: Role = Role.VIEWER) -> Choice:
    """The account of `?account=slug`; without one the first of the reader's, for an operator the whole installation.

    Raises NotFound if the reader has not at least this role there.
    """
    who = person_of(request)
    mine = who.accounts(role)
    rows = Account.objects.all() if mine is None else Account.objects.filter(pk__in=mine)
    found = tuple(rows.order_by("slug")[: LISTED + 1])
    options, many = found[:LISTED], len(found) > LISTED
    slug = request.GET.get("account", "").strip()
    if not slug:
        named = None if who.everywhere else next(iter(options), None)
        return Choice(account=named, options=options, many=many, everywhere=who.everywhere)
    named = next((account for account in found if account.slug == slug), None)
    if named is None and many:
        named = rows.filter(slug=slug).first()
    if named is None:
        raise NotFound("There is no such account among yours.")
    return Choice(account=named, options=options, many=many, everywhere=who.everywhere)
