"""Replacing and ending keys: who may go on with which, until when, and what the journal says."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Account, ApiKey, OperatorAct
from memory.services.keys import MAX_GRACE, create_key, find_key, revoke, rotate
from tests.conftest import Agent

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def last() -> OperatorAct:
    return OperatorAct.objects.latest("id")


class TestARotatedKey:
    def test_gives_its_rights_to_another_and_is_refused_at_once(self, agent: Agent) -> None:
        made = rotate(agent.key.pk, by="user:7")
        assert find_key(agent.token) is None
        new = find_key(made.secret)
        assert new is not None
        same = ("account_id", "name", "outcome_source", "scopes", "expires_at")
        assert [getattr(new, name) for name in same] == [getattr(agent.key, name) for name in same]
        assert new.hashed_key != agent.key.hashed_key

    def test_may_go_on_for_a_while_and_no_longer(self, agent: Agent) -> None:
        made = rotate(agent.key.pk, by="user:7", grace=DAY)
        assert find_key(agent.token) is not None
        assert find_key(made.secret) is not None
        ApiKey.objects.filter(pk=agent.key.pk).update(expires_at=timezone.now())
        assert find_key(agent.token) is None

    def test_gains_no_time_by_it(self, agent: Agent) -> None:
        soon = timezone.now() + timedelta(hours=1)
        ApiKey.objects.filter(pk=agent.key.pk).update(expires_at=soon)
        rotate(agent.key.pk, by="user:7", grace=DAY)
        assert ApiKey.objects.get(pk=agent.key.pk).expires_at == soon

    def test_passes_on_how_long_it_was_to_live(self, account: Account) -> None:
        old = create_key(account, name="a", source="caller", scopes=["read"], expires_at=timezone.now() + 90 * DAY)
        new = rotate(old.key.pk, by="user:7").key.expires_at
        assert new is not None
        assert abs(new - timezone.now() - 90 * DAY) < timedelta(minutes=5)
        until = timezone.now() + DAY
        assert rotate(find(new), by="user:7", expires_at=until).key.expires_at == until

    @pytest.mark.parametrize("wrong", [{"grace": -DAY}, {"grace": MAX_GRACE + DAY}, {"expires_at": timezone.now()}])
    def test_is_left_alone_by_what_is_out_of_range(self, agent: Agent, wrong: dict[str, Any]) -> None:
        with pytest.raises(Invalid):
            rotate(agent.key.pk, by="user:7", **wrong)
        assert find_key(agent.token) is not None
        assert ApiKey.objects.count() == 1

    @pytest.mark.parametrize("ended", ["revoked_at", "expires_at"])
    def test_that_does_not_work_any_more_has_no_successor(self, agent: Agent, ended: str) -> None:
        ApiKey.objects.filter(pk=agent.key.pk).update(**{ended: timezone.now()})
        with pytest.raises(Conflict, match="does not work any more"):
            rotate(agent.key.pk, by="user:7", grace=DAY)
        with pytest.raises(NotFound):
            rotate(uuid4(), by="user:7")
        assert ApiKey.objects.count() == 1

    def test_has_one_successor_however_often_it_is_asked_for(self, agent: Agent) -> None:
        made = rotate(agent.key.pk, by="user:7", grace=DAY)
        with pytest.raises(Conflict, match="has been replaced already"):
            rotate(agent.key.pk, by="user:7", grace=DAY)
        assert ApiKey.objects.count() == 2
        rotate(made.key.pk, by="user:7", grace=DAY)
        assert ApiKey.objects.count() == 3

    def test_is_journalled_by_prefix_and_never_by_secret(self, agent: Agent) -> None:
        made = rotate(agent.key.pk, by="user:7")
        entry = last()
        assert (entry.action, entry.subject, entry.account) == ("key_rotated", made.key.pk, agent.account.pk)
        assert entry.detail == f"{agent.key.prefix} (revoked) by {made.key.prefix}"
        assert entry.actor == "user:7"


def find(expires_at: Any) -> Any:
    return ApiKey.objects.get(expires_at=expires_at).pk


def test_a_key_is_revoked_once_and_journalled_once(agent: Agent) -> None:
    assert revoke(agent.key.pk, by="user:7")
    at = ApiKey.objects.get().revoked_at
    assert not revoke(agent.key.pk, by="user:8")
    assert ApiKey.objects.get().revoked_at == at
    assert [(act.action, act.actor) for act in OperatorAct.objects.all()] == [("key_revoked", "user:7")]


class TestTheCommand:
    def run(self, *arguments: str) -> dict[str, Any]:
        out = StringIO()
        call_command("rotate_api_key", *arguments, "--json", stdout=out)
        return dict(json.loads(out.getvalue()))

    def test_prints_the_new_key_and_when_the_old_one_ends(self, agent: Agent) -> None:
        told = self.run(agent.key.prefix, "--grace-hours", "24", "--expires-days", "30")
        new = find_key(told["key"])
        assert new is not None
        assert (new.prefix, told["replaces"]) == (told["prefix"], agent.key.prefix)
        assert new.expires_at is not None
        assert abs(new.expires_at - timezone.now() - 30 * DAY) < timedelta(minutes=5)
        assert find_key(agent.token) is not None
        assert last().actor == "system"

    def test_in_words_says_that_it_is_shown_once(self, agent: Agent) -> None:
        out = StringIO()
        call_command("rotate_api_key", agent.key.prefix, stdout=out)
        assert f"The key {agent.key.prefix} has ended." in out.getvalue()
        assert "never shown again" in out.getvalue()

    @pytest.mark.parametrize(
        "wrong", [["nothing"], ["{}", "--grace-hours=721"], ["{}", "--grace-hours=-1"], ["{}", "--expires-days=0"]]
    )
    def test_refuses_in_a_sentence(self, agent: Agent, wrong: list[str]) -> None:
        with pytest.raises(CommandError, match=r"\.$"):
            self.run(*(each.format(agent.key.prefix) for each in wrong))
        assert find_key(agent.token) is not None

    def test_of_making_a_key_is_journalled_too(self, account: Account) -> None:
        call_command("create_api_key", "acme", "--source", "caller", stdout=StringIO())
        assert (last().action, last().subject) == ("key_made", ApiKey.objects.get().pk)
