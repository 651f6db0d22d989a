"""The thresholds of the active space: in force, proposed, and what was applied before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.utils.safestring import SafeString

from memory.models import Calibration, EmbeddingSpace
from memory.rules.calibration import Expected
from memory.rules.description import span
from memory.rules.health import Interval
from memory.services import calibration
from memory.services.calibration import Distribution, Proposal, Values
from review.charts import Axes, Curve, Table, curves, curves_table
from review.queries.actors import names

ENTRIES: Final = 10  # of the journal
#: What each number is called; a gate's are named by `gate.`.
LABELS: Final = {
    "uncorroborated_min_similarity": "Similarity that is enough alone",
    "min_similarity": "Similarity that two shared words corroborate",
    "gate.min_support": "Support from which a task is of the store's kind",
    "gate.min_similarity": "Similarity that is then enough",
}
BASES: Final = {
    "learned": "tasks that a lesson was learned from",
    "won": "tasks that were won with a lesson",
    "file": "questions of a file",
    "everyday": "questions of everyday life",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number, as it is and as it would be."""

    label: str
    before: str
    after: str

    @property
    def changes(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A change of the journal."""

    id: UUID
    at: datetime
    who: str
    reason: str  # empty where none was given
    rows: tuple[Row, ...]  # what it changed
    can_undo: bool  # what was before is other than what is in force

    @property
    def undo(self) -> str:
        """What a form asks for that takes it back."""
        return f"before:{self.id}"


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A distribution of scores with the thresholds on it."""

    title: str
    svg: SafeString
    table: Table


def rows(before: Values, after: Values) -> tuple[Row, ...]:
    """Every number of two sets of thresholds beside each other."""
    flat, other = _flat(before), _flat(after)
    return tuple(
        Row(
            label=LABELS.get(name, name.replace("_", " ").capitalize()),
            before=_told(flat, name),
            after=_told(other, name),
        )
        for name in dict.fromkeys((*LABELS, *flat, *other))
        if name in flat or name in other
    )


def _flat(values: Values) -> dict[str, float]:
    gate: Mapping[str, float] = values.get("gate") or {}
    plain = {name: value for name, value in values.items() if isinstance(value, int | float)}
    return {**plain, **{f"gate.{name}": value for name, value in gate.items()}}


def _told(values: Mapping[str, float], name: str) -> str:
    return f"{values[name]:.3f}" if name in values else "none"


def does(expected: Expected | None) -> dict[str, str] | None:
    """What a gate does, in words with intervals."""
    if expected is None:
        return None
    return {
        "recall": _share(expected.found, expected.tasks, expected.recall),
        "noise": _share(expected.noisy, expected.off_domain, expected.noise),
    }


def _share(part: int, whole: int, estimate: tuple[float, float, float]) -> str:
    if not whole:
        return "nothing to judge by"
    return f"{part} of {whole}, plausibly {span(Interval(low=estimate[1], high=estimate[2]))}"


def basis(proposal: Proposal) -> list[tuple[int, str]]:
    """How many questions of each kind stand behind it."""
    found = [(n, BASES.get(name, name)) for name, n in proposal.basis.items()]
    return [*found, (proposal.other_topics, "tasks beside lessons of other topics")]


def pictures(proposal: Proposal, beside: str) -> list[Picture]:
    """How the scores of tasks and of questions that none fits lie, with the thresholds proposed and those `beside`."""
    by_name = {each.name: each for each in proposal.distributions}
    made = []
    for title, unit, pair, names_ in (
        ("Similarity with the best lesson", "cosine", ("tasks", "off_domain"), ("uncorroborated_min_similarity",)),
        (
            "Support: similarity with the store",
            "mean cosine",
            ("support_tasks", "support_off_domain"),
            ("gate.min_support",),
        ),
    ):
        drawn = [by_name[name] for name in pair]
        if all(each.n for each in drawn):
            made.append(_picture(title, unit, drawn, _marks(proposal, names_, beside)))
    return made


def _marks(proposal: Proposal, wanted: Sequence[str], beside: str) -> tuple[tuple[float, str], ...]:
    told = [(beside, proposal.present), ("proposed", proposal.proposed or {})]
    marks = [(_flat(values).get(name), words) for name in wanted for words, values in told]
    return tuple((value, words) for value, words in marks if value is not None)


def _picture(title: str, unit: str, drawn: Sequence[Distribution], marks: tuple[tuple[float, str], ...]) -> Picture:
    labels = ("Tasks, with the lesson that fits", "Questions that none fits")
    found = [
        Curve(label=f"{label} (n = {each.n})", x=each.edges, y=tuple(100 * share for share in each.shares))
        for label, each in zip(labels, drawn, strict=True)
    ]
    axes = Axes(x=unit, y="% of questions", marks=marks, stepped=True)
    prefix = f"scores-{drawn[0].name.replace('_', '-')}"
    return Picture(
        title=title, svg=curves(prefix, found, axes, title=title), table=curves_table(found, axes, title=title)
    )


def history(space: EmbeddingSpace) -> list[Entry]:
    """The newest changes of the space's thresholds. Two queries."""
    found = list(Calibration.objects.filter(space=space).order_by("-created_at", "-id")[:ENTRIES])
    who, present = names(entry.actor for entry in found), calibration.values_of(space)
    return [_entry(entry, who[entry.actor], present) for entry in found]


def _entry(entry: Calibration, who: str, present: dict[str, Any]) -> Entry:
    changed = tuple(row for row in rows(entry.before, entry.after) if row.changes)
    return Entry(
        id=entry.pk,
        at=entry.created_at,
        who=who,
        reason=str(entry.after.get("reason", "")),
        rows=changed,
        can_undo=calibration.former(entry, present) != present,
    )
