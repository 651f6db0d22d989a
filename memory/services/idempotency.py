"""The same request twice is one request: its first answer is kept and replayed."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memory import conf
from memory.errors import Conflict
from memory.models import IdempotencyRecord
from memory.models.base import new_id
from memory.models.sql import execute

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer that can be sent again."""

    status: int
    body: Mapping[str, Any]  # JSON
    replayed: bool = False


def body_digest(method: str, path: str, body: object) -> str:
    """SHA-256 of the request: its method, path and body as canonical JSON."""
    canonical = json.dumps([method, path, body], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


@transaction.atomic
def once(account_id: UUID, key: str, digest: str, act: Callable[[], Answer]) -> Answer:
    """Runs `act` for the first request with this key, and replays its answer for the same request later.

    A request that comes while the first is still at work waits for it. Raises Conflict for another request with the
    same key. A refusal is not kept: the caller may correct the request and use the key again.
    """
    expired = timezone.now() - timedelta(hours=conf.current().idempotency_hours)
    IdempotencyRecord.objects.filter(account_id=account_id, key=key, created_at__lt=expired).delete()
    if not _claim(account_id, key, digest):
        first = IdempotencyRecord.objects.get(account_id=account_id, key=key)
        if first.body_digest != digest:
            raise Conflict(
                "This Idempotency-Key was used for another request. Use a new key for a new request.",
                {"Idempotency-Key": ["use a new key for a new request."]},
            )
        assert first.status is not None, "a record is committed together with its answer"
        return Answer(status=first.status, body=first.response or {}, replayed=True)
    answer = act()
    IdempotencyRecord.objects.filter(account_id=account_id, key=key).update(
        status=answer.status, response=answer.body, names=named(answer.body)
    )
    return answer


def named(body: Mapping[str, Any]) -> list[UUID]:
    """Every id in an answer, also within a text: when what it names is erased, the kept answer goes with it."""
    return sorted({UUID(found) for found in _ID.findall(json.dumps(body, default=str))})


def _claim(account_id: UUID, key: str, digest: str) -> bool:
    """Whether this request is the first; waits for a rival that has not committed yet."""
    claimed = execute(
        "INSERT INTO idempotency_record (id, account_id, key, body_digest) VALUES (%s, %s, %s, %s) "
        "ON CONFLICT (account_id, key) DO NOTHING",
        [new_id(), account_id, key, digest],
    )
    return claimed == 1


def forget_expired() -> int:
    """Deletes answers that are too old to be replayed; returns how many."""
    expired = timezone.now() - timedelta(hours=conf.current().idempotency_hours)
    return IdempotencyRecord.objects.filter(created_at__lt=expired).delete()[0]
