"""The first start of a store: an embedding space, and an account, keys and a login to try it with."""

import secrets
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db import transaction

from memory.errors import EmbeddingUnavailable
from memory.models import Account, Membership
from memory.models.vocabulary import OutcomeSource, ReviewPolicy, Role
from memory.services.keys import create_key
from memory.services.space import open_first_space

DEMO = "demo"


@dataclass(frozen=True, kw_only=True)
class FirstStart:
    """Everything that is told only once."""

    account: str
    caller_key: str
    machine_key: str
    username: str
    password: str


def first_start() -> FirstStart | None:
    """Makes the demo account, its keys and a reviewer's login, if the store has no account yet; else None."""
    with transaction.atomic():
        if Account.objects.exists():
            return None
        account = Account.objects.create(slug=DEMO, name="Demo", review_policy=ReviewPolicy.AUTO.value)
        keys = {
            source: create_key(account, name=f"first start, {source}", source=source, scopes=["loop", "read"]).secret
            for source in (OutcomeSource.CALLER.value, OutcomeSource.MACHINE.value)
        }
        password = secrets.token_urlsafe(12)
        user = get_user_model().objects.create_superuser("reviewer", password=password)
        Membership.objects.create(account=account, user=user, role=Role.MAINTAINER.value)
    return FirstStart(
        account=account.slug,
        caller_key=keys["caller"],
        machine_key=keys["machine"],
        username="reviewer",
        password=password,
    )


def open_space() -> str:
    """Opens the embedding space if there is none; returns what keeps retrieval to words alone, or ''."""
    try:
        open_first_space()
    except EmbeddingUnavailable as refusal:
        return refusal.detail
    return ""
