"""An operator makes endpoints of webhooks in the admin, sees each secret once, and switches them off and on."""

import re

import pytest
from django.test import Client

from memory.models import Account, WebhookDelivery, WebhookEndpoint
from memory.rules.webhooks import written
from memory.services.webhooks.endpoints import key_id, secret_of
from tests.http.admin_pages import address, body
from tests.models.rows import insert

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/sonder"


def test_an_endpoint_is_made_and_its_secret_is_shown_once(pages: Client, account: Account) -> None:
    form = {"account": account.pk, "url": URL, "events": ["review.late"], "description": "pager"}
    answer = pages.post(address(WebhookEndpoint, "add"), form, follow=True)
    row = WebhookEndpoint.objects.get()
    assert (row.account, row.url, row.events, row.description) == (account, URL, ["review.late"], "pager")
    secret = written(secret_of(row))
    assert re.findall(r"whsec_[\w+/=]{44}", body(answer)) == [secret]
    assert secret not in str(answer.cookies) + str(pages.session.items())
    assert "no-store" in answer.headers["Cache-Control"]
    for page in (address(WebhookEndpoint, "changelist"), address(WebhookEndpoint, "change", row.pk)):
        shown = body(pages.get(page))
        assert URL in shown
        assert "whsec_" not in shown
        assert row.salt not in shown


def test_an_address_that_is_not_to_be_used_is_refused_with_a_sentence(pages: Client) -> None:
    for url, why in (("http://hooks.example.com/", "use https"), ("https://me:word@example.com/", "leave user")):
        answer = pages.post(address(WebhookEndpoint, "add"), {"url": url, "events": ["review.late"]})
        assert why in body(answer)
    assert not WebhookEndpoint.objects.exists()


def test_endpoints_are_switched_off_and_on(pages: Client) -> None:
    pk = str(insert("webhook_endpoint", key_id="of another")["id"])
    waiting = insert("webhook_delivery", endpoint_id=pk)["id"]

    def switch(action: str) -> str:
        chosen = {"action": action, "_selected_action": [pk]}
        return body(pages.post(address(WebhookEndpoint, "changelist"), chosen, follow=True))

    assert "Switched off: 1." in switch("disable")
    assert WebhookDelivery.objects.get(pk=waiting).state == "cancelled"
    assert "Add a new endpoint" in switch("enable"), "it is of another secret than this installation's"
    WebhookEndpoint.objects.update(key_id=key_id())
    assert "Switched on" in switch("enable")
    assert WebhookEndpoint.objects.get().disabled_at is None
