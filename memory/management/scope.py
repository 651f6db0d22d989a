"""Which lessons a command works on."""

from uuid import UUID

from django.core.management.base import CommandError

from memory import conf
from memory.models import Account


def lesson_scope(slug: str | None) -> UUID | None:
    """The account that the lessons belong to; None where they are global. Raises CommandError with what to say."""
    by_account = conf.current().lesson_scope == "account"
    if by_account and slug is None:
        raise CommandError("SONDER_LESSON_SCOPE is 'account': say whose lessons they are, with --account.")
    if not by_account and slug is not None:
        raise CommandError("SONDER_LESSON_SCOPE is 'global': lessons belong to no account. Leave --account out.")
    if slug is None:
        return None
    account = Account.objects.filter(slug=slug).first()
    if account is None:
        raise CommandError(f"There is no account '{slug}'.")
    return account.pk
