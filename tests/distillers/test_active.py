"""Which distiller is in force, and when it is left alone."""

import time
from collections.abc import Iterator

import pytest
from django.test import override_settings

from memory.distillers import DistillerUnavailable, active
from memory.distillers.chat import ChatDistiller
from memory.distillers.extractive import ExtractiveDistiller

MODEL = {"SONDER_DISTILLER_URL": "http://127.0.0.1:1/v1", "SONDER_DISTILLER_MODEL": "m"}


@pytest.fixture(autouse=True)
def awake() -> Iterator[None]:
    active.wake()
    yield
    active.wake()


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, ExtractiveDistiller),
        (MODEL, ChatDistiller),
        ({"SONDER_DISTILLER": "chat", **MODEL}, ChatDistiller),
        ({"SONDER_DISTILLER": "extractive", **MODEL}, ExtractiveDistiller),
        ({"SONDER_DISTILLER": "off", **MODEL}, type(None)),
    ],
)
def test_the_settings_choose_the_distiller(settings: dict[str, str], kind: type) -> None:
    with override_settings(**settings):
        assert isinstance(active.distiller(), kind)


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"SONDER_DISTILLER": "chat"}, "SONDER_DISTILLER_URL"),
        ({"SONDER_DISTILLER": "chat", "SONDER_DISTILLER_MODEL": "m"}, "SONDER_DISTILLER_URL"),
        ({"SONDER_DISTILLER_URL": "http://127.0.0.1:1/v1"}, "SONDER_DISTILLER_MODEL"),
    ],
)
def test_a_missing_setting_is_named(settings: dict[str, str], missing: str) -> None:
    with override_settings(**settings), pytest.raises(DistillerUnavailable, match=missing):
        active.distiller()


def test_one_distiller_serves_the_whole_process() -> None:
    assert active.distiller() is active.distiller()


def test_a_distiller_that_rests_is_not_there_until_the_rest_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    active.rest(120)
    assert active.distiller() is None
    now = 1119.9
    assert active.distiller() is None
    now = 1120.0
    assert active.distiller() is not None


@pytest.mark.parametrize(
    ("asked", "rests"), [(None, active.REST_SECONDS), (float("inf"), active.MAX_REST_SECONDS), (-5.0, 0.0)]
)
def test_a_rest_has_a_length_of_its_own_and_an_upper_bound(
    asked: float | None, rests: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    active.rest(asked)
    now = 1000.0 + rests
    assert active.distiller() is not None
    now -= 0.1
    assert rests == 0 or active.distiller() is None
