"""How the tests of the pages come in and look."""

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from memory.models import Account
from memory.services.authority import Person
from tests.services.people import member


@pytest.fixture
def login(account: Account, client: Client) -> Callable[..., Person]:
    """Logs the client in as somebody with this role, in the account or in another."""

    def enter(role: str, name: str = "", at: Account | None = None) -> Person:
        who = member(at or account, role, name or role)
        client.force_login(get_user_model().objects.get(pk=who.user_id))
        return who

    return enter
