"""The embedded PostgreSQL: shared by all processes on a store, gone with the last one, clear about what is wrong."""

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from sonder_site.embedded import preflight, server
from sonder_site.embedded.errors import EmbeddedError
from tests.system.stores import ROOT, environment, kill, manage, new_store, postmaster, running, wait_until

# Does what it reads, a line at a time, on the server of its store: an SQL statement, or `fork` to do the rest in a
# child whose parent ends. Answers each line with the first column of the first row.
USER = """
import os, sys
from pathlib import Path
import psycopg
from sonder_site.embedded import server

var = Path(os.environ["SONDER_VAR"])
for line in iter(sys.stdin.readline, ""):
    if line.strip() == "fork":
        if os.fork():
            os._exit(0)
        print("forked", flush=True)
        continue
    address = server.ensure_running(var)
    place = dict(host=address.host, port=address.port, user=address.user, dbname="sonder")
    with psycopg.connect(**place) as connection:
        cursor = connection.execute(line)
        answer = cursor.fetchone()[0] if cursor.description else "done"
    print(answer, flush=True)
"""


class User:
    """Another process on the store."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.answer()

    def tell(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@contextmanager
def user_of(var: Path) -> Iterator[User]:
    command, pipe = [sys.executable, "-c", USER], subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment(var), stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield User(process)
        finally:
            process.kill()


@pytest.fixture
def store() -> Iterator[Path]:
    with new_store() as var:
        yield var


@pytest.fixture
def user(store: Path) -> Iterator[User]:
    with user_of(store) as one:
        yield one


@pytest.fixture
def users(store: Path) -> Iterator[list[User]]:
    with ExitStack() as stack:
        yield [stack.enter_context(user_of(store)) for _ in range(3)]


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A store that was used once."""
    with new_store() as var:
        with user_of(var) as user:
            assert user.ask("CREATE TABLE kept (word text)") == "done"
            assert user.ask("INSERT INTO kept VALUES ('kept') RETURNING word") == "kept"
            user.leave()
        yield var


@pytest.fixture
def made(store: Path, template: Path) -> Path:
    """A copy of such a store; nothing runs on it."""
    subprocess.run(["cp", "-a", template, store], check=True)
    return store


def refusal(var: Path) -> str:
    with pytest.raises(EmbeddedError) as caught:
        server.ensure_running(var)
    return str(caught.value)


class TestSharing:
    def test_processes_that_start_at_once_make_one_server_and_share_it(self, store: Path, users: list[User]) -> None:
        for user in users:
            user.tell("SELECT pg_postmaster_start_time()")
        assert len({user.answer() for user in users}) == 1

    def test_the_server_stops_with_its_last_user_and_not_before(self, store: Path, users: list[User]) -> None:
        first, second, _ = users
        started = first.ask("SELECT pg_postmaster_start_time()")
        second.ask("SELECT 1")
        first.leave()
        assert second.ask("SELECT pg_postmaster_start_time()") == started
        second.leave()
        assert not running(store)

    def test_a_killed_last_user_stops_the_server_too(self, store: Path, users: list[User]) -> None:
        first, second, _ = users
        first.ask("SELECT 1")
        second.ask("SELECT 1")
        first.process.kill()
        first.process.wait()
        assert second.ask("SELECT 1") == "1"
        assert running(store)
        second.process.kill()
        wait_until(lambda: not running(store))

    def test_a_store_that_was_just_stopped_can_be_used_at_once(self, made: Path, users: list[User]) -> None:
        for user in users:
            assert user.ask("SELECT word FROM kept") == "kept"
            user.leave()

    def test_a_forked_child_keeps_the_server_after_its_parent(self, store: Path, user: User) -> None:
        started = user.ask("SELECT pg_postmaster_start_time()")
        assert user.ask("fork") == "forked"
        user.process.wait()
        wait_until(lambda: not running(store))  # the child has not asked for the server yet and has no claim on it
        assert user.ask("SELECT pg_postmaster_start_time()") not in ("", started)
        assert running(store)

    def test_a_command_that_needs_no_database_starts_none(self, store: Path) -> None:
        assert manage(store, "check").returncode == 0
        assert not (store / "postgres").exists()

    def test_dbshell_opens_the_embedded_database(self, made: Path) -> None:
        shell = manage(made, "dbshell", "--", "--tuples-only", "--command", "SELECT word FROM kept")
        assert (shell.stdout.strip(), shell.stderr) == ("kept", "")


class TestCrashes:
    def test_a_killed_server_comes_back_with_all_that_was_committed(self, made: Path, user: User) -> None:
        assert user.ask("SELECT word FROM kept") == "kept"
        kill(postmaster(made))
        assert user.ask("SELECT word FROM kept") == "kept"

    def test_the_number_of_a_killed_server_may_belong_to_somebody_else_now(self, made: Path, user: User) -> None:
        owner = (made / "postgres").stat().st_uid if os.geteuid() == 0 else None
        with subprocess.Popen(["sleep", "60"], user=owner) as stranger:
            try:
                lines = [str(stranger.pid), str(made / "postgres"), "1", "5432", "", "", "0 0", "ready"]
                (made / "postgres/postmaster.pid").write_text("\n".join(lines))
                assert user.ask("SELECT word FROM kept") == "kept"
                assert stranger.poll() is None
            finally:
                stranger.kill()

    def test_an_interrupted_first_start_leaves_nothing_in_the_way(self, store: Path, user: User) -> None:
        (store / "postgres.new/base").mkdir(parents=True)
        (store / "postgres.new/PG_VERSION").write_text("18\n")
        assert user.ask("SELECT 1") == "1"
        assert not (store / "postgres.new").exists()


class TestTheServer:
    def test_is_reachable_by_its_owner_alone(self, made: Path, user: User) -> None:
        assert user.ask("SHOW listen_addresses") == ""
        assert (made / "postgres").stat().st_mode & 0o777 == 0o700

    def test_has_the_settings_and_the_extension_that_the_product_relies_on(self, made: Path, user: User) -> None:
        assert user.ask("SHOW fsync") == user.ask("SHOW synchronous_commit") == "on"
        assert user.ask("SHOW timezone") == "UTC"
        version = user.ask("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
        assert tuple(map(int, version.split("."))) >= (0, 8, 0)

    def test_writes_no_text_of_a_failed_statement_into_its_log(self, made: Path, user: User) -> None:
        user.ask("CREATE UNIQUE INDEX once ON kept (word)")
        user.tell("INSERT INTO kept VALUES ('kept')")
        user.process.wait()
        log = (made / "postgres/server.log").read_text()
        assert "duplicate key" in log
        assert "kept" not in log

    def test_works_in_a_folder_whose_path_is_too_long_for_a_socket(self) -> None:
        with new_store() as short:
            var = short.parent / ("long" * 30) / "it's, odd"
            with user_of(var) as user:
                sockets = Path(user.ask("SHOW unix_socket_directories"))
                user.leave()
            assert not running(var)
            assert sockets.parent == Path("/tmp")
            assert sockets.stat().st_mode & 0o777 == 0o700
            sockets.rmdir()


class TestRefusals:
    def test_a_foreign_folder_is_refused_and_left_as_it_is(self, store: Path) -> None:
        (store / "postgres").mkdir(parents=True)
        (store / "postgres/thesis.tex").write_text("all I have")
        assert refusal(store).startswith(f"{store}/postgres is not empty and is not a database that Sonder made")
        assert os.listdir(store / "postgres") == ["thesis.tex"]

    def test_data_of_another_major_version_is_refused(self, made: Path) -> None:
        (made / "postgres/PG_VERSION").write_text("17\n")
        assert "holds data of PostgreSQL 17, and this is PostgreSQL 18. Export it" in refusal(made)

    def test_a_cluster_that_somebody_else_made_is_refused(self, made: Path) -> None:
        (made / "postgres/sonder.conf").unlink()
        assert "is not a database that Sonder made" in refusal(made)

    def test_data_of_another_user_is_refused(self, made: Path) -> None:
        data = made / "postgres"
        with pytest.raises(
            EmbeddedError, match=r"and PostgreSQL would run as 54321. Run the command as the user who made"
        ):
            preflight.check_data(data, 54321)

    def test_a_platform_without_the_embedded_server_is_told_about_database_url(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(preflight, "find_spec", lambda name: None)
        with pytest.raises(EmbeddedError, match=r"or set DATABASE_URL to a PostgreSQL with pgvector 0.8 or newer"):
            preflight.programs()

    def test_a_file_in_the_place_of_the_store_is_refused(self, store: Path) -> None:
        store.write_text("")
        assert refusal(store / "var").endswith(
            "cannot be written: not a directory. Make it writable, or set SONDER_VAR to another folder."
        )

    def test_a_full_disk_is_named_with_what_is_needed(self, store: Path) -> None:
        store.mkdir()
        with pytest.raises(EmbeddedError, match=r"is full: \d+ MiB are free and the store needs at least 4194304 MiB"):
            preflight.check_space(store, 2**42)

    def test_a_folder_that_the_database_user_cannot_enter_is_named_with_the_remedy(self, store: Path) -> None:
        store.mkdir()
        store.parent.chmod(0o700)
        stranger = pwd.struct_passwd(("pgserver", "x", 54321, 54321, "", "/", "/bin/false"))
        with pytest.raises(EmbeddedError) as caught:
            preflight.check_reachable(store, stranger)
        assert f"cannot enter {store.parent}. Open it to others (chmod o+x {store.parent})" in str(caught.value)
        assert store.parent.stat().st_mode & 0o777 == 0o700

    def test_a_folder_that_the_database_user_can_enter_but_not_list_is_enough(self, store: Path) -> None:
        store.mkdir()
        store.parent.chmod(0o711)
        preflight.check_reachable(store, pwd.struct_passwd(("pgserver", "x", 54321, 54321, "", "/", "/bin/false")))

    def test_a_server_that_cannot_start_shows_its_own_words(self, made: Path) -> None:
        with (made / "postgres/postgresql.conf").open("a") as configuration:
            configuration.write("shared_buffers = plenty\n")
        message = refusal(made)
        assert message.startswith(f"The embedded PostgreSQL in {made}/postgres did not start. It said:")
        assert 'invalid value for parameter "shared_buffers": "plenty"' in message

    def test_a_refused_store_leaves_no_process_behind(self, made: Path) -> None:
        (made / "postgres/PG_VERSION").write_text("17\n")
        refusal(made)
        assert not [child for child in psutil.Process().children() if "keeper" in " ".join(child.cmdline())]
        assert not running(made)
