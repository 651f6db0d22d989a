"""The two ways to share lessons, and the people that decide about them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

from memory.distillers import active as distillers
from memory.models import Account
from tests.acceptance import acts
from tests.conftest import Agent, make_agent


@pytest.fixture(params=["global", "account"])
def lesson_scope(request: pytest.FixtureRequest) -> Iterator[str]:
    """Whether lessons are everybody's or an account's own; the test runs with both."""
    with override_settings(SONDER_LESSON_SCOPE=request.param):
        yield request.param


@pytest.fixture(autouse=True)
def own_ledger(settings: Any, tmp_path: Path) -> None:
    """What a test erases is not remembered by another."""
    settings.SONDER_VAR = str(tmp_path)


@pytest.fixture(autouse=True)
def fresh_process() -> Iterator[None]:
    """Nothing that an earlier test left in memory."""
    acts.forget_caches()
    distillers.wake()
    yield
    distillers.wake()


@pytest.fixture
def governor(account: Account) -> Agent:
    """A key that may call distillations off and try them again."""
    return make_agent(account, "caller", ["govern", "read"])


@pytest.fixture
def reviewer(db: None) -> Any:
    """A person who decides about lessons."""
    return get_user_model().objects.create_user("rita")


@pytest.fixture
def pages(operator: Any) -> Client:
    """A browser in which an operator is logged in to the admin."""
    client = Client()
    client.force_login(operator)
    return client
