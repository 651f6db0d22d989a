"""`webhook` adds, lists, tries out and switches endpoints, or says in a sentence why not."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.models import Account, WebhookDelivery, WebhookEndpoint
from tests.services.receiver import Receiver

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/sonder"


def run(*arguments: str) -> Any:
    out = StringIO()
    call_command("webhook", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("webhook", *arguments, stdout=out)
    return out.getvalue()


def refused(*arguments: str) -> str:
    with pytest.raises(CommandError) as refusal:
        run(*arguments)
    return str(refusal.value)


def test_an_endpoint_is_added_with_its_secret_and_listed_without(account: Account) -> None:
    made = run("add", URL, "--account", "acme", "--events", "lesson.quarantined, review.late", "--description", "pager")
    assert made["secret"].startswith("whsec_")
    assert (made["account"], made["url"], made["description"]) == ("acme", URL, "pager")
    whole = told("add", URL)
    assert whole.startswith("whsec_")
    listed = run("list")
    assert [(each["account"], each["events"]) for each in listed] == [
        ("acme", ["lesson.quarantined", "review.late"]),
        (None, ["lesson.quarantined", "contradiction.found", "review.late"]),
    ]
    assert [each["id"] for each in run("list", "--account", "acme")] == [made["id"]]
    assert "whsec_" not in told("list")
    assert "the whole installation" in told("list")


def test_a_test_is_sent_at_once_and_says_how_it_went(receiver: Receiver) -> None:
    made = run("add", receiver.url)
    assert run("test", made["id"])["state"] == "delivered"
    assert json.loads(receiver.received[0].body)["type"] == "webhook.test"
    receiver.says(500)
    assert refused("test", made["id"]) == "The test was not delivered."
    assert WebhookDelivery.objects.filter(state="pending").count() == 1, "it is tried again like any other"


def test_an_endpoint_is_switched_off_and_on() -> None:
    made = run("add", URL)
    assert run("disable", made["id"])["changed"] is True
    assert run("disable", made["id"])["changed"] is False
    assert run("list")[0]["disabled_because"] == "operator"
    assert "off (operator)" in told("list")
    assert "is off" in refused("test", made["id"])
    assert run("enable", made["id"])["changed"] is True
    assert WebhookEndpoint.objects.get().disabled_at is None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["add"], "webhook add URL"),
        (["list", URL], "webhook list"),
        (["add", "ftp://example.com"], "https://host/path"),
        (["add", "http://hooks.example.com/"], "use https"),
        (["add", URL, "--events", "everything"], "choose from"),
        (["add", URL, "--events", "webhook.test"], "choose from"),
        (["add", URL, "--description", "x" * 201], "200"),
        (["add", URL, "--account", "nobody"], "no account"),
        (["test", "4711"], "is no id"),
        (["enable", "00000000-0000-7000-8000-000000000000"], "no such endpoint"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(arguments: list[str], why: str) -> None:
    assert why in refused(*arguments)
    assert not WebhookEndpoint.objects.exists()


def test_plain_http_is_taken_for_loopback_where_it_is_allowed(settings: Any) -> None:
    settings.SONDER_WEBHOOK_NETWORKS = "10.0.0.0/8"
    assert "use https" in refused("add", "http://127.0.0.1:9/")
    settings.SONDER_WEBHOOK_NETWORKS = "10.0.0.0/8,127.0.0.0/8"
    assert run("add", "http://127.0.0.1:9/")["url"] == "http://127.0.0.1:9/"
