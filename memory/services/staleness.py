"""Lessons that once did well and have not been judged for long: a report and a question. Changes no lesson."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from memory import conf
from memory.models.sql import fetch
from memory.models.vocabulary import ReviewKind
from memory.rules.decay import effective_score, is_stale
from memory.services import questions
from memory.services.policies import policy
from memory.services.questions import Question

BATCH: Final = 2000  # standings read in one statement
SEVERITY: Final = 0.3  # chance of mattering: it worked once, and ranking holds its age against it already
_DAY: Final = 86400.0


@dataclass(frozen=True, kw_only=True)
class Stale:
    """A lesson that deserves a second look."""

    lesson: UUID
    account_id: UUID | None
    source: str  # the strongest class of judges that has judged it
    mean_reward: float  # of that class, in (0, 1]
    newest: datetime  # its newest outcome that counts
    days: float  # since then
    effective: float  # what it is worth today


# The newest outcome that counts, the age as ranking has it, and the strongest class of judges (caller, machine,
# self_curriculum: the alphabet agrees) that has judged.
_STANDINGS = """
    SELECT l.id, l.account_id, t.source, t.n, t.losses, t.reward, greatest(s.last_win_at, s.last_loss_at),
        coalesce(s.last_win_at, l.created_at)
    FROM (
        SELECT * FROM lesson_standing WHERE lesson_id > %(after)s ORDER BY lesson_id LIMIT %(batch)s
    ) s
        JOIN lesson l ON l.id = s.lesson_id AND l.state = 'active'
        JOIN LATERAL (
            SELECT source, n, losses, reward FROM lesson_source_sum
            WHERE lesson_id = s.lesson_id AND source = ANY(%(sources)s) ORDER BY source LIMIT 1
        ) t ON true
    WHERE greatest(s.last_win_at, s.last_loss_at) <= %(before)s
"""
_LAST = """
    SELECT lesson_id FROM (SELECT lesson_id FROM lesson_standing WHERE lesson_id > %s ORDER BY lesson_id LIMIT %s) batch
    ORDER BY lesson_id DESC LIMIT 1
"""


def stale(now: datetime) -> Iterator[list[Stale]]:
    """The stale lessons of every scope, batch by batch over the standings; a batch may be empty."""
    after = UUID(int=0)
    before = now - timedelta(days=conf.current().stale_after_days)
    sources = list(policy().sources)
    while True:
        last = fetch(_LAST, [after, BATCH])
        if not last:
            return
        rows = fetch(_STANDINGS, {"after": after, "batch": BATCH, "before": before, "sources": sources})
        yield [found for row in rows if (found := _judge(row, now))]
        ((after,),) = last


def _judge(row: tuple[Any, ...], now: datetime) -> Stale | None:
    lesson, account, source, n, losses, reward, newest, aged_from = row
    settings = conf.current()
    mean, days = float(reward) / n, (now - newest).total_seconds() / _DAY
    effective = effective_score(
        mean_reward=mean,
        age_days=(now - aged_from).total_seconds() / _DAY,
        hits=n - losses,
        misses=losses,
        half_life=settings.half_life_days,
    )
    wanted = {"min_days": settings.stale_after_days, "below": settings.stale_below}
    if not is_stale(mean_reward=mean, newest_outcome_days=days, effective=effective, **wanted):
        return None
    return Stale(
        lesson=lesson,
        account_id=account,
        source=source,
        mean_reward=mean,
        newest=newest,
        days=days,
        effective=effective,
    )


def question_about(found: Stale) -> Question:
    """An answer holds until a newer outcome has grown old in its turn."""
    return Question(
        kind=ReviewKind.STALE,
        subject=found.lesson,
        account_id=found.account_id,
        severity=SEVERITY,
        since=found.newest,
    )


def run() -> dict[str, int]:
    """Asks about what is stale, and withdraws questions about what no longer is; returns the figures of the run."""
    found = [each for batch in stale(timezone.now()) for each in batch]
    open_about = questions.subjects(ReviewKind.STALE)
    idle = [subject for subject in open_about if subject not in {each.lesson for each in found}]
    return {
        "stale": len(found),
        "asked": questions.ask(map(question_about, found)),
        "withdrawn": questions.withdraw([ReviewKind.STALE], idle),
    }
