"""Announcing work: quick, whole, and harmless when nobody takes it."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty

import pytest
from celery import Celery
from kombu.connection import Connection
from kombu.entity import Exchange, Queue

from sonder_site import celery as site
from sonder_site.broker import Channel
from sonder_site.celery_settings import QUEUES, celery_settings

QUEUE = Queue("credit", Exchange("credit"), routing_key="credit")


def configured(broker_url: str, var: Path) -> Celery:
    app = Celery("test", set_as_current=False)
    settings = celery_settings(broker_url, var)
    app.conf.update({name.removeprefix("CELERY_").lower(): value for name, value in settings.items()})
    return app


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a broker in files, used by `publish`."""
    app = configured("", tmp_path)
    monkeypatch.setattr(site, "app", app)
    monkeypatch.setattr(site, "_paused_until", 0.0)
    yield tmp_path / "broker"
    app.close()


def use_redis_at(port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(site, "app", configured(f"redis://127.0.0.1:{port}/0", tmp_path))
    monkeypatch.setattr(site, "_paused_until", 0.0)


class TestFiles:
    def test_a_message_is_a_whole_file_in_the_queue_its_task_belongs_to(self, broker: Path) -> None:
        assert site.publish("memory.tasks.credit_interaction", "1")
        assert site.publish("memory.tasks.distill_one", "2")
        assert site.publish("memory.tasks.maintenance_daily")
        queues = sorted(file.parent.name for file in broker.rglob("*.msg"))
        assert queues == sorted(QUEUES)

    def test_a_message_is_read_once_and_leaves_no_file(self, broker: Path) -> None:
        assert site.publish("memory.tasks.credit_interaction", "1")
        with site.app.connection_for_read() as connection:
            inbox = QUEUE(connection.channel())
            message = inbox.get(no_ack=True)
            assert message.headers["task"] == "memory.tasks.credit_interaction"
            assert inbox.get(no_ack=True) is None
        assert not list(broker.rglob("*.msg"))

    def test_a_thousand_that_wait_are_taken_in_their_order_after_one_look_into_the_folder(
        self, broker: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks: list[str] = []
        look = Channel._messages

        def noted(self: Channel, queue: str) -> list[Path]:
            looks.append(queue)
            return look(self, queue)

        monkeypatch.setattr(Channel, "_messages", noted)
        with site.app.connection_for_read() as connection:
            channel = connection.channel()
            for n in range(1000):
                channel._put("credit", {"n": n})
            assert channel._size("credit") == 1000
            looks.clear()
            first, second = [channel._get("credit")["n"] for _ in range(500)], connection.channel()
            assert looks == ["credit"]
            rest = [second._get("credit")["n"] for _ in range(500)]  # another process takes what is left
            for each in (channel, second):
                with pytest.raises(Empty):
                    each._get("credit")
        assert sorted(first + rest) == list(range(1000))

    def test_processes_that_declare_a_queue_at_once_always_read_a_whole_table(self, broker: Path) -> None:
        options = site.app.conf.broker_transport_options
        with Connection(
            "filesystem://localhost", transport="sonder_site.broker:Transport", transport_options=options
        ) as c:
            channel = c.channel()
            before = {file.name for file in (broker / "control").iterdir()}
            channel._queue_bind("credit", "credit", "", "credit")
            assert before == set()
            assert {file.name for file in (broker / "control").iterdir()} == {"credit.exchange"}
            assert [tuple(row) for row in channel.get_table("credit")] == [("credit", "", "credit")]


class TestBrokerThatIsDown:
    def test_costs_a_moment_and_is_then_left_alone(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        use_redis_at(port, monkeypatch, tmp_path)
        started = time.monotonic()
        assert not any(site.publish("memory.tasks.credit_interaction", "1") for _ in range(100))
        assert time.monotonic() - started < 1

    def test_that_does_not_answer_holds_up_one_request_and_not_the_next(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            use_redis_at(silent.getsockname()[1], monkeypatch, tmp_path)
            started = time.monotonic()
            assert not any(site.publish("memory.tasks.credit_interaction", "1") for _ in range(100))
            assert time.monotonic() - started < 3

    def test_is_tried_again_after_a_pause(self, broker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        broker.write_text("a file in the place of the folder")
        assert not site.publish("memory.tasks.credit_interaction", "1")
        broker.unlink()
        assert not site.publish("memory.tasks.credit_interaction", "1")
        monkeypatch.setattr(site, "_paused_until", 0.0)
        assert site.publish("memory.tasks.credit_interaction", "1")
