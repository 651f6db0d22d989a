"""Erasing facts: a fact and every version of it."""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from memory.models.sql import fetch
from memory.services.erasure.rows import delete, forget_answers, forget_subjects, hold


def erase_fact(subject: UUID, counts: Counter[str]) -> None:
    """A fact with what it corrected and what corrected it: each tells of the others."""
    erase_facts([subject], counts)


def erase_facts(ids: Collection[UUID], counts: Counter[str]) -> None:
    rows = fetch(
        """
        WITH RECURSIVE versions(id) AS (
            SELECT unnest(%s::uuid[])
            UNION SELECT v.id FROM versions JOIN LATERAL (
                SELECT f.id FROM fact f WHERE f.supersedes = versions.id
                UNION ALL SELECT f.supersedes FROM fact f WHERE f.id = versions.id AND f.supersedes IS NOT NULL
            ) v ON true
        ) SELECT id FROM versions
        """,
        [list(ids)],
    )
    every = [pk for (pk,) in rows]
    hold("fact", every)
    forget_answers(counts, every)
    forget_subjects(counts, every)
    delete(counts, "fact", "id = ANY(%s)", every)
