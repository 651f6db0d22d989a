"""An older release's store becomes one of today's: `python -m tests.system.upgrading`, with its tables already there.

Prints as JSON what it held before and after, what doctor and a rebuild find, and how the API and the pages answer.
"""

import json
from http import HTTPStatus
from typing import Any

import django
from django.core.management import call_command

HOST = {"host": "127.0.0.1"}
COUNTED = (
    "account", "credit", "erasure_record", "interaction", "lesson", "lesson_distillation", "lesson_embedding",
    "lesson_tombstone", "lesson_usage", "outcome", "preference", "refinement_history", "trust_event",
)  # fmt: skip


def migrations_waiting() -> int:
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def rows() -> dict[str, int]:
    from memory.models.sql import fetch

    return {table: fetch(f"SELECT count(*) FROM {table}")[0][0] for table in COUNTED}


def troubles() -> list[str]:
    from memory.services.doctor import examine

    return [f"{finding.check}: {finding.detail}" for finding in examine() if not finding.ok]


def rebuild() -> dict[str, Any]:
    """What rebuilding sums and standings changed: nothing, in a sound store."""
    from memory.models import LessonStanding
    from memory.services.standing import rebuild_standings, rebuild_sums

    names = [f.attname for f in LessonStanding._meta.fields if f.attname not in ("evaluated_at", "version")]
    before = sorted(map(str, LessonStanding.objects.values_list(*names)))
    corrected, standings = len(rebuild_sums()), list(rebuild_standings())[-1]
    after = sorted(map(str, LessonStanding.objects.values_list(*names)))
    return {"corrected": corrected, "standings": standings, "same": after == before}


def worked() -> dict[str, Any]:
    """An agent retrieves, answers and judges, and its report is credited."""
    from rest_framework.test import APIClient

    from memory.models import Account, Credit
    from memory.services.credit import sweep
    from memory.services.keys import create_key

    account = Account.objects.get(slug="demo")
    made = create_key(account, name="upgraded", source="caller", scopes=["loop", "read"])
    agent = APIClient(headers={"Authorization": f"Bearer {made.secret}", **HOST})
    task = {"task": "Write the start of a calendar event for the weekly meeting."}
    started = agent.post("/api/v1/interactions/", task, format="json").json()
    address = f"/api/v1/interactions/{started['id']}/"
    answered = agent.patch(address, {"response": "Done."}, format="json")
    judged = agent.post(f"{address}outcomes/", {"signal": "accepted"}, format="json")
    while sweep():
        pass
    return {
        "lessons": len(started["lessons"]),
        "statuses": [answered.status_code, judged.status_code],
        "credited": Credit.objects.filter(pk=started["id"]).count(),
    }


def pages() -> dict[str, int]:
    """Each review page that needs no choice, and those of one lesson, one preference and one question."""
    from django.contrib.auth import get_user_model
    from django.test import Client
    from django.urls import reverse

    from memory.models import Lesson, Preference, RefinementHistory, ReviewItem

    visitor = Client(headers=HOST)
    visitor.force_login(get_user_model().objects.create_superuser("upgraded"))
    plain = ("dashboard", "lessons", "inbox", "quarantine", "contradictions", "outcomes", "interactions", "preferences")
    names = [reverse(f"review:{name}") for name in (*plain, "prune", "health", "audit", "people", "calibration")]
    lesson = Lesson.objects.filter(state="quarantined")[0]
    changed = Preference.objects.get(pk=RefinementHistory.objects.values("preference")[:1])
    names += [reverse("review:lesson", args=[lesson.pk]), reverse("review:preference", args=[changed.pk])]
    names += [reverse("review:item", args=[item.pk]) for item in ReviewItem.objects.filter(kind="near_duplicate")[:1]]
    return {name: visitor.get(name, follow=True).status_code for name in names}


def main() -> None:
    told: dict[str, Any] = {"waiting": migrations_waiting(), "before": rows()}
    call_command("migrate", interactive=False, verbosity=0)
    told |= {"left": migrations_waiting(), "after": rows(), "troubles": troubles(), "rebuilt": rebuild()}
    told |= {"worked": worked(), "troubles_later": troubles()}
    told["refused"] = {name: status for name, status in pages().items() if status != HTTPStatus.OK}
    print(json.dumps(told))


if __name__ == "__main__":
    django.setup()
    main()
