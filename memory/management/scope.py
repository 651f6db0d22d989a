"""Which lessons a command works on."""

import re
from uuid import UUID

from django.core.management.base import CommandError

from memory import conf
from memory.models import Account
from memory.models.scope import SLUG


def lesson_scope(slug: str | None) -> UUID | None:
    """The account that the lessons belong to; None where they are global. Raises CommandError with what to say."""
    by_account = conf.current().lesson_scope == "account"
    if by_account and slug is None:
        raise CommandError("SONDER_LESSON_SCOPE is 'account': say whose lessons they are, with --account.")
    if not by_account and slug is not None:
        raise CommandError("SONDER_LESSON_SCOPE is 'global': lessons belong to no account. Leave --account out.")
    return None if slug is None else existing_account(slug).pk


def existing_account(slug: str, hint: str = "") -> Account:
    """The account of that slug. Raises CommandError with the hint; what can be no slug is not looked up."""
    account = Account.objects.filter(slug=slug).first() if re.fullmatch(SLUG, slug) else None
    if account is None:
        raise CommandError(f"There is no account {slug!r}. {hint}".rstrip())
    return account
