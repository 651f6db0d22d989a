"""`manage.py up`: starts everything, says so once, keeps it running, and leaves nothing behind."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sonder_site import supervisor
from sonder_site.supervisor import Service, ServiceFailed, supervise
from tests.system.started import READY, Up, up
from tests.system.stores import ROOT, copy, kill, manage, new_store, postmaster, processes_of, wait_until

PUBLISH = "from sonder_site.celery import publish; assert publish('memory.tasks.credit_sweep')"


@pytest.fixture
def store(template: Path) -> Iterator[Path]:
    with new_store() as var:
        copy(template, var)
        yield var


@pytest.fixture(scope="module")
def running() -> Iterator[Up]:
    """One `up` for the tests that leave it running."""
    with new_store() as var:
        var.parent.mkdir(exist_ok=True)
        with up(var) as one:
            yield one


def assert_refused(finished: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert finished.returncode == 1
    assert sentence in finished.stderr
    assert "Traceback" not in finished.stderr


class TestRunning:
    def test_the_ready_line_names_an_address_that_answers(self, running: Up) -> None:
        assert len(READY.findall(running.output)) == 1
        assert running.get("/healthz") == 200

    def test_web_worker_and_beat_run_side_by_side(self, running: Up) -> None:
        assert set(running.services()) == {"sonder_site.web", "worker", "beat"}

    def test_the_worker_takes_messages(self, running: Up) -> None:
        announced = manage(running.var, "shell", "--command", PUBLISH)
        assert (announced.returncode, announced.stderr) == (0, "")
        wait_until(lambda: not list((running.var / "broker").rglob("*.msg")))

    def test_every_process_stays_within_its_share_of_memory(self, running: Up) -> None:
        assert running.services()["sonder_site.web"].memory_info().rss < 400 * 2**20
        assert running.services()["worker"].memory_info().rss < 350 * 2**20

    def test_another_command_works_on_the_same_store_meanwhile(self, running: Up) -> None:
        shown = manage(running.var, "showmigrations", "--plan")
        assert shown.returncode == 0
        assert "[ ]" not in shown.stdout

    def test_a_second_up_on_the_store_is_refused(self, running: Up) -> None:
        sentence = f"Sonder runs already on the store in {running.var} (process {running.process.pid}). Stop that one"
        assert_refused(manage(running.var, "up", "--port", "0"), sentence)

    def test_a_killed_service_is_started_again(self, running: Up) -> None:
        kill(running.services()["beat"].pid)
        wait_until(lambda: "beat ended (killed by SIGKILL); starting it again in 0.5 s." in running.output)
        wait_until(lambda: "beat" in running.services())

    def test_a_killed_web_server_refuses_no_request_while_it_restarts(self, running: Up) -> None:
        kill(running.services()["sonder_site.web"].pid)
        assert running.get("/healthz") == 200

    def test_a_killed_database_is_started_again(self, running: Up) -> None:
        before = postmaster(running.var)
        kill(before)
        wait_until(lambda: postmaster(running.var) not in (None, before))


class TestStopping:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_stops_everything_and_leaves_no_process(self, store: Path, number: signal.Signals) -> None:
        with up(store) as one:
            assert len(processes_of(store)) > 4
            one.process.send_signal(number)
            assert one.process.wait(30) == 0
            assert processes_of(store) == []
            assert one.output.endswith("Stopped.\n")
            # Text for a person. What a process logs while its database goes is one line of JSON.
            told = [line for line in one.output.splitlines() if not line.endswith("}")]
            assert not any("Traceback" in line for line in told)

    def test_a_kill_leaves_no_process_either(self, store: Path) -> None:
        with up(store) as one:
            kill(one.process.pid)
            wait_until(lambda: processes_of(store) == [])


class TestRefusals:
    def test_a_port_in_use_is_named(self, store: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            refused = manage(store, "up", PORT=str(port))
        assert_refused(refused, f"Port {port} is in use by another program")
        assert not (store / "postgres/postmaster.pid").exists()

    def test_a_number_that_is_no_port_is_refused(self, store: Path) -> None:
        assert_refused(manage(store, "up", "--port", "70000"), "70000 is no port; choose one from 1024 to 65535")

    def test_a_database_that_does_not_answer_is_named(self, store: Path) -> None:
        refused = manage(store, "up", "--port", "0", DATABASE_URL="postgres://sonder@127.0.0.1:1/sonder")
        assert_refused(refused, "The database cannot be used.")

    def test_a_foreign_data_directory_is_refused(self, store: Path) -> None:
        (store / "postgres/sonder.conf").unlink()
        assert_refused(manage(store, "up", "--port", "0"), "is not a database that Sonder made; nothing in it was")


class TestSupervising:
    @pytest.fixture(autouse=True)
    def _no_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(supervisor, "FIRST_DELAY_SECONDS", 0.01)
        monkeypatch.setattr(supervisor, "GRACE_SECONDS", 0.5)

    @staticmethod
    def supervise(*programs: str) -> list[str]:
        """Keeps small Python programs running; what was said."""
        said: list[str] = []
        services = [Service(name=f"s{i}", command=(sys.executable, "-c", text)) for i, text in enumerate(programs)]
        asyncio.run(supervise(services, folder=ROOT, environment=dict(os.environ), say=said.append))
        return said

    def test_a_service_that_never_starts_ends_everything_with_its_last_words(self) -> None:
        sleeper = "import time; time.sleep(60)"
        before = psutil.Process().children()
        with pytest.raises(ServiceFailed) as caught:
            self.supervise(sleeper, "import sys; sys.exit('no model: see the manual')")
        assert str(caught.value) == "s1 does not start (exit code 1). Its last output:\nno model: see the manual"
        assert psutil.Process().children() == before

    def test_a_service_that_ignores_the_request_to_stop_is_killed(self) -> None:
        stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
        ender = "import os, signal, time; time.sleep(1); os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)"
        before = psutil.Process().children()
        assert self.supervise(stubborn, ender)[:2] == ["s0     | deaf", "Stopping."]
        assert psutil.Process().children() == before
