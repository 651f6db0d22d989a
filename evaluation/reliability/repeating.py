"""A pytest plugin: plays each test as many times as REPEAT says, as a test of its own each time."""

import os

import pytest


@pytest.fixture
def time_of_many(request: pytest.FixtureRequest) -> int:
    """Which time it is, from 0."""
    return int(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.fixturenames.append("time_of_many")
    metafunc.parametrize("time_of_many", range(int(os.environ["REPEAT"])), indirect=True)
