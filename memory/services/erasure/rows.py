"""Deleting rows by table, counted; and taking references out of journals that stay."""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from memory.models.sql import execute, fetch

AT_ONCE = 500  # ids in one question to an index of arrays
# Under which names a journal's evidence tells of another lesson.
NAMES = ("lesson", "keeper", "successor", "supersedes", "also_supersedes")


def hold(table: str, ids: Collection[UUID]) -> None:
    """Waits for whoever hands these rows out, judges or changes them, and keeps others away until they are gone.

    Comes before any look for copies: what a rival writes while an erasure looks would stay behind. Rows go in the
    order of their ids, here and wherever several are held.
    """
    fetch(f"SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id FOR UPDATE", [list(ids)])


def delete(counts: Counter[str], table: str, where: str, values: Collection[UUID] | Collection[str]) -> None:
    """Deletes the rows of a table where `where` holds; its one parameter is the collection."""
    counts[table] += execute(f"DELETE FROM {table} WHERE {where}", [list(values)])


def forget_answers(counts: Counter[str], subjects: Collection[UUID]) -> None:
    """Deletes the answers, kept for a replay, that name any of these: a row's own, and those that were handed it."""
    ids = list(subjects)
    for start in range(0, len(ids), AT_ONCE):
        delete(counts, "idempotency_record", "names && %s::uuid[]", ids[start : start + AT_ONCE])


def scrub_journals(counts: Counter[str], interactions: Collection[UUID]) -> None:
    """Takes the interactions' rows out of the evidence of trust events about lessons that stay."""
    ids = [str(i) for i in interactions]
    counts["trust_event (rows of evidence)"] += execute(
        """
        UPDATE trust_event e SET evidence = jsonb_set(e.evidence, '{rows}', coalesce((
            SELECT jsonb_agg(r) FROM jsonb_array_elements(e.evidence -> 'rows') r
            WHERE NOT r ->> 'interaction' = ANY(%(ids)s)
        ), '[]'))
        WHERE EXISTS (
            SELECT 1 FROM jsonb_path_query(e.evidence, '$.rows[*].interaction') AS i
            WHERE i #>> '{}' = ANY(%(ids)s)
        )
        """,
        {"ids": ids},
    )
    counts["trust_event (rows of evidence)"] += execute(
        "UPDATE trust_event SET evidence = evidence - 'interaction' WHERE evidence ->> 'interaction' = ANY(%s)", [ids]
    )


def scrub_names(counts: Counter[str], lessons: Collection[UUID]) -> None:
    """Takes lessons out of the journals of others that tell what became of them together: merged, replaced, kept."""
    ids = [str(lesson) for lesson in lessons]
    counts["trust_event (names)"] += execute(
        """
        UPDATE trust_event SET evidence = evidence - %s::text[]
        WHERE ARRAY(SELECT evidence ->> name FROM unnest(%s::text[]) AS name) && %s::text[]
        """,
        [list(NAMES), list(NAMES), ids],
    )


def forget_deliveries(counts: Counter[str], subjects: Collection[UUID]) -> None:
    """Deletes what webhooks were told, or are still to be told, about any of these."""
    ids = list(subjects)
    for start in range(0, len(ids), AT_ONCE):
        delete(counts, "webhook_delivery", "subjects && %s::uuid[]", ids[start : start + AT_ONCE])


def forget_subjects(counts: Counter[str], subjects: Collection[UUID]) -> None:
    """Deletes what people wrote, decided and were asked about these subjects, and decisions that moved them too."""
    ids = list(subjects)
    for table in ("review_item", "comment", "second_opinion"):
        delete(counts, table, "subject = ANY(%s)", ids)
    forget_deliveries(counts, ids)
    forget_decisions(counts, "subject = ANY(%s)", ids)
    forget_decisions(
        counts,
        "EXISTS (SELECT 1 FROM regexp_matches(d.before::text || d.after::text, "
        "'([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})', 'g') AS named WHERE named[1] = ANY(%s::text[]))",
        [str(subject) for subject in ids],
    )


def forget_decisions(counts: Counter[str], where: str, values: Collection[UUID] | Collection[str]) -> None:
    """Deletes people's decisions `d` where `where` holds, and first what undoes one of them: it refers to it."""
    chosen = f"SELECT d.id FROM adjudication d WHERE {where}"
    delete(counts, "adjudication", f"reverts_id IN ({chosen})", values)
    delete(counts, "adjudication", f"id IN ({chosen})", values)
