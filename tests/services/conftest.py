"""A receiver of webhooks on this machine, for the tests of what is sent."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.services.receiver import Receiver, receiving


@pytest.fixture(scope="module")
def _running() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def receiver(_running: Receiver, settings: Any) -> Receiver:
    _running.forget()
    settings.SONDER_WEBHOOK_NETWORKS = "127.0.0.1/32"
    return _running
