"""Preferences: learned from what a person says, changed only by journalled refinements that can be rolled back."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Interaction, Outcome, Preference, RefinementHistory
from memory.models.preference import JSON_LIMIT
from memory.models.vocabulary import RefinementOperation
from memory.rules.preference import confidence, extract
from memory.rules.privacy import find_private

MAX_EVIDENCE = 16
MAX_TEXT = 1000  # characters
MAX_EXPECTED = 2048
SHAPE = {"scope": str, "key": str, "text": str, "enabled": bool}  # of a state in the journal


def learn(interaction: Interaction) -> int:
    """Keeps the preferences that an interaction's task states; returns how many. Runs once, with the interaction."""
    found = extract(interaction.task)
    for said in sorted(found, key=lambda said: said.key):  # in one order: two turns never wait for each other
        # The project that was named scopes the wish; without one it holds everywhere.
        scope = (
            f"project:{interaction.project.slug}" if interaction.project and interaction.project_explicit else "global"
        )
        preference, new = Preference.objects.select_for_update().get_or_create(
            account_id=interaction.account_id,
            scope=scope,
            key=said.key,
            defaults={
                "text": said.text,
                "source_interaction": interaction.pk,
                "confidence": confidence(1),
                "evidence_count": 1,
                "enabled": True,
                "revision": 1,
            },
        )
        if not new:
            preference.evidence_count += 1
            preference.confidence = confidence(preference.evidence_count)
            preference.save(update_fields=["evidence_count", "confidence"])
    return len(found)


@dataclass(frozen=True, kw_only=True)
class Refinement:
    """A change that somebody proposes, with what speaks for it."""

    expected_version: int  # the revision that the proposer saw
    changes: Mapping[str, Any]  # of text and enabled
    evidence: Sequence[Mapping[str, str]]  # 1 to 16: {"kind": "outcome", "id": ...} or {"kind": "note", "text": ...}
    expected_outcome: str  # what should get better


def state_of(preference: Preference) -> dict[str, Any]:
    """What a refinement may change, and what names it."""
    return {
        "scope": preference.scope,
        "key": preference.key,
        "text": preference.text,
        "enabled": preference.enabled,
    }


def digest_of(state: Mapping[str, Any]) -> str:
    """SHA-256 of the state as canonical JSON (sorted keys, no white space, UTF-8)."""
    canonical = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


@transaction.atomic
def refine(account_id: UUID, preference_id: UUID, request: Refinement, actor: str) -> RefinementHistory:
    """Applies a refinement. Raises NotFound, Conflict with the current version, or Invalid naming the field."""
    _check(account_id, request)
    preference = _locked(account_id, preference_id)
    _expect(preference, request.expected_version)
    before = state_of(preference)
    after = {**before, **request.changes}
    if after == before:
        raise Invalid.field("text", "the change changes nothing. Send another text, or another `enabled`.")
    return _write(preference, after, RefinementOperation.APPLY, request, actor)


def flaw(state: Any, digest: str) -> str:
    """Why a state in the journal must not become the present one, as a sentence; empty if it may."""
    if not isinstance(state, dict) or digest_of(state) != digest:
        return "The journal of this refinement does not match its digests."
    if {name: type(value) for name, value in state.items()} != SHAPE:
        return "This version was written in another shape than preferences have today. It can be read and copied."
    return ""


@transaction.atomic
def roll_back(
    account_id: UUID, refinement_id: UUID, expected_version: int, actor: str, reason: str = ""
) -> RefinementHistory:
    """Takes a refinement back, as a new revision. Allowed while the preference still is what the refinement made it.

    Raises NotFound, or Conflict if the preference has changed since or the journal does not match its digests.
    """
    entry = RefinementHistory.objects.filter(pk=refinement_id, preference__account_id=account_id).first()
    if entry is None:
        raise NotFound("There is no such refinement in your account.")
    preference = _locked(account_id, entry.preference_id)
    _expect(preference, expected_version)
    broken = flaw(entry.before_json, entry.before_digest) or flaw(entry.after_json, entry.after_digest)
    if broken:
        raise Conflict(f"{broken} It cannot be rolled back.")
    if digest_of(state_of(preference)) != entry.after_digest:
        raise Conflict(
            f"The preference has changed since this refinement; it is at version {preference.revision}. "
            "Roll back the later change first, or refine it to the text you want."
        )
    request = Refinement(
        expected_version=expected_version,
        changes={},
        evidence=[{"kind": "refinement", "id": str(entry.pk)}, *([{"kind": "note", "text": reason}] if reason else [])],
        expected_outcome=f"Takes back version {entry.after_version}.",
    )
    return _write(preference, entry.before_json, RefinementOperation.ROLLBACK, request, actor, entry)


def _locked(account_id: UUID, preference_id: UUID) -> Preference:
    preference = Preference.objects.select_for_update().filter(pk=preference_id, account_id=account_id).first()
    if preference is None:
        raise NotFound("There is no such preference in your account.")
    return preference


def _expect(preference: Preference, version: int) -> None:
    if preference.revision != version:
        raise Conflict(
            f"The preference is at version {preference.revision}, not {version}. Read it again and decide anew.",
            {"expected_version": [f"the current version is {preference.revision}."]},
        )


def _check(account_id: UUID, request: Refinement) -> None:
    """Whether the proposal is complete, harmless and grounded."""
    if not 1 <= len(request.evidence) <= MAX_EVIDENCE:
        raise Invalid.field("evidence", f"give 1 to {MAX_EVIDENCE} pieces.")
    if not 1 <= len(request.expected_outcome) <= MAX_EXPECTED:
        raise Invalid.field("expected_outcome", f"say in 1 to {MAX_EXPECTED} characters what should get better.")
    if len(json.dumps(list(request.evidence)).encode()) > JSON_LIMIT:
        raise Invalid.field("evidence", f"is over {JSON_LIMIT} bytes.")
    text = request.changes.get("text")
    if text is not None and not 1 <= len(text) <= MAX_TEXT:
        raise Invalid.field("text", f"use 1 to {MAX_TEXT} characters.")
    if text is not None and (private := find_private(text)):
        raise Invalid.field("text", f"holds something private ({', '.join(private)}). Leave it out.")
    named = {piece["id"] for piece in request.evidence if piece["kind"] == "outcome"}
    own = Outcome.objects.filter(pk__in=named, interaction__account_id=account_id)
    missing = named - {str(pk) for pk in own.values_list("pk", flat=True)}
    if missing:
        raise Invalid.field("evidence", f"there is no outcome {', '.join(sorted(missing))} in your account.")


def _write(
    preference: Preference,
    after: Mapping[str, Any],
    operation: RefinementOperation,
    request: Refinement,
    actor: str,
    parent: RefinementHistory | None = None,
) -> RefinementHistory:
    """The new revision and its journal row."""
    before = state_of(preference)
    preference.text, preference.enabled = after["text"], after["enabled"]
    preference.revision += 1
    preference.save(update_fields=["text", "enabled", "revision"])
    return RefinementHistory.objects.create(
        preference=preference,
        operation=operation.value,
        parent=parent,
        expected_version=request.expected_version,
        before_version=preference.revision - 1,
        after_version=preference.revision,
        before_digest=digest_of(before),
        after_digest=digest_of(after),
        before_json=before,
        after_json=dict(after),
        evidence_json=list(request.evidence),
        expected_outcome=request.expected_outcome,
        actor=actor,
    )
