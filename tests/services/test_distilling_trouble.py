"""Distillers and embedders that answer late, badly or not at all: what is tried again, when, and how it ends."""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from unittest import mock

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone
from django_celery_beat.schedulers import ModelEntry

from memory import conf, tasks
from memory.distillers import Material
from memory.distillers.chat import ChatDistiller
from memory.embedding.base import EmbeddingRefused
from memory.models import Account, EmbeddingSpace, JobRun, Lesson, LessonDistillation, WriteRefusal
from memory.services import distillation, distilling
from sonder_site.celery import app
from tests.distillers.server import KEY, Server, completion
from tests.services.workshop import (
    distill,
    expire_lease,
    good_work,
    make_due,
    model,
    outcome_of,
    put_into,
    row,
    tables_with,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Iterator[Server]:
    with model() as running:
        yield running


def slow(server: Server) -> None:
    server.delay = 1.0


def busy(server: Server) -> None:
    server.status, server.headers = 429, {"Retry-After": "120"}


def broken(server: Server) -> None:
    server.status = 500


def dying(server: Server) -> None:
    server.promised = 50


def malformed(server: Server) -> None:
    server.answer = completion("{")


def empty(server: Server) -> None:
    server.answer = completion("")


def refusing(server: Server) -> None:
    server.answer = completion(None, refusal="No.")


def oversized(server: Server) -> None:
    server.raw = b" " * 70_000


UNAVAILABLE, UNUSABLE = [slow, busy, broken, dying], [malformed, empty, refusing, oversized]


@override_settings(SONDER_DISTILL_TIMEOUT_SECONDS=0.2)
@pytest.mark.parametrize(
    ("trouble", "final"),
    [(t, "attempts_exhausted") for t in UNAVAILABLE] + [(t, "distiller_error") for t in UNUSABLE],
)
def test_trouble_is_tried_again_and_in_the_end_fails_for_what_it_was(
    account: Account, server: Server, trouble: Callable[[Server], None], final: str
) -> None:
    trouble(server)
    interaction = distill(account)
    for attempt in range(1, 5):
        found = row(interaction)
        assert (found.state, found.attempts, found.claim_token) == ("retryable", attempt, None)
        assert found.last_error.startswith("The distiller at 127.0.0.1")
        make_due(interaction)
        assert distilling.sweep() == 1
    assert outcome_of(interaction) == ("failed", final)
    assert row(interaction).completed_at is not None
    make_due(interaction)
    assert distilling.sweep() == 0
    assert len(server.requests) == 5
    assert not Lesson.objects.exists()
    assert not WriteRefusal.objects.exists()


def test_after_trouble_a_good_answer_is_stored_and_the_trouble_stays_told(account: Account, server: Server) -> None:
    broken(server)
    interaction = distill(account)
    server.status = 200
    make_due(interaction)
    distilling.sweep()
    found = row(interaction)
    assert (found.state, found.attempts) == ("stored", 2)
    assert "HTTP 500" in found.last_error


def test_a_busy_server_is_left_alone_for_as_long_as_it_asked(
    account: Account, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, later = time.monotonic, 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock() + later)
    busy(server)
    interaction, other = distill(account), good_work(account)
    LessonDistillation.objects.update(created_at=timezone.now() - timedelta(hours=1))
    server.status = 200
    later = 110.0
    assert distilling.sweep() == 0
    assert distilling.distill(other) is None
    assert len(server.requests) == 1
    assert row(other).attempts == 0  # nothing else pays for it
    later = 120.0
    assert distilling.sweep() == 2
    # The other one was tried less often, so that it went first.
    assert (outcome_of(other)[1], outcome_of(interaction)[1]) == ("stored", "exact_duplicate")


def test_an_answer_that_is_of_no_use_holds_nothing_else_up(account: Account, server: Server) -> None:
    malformed(server)
    distill(account)
    other = good_work(account)
    assert distilling.sweep() == 1
    assert row(other).state == "retryable"


class TestWithoutEmbeddings:
    """A proposal that could not be compared with what is known and rejected is not stored, and not asked for."""

    def test_the_model_is_not_asked(self, account: Account, server: Server) -> None:
        interaction = good_work(account)
        with override_settings(SONDER_EMBEDDING="openai"):
            distilling.distill(interaction)
        found = row(interaction)
        assert (found.state, found.attempts) == ("retryable", 1)
        assert "SONDER_EMBEDDING_URL" in found.last_error
        assert server.requests == []
        make_due(interaction)
        distilling.sweep()
        assert row(interaction).state == "stored"

    def test_after_every_attempt_it_has_failed(self, account: Account, server: Server) -> None:
        interaction = good_work(account)
        put_into(interaction, "retryable", attempts=4)
        with override_settings(SONDER_EMBEDDING="openai"):
            distilling.distill(interaction)
        assert outcome_of(interaction) == ("failed", "attempts_exhausted")


class TestSweep:
    def test_it_takes_up_what_waits_what_is_due_and_what_was_left_and_nothing_else(
        self, account: Account, server: Server
    ) -> None:
        server.answer = completion('{"lesson": null}')
        waits, early, due, left, held = (good_work(account) for _ in range(5))
        put_into(early, "retryable", attempts=1)
        put_into(due, "retryable", attempts=1, created_at=timezone.now() - timedelta(seconds=61))
        put_into(left, "claimed", attempts=1)
        expire_lease(left)
        put_into(held, "claimed", attempts=1)
        assert distilling.sweep() == 3
        states = {i: row(i).state for i in (waits, early, due, left, held)}
        assert states == {
            waits: "no_lesson", early: "retryable", due: "no_lesson", left: "no_lesson", held: "claimed",
        }  # fmt: skip

    @pytest.mark.parametrize(("attempts", "seconds"), [(1, 60), (2, 180), (3, 420), (4, 900)])
    def test_a_further_attempt_waits_longer(
        self, account: Account, server: Server, attempts: int, seconds: int
    ) -> None:
        interaction = good_work(account)
        for age, taken in [(seconds - 5, 0), (seconds + 5, 1)]:
            put_into(interaction, "retryable", attempts=attempts, created_at=timezone.now() - timedelta(seconds=age))
            assert distilling.sweep() == taken

    def test_the_least_tried_goes_first_and_of_equals_the_oldest(self, account: Account, server: Server) -> None:
        first, second, third = (good_work(account, task=f"task {n}") for n in range(3))
        hour = timezone.now() - timedelta(hours=1)
        put_into(first, "retryable", attempts=2, created_at=hour)
        put_into(second, "pending", created_at=hour + timedelta(seconds=2))
        put_into(third, "pending", created_at=hour + timedelta(seconds=1))
        distilling.sweep()
        asked = [request["messages"][1]["content"] for request in server.requests]
        assert [next(n for n in range(3) if f"task {n}" in content) for content in asked] == [2, 1, 0]

    def test_a_crash_costs_an_attempt_and_five_end_it(
        self, account: Account, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def die(*_: object) -> None:
            raise SystemExit

        monkeypatch.setattr(ChatDistiller, "propose", die)
        interaction = good_work(account)
        for attempt in range(1, 6):
            with pytest.raises(SystemExit):
                distilling.sweep()
            assert (row(interaction).state, row(interaction).attempts) == ("claimed", attempt)
            assert distilling.sweep() == 0  # until the lease has run out
            expire_lease(interaction)
        assert distilling.sweep() == 0
        assert outcome_of(interaction) == ("failed", "attempts_exhausted")

    def test_what_has_no_attempt_left_fails_also_while_distillation_is_off(self, account: Account) -> None:
        claimed, tried, fresh = (good_work(account) for _ in range(3))
        put_into(claimed, "claimed", attempts=5)
        expire_lease(claimed)
        put_into(tried, "retryable", attempts=7)
        with override_settings(SONDER_DISTILLER="off"):
            assert distilling.sweep() == 0
        assert outcome_of(claimed) == outcome_of(tried) == ("failed", "attempts_exhausted")
        assert row(fresh).state == "pending"


class TestTasks:
    def test_a_message_distils_its_interaction_under_the_task_s_name(
        self, account: Account, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        owners = []
        whole = ChatDistiller.propose
        interaction = good_work(account)

        def look(self: ChatDistiller, material: Material) -> str | None:
            owners.append(row(interaction).owner)
            return whole(self, material)

        monkeypatch.setattr(ChatDistiller, "propose", look)
        tasks.distill_interaction.apply(args=[str(interaction)], task_id="t-1")
        assert owners == [f"{socket.gethostname()}:{os.getpid()}:t-1"]
        assert row(interaction).state == "stored"
        tasks.distill_interaction(str(interaction))  # a message that comes twice
        tasks.distill_interaction(str(account.pk))  # one about what is gone
        assert len(server.requests) == 1

    def test_a_sweep_leaves_its_figures(self, account: Account, server: Server) -> None:
        good_work(account)
        tasks.distill_sweep()
        run = JobRun.objects.get(job="distill_sweep")
        assert (run.outcome, run.figures) == ("done", {"interactions": 1})

    def test_a_distiller_that_is_not_set_up_is_told_and_costs_no_attempt(
        self, account: Account, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        interaction = good_work(account)
        with override_settings(SONDER_DISTILLER="chat"):
            tasks.distill_interaction(str(interaction))
            tasks.distill_sweep()
        assert JobRun.objects.get(job="distill_sweep").figures == {
            "unavailable": "The distiller `chat` needs SONDER_DISTILLER_URL."
        }
        assert "SONDER_DISTILLER_URL" in caplog.text
        assert (row(interaction).state, row(interaction).attempts) == ("pending", 0)

    def test_sweeps_that_could_not_start_in_time_are_dropped(self) -> None:
        name = "distillation sweep"
        entry = ModelEntry.from_entry(name, app=app, **settings.CELERY_BEAT_SCHEDULE[name])
        assert (entry.task, entry.model.expire_seconds) == (tasks.distill_sweep.name, conf.current().sweep_seconds)

    def test_every_announced_name_has_its_task(self) -> None:
        assert tasks.TASK_OF[distillation.DISTILL] == "memory.tasks.distill_interaction"


def test_a_proposal_that_the_embedding_server_refuses_holds_up_no_other(
    account: Account, server: Server, space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = mock.Mock(embed=mock.Mock(side_effect=EmbeddingRefused("This text is not taken.")))
    with monkeypatch.context() as patched:
        patched.setattr(distilling, "provider", lambda: refusal)
        interaction = distill(account)
    assert row(interaction).state == "retryable"
    assert row(interaction).last_error == "This text is not taken."
    other = distill(account, task="another task")
    assert row(other).state in ("stored", "no_lesson"), "nobody rests for another's text"


class TestSecrets:
    """The server of these tests quotes the key in its errors."""

    @pytest.mark.parametrize("status", [400, 401, 429, 500])
    def test_the_key_reaches_no_row_and_no_log(
        self, account: Account, server: Server, status: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        server.status = status
        interaction = distill(account)
        assert f"HTTP {status}" in row(interaction).last_error
        assert tables_with(KEY) == []
        assert KEY not in caplog.text
        assert server.requests[0]["key"] == f"Bearer {KEY}"

    def test_a_malformed_answer_with_a_secret_in_it_is_not_quoted(
        self, account: Account, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        server.raw = b"AKIAIOSFODNN7EXAMPLE"
        assert row(distill(account)).last_error.endswith("no chat completion.")
        assert tables_with("AKIAIOSFODNN7EXAMPLE") == []
        assert "AKIAIOSFODNN7EXAMPLE" not in caplog.text
