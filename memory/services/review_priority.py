"""Keeps the queue in order: snoozed questions come back, and each open one is weighed anew."""

import json
from typing import Any, Final

from memory.models.sql import execute, fetch
from memory.rules.priority import DAYS, priority
from memory.services import review_queue

BATCH: Final = 2000  # questions written in one statement
SATURATED: Final = 1000  # exposures after which counting on changes no priority
NOTICEABLE: Final = 0.0005  # smaller changes are not written

# What a question is about: a lesson, the two of a pair, or those handed out in an interaction.
_OPEN = f"""
    WITH open_items AS (
        SELECT id, subject, priority, priority_parts, created_at FROM review_item WHERE status IN ('open', 'snoozed')
    ), about AS (
        SELECT i.id, l.id AS lesson_id FROM open_items i JOIN lesson l ON l.id = i.subject
        UNION
        SELECT i.id, side.lesson_id FROM open_items i JOIN contradiction c ON c.id = i.subject
            CROSS JOIN LATERAL (VALUES (c.first), (c.second)) AS side(lesson_id)
        UNION
        SELECT i.id, u.lesson_id FROM open_items i JOIN lesson_usage u ON u.interaction_id = i.subject
        WHERE u.exposure IN ('served', 'probation')
    ), counted AS (
        SELECT about.id, sum(recent.n)::bigint AS exposures, coalesce(sum(s.wins), 0)::bigint AS wins,
            coalesce(sum(s.losses), 0)::bigint AS losses
        FROM about
            LEFT JOIN lesson_standing s ON s.lesson_id = about.lesson_id
            CROSS JOIN LATERAL (
                SELECT count(*) AS n FROM (
                    SELECT 1 FROM lesson_usage u
                    WHERE u.lesson_id = about.lesson_id AND u.created_at > now() - interval '{DAYS} days'
                    LIMIT {SATURATED}
                ) AS few
            ) AS recent
        GROUP BY about.id
    )
    SELECT i.id, i.priority, i.priority_parts, extract(epoch FROM now() - i.created_at)::float8 / 86400,
        coalesce(c.exposures, 0), coalesce(c.wins, 0), coalesce(c.losses, 0)
    FROM open_items i LEFT JOIN counted c ON c.id = i.id
"""
# A question that became more urgent meanwhile keeps what it was given; no version rises, for nothing was decided.
_WRITE = """
    UPDATE review_item i SET priority = new.priority, priority_parts = new.parts::jsonb
    FROM unnest(%s::uuid[], %s::float8[], %s::text[], %s::text[]) AS new(id, priority, parts, seen)
    WHERE i.id = new.id AND i.priority_parts = new.seen::jsonb
"""


def run() -> dict[str, int]:
    """Wakes and weighs; returns the figures of the run."""
    return {"woken": review_queue.wake(), "weighed": weigh()}


def weigh() -> int:
    """Gives every unresolved question its priority of today; returns how many changed noticeably."""
    changed = [row for each in fetch(_OPEN) if (row := _weigh(each)) is not None]
    for start in range(0, len(changed), BATCH):
        columns = [list(column) for column in zip(*changed[start : start + BATCH], strict=True)]
        execute(_WRITE, columns)
    return len(changed)


def _weigh(row: tuple[Any, ...]) -> tuple[Any, float, str, str] | None:
    item, before, stored, days, exposures, wins, losses = row
    seen: dict[str, float] = json.loads(stored) if isinstance(stored, str) else stored
    severity = seen.get("severity", before)
    now = priority(exposures=exposures, wins=wins, losses=losses, days=days, severity=severity)
    if abs(now.score - before) < NOTICEABLE and seen.keys() >= now.parts.keys():
        return None
    return item, now.score, json.dumps({**seen, **now.parts}), json.dumps(seen)
