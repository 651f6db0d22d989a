"""A Sonder's SQLite memory as the tests need it: the columns of its newest program, and nothing that checks a value."""

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from memory.services.preference import digest_of

AT = "2026-07-01 10:00:00"
COLUMNS = {
    "interactions": "id, task, retrieved_ctx, response, tier, project, project_explicit, ts, tokens_in, tokens_out, "
    "token_source, session_id, task_embedding, task_embedding_model, task_embedding_revision, task_embedding_dim",
    "outcomes": "interaction_id, signal, reward, ts, source",
    "memory_migrations": "name, applied_ts",
    "lessons": "id, text, embedding, embedding_model, embedding_revision, embedding_dim, source_interaction, ts",
    "lesson_tombstones": "text_sha256, embedding, embedding_model, embedding_revision, embedding_dim, reason, "
    "source_lesson_id, source_interaction, created_ts",
    "sessions": "session_id, title, summary, summarized_through, project, created_ts, updated_ts",
    "session_project_summaries": "session_id, project_key, summary, summarized_through, updated_ts",
    "session_turn_claims": "session_id, claim_token, owner_pid, owner_identity, claimed_at",
    "facts": "id, project, text, embedding, ts",
    "lesson_usage": "lesson_id, interaction_id, task, outcome_signal, reward, ts, outcome_ts, outcome_source",
    "lesson_distillations": "interaction_id, state, signal, claim_token, attempts, last_error, result_reason, "
    "created_ts, updated_ts, completed_ts",
    "tasks": "id, title, detail, status, priority, project, owner, parent_id, account_scope, created_ts, updated_ts",
    "task_events": "id, task_id, event, note, ts",
    "task_deps": "task_id, depends_on, created_ts",
    "preferences": "id, scope, key, text, source_interaction, confidence, evidence_count, enabled, revision, "
    "created_ts",
    "refinement_history": "id, target_kind, target_id, operation, parent_refinement_id, expected_version, "
    "before_version, after_version, before_digest, after_digest, before_json, after_json, evidence_json, "
    "expected_outcome, created_ts",
}  # fmt: skip
#: What a row holds unless a test says otherwise.
USUAL: dict[str, dict[str, Any]] = {
    "interactions": {"task": "pin the parser", "response": "done", "project": "api", "project_explicit": 1, "ts": AT},
    "outcomes": {"signal": "accepted", "reward": 0.8, "ts": AT},
    "lessons": {"ts": AT},
    "lesson_tombstones": {"reason": "near_duplicate_pruned", "created_ts": AT},
    "sessions": {"created_ts": AT},
    "session_project_summaries": {"project_key": "project:api", "summary": "We pinned parsers.", "updated_ts": AT},
    "facts": {"project": "api", "ts": AT},
    "lesson_usage": {"ts": AT},
    "lesson_distillations": {"signal": "accepted", "attempts": 1, "created_ts": AT, "completed_ts": AT},
    "tasks": {"status": "pending", "priority": 2, "created_ts": AT},
    "task_events": {"event": "created", "ts": AT},
    "task_deps": {"created_ts": AT},
    "preferences": {
        "scope": "global", "confidence": 0.6, "evidence_count": 1, "enabled": 1, "revision": 1, "created_ts": AT,
    },
}  # fmt: skip
REWARDS = {"accepted": 0.8, "failed": -1.0, "rejected": -0.5, "used": 0.9, "tests_passed": 1.0, "compiled": 0.7}


class OldStore:
    """The file, with a connection to fill it."""

    def __init__(self, path: Path, *, without: tuple[str, ...] = ()) -> None:
        self.path = path
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA synchronous=OFF")  # nothing here must survive a power cut
        for table, columns in COLUMNS.items():
            if table not in without:
                self.connection.execute(f"CREATE TABLE {table} ({columns})")

    def add(self, table: str, **row: Any) -> None:
        """One row; what is not said is as usual."""
        whole = {**USUAL.get(table, {}), **row}
        marks = ", ".join("?" * len(whole))
        self.connection.execute(f"INSERT INTO {table} ({', '.join(whole)}) VALUES ({marks})", list(whole.values()))
        self.connection.commit()

    def work(self, ident: str, *lessons: str, signal: str | None = "accepted", **row: Any) -> None:
        """An interaction that was handed these lessons, and how it was judged."""
        source = row.pop("source", None)
        self.add("interactions", id=ident, **row)
        for lesson in lessons:
            credit = {"outcome_signal": signal, "reward": REWARDS[signal], "outcome_ts": AT} if signal else {}
            self.add("lesson_usage", lesson_id=lesson, interaction_id=ident, task=row.get("task"), **credit)
        if signal:
            known = {"source": source} if source else {}
            self.add("outcomes", interaction_id=ident, signal=signal, reward=REWARDS[signal], **known)

    def refine(self, ident: str, before: Mapping[str, Any], after: Mapping[str, Any], **row: Any) -> None:
        """A journal entry of a preference, with its digests."""
        pair = {"before": dict(before), "after": dict(after)}
        self.add("refinement_history", **{
            "id": ident, "target_kind": "preference", "target_id": before["id"], "operation": "apply",
            "expected_version": before["revision"], "expected_outcome": "Fewer arguments.", "created_ts": AT,
            "evidence_json": json.dumps([{"kind": "manual-verification", "summary": "Bob said so."}]),
            **{f"{side}_version": state["revision"] for side, state in pair.items()},
            **{f"{side}_json": json.dumps(state) for side, state in pair.items()},
            **{f"{side}_digest": digest_of(state) for side, state in pair.items()}, **row,
        })  # fmt: skip


def vector(*numbers: float, dimension: int = 8) -> bytes:
    """A vector as the old store wrote it."""
    return np.array([*numbers, *[0.0] * (dimension - len(numbers))], dtype="<f4").tobytes()


def nomic(*numbers: float) -> dict[str, Any]:
    """The columns of a lesson's vector."""
    return {"embedding": vector(*numbers), "embedding_model": "nomic-embed-text", "embedding_revision": "v1.5",
            "embedding_dim": 8}  # fmt: skip
