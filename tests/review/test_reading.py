"""Looking changes nothing, wherever one looks."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.urls import reverse

from memory.models import Account
from tests.browser.everywhere import Store, addresses, answers_get, furnish, names
from tests.browser.scene import build

pytestmark = pytest.mark.django_db


@pytest.fixture
def store(account: Account) -> Store:
    return furnish(build(account))


@pytest.fixture
def page(client: Client, store: Store) -> Client:
    """A maintainer's browser: who may do the most."""
    client.force_login(get_user_model().objects.get(pk=store.mia.user_id))
    return client


def rows() -> dict[str, Any]:
    """What every table holds: how many rows, and a digest of them and of where they lie, which any write moves."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        one = "SELECT '{0}', count(*), md5(string_agg(ctid::text || t::text, '|' ORDER BY ctid)) FROM \"{0}\" t"
        cursor.execute(" UNION ALL ".join(one.format(name) for (name,) in cursor.fetchall()))
        return {name: (count, digest) for name, count, digest in cursor.fetchall()}


def test_no_look_at_any_page_writes_anything(page: Client, store: Store) -> None:
    found = addresses(store, "measured_export")  # there may be no report yet
    assert len(found) > 60
    page.get("/review/")
    before, failed = rows(), {}
    for address in found:
        answer = page.get(address)
        if answer.status_code not in (200, 302):
            failed[address] = answer.status_code
        for _ in answer if answer.streaming else ():
            pass  # a download writes, if it does, while it is read
    after = rows()
    assert [table for table in after if after[table] != before[table]] == []
    assert failed == {}


def test_what_is_only_sent_to_cannot_be_looked_at(page: Client, store: Store) -> None:
    for name in [name for name in names() if not answers_get(name)]:
        address = reverse(f"review:{name}", kwargs=store.arguments(name)[0])
        assert page.get(address).status_code == 405, name
