"""Rows by plain SQL are the rows that the ORM reads and writes."""

from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, transaction

from memory.models import Account, ApiKey, Interaction, Preference
from memory.models.base import told_at
from memory.models.rows import Rows, insert
from memory.models.sql import fetch
from tests.conftest import Agent

pytestmark = pytest.mark.django_db


def interaction(agent: Agent, task: str, **values: object) -> Interaction:
    return Interaction(account=agent.account, api_key=agent.key, project_explicit=False, task=task, **values)


def test_a_row_reads_as_the_orm_reads_it(agent: Agent) -> None:
    rows = Rows(ApiKey, "k")
    (row,) = fetch(f"SELECT {rows.columns} FROM api_key k WHERE k.id = %s", [agent.key.pk])
    read, expected = rows.read(row), ApiKey.objects.get(pk=agent.key.pk)
    assert len(row) == rows.width
    assert {f.attname: getattr(read, f.attname) for f in ApiKey._meta.concrete_fields} == {
        f.attname: getattr(expected, f.attname) for f in ApiKey._meta.concrete_fields
    }
    assert isinstance(read.scopes, list), "a JSON column passes through its field"
    assert (read._state.adding, read._state.db) == (False, "default")


def test_rows_of_two_models_share_a_statement(agent: Agent) -> None:
    keys, accounts = Rows(ApiKey, "k"), Rows(Account, "a")
    both = f"{keys.columns}, {accounts.columns}"
    (row,) = fetch(
        f"SELECT {both} FROM api_key k JOIN account a ON a.id = k.account_id WHERE k.id = %s", [agent.key.pk]
    )
    assert keys.read(row[: keys.width]) == agent.key
    assert accounts.read(row[keys.width :]).slug == agent.account.slug


def test_inserted_rows_come_back_with_what_the_database_adds(agent: Agent) -> None:
    new = [interaction(agent, "one", tokens_in=3), interaction(agent, "two", response="done")]
    insert(new)
    one, two = (Interaction.objects.get(pk=each.pk) for each in new)
    assert (one.task, one.tokens_in, one.response, one.retrieved_context) == ("one", 3, None, "")
    assert (two.task, two.tokens_in, two.response) == ("two", None, "done")
    assert one.created_at is not None
    new[0].task = "renamed"
    new[0].save(update_fields=["task"])  # it is no new row any more
    assert Interaction.objects.get(pk=one.pk).task == "renamed"


def test_within_a_story_a_row_has_the_moment_that_is_told(agent: Agent) -> None:
    moment = datetime(2025, 3, 1, 12, tzinfo=UTC)
    with told_at(moment):
        new = interaction(agent, "long ago")
        insert([new])
    assert Interaction.objects.get(pk=new.pk).created_at == moment


def test_constraints_hold_for_them(agent: Agent) -> None:
    with pytest.raises(IntegrityError, match="interaction_task_not_empty"), transaction.atomic():
        insert([interaction(agent, "")])


def test_no_rows_are_no_statement(django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]  # pytest-django does not type its fixture
        insert(list[Preference]())
