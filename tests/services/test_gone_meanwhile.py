"""A lesson that leaves while an answer is being made, between two of its statements: the answer goes on without it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from memory.models import Account, Lesson
from memory.search import embed_query, hybrid
from memory.services import rejection
from memory.services.erasure import erase
from memory.services.retrieval import look_up

pytestmark = pytest.mark.django_db
TIMEOUT = "Pass `timeout=` to requests.get() so that a silent server cannot hang the worker."
SESSION = "Reuse one `requests.Session()` so that the worker does not connect to the server anew."
TASK = "make the worker call requests on a silent server"


@pytest.fixture(autouse=True)
def own_ledger(settings, tmp_path) -> None:
    settings.SONDER_VAR = str(tmp_path)


def meanwhile(monkeypatch: pytest.MonkeyPatch, statement: str, act: Callable[[], object]) -> None:
    """Does something right before a statement of the retrieval, once."""
    read = getattr(hybrid, statement)

    def acting(*arguments: Any) -> Any:
        monkeypatch.setattr(hybrid, statement, read)
        act()
        return read(*arguments)

    monkeypatch.setattr(hybrid, statement, acting)


def found(account: Account) -> list[str]:
    return [f.ranked.candidate.text for f in look_up(account, embed_query(TASK), 5).chosen]


@pytest.mark.parametrize("statement", ["details", "vectors_of", "conflicts"])
@pytest.mark.parametrize("others", [[], [SESSION]])
def test_what_is_erased_meanwhile_is_left_out_and_nothing_else(
    account: Account, lesson: Callable[..., Lesson], monkeypatch: pytest.MonkeyPatch, statement: str, others: list[str]
) -> None:
    gone = lesson(TIMEOUT)
    for text in others:
        lesson(text)
    assert set(found(account)) == {TIMEOUT, *others}
    meanwhile(monkeypatch, statement, lambda: erase("lesson", gone.pk, account_id=None, actor="system"))
    assert set(found(account)) - {TIMEOUT} == set(others)
    assert found(account) == others


def test_what_is_rejected_after_it_was_found_is_not_handed_out(
    account: Account, lesson: Callable[..., Lesson], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, _ = lesson(TIMEOUT), lesson(SESSION)
    reviewer = get_user_model().objects.create_user("rita").pk
    meanwhile(monkeypatch, "details", lambda: rejection.reject(gone.pk, reviewer=reviewer, reason="it does harm"))
    assert found(account) == [SESSION]
