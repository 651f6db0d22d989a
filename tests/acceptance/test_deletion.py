"""What was erased is nowhere, whatever runs afterwards and wherever it had been copied to."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from memory import conf
from memory.models import Interaction, Lesson, LessonUsage
from memory.services import rejection
from memory.services.erasure import read_ledger
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, TIMEOUT, TIMEOUT_TASK
from tests.conftest import Agent, make_agent
from tests.http.calls import INTERACTIONS, refused, report, start

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
# What a process that starts now is handed for a task.
ASK = """
import sys, django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from rest_framework.test import APIClient
client = APIClient(headers={"Authorization": f"Bearer {sys.argv[2]}"}, SERVER_NAME="localhost")
for task in sys.argv[3:]:
    answer = client.post("/api/v1/interactions/", {"task": task, "k": 50}, format="json")
    assert answer.status_code == 201, answer.content
    print(answer.json()["context"] or "nothing")
"""


def after_restart(agent: Agent, *tasks: str) -> str:
    """What a new process of the product hands out: it knows nothing but the database."""
    scope = conf.current().lesson_scope
    variables = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "SONDER_LESSON_SCOPE": scope}
    name = connection.settings_dict["NAME"]
    asked = subprocess.run(
        [sys.executable, "-c", ASK, name, agent.token, *tasks],
        cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    return asked.stdout


@pytest.mark.django_db(transaction=True)
def test_deletion_absent_after_reindex_and_restart(account: Any, agent: Agent, lesson_scope: str) -> None:
    """Erased, after every background job, after a new index and in a new process: nothing; its sibling is there.

    Of files that it was exported to, `test_export` tells.
    """
    custodian = make_agent(account, "caller", ["admin"])
    gone, kept = acts.learn(agent, TIMEOUT), acts.learn(agent, CLOCK)
    acts.background()
    for task in (TIMEOUT_TASK, CLOCK_TASK):
        report(agent.client, start(agent.client, task, session="talk", project="api")["id"], "accepted")
    acts.background()
    assert custodian.client.delete(f"{INTERACTIONS}{gone}/").status_code == 200
    acts.background()
    acts.command("reembed", "--drop-old")
    acts.command("rebuild_standing")
    acts.background()
    assert acts.tables_with(TIMEOUT) == []
    assert acts.tables_naming(gone) == []
    told = after_restart(agent, TIMEOUT_TASK, CLOCK_TASK)
    assert TIMEOUT not in told
    assert told.startswith("nothing\n")
    assert CLOCK in told
    assert acts.tables_with(CLOCK) >= ["interaction", "lesson"]
    assert [(kind, str(subject)) for kind, subject, _ in read_ledger()] == [("interaction", gone)]
    assert acts.distilled(agent, kept) == ("stored", "stored")
    assert acts.command("doctor")["clean"]


def test_deletion_absent_from_shared_copies(agent: Agent, rival: Agent, lesson_scope: str, reviewer: Any) -> None:
    """The lesson had been handed out in other projects, and to another account where lessons are shared; it had been
    reworded, and answers with it were kept for a replay. Erasing its source reaches all of that, and nothing beside.

    Of an older export, `test_export` tells.
    """
    gone = acts.learn(agent, TIMEOUT, project="one")
    acts.learn(agent, CLOCK, project="one")
    keyed = {"headers": {"Idempotency-Key": "copy"}, "format": "json"}
    body = {"task": f"{TIMEOUT_TASK}; {CLOCK_TASK}", "project": "two"}
    copies = {who.account.slug: who.client.post(INTERACTIONS, body, **keyed).json() for who in (agent, rival)}
    assert TIMEOUT in copies["acme"]["context"]
    assert (TIMEOUT in copies["rival"]["context"]) is (lesson_scope == "global")
    for who in (agent, rival):
        assert report(who.client, copies[who.account.slug]["id"], "accepted").status_code == 201
    wording = TIMEOUT.replace("blocks the worker forever", "keeps a worker of the pool busy until somebody restarts it")
    assert rejection.supersede(acts.lesson_of(gone).pk, wording, reviewer=reviewer.pk).lesson is not None
    assert wording in acts.recalled(agent, TIMEOUT_TASK, project="two")
    acts.background()

    acts.command("erase", "interaction", gone, "--apply")
    acts.background()
    for text in (TIMEOUT, wording):
        assert acts.tables_with(text) == []
    for who in (agent, rival):
        copy = copies[who.account.slug]["id"]
        assert TIMEOUT not in who.client.get(f"{INTERACTIONS}{copy}/").json()["retrieved_context"]
        assert Interaction.objects.get(pk=copy).task == body["task"], "the other work itself stays"
    replayed = agent.client.post(INTERACTIONS, body, **keyed)
    refused(replayed, 409, "Idempotency-Key")

    kept = Lesson.objects.get()
    assert kept.text == CLOCK
    served = LessonUsage.objects.filter(lesson=kept, outcome_signal="accepted").count()
    assert served == (2 if lesson_scope == "global" else 1)
    assert acts.recalled(agent, CLOCK_TASK, project="two") == [CLOCK]
    assert acts.command("doctor")["clean"]
