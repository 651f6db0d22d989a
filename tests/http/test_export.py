"""GET export/ streams a whole account to a key that may have it, and nothing of anybody else."""

import json
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection, connections

from memory.api.views.export import Pieces
from memory.errors import Conflict
from memory.models import Account, Interaction
from memory.models.sql import fetch
from memory.services.erasure import erase
from memory.services.transfer import streaming, writing
from tests.conftest import Agent, make_agent
from tests.http.calls import report, start
from tests.services.files import exported

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/export/"


@pytest.fixture
def custodian(account: Account) -> Agent:
    return make_agent(account, "caller", ["admin", "loop"])


@pytest.fixture
def work(custodian: Agent) -> list[str]:
    """Five pieces of judged work."""
    begun = [start(custodian.client, f"prime the pump, part {n}")["id"] for n in range(5)]
    for each in begun:
        report(custodian.client, each, "accepted")
    return begun


def lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def without_time(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**line, "row": {k: v for k, v in line["row"].items() if k != "exported_at"}} for line in found]


def test_answers_the_very_lines_that_the_command_writes(custodian: Agent, work: list[str]) -> None:
    answer = custodian.client.get(ADDRESS)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/x-ndjson")
    assert answer["Content-Disposition"] == 'attachment; filename="acme.ndjson"'
    assert answer["Cache-Control"] == "no-store"
    found = lines(answer.getvalue())
    assert without_time(found) == without_time(exported(custodian.account))
    assert found[-1]["row"]["counts"]["interaction"] == len(work)


@pytest.mark.parametrize("scopes", [["loop"], ["read"], ["govern"], ["loop", "read", "govern"]])
def test_takes_a_key_with_the_scope_admin(account: Account, scopes: list[str]) -> None:
    assert make_agent(account, "caller", scopes).client.get(ADDRESS).status_code == 403


def test_is_counted_like_any_other_reading(custodian: Agent, settings: Any) -> None:
    cache.clear()
    settings.SONDER_THROTTLE_READ = "1/hour"
    first = custodian.client.get(ADDRESS)
    assert first.getvalue()
    second = custodian.client.get(ADDRESS)
    cache.clear()
    assert (first.status_code, second.status_code) == (200, 429)


def test_holds_nothing_of_another_account(custodian: Agent, work: list[str], rival_account: Account) -> None:
    theirs = make_agent(rival_account, "caller", ["admin", "loop"])
    start(theirs.client, "the rival's own secret plan", project="rival-project")
    content = custodian.client.get(ADDRESS).getvalue().decode()
    assert "rival" not in content
    assert theirs.key.prefix not in content
    other = theirs.client.get(ADDRESS).getvalue().decode()
    assert not any(each in other for each in work)


def test_what_was_erased_stays_erased(custodian: Agent, work: list[str], settings: Any, tmp_path: Any) -> None:
    settings.SONDER_VAR = str(tmp_path)
    gone = Interaction.objects.get(pk=work[0])
    erase("interaction", gone.pk, account_id=custodian.account.pk, actor="system")
    content = custodian.client.get(ADDRESS).getvalue().decode()
    assert work[0] not in content
    assert gone.task not in content
    assert work[1] in content


def test_comes_in_pieces_of_a_few_rows_read_as_they_are_taken(
    custodian: Agent, work: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "CHUNK", 2)
    pieces = list(streaming.stream(custodian.account))
    assert max(len(piece.splitlines()) for piece in pieces) <= 3, "two rows, and the header or the trailer"
    assert all(pieces)
    begun = streaming.stream(custodian.account)
    for piece in begun:
        if b'"kind":"interaction"' in piece:
            break
    assert b'"kind":"outcome"' not in piece, "what was not asked for was not read"
    begun.close()
    assert b"".join(pieces).splitlines()[-1].startswith(b'{"kind":"trailer"')


def test_a_reader_who_goes_away_leaves_no_transaction_behind(custodian: Agent, work: list[str]) -> None:
    before = len(connection.savepoint_ids)
    begun = streaming.stream(custodian.account)
    pieces = Pieces(next(begun), begun)
    assert len(connection.savepoint_ids) > before
    pieces.close()  # as a server does with what it could not send
    assert len(connection.savepoint_ids) == before


def test_is_refused_while_another_of_the_account_is_under_way(custodian: Agent) -> None:
    key = f"sonder:export:{custodian.account.pk}"
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [key])
            answer = custodian.client.get(ADDRESS)
            with pytest.raises(Conflict):
                next(streaming.stream(custodian.account))
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [key])
    finally:
        other.close()
    assert (answer.status_code, answer["Content-Type"]) == (409, "application/problem+json")
    assert custodian.client.get(ADDRESS).getvalue()


def test_postgresql_ends_the_transaction_of_a_reader_that_takes_nothing(custodian: Agent) -> None:
    begun = streaming.stream(custodian.account)
    next(begun)
    ((limit,),) = fetch("SHOW idle_in_transaction_session_timeout")
    assert limit == "1min"
    begun.close()


def test_head_says_what_would_come_and_reads_nothing(custodian: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.api.views.export.stream", lambda account: pytest.fail("it was read"))
    answer = custodian.client.head(ADDRESS)
    assert (answer.status_code, answer.content) == (200, b"")
