"""API keys: made once, shown once, stored as a hash, checked on every request, replaced and revoked by operators."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Account, ApiKey, OperatorAct
from memory.models.rows import Rows
from memory.models.sql import fetch
from memory.models.vocabulary import OperatorAction, OutcomeSource
from memory.services import acts
from memory.services.caller import Caller

SCOPES = ("loop", "read", "govern", "admin")
KEY_SHAPE = re.compile(r"^sonder_([a-z0-9]{12})_([A-Za-z0-9_-]{43})$")
MAX_GRACE = timedelta(days=30)  # that a replaced key may go on: long enough to change it everywhere, and not for good
MAX_NAME = 100  # characters, as the column holds
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: prefixes are read aloud
_SEEN_EVERY = timedelta(minutes=1)
_KEY, _ACCOUNT = Rows(ApiKey, "k"), Rows(Account, "a")


@dataclass(frozen=True, kw_only=True)
class NewKey:
    """A key at the only moment when its secret is known."""

    key: ApiKey
    secret: str  # the whole bearer token


def hash_key(token: str) -> str:
    """SHA-256 of the token. It carries 256 random bits, so a slow password hash would protect nothing more."""
    return hashlib.sha256(token.encode()).hexdigest()


def create_key(
    account: Account,
    *,
    name: str,
    source: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    by: str = "",
) -> NewKey:
    """A new key for an account, journalled as made `by` an actor where one is named.

    Raises Invalid naming `name`, `source` or `scopes`.
    """
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
    if by:
        acts.note(OperatorAction.KEY_MADE, key.pk, account_id=account.pk, actor=by, detail=prefix)
    return NewKey(key=key, secret=token)


@transaction.atomic
def rotate(key_id: UUID, *, by: str, grace: timedelta = timedelta(0), expires_at: datetime | None = None) -> NewKey:
    """A key that takes another's place: its account, name, source and scopes, under a secret of its own.

    The old one works for `grace` longer and no longer than it would have, or is revoked at once. The new one lives as
    long as the old one was to, counted from now, unless `expires_at` says until when. A form that is sent twice makes
    one new key. Raises NotFound, Conflict for a key that does not work any more or has been replaced, and Invalid
    naming `grace` or `expires_at`.
    """
    now = timezone.now()
    if not timedelta(0) <= grace <= MAX_GRACE:
        raise Invalid.field("grace", f"use 0 to {MAX_GRACE.days} days.")
    if expires_at is not None and expires_at <= now:
        raise Invalid.field("expires_at", "this time has passed already.")
    old = ApiKey.objects.select_for_update(of=("self",)).select_related("account").filter(pk=key_id).first()
    if old is None:
        raise NotFound("There is no such key.")
    if not is_live(old, now):
        raise Conflict(f"The key {old.prefix} does not work any more. Make a new one.")
    if OperatorAct.objects.filter(action=OperatorAction.KEY_ROTATED, detail__startswith=f"{old.prefix} ").exists():
        raise Conflict(f"The key {old.prefix} has been replaced already. Rotate the one that replaced it.")
    life = None if old.expires_at is None else now + (old.expires_at - old.created_at)
    made = create_key(
        old.account, name=old.name, source=old.outcome_source, scopes=old.scopes, expires_at=expires_at or life
    )
    if grace:
        old.expires_at = min(filter(None, (old.expires_at, now + grace)))
        ends = f"until {old.expires_at:%Y-%m-%d %H:%M} UTC"
    else:
        old.revoked_at, ends = now, "revoked"
    old.save(update_fields=["expires_at", "revoked_at"])
    detail = f"{old.prefix} ({ends}) by {made.key.prefix}"
    acts.note(OperatorAction.KEY_ROTATED, made.key.pk, account_id=old.account_id, actor=by, detail=detail)
    return made


@transaction.atomic
def revoke(key_id: UUID, *, by: str) -> bool:
    """Ends a key at once; whether it was this that ended it. One that is revoked already keeps its time."""
    ended = ApiKey.objects.filter(pk=key_id, revoked_at__isnull=True)
    if not ended.update(revoked_at=Now()):
        return False
    key = ApiKey.objects.get(pk=key_id)
    acts.note(OperatorAction.KEY_REVOKED, key.pk, account_id=key.account_id, actor=by, detail=key.prefix)
    return True


def is_live(key: ApiKey, now: datetime) -> bool:
    """Whether it works: neither revoked nor expired."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > now)


def find_key(token: str) -> ApiKey | None:
    """The live key of a bearer token, or None for a malformed, unknown, revoked or expired one."""
    shape = KEY_SHAPE.match(token)
    if shape is None:
        return None
    key = _with_account(shape[1])
    if key is None or not hmac.compare_digest(key.hashed_key, hash_key(token)):
        return None
    now = timezone.now()
    if not is_live(key, now):
        return None
    if key.last_used_at is None or now - key.last_used_at > _SEEN_EVERY:
        # At most one write a minute: a busy key must not turn every read into an update.
        stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _SEEN_EVERY)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)
    return key


def _with_account(prefix: str) -> ApiKey | None:
    both = f"{_KEY.columns}, {_ACCOUNT.columns}"
    rows = fetch(f"SELECT {both} FROM api_key k JOIN account a ON a.id = k.account_id WHERE k.prefix = %s", [prefix])
    if not rows:
        return None
    key = _KEY.read(rows[0][: _KEY.width])
    key.account = _ACCOUNT.read(rows[0][_KEY.width :])
    return key


def caller_of(key: ApiKey) -> Caller:
    """The scope and authority that a key carries."""
    return Caller(account_id=key.account_id, source=key.outcome_source, actor=f"api_key:{key.prefix}", key_id=key.pk)
