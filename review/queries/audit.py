"""One log of what people, keys and the system did: decisions, trust, preferences, operators, erasures and roles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model

from memory.models import Account, ApiKey, Contradiction, Interaction, Lesson, Preference
from memory.models.sql import fetch

PAGE: Final = 50
BATCH: Final = 500  # rows of an export that are read at once

#: What a filter is called, and which words of the journals it means.
ACTIONS: Final[dict[str, tuple[str, ...]]] = {
    "quarantined": ("quarantined", "quarantined_by_reviewer", "quarantine"),
    "upheld": ("upheld", "uphold"),
    "released": ("released_by_reviewer", "released_to_trial", "release", "release_to_trial"),
    "rehabilitated": ("rehabilitated",),
    "rejected": ("rejected_by_reviewer", "reject"),
    "approved": ("approved", "approve"),
    "edited": ("edited", "edit"),
    "restored": ("restored_by_reviewer", "restore"),
    "trial": ("trial_opened", "trial_closed"),
    "probation": ("probation_opened", "probation_loss"),
    "merged or pruned": ("merged", "merge", "pruned"),
    "excused": ("exempted", "exempt_row"),
    "judged": ("judge_outcome",),
    "contradiction": ("keep_first", "keep_second", "keep_both", "merge_both", "not_a_contradiction"),
    "undone": ("undone", "undo"),
    "preference": ("apply", "rollback"),
    "key": ("key_made", "key_rotated", "key_revoked"),
    "distillation": ("distillation_retried", "distillation_cancelled"),
    "embedded anew": ("lesson_reembedded",),
    "erased": ("erased",),
    "role": ("role_granted", "role_changed", "role_removed"),
}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the address asks for."""

    accounts: Sequence[UUID] | None  # that the reader may see; None for all
    actor: str = ""  # as journals name it
    subject: UUID | None = None
    action: str = ""  # a key of ACTIONS
    before: UUID | None = None  # the page goes on below this entry


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One thing that was done."""

    id: UUID  # time-ordered
    at: datetime
    journal: str  # decision, trust, preference, operation, erasure or role
    action: str  # in the words of the journal
    subject: UUID
    actor: str  # as the journal names it
    reason: str  # a code, or words
    note: str
    account: str  # slug; empty for what is global


# Every journal brings its newest, by a key that grows with time; what the reader may not see is not among them. A role
# change has no such key, so its time and number make one.
_OWN: Final = "(%(all)s OR {column} = ANY(%(accounts)s::uuid[]))"
_JOURNALS: Final[dict[str, str]] = {
    "decision": f"""
        SELECT a.id, a.created_at AS at, 'decision' AS journal, a.verdict::text AS action, a.subject,
            'user:' || a.reviewer_id AS actor, a.reason_code::text AS reason, a.note, a.account_id
        FROM adjudication a WHERE ({_OWN.format(column="a.account_id")} OR a.account_id IS NULL)""",
    "trust": """
        SELECT e.id, e.created_at AS at, 'trust' AS journal, e.kind::text AS action, e.lesson AS subject,
            e.actor::text AS actor, coalesce(e.evidence ->> 'reason', '') AS reason, '' AS note, l.account_id
        FROM trust_event e LEFT JOIN lesson l ON l.id = e.lesson
        WHERE (%(all)s OR l.id IS NOT NULL AND (l.account_id IS NULL OR l.account_id = ANY(%(accounts)s::uuid[])))""",
    "preference": f"""
        SELECT r.id, r.created_at AS at, 'preference' AS journal, r.operation::text AS action,
            r.preference_id AS subject, r.actor::text AS actor, '' AS reason, r.expected_outcome::text AS note,
            p.account_id
        FROM refinement_history r JOIN preference p ON p.id = r.preference_id
        WHERE {_OWN.format(column="p.account_id")}""",
    "operation": f"""
        SELECT o.id, o.created_at AS at, 'operation' AS journal, o.action::text AS action, o.subject,
            o.actor::text AS actor, '' AS reason, o.detail::text AS note, o.account AS account_id
        FROM operator_act o WHERE {_OWN.format(column="o.account")}""",
    "erasure": """
        SELECT x.id, x.created_at AS at, 'erasure' AS journal, 'erased' AS action, x.subject, x.actor::text AS actor,
            x.kind::text AS reason, '' AS note, NULL::uuid AS account_id
        FROM erasure_record x WHERE %(all)s""",
    "role": f"""
        SELECT g.id, g.at, 'role' AS journal, g.message ->> 'action' AS action,
            (g.message ->> 'account')::uuid AS subject, g.actor, g.message ->> 'role' AS reason,
            g.message ->> 'person' AS note, (g.message ->> 'account')::uuid AS account_id
        FROM (
            SELECT (lpad(to_hex((extract(epoch FROM d.action_time) * 1000)::bigint), 12, '0') || '70008000'
                    || lpad(to_hex(d.id), 12, '0'))::uuid AS id,
                d.action_time AS at, 'user:' || d.user_id AS actor,
                CASE WHEN d.change_message LIKE '{{"action": "role_%%' THEN d.change_message::jsonb END AS message
            FROM django_admin_log d JOIN django_content_type t ON t.id = d.content_type_id
            WHERE t.app_label = 'memory' AND t.model = 'membership'
        ) g WHERE g.message IS NOT NULL AND {_OWN.format(column="(g.message ->> 'account')::uuid")}""",
}


def entries(wanted: Wanted, limit: int) -> list[Entry]:
    """The newest entries, at most `limit`, from every journal."""
    conditions = ["(%(before)s::uuid IS NULL OR id < %(before)s)"]
    if wanted.actor:
        conditions.append("actor = %(actor)s")
    if wanted.subject:
        conditions.append("subject = %(subject)s")
    if wanted.action:
        conditions.append("action = ANY(%(actions)s)")
    each = f"WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT %(limit)s"
    parts = " UNION ALL ".join(f"(SELECT * FROM ({journal}) AS {name} {each})" for name, journal in _JOURNALS.items())
    rows = fetch(
        f"SELECT entry.*, account.slug FROM ({parts}) AS entry LEFT JOIN account ON account.id = entry.account_id "
        "ORDER BY entry.id DESC LIMIT %(limit)s",
        {
            "all": wanted.accounts is None,
            "accounts": list(wanted.accounts or ()),
            "before": wanted.before,
            "actor": wanted.actor,
            "subject": wanted.subject,
            "actions": list(ACTIONS.get(wanted.action, ())),
            "limit": limit,
        },
    )
    return [_entry(*row) for row in rows]


def _entry(*row: Any) -> Entry:
    pk, at, journal, action, subject, actor, reason, note, _, slug = row
    return Entry(
        id=pk, at=at, journal=journal, action=action, subject=subject, actor=actor, reason=reason or "",
        note=note or "", account=slug or "",
    )  # fmt: skip


def everything(wanted: Wanted) -> Iterator[list[Entry]]:
    """All entries in batches, newest first."""
    before = wanted.before
    while True:
        batch = entries(replace(wanted, before=before), BATCH)
        if batch:
            yield batch
        if len(batch) < BATCH:
            return
        before = batch[-1].id


def actor_of(words: str) -> str:
    """What a person types as who did it, as journals name it: a user name, a key's prefix, or `system`."""
    if words in ("", "system") or words.startswith(("user:", "api_key:")):
        return words
    user = get_user_model().objects.filter(username__iexact=words).values_list("pk", flat=True).first()
    return f"user:{user}" if user is not None else f"api_key:{words}"


@dataclass(frozen=True, kw_only=True)
class Thing:
    """What an entry is about."""

    kind: str  # lesson, interaction, preference, contradiction, key or account
    line: str


def things(subjects: Sequence[UUID], accounts: Sequence[UUID] | None) -> dict[UUID, Thing]:
    """What is still there of the subjects, as far as the reader may see it. Six queries."""
    ids = list(set(subjects))
    found: dict[UUID, Thing] = {}
    rows: Any
    for kind, model, column in (
        ("lesson", Lesson, "text"),
        ("interaction", Interaction, "task"),
        ("preference", Preference, "text"),
        ("contradiction", Contradiction, "basis"),
        ("key", ApiKey, "name"),
        ("account", Account, "name"),
    ):
        rows = model._default_manager.filter(pk__in=ids)
        owner = "pk" if kind == "account" else "account_id"
        for pk, line, account in rows.values_list("pk", column, owner):
            mine = accounts is None or account in accounts or (account is None and kind != "interaction")
            if mine:
                found[pk] = Thing(kind=kind, line=line)
    return found
