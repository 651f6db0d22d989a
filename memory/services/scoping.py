"""Which lessons, sums and locks belong together."""

from uuid import UUID

from memory import conf
from memory.models import Account
from memory.models.sql import fetch
from memory.models.vocabulary import ReviewPolicy
from memory.search import Scope

EVERY_SCOPE = "sonder:credit"  # what the advisory locks are called; a scope's own goes on with its name


def lesson_account(account_id: UUID | None) -> UUID | None:
    """The account that lessons and sums of this account's work belong to; None where lessons are global."""
    return account_id if conf.current().lesson_scope == "account" else None


def search_scope(account: Account) -> Scope:
    """What this account's retrieval may see."""
    return Scope(account_id=lesson_account(account.pk), reviewed_only=account.review_policy == ReviewPolicy.GATED.value)


def lock_scope(account_id: UUID | None) -> None:
    """Makes the crediting of one scope take turns until the transaction ends, so that no two share a credit_seq.

    Whoever needs `lock_all` too takes that one first: two that hold a scope would wait for each other.
    """
    fetch("SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))", [EVERY_SCOPE])
    fetch("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{EVERY_SCOPE}:{account_id or 'global'}"])


def lock_all() -> None:
    """Waits until no credit is under way in any scope, and lets none begin until the transaction ends.

    One lock, however many accounts there are: each scope's turn holds it too, shared with the turns of the others.
    """
    fetch("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [EVERY_SCOPE])
