"""The smallest row that PostgreSQL accepts, for every table, written as raw SQL: no model has a say in it.

A row of `MINIMAL` holds exactly the columns that a statement must give. A value that can be called is called for each
row: `new` makes a parent, `the` takes the one that is there. `insert("outcome", reward=2)` is the minimal row with a
change.
"""

from collections.abc import Callable
from hashlib import sha256
from itertools import count
from typing import Any
from uuid import UUID

from django.db import connection

from memory.models.base import new_id

Row = dict[str, Any]

VECTOR = "[1,0,0]"  # three dimensions, as many as the minimal embedding space has
LAST = UUID(int=2**128 - 1)
NOWHERE = UUID(int=2**128 - 2)  # the id of no row
EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"

_numbers = count(1)


def word() -> str:
    """A word that no other row has."""
    return f"w{next(_numbers)}"


def digest() -> str:
    """A SHA-256 that no other row has, in hex."""
    return sha256(word().encode()).hexdigest()


def number() -> int:
    """A number that no other row has, from 1."""
    return next(_numbers)


def new(table: str, **changes: object) -> Callable[[], Any]:
    """The id of a row made for this one."""
    return lambda: insert(table, **changes)["id"]


def the(table: str) -> Callable[[], Any]:
    """The id of the oldest row of a table; made if there is none."""

    def find() -> Any:
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT id FROM "{table}" ORDER BY id LIMIT 1')
            found = cursor.fetchone()
        return found[0] if found else insert(table)["id"]

    return find


MINIMAL: dict[str, Row] = {
    "auth_user": {
        "username": word,
        "password": "!",
        "is_superuser": False,
        "first_name": "",
        "last_name": "",
        "email": "",
        "is_staff": False,
        "is_active": True,
        "date_joined": EARLIER,
    },
    # who and where
    "account": {"id": new_id, "slug": word, "name": "Acme", "review_policy": "auto"},
    "project": {"id": new_id, "account_id": the("account"), "slug": word, "name": "Rockets"},
    "membership": {"id": new_id, "account_id": the("account"), "user_id": new("auth_user"), "role": "viewer"},
    "api_key": {
        "id": new_id,
        "account_id": the("account"),
        "name": "agent",
        "prefix": word,
        "hashed_key": digest,
        "outcome_source": "caller",
        "scopes": "[]",
    },
    # what was done, and what was said of it
    "session": {"id": new_id, "account_id": the("account"), "external_id": word, "title": "", "summary": ""},
    "session_project_summary": {
        "id": new_id,
        "session_id": the("session"),
        "project_id": new("project"),
        "summary": "",
    },
    "session_turn_claim": {"session_id": new("session"), "claim_token": new_id, "owner": "a", "expires_at": LATER},
    "interaction": {
        "id": new_id,
        "account_id": the("account"),
        "api_key_id": the("api_key"),
        "project_explicit": False,
        "task": "Fix the fuel pump",
        "retrieved_context": "",
        "tier": "",
        "model": "",
        "token_source": "",
    },
    "outcome": {
        "id": new_id,
        "interaction_id": the("interaction"),
        "source": "caller",
        "sequence": number,
        "signal": "accepted",
        "reward": "0.80",
        "detail": "",
    },
    # lessons
    "embedding_space": {
        "id": new_id,
        "model": word,
        "revision": "1",
        "dimension": 3,
        "min_similarity": 0.4,
        "uncorroborated_min_similarity": 0.5,
        "duplicate_similarity": 0.9,
        "prune_similarity": 0.9,
        "tombstone_similarity": 0.9,
        "contradiction_similarity": 0.8,
        "is_active": False,
    },
    "import_run": {"id": new_id, "name": "lessons.jsonl", "sha256": digest, "actor": "system", "figures": "{}"},
    "imported_row": {
        "id": new_id,
        "account_id": the("account"),
        "run_id": the("import_run"),
        "kind": "lesson",
        "legacy_id": word,
        "refusal": "exact_duplicate",
    },
    "lesson": {
        "id": new_id,
        "text": "Bleed the fuel line before a restart.",
        "text_sha256": digest,
        "origin": "distilled",
        "state": "active",
        "source_ref": "",
        "polarity": "{}",
        "anchors": "{}",
        "identifiers": "",
    },
    "lesson_embedding": {
        "id": new_id,
        "lesson_id": new("lesson"),
        "space_id": the("embedding_space"),
        "embedding": VECTOR,
    },
    "lesson_usage": {
        "id": new_id,
        "lesson_id": new("lesson"),
        "interaction_id": the("interaction"),
        "exposure": "served",
        "rank": 1,
        "fused_score": 0.03,
        "probability": 1,
    },
    "usage_exemption": {
        "id": new_id,
        "usage_id": new("lesson_usage"),
        "reviewer_id": the("auth_user"),
        "reason": "The network was down.",
    },
    "lesson_tombstone": {
        "id": new_id,
        "text_sha256": digest,
        "polarity": "{}",
        "anchor_macs": "{}",
        "signature_version": 1,
        "mac_key_id": "k1",
        "reason": "quarantined",
        "source_lesson": new_id,
    },
    "lesson_distillation": {
        "interaction_id": new("interaction"),
        "state": "pending",
        "signal": "accepted",
        "attempts": 0,
        "last_error": "",
    },
    # trust
    "credit": {
        "interaction_id": new("interaction"),
        "source": "caller",
        "weight": 1,
        "b": "0.2",
        "task_digest": digest,
        "credit_seq": number,
    },
    "source_sum": {"source": "caller", "n": 0, "losses": 0},
    "task_sum": {"task_digest": digest, "o": 0, "e": 0},
    "lesson_sum": {"lesson_id": new("lesson"), "o": 0, "e": 0},
    "lesson_source_sum": {"lesson_id": new("lesson"), "source": "caller", "n": 0, "losses": 0, "reward": 0},
    "lesson_task_sum": {"lesson_id": new("lesson"), "task_digest": digest, "o": 0, "e": 0},
    "lesson_pair_sum": {"lesson_id": new("lesson"), "other_id": new("lesson"), "o": 0, "e": 0},
    "withheld_sum": {"lesson_id": new("lesson"), "exposure": "withheld_trial", "n": 0, "o": 0, "e": 0},
    "lesson_standing": {
        "lesson_id": new("lesson"),
        "policy": "reference",
        "wins": 0,
        "losses": 0,
        "on_trial": False,
        "evidence": "{}",
        "version": 1,
    },
    "band_rate": {"lower": number, "scored": 0, "losses": 0, "prior": 0.1, "rate": 0.1},
    "trust_event": {"id": new_id, "lesson": new_id, "kind": "quarantined", "evidence": "{}", "actor": "system"},
    # preferences, facts, tasks
    "preference": {
        "id": new_id,
        "account_id": the("account"),
        "scope": "global",
        "key": word,
        "text": "I prefer short answers.",
        "confidence": 0.5,
        "evidence_count": 1,
        "enabled": True,
        "revision": 1,
    },
    "refinement_history": {
        "id": new_id,
        "preference_id": the("preference"),
        "operation": "apply",
        "expected_version": 1,
        "before_version": 1,
        "after_version": 2,
        "before_digest": digest,
        "after_digest": digest,
        "before_json": "{}",
        "after_json": "{}",
        "evidence_json": "[]",
        "expected_outcome": "Shorter answers.",
        "actor": "system",
    },
    "fact": {"id": new_id, "account_id": the("account"), "project_id": the("project"), "text": "The tank holds 5 t."},
    "task": {
        "id": new_id,
        "account_id": the("account"),
        "title": "Fill the tank",
        "detail": "",
        "status": "pending",
        "priority": 0,
        "owner": "",
    },
    "task_event": {"id": new_id, "task_id": the("task"), "event": "created", "note": "", "actor": "system"},
    "task_dependency": {"id": new_id, "task_id": new("task"), "depends_on_id": new("task")},
    # review
    "review_item": {
        "id": new_id,
        "version": 1,
        "kind": "new_lesson",
        "subject": new_id,
        "priority": 1,
        "priority_parts": "{}",
        "status": "open",
    },
    "adjudication": {
        "id": new_id,
        "subject": new_id,
        "verdict": "approve",
        "reason_code": "",
        "note": "",
        "before": "{}",
        "after": "{}",
        "reviewer_id": the("auth_user"),
        "idempotency_key": "",
    },
    "contradiction": {
        "id": new_id,
        "first": new_id,
        "second": new_id,
        "first_digest": lambda: "0" + digest()[1:],
        "second_digest": lambda: "f" + digest()[1:],
        "similarity": 0.9,
        "basis": "polarity",
    },
    "alert_acknowledgement": {
        "id": new_id,
        "alert": "unreviewed",
        "state": "watch",
        "note": "Ben is back on Monday.",
        "person_id": the("auth_user"),
        "holds": True,
    },
    "comment": {"id": new_id, "subject": new_id, "author_id": the("auth_user"), "text": "Seen twice."},
    "second_opinion": {"id": new_id, "subject": new_id, "author_id": the("auth_user"), "verdict": "approve"},
    # running the store
    "prune_plan": {"id": new_id, "digest": digest, "clusters": "[]", "states": "{}"},
    "prune_archive": {
        "id": new_id,
        "plan_id": the("prune_plan"),
        "lesson": new_id,
        "kind": "lesson",
        "payload": "{}",
        "expires_at": LATER,
    },
    "write_refusal": {"id": new_id, "path": "import", "reason": "private", "actor": "system"},
    "idempotency_record": {"id": new_id, "account_id": the("account"), "key": word, "body_digest": digest},
    "webhook_endpoint": {
        "id": new_id,
        "url": "https://hooks.example.com/sonder",
        "description": "",
        "events": ["lesson.quarantined"],
        "salt": digest,
        "key_id": "k1",
    },
    "webhook_delivery": {
        "id": new_id,
        "endpoint_id": the("webhook_endpoint"),
        "event": "lesson.quarantined",
        "subjects": [],
        "body": "{}",
        "state": "pending",
        "attempts": 0,
        "last_error": "",
    },
    "job_run": {"id": new_id, "job": "sweep", "outcome": "", "figures": "{}"},
    "calibration": {
        "id": new_id,
        "space_id": the("embedding_space"),
        "before": "{}",
        "after": "{}",
        "data_digest": digest,
        "actor": "system",
    },
    "operator_act": {"id": new_id, "action": "key_made", "subject": new_id, "detail": "", "actor": "system"},
    "erasure_record": {"id": new_id, "kind": "lesson", "subject": new_id, "counts": "{}", "actor": "system"},
}


def row(table: str, **changes: object) -> Row:
    """A row that PostgreSQL accepts, with some columns changed; its parents are stored, itself not yet."""
    columns = {**MINIMAL[table], **changes}
    return {column: value() if callable(value) else value for column, value in columns.items()}


def store(table: str, columns: Row) -> Row:
    """INSERT these columns as they are; the row as PostgreSQL keeps it."""
    names = ", ".join(f'"{column}"' for column in columns)
    places = ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        cursor.execute(f'INSERT INTO "{table}" ({names}) VALUES ({places}) RETURNING *', list(columns.values()))
        stored = cursor.fetchone()
        return dict(zip([column.name for column in cursor.description], stored, strict=True))


def insert(table: str, **changes: object) -> Row:
    """Store the minimal row of a table with some columns changed; the row as PostgreSQL keeps it."""
    return store(table, row(table, **changes))


def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run one SQL statement; the rows it returns, if it returns any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []
