"""Erasing preferences with their journal."""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from memory.services.erasure.rows import delete, forget_answers, forget_subjects


def erase_preferences(ids: Collection[UUID], counts: Counter[str]) -> None:
    """Preferences, how they were refined, and answers that handed them out."""
    forget_answers(counts, ids)
    # A rollback refers to what it rolls back: the later row goes first.
    delete(counts, "refinement_history", "parent_id IS NOT NULL AND preference_id = ANY(%s)", ids)
    delete(counts, "refinement_history", "preference_id = ANY(%s)", ids)
    forget_subjects(counts, ids)
    delete(counts, "preference", "id = ANY(%s)", ids)
