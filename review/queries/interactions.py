"""The list of work, newest first, with what is said of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from memory.models import Lesson, Project
from memory.models.sql import fetch
from memory.rules.information import judged_blind

PAGE: Final = 50
#: Work that filters look at: what nothing indexes is searched among the newest only, and the page says so.
WINDOW: Final = 5000
STATES: Final[dict[str, tuple[str, str]]] = {
    "to_judge": ("To judge", "said.caller IS NULL AND i.response <> ''"),
    "judged": ("Judged", "said.caller IS NOT NULL"),
    "disputed": ("Judges disagree", "said.caller <> said.machine"),
    "text_gone": ("Text gone", "coalesce(i.response, '') = ''"),
}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the address asks for."""

    project: UUID | None = None
    lesson: UUID | None = None  # handed out in the work
    model: str = ""
    tier: str = ""
    state: str = ""  # a key of STATES
    before: UUID | None = None  # the page goes on below this one

    @property
    def filtered(self) -> bool:
        return bool(self.project or self.lesson or self.model or self.tier or self.state)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A piece of work in the list."""

    id: UUID
    task: str  # its beginning
    project: str
    model: str
    at: datetime
    lessons: int  # handed out
    caller: bool | None  # whether a person or an agent with judgement says that it worked; None if nobody
    machine: bool | None  # likewise; None also while it is hidden from a blind judge
    hidden: bool
    text: bool  # there is an answer to look at

    @property
    def disputed(self) -> bool:
        return self.caller is not None and self.machine is not None and self.caller != self.machine


_LIST: Final = """
    SELECT i.id, left(i.task, 300), coalesce(p.slug, ''), i.model, i.created_at, served.n, said.caller, said.machine,
        coalesce(i.response, '') <> ''
    FROM ({work}) AS i
        LEFT JOIN project p ON p.id = i.project_id
        CROSS JOIN LATERAL (
            SELECT count(*) AS n FROM lesson_usage WHERE interaction_id = i.id AND exposure IN ('served', 'probation')
        ) served
        CROSS JOIN LATERAL (
            SELECT (SELECT nullif(sign(reward), 0) > 0 FROM outcome WHERE interaction_id = i.id AND source = 'caller'
                    ORDER BY sequence DESC LIMIT 1) AS caller,
                (SELECT nullif(sign(reward), 0) > 0 FROM outcome WHERE interaction_id = i.id AND source = 'machine'
                    ORDER BY sequence DESC LIMIT 1) AS machine
        ) said
    WHERE {condition} ORDER BY i.id DESC LIMIT %(page)s
"""
_NEWEST: Final = """
    SELECT * FROM interaction WHERE {accounts} AND (%(before)s::uuid IS NULL OR id < %(before)s)
    ORDER BY id DESC LIMIT %(window)s
"""
_OF_LESSON: Final = """
    SELECT w.* FROM (
        SELECT interaction_id FROM lesson_usage WHERE lesson_id = %(lesson)s AND exposure IN ('served', 'probation')
            AND (%(before)s::uuid IS NULL OR interaction_id < %(before)s)
        ORDER BY interaction_id DESC LIMIT %(window)s
    ) u JOIN interaction w ON w.id = u.interaction_id WHERE {accounts}
"""


def listed(wanted: Wanted, accounts: Sequence[UUID] | None) -> list[Row]:
    """One row more than a page holds, if there is more. In one read, newest first."""
    conditions = [STATES[wanted.state][1]] if wanted.state else []
    conditions += ["i.project_id = %(project)s"] if wanted.project else []
    conditions += ["i.model = %(model)s"] if wanted.model else []
    conditions += ["i.tier = %(tier)s"] if wanted.tier else []
    work = (_OF_LESSON if wanted.lesson else _NEWEST).format(
        accounts="true" if accounts is None else "account_id = ANY(%(accounts)s)"
    )
    parameters: dict[str, Any] = {**vars(wanted), "accounts": accounts, "page": PAGE + 1, "window": WINDOW}
    statement = _LIST.format(work=work, condition=" AND ".join(conditions) or "true")
    return [_row(row) for row in fetch(statement, parameters)]


def _row(row: tuple[Any, ...]) -> Row:
    pk, task, project, model, at, lessons, caller, machine, text = row
    hidden = caller is None and judged_blind(pk)
    return Row(
        id=pk,
        task=task,
        project=project,
        model=model,
        at=at,
        lessons=lessons,
        caller=caller,
        machine=None if hidden else machine,
        hidden=hidden,
        text=text,
    )


def projects(accounts: Sequence[UUID] | None) -> list[Project]:
    """The projects that the list can be narrowed to, in the order of their slugs."""
    found = Project.objects.all() if accounts is None else Project.objects.filter(account__in=accounts)
    return list(found.select_related("account").order_by("slug")[:200])


def lesson(wanted: UUID | None, accounts: Sequence[UUID] | None) -> Lesson | None:
    """The lesson that the list is narrowed to, if the reader may see it."""
    if wanted is None:
        return None
    seen = Q() if accounts is None else Q(account__isnull=True) | Q(account__in=accounts)
    return Lesson.objects.filter(seen, pk=wanted).first()
