"""What is asked for is the most that is given."""

import pytest

from memory.rules.context import estimate_tokens
from tests.acceptance import acts
from tests.conftest import Agent
from tests.http.calls import start

pytestmark = pytest.mark.django_db

TASK = "close the connection of the worker before it forks"
SUBJECTS = (
    "socket", "cursor", "session", "file", "pool", "lock", "thread", "queue", "pipe", "stream", "channel", "buffer",
    "handle", "mutex", "timer", "watcher", "listener", "proxy", "tunnel", "logger",
)  # fmt: skip


def test_retrieval_k_is_an_upper_bound(agent: Agent, lesson_scope: str, settings: object) -> None:
    """Never more than k lessons and never more tokens than the budget; as many as that where enough of them fit."""
    texts = [
        f"Close the connection of the worker before it forks when a `{subject}` is open, or the {subject} is shared."
        for subject in SUBJECTS
    ]
    assert acts.import_texts(agent.account, *texts)["stored"] == len(texts)
    for k in (1, 2, 5, 12):
        started, asked = start(agent.client, TASK, k=k), acts.looked_up(agent, TASK, k=k)
        assert len(started["lessons"]) == len(asked["lessons"]) == k
        assert started["context"].count("<lesson id=") == k
    assert len(start(agent.client, TASK)["lessons"]) == 5, "without k it is five"
    assert len(start(agent.client, TASK, k=50)["lessons"]) == len(texts), "no more than there are"
    assert start(agent.client, "bake a cake with plums", k=50)["lessons"] == []
    for budget in (200, 400, 1000):
        settings.SONDER_CONTEXT_TOKENS = budget  # type: ignore[attr-defined]
        started = start(agent.client, TASK, k=50)
        assert 0 < len(started["lessons"]) < len(texts)
        assert started["context"].count("<lesson id=") == len(started["lessons"])
        assert estimate_tokens(started["context"]) <= budget
        longest = max(estimate_tokens(text) for text in texts) + 50  # with its tags
        assert estimate_tokens(started["context"]) > budget - longest, "as many as fit"
