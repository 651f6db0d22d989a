"""`create_api_key` makes a key or says in a sentence why not, whatever it is given."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.errors import Invalid
from memory.models import Account, ApiKey
from memory.services.keys import create_key, find_key

pytestmark = pytest.mark.django_db


def create(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("create_api_key", "--source", "caller", "--json", *arguments, stdout=out)
    return dict(json.loads(out.getvalue()))


def refused(*arguments: str) -> str:
    """Why not; and nothing was made."""
    before = (Account.objects.count(), ApiKey.objects.count())
    with pytest.raises(CommandError) as refusal:
        create(*arguments)
    assert (Account.objects.count(), ApiKey.objects.count()) == before
    return str(refusal.value)


def test_a_key_that_works_is_made(account: Account) -> None:
    made = create("acme", "--name", "n" * 100, "--expires-days", "36500")
    key = find_key(made["key"])
    assert key is not None
    assert (key.account, key.name) == (account, "n" * 100)
    assert key.expires_at is not None
    assert abs(key.expires_at - timezone.now() - timedelta(days=36500)) < timedelta(minutes=1)


@pytest.mark.parametrize("days", ["0", "-1", "36501", "999999999", "9" * 30])
def test_days_that_no_calendar_has_are_refused(account: Account, days: str) -> None:
    assert "--expires-days is from 1 to 36500" in refused("acme", f"--expires-days={days}")


@pytest.mark.parametrize("days", ["soon", "9" * 5000, "1.5"])
def test_days_that_are_no_number_are_refused(account: Account, days: str) -> None:
    assert "--expires-days" in refused("acme", f"--expires-days={days}")


@pytest.mark.parametrize("name", ["n" * 101, "a\nb", "a\x00b", "\udce9", " "])
def test_a_name_that_the_store_cannot_hold_is_refused(account: Account, name: str) -> None:
    assert "name: use 1 to 100 printable characters" in refused("acme", "--name", name)
    with pytest.raises(Invalid, match="printable"):
        create_key(account, name=name, source="caller", scopes=["loop"])


@pytest.mark.parametrize("slug", ["acme\n", "ACME", "", "-", "a" * 64, "a\x00", "\udce9"])
def test_what_is_no_slug_is_refused(account: Account, slug: str) -> None:
    assert "is no slug" in refused("--create-account", "--", slug)
    assert "There is no account" in refused("--", slug)


@pytest.mark.parametrize("scopes", ["", ",", "loop,everything", "\udce9"])
def test_scopes_that_there_are_not_are_refused(account: Account, scopes: str) -> None:
    assert "scopes: choose from loop, read" in refused("acme", f"--scopes={scopes}")


def test_a_new_account_waits_for_no_reviewer_unless_told_to() -> None:
    create("one", "--create-account")
    create("two", "--create-account", "--review-policy", "gated")
    assert dict(Account.objects.values_list("slug", "review_policy")) == {"one": "auto", "two": "gated"}


def test_the_policy_of_an_account_that_is_there_is_not_changed_in_silence(account: Account) -> None:
    for options in ([], ["--create-account"]):
        told = refused("acme", *options, "--review-policy", "gated")
        assert "'acme' exists already and is auto" in told
        create("acme", *options, "--review-policy", "auto")
    account.refresh_from_db()
    assert account.review_policy == "auto"
