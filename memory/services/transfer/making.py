"""A row of a file as it is written here."""

import hashlib
import secrets
from typing import Any

from django.utils import timezone

from memory.models.vocabulary import DistillationReason, DistillationState
from memory.services.transfer import lessons
from memory.services.transfer.arrival import Arrival


def made(arrival: Arrival, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is written here."""
    match name:
        case "api_key":
            # Nobody has the secret of this hash: the key names who reported, and opens nothing.
            opens_nothing = hashlib.sha256(secrets.token_bytes(32)).hexdigest()
            return {**row, "hashed_key": opens_nothing, "revoked_at": row["revoked_at"] or timezone.now()}
        case "lesson":
            return lessons.complete(row)
        case "lesson_tombstone":
            return lessons.sign(arrival, row)
        case "lesson_distillation":
            return _distillation(arrival, row)
        case "outcome" if row["interaction_id"] not in arrival.new["interaction"]:
            return {**row, "credited_at": None}
        case "credit" | "lesson_usage" | "lesson_standing":
            return _ordered(arrival, name, row)
        case _:
            return row


def _ordered(arrival: Arrival, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """Places in the order of credits come after those that are taken here."""
    base = arrival.bases.get(row["account_id"] if name == "credit" else arrival.scope, 0)
    places = {c: row[c] + base for c in ("credit_seq", "ledger_from_seq", "released_seq") if row.get(c) is not None}
    figures = {"policy": "trial", "wins": 0, "losses": 0, "on_trial": False, "version": 1}
    return {**row, **places, **(figures if name == "lesson_standing" else {})}


def _distillation(arrival: Arrival, row: dict[str, Any]) -> dict[str, Any]:
    """An unfinished one waits for a worker here; one that led to a lesson which stays out led to none."""
    if row["state"] == DistillationState.CLAIMED:
        row = {**row, "state": DistillationState.RETRYABLE.value}
    lesson = row["lesson"]
    if lesson in arrival.refused:
        known = arrival.refused[lesson]
        why = known if known in DistillationReason.values else DistillationReason.NOT_CONCRETE.value
        return {**row, "state": DistillationState.NO_LESSON.value, "result_reason": why, "lesson": None}
    return {**row, "lesson": arrival.same.get(lesson, lesson)}
