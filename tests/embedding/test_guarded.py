"""A model that is away costs nobody a connection, and few people their time."""

import threading
from collections.abc import Callable, Sequence

import pytest
from django.db import connection, transaction
from django.test import override_settings

from memory.embedding import EmbeddingUnavailable, Vectors
from memory.embedding.base import EmbeddingRefused
from memory.embedding.guarded import FAILURES, GuardedProvider
from memory.embedding.hashing import HashingProvider
from memory.models import Account, EmbeddingSpace, Lesson
from memory.services import space as spaces
from tests.conftest import Agent
from tests.embedding.server import embedding_server

PAUSE = 30.0
QUERY = "close the file before renaming it"


class Model(HashingProvider):
    """Fails with `trouble` while there is any; counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__(dimension=16)
        self.trouble: EmbeddingUnavailable | None = None
        self.asked = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        return super().embed(texts)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guarded(model: Model, clock: Clock) -> GuardedProvider:
    return GuardedProvider(model, PAUSE, clock)


def fail(guarded: GuardedProvider, times: int) -> None:
    for _ in range(times):
        with pytest.raises(EmbeddingUnavailable):
            guarded.embed_query(QUERY)


def test_it_stands_in_for_the_provider(guarded: GuardedProvider) -> None:
    assert (guarded.model, guarded.revision, guarded.dimension) == ("hashing", "1", 16)
    assert guarded.embed([QUERY]).shape == (1, 16)
    guarded.check()


def test_after_failures_in_a_row_the_model_is_not_asked_for_a_while(
    guarded: GuardedProvider, model: Model, clock: Clock
) -> None:
    model.trouble = EmbeddingUnavailable("The server sleeps.")
    fail(guarded, FAILURES)
    assert model.asked == FAILURES
    for call in (guarded.check, lambda: guarded.embed([QUERY]), lambda: guarded.embed_query(QUERY)):
        with pytest.raises(EmbeddingUnavailable, match=r"The server sleeps\..*30 seconds"):
            call()
    clock.now += PAUSE - 0.1
    fail(guarded, 1)
    assert model.asked == FAILURES


def test_after_the_pause_one_call_tries_and_its_success_ends_it(
    guarded: GuardedProvider, model: Model, clock: Clock
) -> None:
    model.trouble = EmbeddingUnavailable("down")
    fail(guarded, FAILURES)
    model.trouble = None
    clock.now += PAUSE
    guarded.embed_query(QUERY)
    guarded.embed_query(QUERY)
    assert model.asked == FAILURES + 2


def test_after_the_pause_a_failure_starts_the_next(guarded: GuardedProvider, model: Model, clock: Clock) -> None:
    model.trouble = EmbeddingUnavailable("down")
    fail(guarded, FAILURES)
    clock.now += PAUSE
    fail(guarded, 5)
    assert model.asked == FAILURES + 1


def test_while_one_call_tries_the_others_do_not_wait_for_it(
    guarded: GuardedProvider, model: Model, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.trouble = EmbeddingUnavailable("down")
    fail(guarded, FAILURES)
    clock.now += PAUSE
    asked, answer = threading.Event(), threading.Event()

    def hang(_: Sequence[str]) -> Vectors:
        asked.set()
        assert answer.wait(10)
        raise EmbeddingUnavailable("down")

    monkeypatch.setattr(model, "embed", hang)
    trial = threading.Thread(target=fail, args=(guarded, 1))
    trial.start()
    assert asked.wait(10)
    fail(guarded, 1)
    answer.set()
    trial.join()


def test_threads_that_ask_for_the_dimension_do_not_wait_for_each_other(
    guarded: GuardedProvider, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(3, timeout=10)

    def dimension(_: Model) -> int:
        together.wait()  # passes only if all three are here
        return 16

    monkeypatch.setattr(Model, "dimension", property(dimension, lambda *_: None), raising=False)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(guarded.dimension)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [16, 16, 16]
    assert guarded.dimension == 16, "and it is not asked for again"


def test_a_success_between_failures_starts_the_count_anew(guarded: GuardedProvider, model: Model) -> None:
    for _ in range(3):
        model.trouble = EmbeddingUnavailable("down")
        fail(guarded, FAILURES - 1)
        model.trouble = None
        guarded.embed_query(QUERY)


def test_a_refused_text_is_no_failure_of_the_model(guarded: GuardedProvider, model: Model) -> None:
    model.trouble = EmbeddingRefused("HTTP 400")
    fail(guarded, 2 * FAILURES)
    assert model.asked == 2 * FAILURES


@pytest.mark.django_db(transaction=True)
class TestTheConnection:
    @pytest.mark.parametrize("path", ["/api/v1/interactions/", "/api/v1/retrieve/"], ids=["interactions", "retrieve"])
    def test_is_with_nobody_while_a_request_waits_for_the_model(
        self, agent: Agent, lesson: Callable[..., Lesson], monkeypatch: pytest.MonkeyPatch, path: str
    ) -> None:
        lesson("Close a file with fp.close() before os.rename(), or Windows refuses to rename it.")
        held = []
        original = HashingProvider.embed

        def spying(self: HashingProvider, texts: Sequence[str]) -> Vectors:
            held.append(connection.connection is not None)
            return original(self, texts)

        monkeypatch.setattr(HashingProvider, "embed", spying)
        response = agent.client.post(path, {"task": f"rename a file {path}"}, format="json")
        assert (response.status_code in (200, 201), response.json()["mode"]) == (True, "hybrid")
        assert held == [False]

    def test_stays_where_it_is_inside_a_transaction(self, guarded: GuardedProvider) -> None:
        with transaction.atomic():
            made = Account.objects.create(slug="brief", name="Brief", review_policy="auto")
            guarded.embed_query(QUERY)
            assert Account.objects.filter(pk=made.pk).exists()
            transaction.set_rollback(True)


@pytest.mark.django_db
def test_requests_go_on_with_words_alone_when_a_server_hangs_and_soon_at_once(
    agent: Agent, space: EmbeddingSpace
) -> None:
    with embedding_server() as server:
        address = {"SONDER_EMBEDDING_URL": server.url, "SONDER_EMBEDDING_MODEL": "m"}
        with override_settings(SONDER_EMBEDDING="openai", SONDER_EMBEDDING_TIMEOUT_SECONDS=0.2, **address):
            spaces.activate(spaces.configured_space())
            server.requests.clear()
            server.delay = 1.0
            for _ in range(FAILURES + 4):
                response = agent.client.post("/api/v1/interactions/", {"task": QUERY}, format="json")
                assert (response.status_code, response.json()["mode"]) == (201, "lexical")
        assert len(server.requests) == FAILURES
