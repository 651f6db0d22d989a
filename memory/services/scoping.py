"""Which lessons, sums and locks belong together."""

from uuid import UUID

from memory import conf
from memory.models import Account
from memory.models.sql import fetch
from memory.models.vocabulary import ReviewPolicy
from memory.search import Scope


def lesson_account(account_id: UUID | None) -> UUID | None:
    """The account that lessons and sums of this account's work belong to; None where lessons are global."""
    return account_id if conf.current().lesson_scope == "account" else None


def search_scope(account: Account) -> Scope:
    """What this account's retrieval may see."""
    return Scope(account_id=lesson_account(account.pk), reviewed_only=account.review_policy == ReviewPolicy.GATED.value)


def lock_scope(account_id: UUID | None) -> None:
    """Makes the crediting of one scope take turns until the transaction ends, so that no two share a credit_seq."""
    fetch("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"sonder:credit:{account_id or 'global'}"])
