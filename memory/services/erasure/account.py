"""Erasing a project or an account with everything in it."""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from memory.models import Fact, Interaction, Project, Session, Task
from memory.models.sql import execute, fetch
from memory.services.erasure.companions import evaluate
from memory.services.erasure.fact import erase_facts
from memory.services.erasure.interaction import erase_interactions, of_project
from memory.services.erasure.lesson import erase_lessons, of_account
from memory.services.erasure.preference import erase_preferences
from memory.services.erasure.rows import delete, forget_answers, forget_decisions, forget_deliveries, forget_subjects


def erase_project(subject: UUID, counts: Counter[str]) -> None:
    """A project: its interactions, facts, tasks, summaries, preferences, and the project itself."""
    project = Project.objects.get(pk=subject)
    erase_interactions(of_project(subject), counts)
    erase_facts(list(Fact.objects.filter(project=project).values_list("pk", flat=True)), counts)
    _erase_tasks(list(Task.objects.filter(project=project).values_list("pk", flat=True)), counts)
    delete(counts, "session_project_summary", "project_id = ANY(%s)", [subject])
    execute("UPDATE session SET project_id = NULL WHERE project_id = %s", [subject])
    erase_preferences(
        [
            pk
            for (pk,) in fetch(
                "SELECT id FROM preference WHERE account_id = %s AND scope = %s",
                [project.account_id, f"project:{project.slug}"],
            )
        ],
        counts,
    )
    delete(counts, "project", "id = ANY(%s)", [subject])


def erase_account(subject: UUID, counts: Counter[str]) -> None:
    """An account: its projects and all that lies outside one, its lessons, people, keys, and the account itself."""
    for project in Project.objects.filter(account_id=subject).values_list("pk", flat=True):
        erase_project(project, counts)
    erase_interactions(list(Interaction.objects.filter(account_id=subject).values_list("pk", flat=True)), counts)
    evaluate(erase_lessons(of_account(subject), counts))
    _erase_tasks(list(Task.objects.filter(account_id=subject).values_list("pk", flat=True)), counts)
    erase_preferences([pk for (pk,) in fetch("SELECT id FROM preference WHERE account_id = %s", [subject])], counts)
    sessions = list(Session.objects.filter(account_id=subject).values_list("pk", flat=True))
    delete(counts, "session_turn_claim", "session_id = ANY(%s)", sessions)
    delete(counts, "session_project_summary", "session_id = ANY(%s)", sessions)
    delete(counts, "session", "id = ANY(%s)", sessions)
    forget_decisions(counts, "account_id = ANY(%s)", [subject])
    forget_deliveries(counts, [subject])
    own = "endpoint_id IN (SELECT id FROM webhook_endpoint WHERE account_id = ANY(%s))"
    delete(counts, "webhook_delivery", own, [subject])
    for table in (
        "lesson_tombstone", "contradiction", "review_item", "write_refusal", "idempotency_record", "band_rate",
        "source_sum", "task_sum", "imported_row", "alert_acknowledgement", "webhook_endpoint", "membership", "api_key",
    ):  # fmt: skip
        delete(counts, table, "account_id = ANY(%s)", [subject])
    delete(counts, "prune_plan", "states ->> 'account' = ANY(%s::text[])", [str(subject)])
    delete(counts, "account", "id = ANY(%s)", [subject])


def _erase_tasks(ids: Collection[UUID], counts: Counter[str]) -> None:
    forget_answers(counts, ids)
    delete(counts, "task_dependency", "task_id = ANY(%s)", ids)
    delete(counts, "task_dependency", "depends_on_id = ANY(%s)", ids)
    delete(counts, "task_event", "task_id = ANY(%s)", ids)
    execute("UPDATE task SET parent_id = NULL WHERE parent_id = ANY(%s)", [list(ids)])
    forget_subjects(counts, ids)
    delete(counts, "task", "id = ANY(%s)", ids)
