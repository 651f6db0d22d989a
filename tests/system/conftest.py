"""What the tests of this folder share: one migrated store, which each of them copies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.stores import manage, new_store


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A store that is set up, on which nothing runs: copying it costs a fraction of migrating."""
    with new_store() as var:
        assert manage(var, "migrate", "--verbosity", "0").returncode == 0
        yield var
