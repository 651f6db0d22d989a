"""The versions of a preference, as its journal has them, and the return to one of them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import Conflict, NotFound
from memory.models import Preference, RefinementHistory
from memory.services.preference import Refinement, flaw, refine, state_of


@dataclass(frozen=True, kw_only=True)
class Version:
    """What a preference was from one change to the next."""

    number: int
    state: Any  # as the journal has it; of an earlier format it may have another shape
    since: datetime
    until: datetime | None  # None: it is the present one
    entry: RefinementHistory | None  # the refinement that made it; None for what was learned
    flaw: str  # why it cannot be restored; empty if it can

    @property
    def text(self) -> str:
        """To read, whatever shape it has."""
        found = self.state.get("text") if isinstance(self.state, dict) else None
        return found if isinstance(found, str) else str(self.state)

    @property
    def enabled(self) -> bool:
        """Whether it was handed out."""
        return isinstance(self.state, dict) and self.state.get("enabled") is True


def versions_of(preference: Preference) -> list[Version]:
    """Every version, newest first. One query."""
    entries = list(RefinementHistory.objects.filter(preference=preference).order_by("after_version"))
    if not entries:
        return [_version(preference.revision, state_of(preference), "", preference.created_at, None, None)]
    first = entries[0]
    broken = flaw(first.before_json, first.before_digest)
    found = [_version(first.before_version, first.before_json, broken, preference.created_at, first.created_at, None)]
    for entry, following in zip(entries, [*entries[1:], None], strict=True):
        until = following.created_at if following else None
        broken = flaw(entry.after_json, entry.after_digest)
        found.append(_version(entry.after_version, entry.after_json, broken, entry.created_at, until, entry))
    return found[::-1]


def _version(
    number: int, state: Any, flawed: str, since: datetime, until: datetime | None, entry: RefinementHistory | None
) -> Version:
    return Version(number=number, state=state, flaw=flawed, since=since, until=until, entry=entry)


def find(versions: list[Version], number: int) -> Version:
    """The version of this number. Raises NotFound."""
    for version in versions:
        if version.number == number:
            return version
    raise NotFound(f"There is no version {number} of this preference.")


@transaction.atomic
def restore(
    account_id: UUID, preference_id: UUID, number: int, *, expected_version: int, reason: str, actor: str
) -> RefinementHistory:
    """Makes an earlier version's text and state the present ones, byte for byte, as a new version.

    A refinement like any other: it can be taken back the same way. Raises NotFound, Invalid if it would change
    nothing, or Conflict with the current version, or if the journal of that version is not to be trusted.
    """
    preference = Preference.objects.select_for_update().filter(pk=preference_id, account_id=account_id).first()
    if preference is None:
        raise NotFound("There is no such preference in your account.")
    version = find(versions_of(preference), number)
    if version.flaw:
        raise Conflict(f"{version.flaw} It cannot be restored.")
    request = Refinement(
        expected_version=expected_version,
        changes={"text": version.state["text"], "enabled": version.state["enabled"]},
        evidence=[{"kind": "note", "text": reason}],
        expected_outcome=f"Restores version {number}.",
    )
    return refine(account_id, preference_id, request, actor)
