"""Which account a page is about, where it can be about only one."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest

from memory.errors import NotFound
from memory.models import Account
from memory.models.vocabulary import Role
from review.access import person_of


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The account that the address names, and the others that the reader could look at."""

    account: Account | None  # None: the whole installation, which only an operator sees
    options: tuple[Account, ...]  # in the order of their slugs
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
    options = tuple(rows.order_by("slug"))
    slug = request.GET.get("account", "")
    if not slug:
        first = None if who.everywhere else next(iter(options), None)
        return Choice(account=first, options=options, everywhere=who.everywhere)
    named = next((account for account in options if account.slug == slug), None)
    if named is None:
        raise NotFound("There is no such account among yours.")
    return Choice(account=named, options=options, everywhere=who.everywhere)
