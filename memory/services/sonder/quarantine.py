"""Which lessons the old store would be holding back. It keeps no such state: it computes it when it retrieves.

Its rule counts every outcome, whoever reported it. Here an outcome of unknown origin moves no lesson, so that these
lessons are served until evidence of this store, or a reviewer, says otherwise; the report names them for that reviewer.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from memory.services.sonder.snapshot import Snapshot
from memory.services.sonder.values import Skipped, moment

LOSSES: Final = 5  # since the last win, on at least TASKS tasks
LOSSES_ONE_TASK: Final = 6
TASKS: Final = 2
MEAN_REWARD: Final = -0.5  # at most
COOLDOWN: Final = timedelta(days=7)  # since the last loss; after that the old store tries the lesson again

_COLUMNS: Final = frozenset({"lesson_id", "task", "reward", "ts", "outcome_ts"})
_HISTORY: Final = """
    SELECT lesson_id, task, reward, coalesce(outcome_ts, ts) FROM lesson_usage
    WHERE reward IS NOT NULL AND lesson_id IS NOT NULL ORDER BY lesson_id, datetime(coalesce(outcome_ts, ts)), rowid
"""


def held_back(source: Snapshot, now: datetime) -> list[str]:
    """Old ids of these lessons, in order."""
    if not source.tables.get("lesson_usage", frozenset()) >= _COLUMNS:
        return []
    history: Iterator[tuple[Any, ...]] = source.connection.execute(_HISTORY)
    return [str(lesson) for lesson, rows in groupby(history, key=lambda row: row[0]) if _is_held(rows, now)]


def _is_held(rows: Iterable[tuple[Any, ...]], now: datetime) -> bool:
    rewards: list[float] = []
    tasks: set[str] = set()
    last: Any = None
    for _, task, reward, at in rows:
        if not isinstance(reward, int | float):
            continue
        if reward > 0:
            rewards, tasks, last = [], set(), None
            continue
        rewards.append(reward)
        if reward < 0:
            tasks.add(" ".join(str(task or "").casefold().split()))
            last = at
    losses = sum(reward < 0 for reward in rewards)
    enough = losses >= LOSSES_ONE_TASK or (losses >= LOSSES and len(tasks - {""}) >= TASKS)
    if not enough or sum(rewards) / len(rewards) > MEAN_REWARD:
        return False
    try:
        return now < moment(last, now) + COOLDOWN
    except Skipped:
        return True
