"""API keys: made once, shown once, stored as a hash, checked on every request."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from memory.errors import Invalid
from memory.models import Account, ApiKey
from memory.models.vocabulary import OutcomeSource
from memory.services.caller import Caller

SCOPES = ("loop", "read", "govern", "admin")
KEY_SHAPE = re.compile(r"^sonder_([a-z0-9]{12})_([A-Za-z0-9_-]{43})$")
MAX_NAME = 100  # characters, as the column holds
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: prefixes are read aloud
_SEEN_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class NewKey:
    """A key at the only moment when its secret is known."""

    key: ApiKey
    secret: str  # the whole bearer token


def hash_key(token: str) -> str:
    """SHA-256 of the token. It carries 256 random bits, so a slow password hash would protect nothing more."""
    return hashlib.sha256(token.encode()).hexdigest()


def create_key(
    account: Account, *, name: str, source: str, scopes: Iterable[str], expires_at: datetime | None = None
) -> NewKey:
    """A new key for an account. Raises Invalid naming `name`, `source` or `scopes`."""
    if not (name.strip() and len(name) <= MAX_NAME and name.isprintable()):
        raise Invalid.field("name", f"use 1 to {MAX_NAME} printable characters.")
    wanted = list(dict.fromkeys(scopes))
    if source not in OutcomeSource.values:
        raise Invalid.field("source", f"choose one of {', '.join(OutcomeSource.values)}.")
    if not wanted or not set(wanted) <= set(SCOPES):
        raise Invalid.field("scopes", f"choose from {', '.join(SCOPES)}.")
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(12))
    token = f"sonder_{prefix}_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        account=account,
        name=name,
        prefix=prefix,
        hashed_key=hash_key(token),
        outcome_source=source,
        scopes=wanted,
        expires_at=expires_at,
    )
    return NewKey(key=key, secret=token)


def find_key(token: str) -> ApiKey | None:
    """The live key of a bearer token, or None for a malformed, unknown, revoked or expired one."""
    shape = KEY_SHAPE.match(token)
    if shape is None:
        return None
    key = ApiKey.objects.select_related("account").filter(prefix=shape[1]).first()
    if key is None or not hmac.compare_digest(key.hashed_key, hash_key(token)):
        return None
    now = timezone.now()
    if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now):
        return None
    if key.last_used_at is None or now - key.last_used_at > _SEEN_EVERY:
        # At most one write a minute: a busy key must not turn every read into an update.
        stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _SEEN_EVERY)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)
    return key


def caller_of(key: ApiKey) -> Caller:
    """The scope and authority that a key carries."""
    return Caller(account_id=key.account_id, source=key.outcome_source, actor=f"api_key:{key.prefix}", key_id=key.pk)
