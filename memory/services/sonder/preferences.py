"""What people want, and how each wish was refined."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from memory.models import Preference, RefinementHistory
from memory.models.preference import JSON_LIMIT
from memory.models.vocabulary import RefinementOperation
from memory.rules.privacy import find_private
from memory.services.importing import SYSTEM
from memory.services.preference import MAX_EVIDENCE, MAX_EXPECTED, digest_of
from memory.services.sonder import values
from memory.services.sonder.job import Job, Known, before, each, following, if_there, ordered_id
from memory.services.sonder.snapshot import Row
from memory.services.sonder.values import PROJECT, Skipped, project_slug

GLOBAL = "global"
STATE = ("scope", "key", "text", "enabled")  # of a snapshot, what a refinement may have changed and what names it


def preferences(job: Job, rows: Sequence[Row]) -> None:
    """Wishes. Where one of the same key is here already, it stays and the old one does not come along."""
    known = job.known("preference", (row.get("id") for row in rows))
    sources = job.known("interaction", (row.get("source_interaction") for row in rows))
    new: dict[str, UUID] = {}

    def take(row: Row) -> bool:
        legacy = values.ident(row.get("id"))
        if before(known, legacy, new):
            return False
        at, text, key = values.moment(row.get("created_ts"), job.now), _public(row.get("text")), _key(row.get("key"))
        preference, made = Preference.objects.get_or_create(
            account=job.account,
            scope=_scope(job, row.get("scope")),
            key=key,
            defaults={
                "id": ordered_id(at, row["rowid"]),
                "created_at": at,
                "text": text,
                "source_interaction": if_there(sources, row.get("source_interaction")),
                "confidence": values.share(row.get("confidence")),
                "evidence_count": values.whole(row.get("evidence_count"), least=0),
                "enabled": values.whole(row.get("enabled"), least=0, most=1) == 1,
                "revision": 1 if row.get("revision") is None else values.whole(row["revision"], least=1),
            },
        )
        if not made:
            raise Skipped("another_here")
        new[legacy] = preference.pk
        return True

    each(job, "preferences", rows, take)
    job.remember("preference", new.items())


def _public(value: Any) -> str:
    """A text that may be handed to agents. Raises Skipped."""
    text = values.needed(value)
    if find_private(text):
        raise Skipped("private")
    return text


def _key(value: Any) -> str:
    key = values.needed(value)
    if len(key) > 100:
        raise Skipped("bad_value")
    return key


def _scope(job: Job, value: Any) -> str:
    """Everywhere, or one project; the project is made if it is not there. Raises Skipped for another scope."""
    scope = values.said(value) or GLOBAL
    if scope == GLOBAL:
        return GLOBAL
    project = job.project(scope.removeprefix(PROJECT)) if scope.startswith(PROJECT) else None
    if project is None:
        raise Skipped("unknown_scope")
    return f"{PROJECT}{project.slug}"


def refinements(job: Job, rows: Sequence[Row]) -> None:
    """The journal of preferences, in the order in which it was written. What does not match its digests stays out."""
    known = job.known("refinement", (row.get(name) for row in rows for name in ("id", "parent_refinement_id")))
    targets = job.known("preference", (row.get("target_id") for row in rows))
    evidence = {row["rowid"]: _evidence(row) for row in rows}
    outcomes = job.known("outcome", (_outcome(piece) for pieces in evidence.values() for piece in pieces))
    new: dict[str, UUID] = {}

    def take(row: Row) -> bool:
        legacy = values.ident(row.get("id"))
        if before(known, legacy, new):
            return False
        at = values.moment(row.get("created_ts"), job.now)
        pieces = [_piece(piece, outcomes) for piece in evidence[row["rowid"]]][:MAX_EVIDENCE]
        if len(json.dumps(pieces).encode()) > JSON_LIMIT:
            raise Skipped("too_long")
        entry = RefinementHistory.objects.create(
            id=ordered_id(at, row["rowid"]),
            created_at=at,
            preference_id=following(targets, values.ident(row.get("target_id"))),
            evidence_json=pieces,
            actor=SYSTEM,  # the old journal names nobody
            **_change(row, {**known, **{i: Known(subject=s, refusal="", alive=True) for i, s in new.items()}}),
        )
        new[legacy] = entry.pk
        return True

    each(job, "refinement_history", rows, take)
    job.remember("refinement", new.items())


def _change(row: Row, known: Mapping[str, Known]) -> dict[str, Any]:
    """What was changed, by what right and from which version. Raises Skipped."""
    operation = row.get("operation")
    if operation not in RefinementOperation.values:
        raise Skipped("bad_value")
    first = values.whole(row.get("before_version"), least=1)
    if row.get("after_version") != first + 1:
        raise Skipped("bad_version")
    is_rollback = operation == RefinementOperation.ROLLBACK
    states = {side: _state(row, side) for side in ("before", "after")}
    return {
        "operation": operation,
        "parent_id": following(known, row.get("parent_refinement_id")) if is_rollback else None,
        "expected_version": values.whole(row.get("expected_version"), least=1),
        "before_version": first,
        "after_version": first + 1,
        "expected_outcome": values.needed(row.get("expected_outcome"))[:MAX_EXPECTED],
        **{f"{side}_json": state for side, state in states.items()},
        **{f"{side}_digest": digest_of(state) for side, state in states.items()},
    }


def _state(row: Row, side: str) -> dict[str, Any]:
    """A snapshot of the old journal, proven by its digest, as this journal writes states. Raises Skipped."""
    written = _parsed(row.get(f"{side}_json"))
    if not isinstance(written, dict) or digest_of(written) != row.get(f"{side}_digest"):
        raise Skipped("digest_mismatch")
    scope, key, text, enabled = (written.get(name) for name in STATE)
    if not (isinstance(scope, str) and isinstance(enabled, bool)):
        raise Skipped("bad_value")
    name = scope.removeprefix(PROJECT)
    here = scope if name == scope else f"{PROJECT}{project_slug(name)}"
    return {"scope": here, "key": _key(key), "text": _public(text), "enabled": enabled}


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None


def _evidence(row: Row) -> list[dict[str, Any]]:
    pieces = _parsed(row.get("evidence_json"))
    return [piece for piece in pieces if isinstance(piece, dict)] if isinstance(pieces, list) else []


def _outcome(piece: Mapping[str, Any]) -> str | None:
    """How an outcome that a piece of evidence names is known."""
    name = f"{piece.get('interaction_id')}:{piece.get('signal')}"
    return name if piece.get("interaction_id") and piece.get("signal") else None


def _piece(piece: Mapping[str, Any], outcomes: Mapping[str, Known]) -> dict[str, str]:
    """An outcome that is here, else what was said about it. Raises Skipped for what is private."""
    outcome = if_there(outcomes, _outcome(piece))
    if outcome is not None:
        return {"kind": "outcome", "id": str(outcome)}
    text = values.said(piece.get("summary")) or "Nothing was noted."
    if find_private(text):
        raise Skipped("private")
    return {"kind": "note", "text": text}
