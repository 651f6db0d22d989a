"""One transaction a test, rolled back; and the rules of a test class as parameters of the tests it inherits."""

import pytest
from django.db import connection

from tests.models.refusals import parameters


@pytest.fixture
def database(db: None) -> None:
    """A transaction over empty tables in which PostgreSQL checks foreign keys at once and not only at COMMIT."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("DELETE FROM embedding_space")  # the space that is open for all tests


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each inherited test its tables, columns, checks, keys or journals."""
    if metafunc.cls is None:
        return
    for name, cases in parameters(metafunc.cls).items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, list(cases.values()), ids=list(cases))
