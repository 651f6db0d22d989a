"""The installation's secret is made once, and a damaged one is never replaced in silence."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memory.conf import SettingError
from sonder_site.secret import SHORTEST, secret_key

ROOT = Path(__file__).resolve().parent.parent.parent


def test_it_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    made = secret_key(tmp_path / "var")
    assert secret_key(tmp_path / "var") == made
    assert len(made) >= SHORTEST
    assert stat.S_IMODE((tmp_path / "var" / "secret-key").stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "var").iterdir()] == ["secret-key"]


def test_threads_that_make_it_at_once_read_the_same(tmp_path: Path) -> None:
    found: list[str] = []
    code = "import sys; from pathlib import Path; from sonder_site.secret import secret_key; " + (
        "sys.stdin.readline(); print(secret_key(Path(sys.argv[1])))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    threads = [threading.Thread(target=lambda p=p: found.append(p.communicate("go\n")[0])) for p in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1


@pytest.mark.parametrize("content", [b"", b"\n", b" " * 64, b"short", b"a" * (SHORTEST - 1), b"\xff" * 64])
def test_one_that_is_empty_or_damaged_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret-key"
    path.write_bytes(content)
    with pytest.raises(SettingError, match=r"secret-key (is empty|holds bytes).*Restore it.*SECRET_KEY.*delete"):
        secret_key(tmp_path)
    assert path.read_bytes() == content


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret-key").mkdir()
    with pytest.raises(SettingError, match=r"is a directory\. Set SONDER_VAR"):
        secret_key(tmp_path)


@pytest.mark.parametrize("place", ["file/var", "file", "n" * 300])
def test_a_store_that_cannot_be_made_is_named_with_its_setting(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("a file where the folder should be")
    with pytest.raises(SettingError, match="Set SONDER_VAR to a folder that can be written"):
        secret_key(tmp_path / place)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SONDER_VAR": "{file}/var"}, "not a directory. Set SONDER_VAR"),
        ({"SONDER_VAR": " "}, "SONDER_VAR is empty"),
        ({"SECRET_KEY": " "}, "SECRET_KEY is blank"),
        ({"DATABASE_URL": "mysql://host/name"}, "DATABASE_URL is no address that can be used; it begins with postgres"),
        ({"DATABASE_URL": "postgres://user:hidden@host:port/name"}, "DATABASE_URL is no address"),
        ({"DATABASE_URL": "postgres://host"}, "DATABASE_URL names no database"),
        ({"DATABASE_POOL_SIZE": "many"}, "DATABASE_POOL_SIZE is 'many'; use a number"),
        ({"DATABASE_POOL_SIZE": "0"}, "DATABASE_POOL_SIZE is 0; use a number from 1 to"),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL is 'loud'; choose one of DEBUG"),
        ({"REQUEST_LOG_LEVEL": "loud"}, "REQUEST_LOG_LEVEL is 'loud'"),
        ({"REDIS_URL": "cache:6379"}, "REDIS_URL is no address"),
        ({"CELERY_BROKER_URL": "broker"}, "CELERY_BROKER_URL is no address"),
        ({"CSRF_TRUSTED_ORIGINS": "sonder.example.com"}, "CSRF_TRUSTED_ORIGINS has 'sonder.example.com'"),
        ({"EMAIL_URL": "mail.example.com"}, "EMAIL_URL is no address that can be used; it begins with smtp+tls"),
        ({"EMAIL_URL": "smtp+tls://user:hidden@:587"}, "EMAIL_URL names no host"),
        ({"DEBUG": "perhaps"}, "DEBUG is 'perhaps'; use true or false"),
    ],
)
def test_a_variable_that_cannot_be_used_ends_a_command_with_one_sentence(
    tmp_path: Path, variables: dict[str, str], words: str
) -> None:
    (tmp_path / "file").write_text("x")
    given = {name: value.format(file=tmp_path / "file") for name, value in variables.items()}
    unset = ("DATABASE_URL", "SECRET_KEY")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {
        "SONDER_VAR": str(tmp_path / "var"),
        "DJANGO_SETTINGS_MODULE": "sonder_site.settings",
        **given,
    }
    ran = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert words in ran.stderr
    assert "hidden" not in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
