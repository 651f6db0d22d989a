"""The admin as an operator's browser sees it."""

from typing import Any

import pytest
from django.test import Client


@pytest.fixture
def pages(operator: Any) -> Client:
    """A browser in which the operator is logged in."""
    client = Client()
    client.force_login(operator)
    return client
