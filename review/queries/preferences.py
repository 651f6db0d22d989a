"""Preferences: which there are, what changed last, and how work went under each version."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Q

from memory.models import Account, Outcome, Preference, Project, RefinementHistory
from memory.models.sql import fetch
from memory.rules.health import Interval, wilson
from memory.services.ids import first_id
from memory.services.preference_history import Version
from review.queries.actors import names
from review.queries.agreement import ENOUGH

PAGE: Final = 50
WINDOW: Final = 2000  # judged interactions counted for one version: more would not move the share any more
RECENT: Final = 12  # outcomes offered as evidence


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A preference in the list, with its latest change."""

    preference: Preference
    account: str  # slug
    change: RefinementHistory | None  # None: it is as it was learned
    who: str  # changed it last; empty without a change


def listed(mine: Q, words: str, page: int) -> tuple[list[Listed], bool]:
    """One page of preferences, latest changes first, and whether there are more. Three queries."""
    found = Preference.objects.filter(mine).select_related("account")
    for word in words.split():
        found = found.filter(Q(text__icontains=word) | Q(key__icontains=word) | Q(scope__icontains=word))
    rows = list(found.order_by("account__slug", "scope", "key")[page * PAGE : (page + 1) * PAGE + 1])
    shown = rows[:PAGE]
    changes = latest_changes([row.pk for row in shown])
    who = names(change.actor for change in changes.values())
    lines = []
    for row in shown:
        change = changes.get(row.pk)
        name = who[change.actor] if change else ""
        lines.append(Listed(preference=row, account=row.account.slug, change=change, who=name))
    return lines, len(rows) > PAGE


def latest_changes(preferences: Sequence[UUID]) -> dict[UUID, RefinementHistory]:
    """The latest refinement of each that has one."""
    rows = RefinementHistory.objects.filter(preference__in=preferences)
    newest = rows.order_by("preference", "-after_version").distinct("preference")
    return {row.preference_id: row for row in newest}


@dataclass(frozen=True, kw_only=True)
class Effect:
    """How judged work went while a version was in force, in its account and scope."""

    won: int
    n: int

    @property
    def enough(self) -> bool:
        return self.n >= ENOUGH

    @property
    def share(self) -> float | None:
        """Of wins, in [0, 1]; None where nothing was judged."""
        return self.won / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        return wilson(self.won, self.n)


def effects(preference: Preference, versions: Sequence[Version]) -> dict[int, Effect]:
    """By version: the first WINDOW judged interactions after it, until the next one came. One query.

    It is what happened afterwards, and no proof of what caused it.
    """
    project = preference.scope.removeprefix("project:") if preference.scope != "global" else ""
    rows = fetch(
        """
        SELECT v.number, count(*) FILTER (WHERE w.y = 0), count(*)
        FROM unnest(%(numbers)s::int[], %(since)s::uuid[], %(until)s::uuid[]) AS v(number, since, until)
        CROSS JOIN LATERAL (
            SELECT c.y FROM interaction i
                JOIN credit c ON c.interaction_id = i.id AND c.y IS NOT NULL
                LEFT JOIN project p ON p.id = i.project_id
            WHERE i.account_id = %(account)s AND i.id >= v.since AND i.id < v.until
                AND (%(project)s = '' OR p.slug = %(project)s)
            ORDER BY i.id LIMIT %(window)s
        ) w
        GROUP BY v.number
        """,
        {
            "numbers": [version.number for version in versions],
            "since": [first_id(version.since) for version in versions],
            "until": [first_id(version.until) if version.until else UUID(int=2**128 - 1) for version in versions],
            "account": preference.account_id,
            "project": project,
            "window": WINDOW,
        },
    )
    found = {number: Effect(won=won, n=n) for number, won, n in rows}
    return {version.number: found.get(version.number, Effect(won=0, n=0)) for version in versions}


@dataclass(frozen=True, kw_only=True)
class Line:
    """A version in the rail."""

    version: Version
    who: str  # a person, a key or the system
    person: bool  # a person made it, and no agent
    reasons: tuple[str, ...]  # what was written as evidence, then what was hoped for
    outcomes: int  # outcomes named as evidence
    effect: Effect
    current: bool


def rail(preference: Preference, versions: Sequence[Version]) -> list[Line]:
    """The versions with who made them, why, and what came after. Two queries."""
    who = names(version.entry.actor for version in versions if version.entry)
    came_after = effects(preference, versions)
    return [_line(preference, version, who, came_after[version.number]) for version in versions]


def _line(preference: Preference, version: Version, who: dict[str, str], effect: Effect) -> Line:
    entry = version.entry
    evidence = entry.evidence_json if entry and isinstance(entry.evidence_json, list) else []
    pieces = [piece for piece in evidence if isinstance(piece, dict)]
    notes = [str(piece["text"]) for piece in pieces if piece.get("kind") == "note" and piece.get("text")]
    learned = "Learned from what was said in a task." if preference.source_interaction else "Set up with the account."
    return Line(
        version=version,
        who=who[entry.actor] if entry else ("an agent's work" if preference.source_interaction else "the system"),
        person=entry is not None and entry.actor.startswith("user:"),
        reasons=(*notes, entry.expected_outcome) if entry else (learned,),
        outcomes=sum(piece.get("kind") == "outcome" for piece in pieces),
        effect=effect,
        current=version.number == preference.revision,
    )


def recent_outcomes(preference: Preference) -> list[Outcome]:
    """The newest outcomes of its account and scope, to be named as evidence. One query."""
    found = Outcome.objects.filter(interaction__account=preference.account_id).select_related("interaction")
    if preference.scope != "global":
        named = Project.objects.filter(account=preference.account_id, slug=preference.scope.removeprefix("project:"))
        found = found.filter(interaction__project__in=named)
    return list(found.order_by("-interaction_id", "-sequence")[:RECENT])


def has_accounts(mine: Q) -> bool:
    """Whether there is an account at all whose preferences the reader could see."""
    return Account.objects.filter(mine).exists()
