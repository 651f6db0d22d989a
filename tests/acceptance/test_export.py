"""What was erased does not come back with a file, however old the file is; what was not erased does."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from memory.models import Account, Interaction, Lesson, LessonUsage
from memory.services import rejection
from memory.services.erasure import erase, ledger_path, sync_ledger
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, TIMEOUT, TIMEOUT_TASK
from tests.conftest import Agent, make_agent
from tests.http.calls import INTERACTIONS, report, start
from tests.services.files import arrived, elsewhere, exported, imported, to_file

pytestmark = pytest.mark.django_db


def test_deletion_absent_after_reindex_and_restart(agent: Agent, lesson_scope: str, tmp_path: Path) -> None:
    """Erased, then exported, and the export imported in an installation that knows nothing of it: nothing; its sibling
    and all that came of it are there and handed out."""
    gone, kept = acts.learn(agent, TIMEOUT), acts.learn(agent, CLOCK)
    for task in (TIMEOUT_TASK, CLOCK_TASK):
        report(agent.client, start(agent.client, task)["id"], "accepted")
    acts.background()
    acts.command("erase", "interaction", gone, "--apply")
    acts.background()
    path = to_file(tmp_path, exported(agent.account))
    assert TIMEOUT not in path.read_text(encoding="utf-8")
    assert gone not in path.read_text(encoding="utf-8")
    elsewhere()
    ledger_path().unlink()
    imported(path)
    acts.background()
    acts.command("reembed", "--drop-old")
    acts.command("rebuild_standing")
    acts.forget_caches()
    assert acts.tables_with(TIMEOUT) == []
    assert acts.tables_naming(gone) == []
    returned = make_agent(Account.objects.get(), "caller", ["loop", "read"])
    assert acts.recalled(returned, TIMEOUT_TASK) == []
    assert acts.recalled(returned, CLOCK_TASK) == [CLOCK]
    assert acts.distilled(returned, kept) == ("stored", "stored")
    assert acts.command("doctor")["clean"]


def test_deletion_absent_from_shared_copies(
    agent: Agent, rival: Agent, lesson_scope: str, reviewer: Any, tmp_path: Path
) -> None:
    """An older export does not restore what was erased since: not the record, nor the lesson that came of it, its new
    wording, the contexts and summaries that told of it. What was not derived from it comes back, also after a loss of
    the whole database, when only the ledger beside it knows of the erasure."""
    gone = acts.learn(agent, TIMEOUT, project="one", session="talk")
    kept = acts.learn(agent, CLOCK, project="one", session="talk")
    wording = TIMEOUT.replace("blocks the worker forever", "keeps a worker of the pool busy until somebody restarts it")
    copy = start(agent.client, f"{TIMEOUT_TASK}; {CLOCK_TASK}", project="two")["id"]
    assert TIMEOUT in Interaction.objects.get(pk=copy).retrieved_context
    assert report(agent.client, copy, "accepted").status_code == 201
    assert rejection.supersede(acts.lesson_of(gone).pk, wording, reviewer=reviewer.pk).lesson is not None
    acts.background()
    older = to_file(tmp_path, exported(agent.account))
    assert all(text in older.read_text(encoding="utf-8") for text in (TIMEOUT, wording, CLOCK))

    erase("interaction", Interaction.objects.get(pk=gone).pk, account_id=None, actor="system")
    acts.background()
    here = imported(older)
    assert arrived(here)["interaction"] == 1, "it came in with the file"
    assert here["erased"]["interaction"] == 1, "and went before anybody could see it"
    for state in ("the same store", "a store that was lost"):
        assert [acts.tables_with(text) for text in (TIMEOUT, wording)] == [[], []], state
        assert acts.tables_naming(gone) in ([], ["erasure_record"]), state
        acts.forget_caches()
        returned = make_agent(Account.objects.get(slug="acme"), "caller", ["loop", "read"])
        assert acts.recalled(returned, TIMEOUT_TASK, project="two") == [], state
        assert acts.recalled(returned, CLOCK_TASK, project="two") == [CLOCK], state
        told = returned.client.get(f"{INTERACTIONS}{copy}/").json()
        assert (told["task"], TIMEOUT in told["retrieved_context"]) == (f"{TIMEOUT_TASK}; {CLOCK_TASK}", False), state
        assert LessonUsage.objects.filter(lesson=Lesson.objects.get(), interaction=copy).count() == 1, state
        assert Interaction.objects.filter(pk=kept).exists(), state
        assert acts.command("doctor")["clean"], state
        if state == "the same store":
            elsewhere()
            assert arrived(imported(older))["lesson"] > 1


def test_deletion_of_a_whole_account_or_project_is_not_undone_by_a_file(
    agent: Agent, rival: Agent, lesson_scope: str, tmp_path: Path
) -> None:
    """The project's work stays gone and the other project's comes back; a whole account is refused."""
    gone, kept = acts.learn(agent, TIMEOUT, project="one"), acts.learn(agent, CLOCK, project="two")
    older = to_file(tmp_path, exported(agent.account))
    erase("project", Interaction.objects.get(pk=gone).project_id, account_id=None, actor="system")
    sync_ledger()
    elsewhere()
    report = imported(older)
    assert (report["erased"]["project"], report["erased"]["lesson"]) == (1, 1)
    assert [str(pk) for pk in Interaction.objects.values_list("pk", flat=True)] == [kept]
    assert acts.tables_with(TIMEOUT) == []
    assert acts.tables_with(CLOCK) >= ["interaction", "lesson"]
    erase("account", Account.objects.get().pk, account_id=None, actor="system")
    sync_ledger()
    with pytest.raises(CommandError, match="was erased here on"):
        imported(older)
    assert Account.objects.count() == 0
    assert json.loads(ledger_path().read_text().splitlines()[-1])["kind"] == "account"
