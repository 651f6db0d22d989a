"""What an import knows: whose rows arrive, what is called otherwise here, and what stays out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model

from memory.models import EmbeddingSpace
from memory.models.lesson import SIMILARITIES
from memory.services.transfer.checking import Checked
from memory.services.transfer.kinds import KINDS, PERSON, SPACE, Moved
from memory.services.transfer.writing import USER

KEPT: Final = "kept_here"  # tells of a row that is here already, and stays as it is here
SKIPPED_BY: Final = "skipped_by"  # in the parts of a question's priority: the people who could not answer it


@dataclass(kw_only=True)
class Arrival:
    """One import."""

    checked: Checked
    account: UUID
    scope: UUID | None  # account of the lessons; None where they are shared
    people: Mapping[int, int]  # by the id that they had, their id here
    spaces: Mapping[UUID, UUID]
    bases: Mapping[UUID | None, int]  # newest place in the order of credits here, by scope: what arrives comes after
    moved: dict[str, Moved] = field(default_factory=lambda: {name: Moved() for name in KINDS})
    new: dict[str, set[UUID]] = field(default_factory=lambda: {name: set() for name in KINDS})  # ids that arrived
    refused: dict[UUID, str] = field(default_factory=dict)  # lessons that stay out, and why
    same: dict[UUID, UUID] = field(default_factory=dict)  # rows that are another here: of that value or name is one
    lost: set[UUID] = field(default_factory=set)  # exposures that stay out
    judged: set[UUID] = field(default_factory=set)  # lessons whose evidence is another now
    erased: dict[str, int] = field(default_factory=dict)  # rows that an earlier erasure took again, by table
    unembedded: str = ""  # why lessons wait for their vectors, if they do

    def as_json(self) -> dict[str, Any]:
        return {
            "kinds": {name: vars(moved) for name, moved in self.moved.items() if moved.rows},
            "erased": self.erased,
            **({"unembedded": self.unembedded} if self.unembedded else {}),
        }

    def here(self, kind: str, row: dict[str, Any]) -> dict[str, Any]:
        """A row with people, spaces and merged lessons by their ids here."""
        found = dict(row)
        for name, target in KINDS[kind].references.items():
            if found[name] is None:
                continue
            if target == PERSON:
                found[name] = self.people[found[name]]
            elif target == SPACE:
                found[name] = self.spaces[found[name]]
            else:
                found[name] = self.same.get(found[name], found[name])
        if "actor" in found:
            found["actor"] = self._actor(found["actor"])
        if kind == "review_item" and SKIPPED_BY in found["priority_parts"]:
            by = [self.people[i] for i in found["priority_parts"][SKIPPED_BY] if i in self.people]
            found["priority_parts"] = {**found["priority_parts"], SKIPPED_BY: by}
        return found

    def _actor(self, actor: str) -> str:
        who = actor.removeprefix(USER)
        if who == actor or not who.isdecimal() or int(who) not in self.people:
            return actor
        return f"{USER}{self.people[int(who)]}"


def people_here(people: Mapping[int, str]) -> dict[int, int]:
    """Who they are here, by their user names. Who is unknown gets a place that nobody can log in to."""
    users = get_user_model().objects
    found = dict(users.filter(username__in=people.values()).values_list("username", "pk"))
    for name in sorted(set(people.values()) - found.keys()):
        user = users.create_user(name)
        user.is_active = False
        user.save(update_fields=["is_active"])
        found[name] = user.pk
    return {there: found[name] for there, name in people.items()}


def spaces_here(spaces: Iterable[dict[str, Any]]) -> dict[UUID, UUID]:
    """The same spaces here; one that is not here comes with its thresholds, and is not searched."""
    found = {}
    for row in spaces:
        identity = {name: row[name] for name in ("model", "revision", "dimension")}
        own = {name: row[name] for name in (*SIMILARITIES, "gate", "calibrated_at")}
        space, _ = EmbeddingSpace.objects.get_or_create(**identity, defaults={**own, "is_active": False})
        found[row["id"]] = space.pk
    return found
