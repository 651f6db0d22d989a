"""What the site tells browsers to refuse, and what it refuses itself once it is reached over HTTPS."""

import logging
import os
import re
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db.models import Model
from django.test import Client

from tests.http.admin_pages import address
from tests.http.test_admin import fill
from tests.http.test_openapi import Page

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = list(apps.get_app_config("memory").get_models())
POLICY = "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"


class TestThePolicy:
    pytestmark = pytest.mark.django_db

    @pytest.mark.parametrize(
        "path", ["/healthz", "/api/v1/schema/", "/api/v1/tasks/", "/nowhere", "/admin/login/", "/static/favicon.svg"]
    )
    def test_comes_with_every_answer(self, path: str) -> None:
        response = Client().get(path)
        response.close()
        assert response.headers["Content-Security-Policy"] == POLICY

    def test_a_stricter_one_of_a_view_stays(self) -> None:
        assert "default-src 'none'" in Client().get("/api/v1/docs/").headers["Content-Security-Policy"]

    @pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.model_name)
    def test_breaks_no_page_of_the_admin(self, pages: Client, model: type[Model]) -> None:
        pk = fill(model, 1)
        for page in (address(model, "changelist"), address(model, "change", pk)):
            response = pages.get(page)
            assert response.status_code == 200
            assert Page(response.content.decode()).inline == []

    @pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/admin/memory/apikey/add/", "/admin/auth/user/add/"])
    def test_breaks_no_other_page_of_the_admin(self, pages: Client, path: str) -> None:
        response = pages.get(path, follow=True)
        assert response.status_code == 200
        assert Page(response.content.decode()).inline == []


def site(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command of the product with its own settings and these variables."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SONDER_")} | {
        "SONDER_VAR": os.environ["SONDER_VAR"],
        "SECRET_KEY": "of fifty characters and more, made up for this one test of settings",
        "DJANGO_SETTINGS_MODULE": "sonder_site.settings",
        **variables,
    }
    for name in variables:
        environment.pop(name.removesuffix("_FILE") if name.endswith("_FILE") else "", None)
    return subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def documented(folder: Path) -> dict[str, str]:
    """The environment of docs/deployment.md, with files of secrets that exist."""
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    found = dict(re.findall(r"^export (\w+)=(\S+)", page, re.MULTILINE))
    del found["PATH"], found["SONDER_VAR"]
    secrets = {
        "DATABASE_URL_FILE": "postgres://sonder:secret@db.example.com/sonder",
        "SECRET_KEY_FILE": string.printable[:62],
    }
    assert set(secrets) == {name for name in found if name.endswith("_FILE")}
    for name, value in secrets.items():
        (folder / name).write_text(f"{value}\n", encoding="utf-8")
    return found | {name: str(folder / name) for name in secrets}


class TestHTTPS:
    def test_is_deployed_without_a_warning_as_it_is_documented(self, tmp_path: Path) -> None:
        environment = documented(tmp_path)
        assert environment["SONDER_HTTPS"] == "true"
        checked = site("check", "--deploy", "--fail-level", "WARNING", **environment)
        assert (checked.returncode, checked.stderr) == (0, "")

    def test_is_off_for_a_machine_of_its_own(self) -> None:
        checked = site("check", "--deploy", "--fail-level", "WARNING")
        assert checked.returncode == 1
        for rule in ("security.W004", "security.W008", "security.W012", "security.W016"):
            assert rule in checked.stderr

    def test_sets_what_a_browser_is_told(self) -> None:
        code = (
            "from django.conf import settings as s; from django.test import Client; "
            "far = Client(headers={'X-Forwarded-Proto': 'https'}).get('/api/v1/docs/'); "
            "near = Client().get('/api/v1/docs/'); "
            "print(far.status_code, far.headers.get('Strict-Transport-Security')); "
            "print(near.status_code, near.headers.get('Location')); "
            "print(s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.CSRF_TRUSTED_ORIGINS); "
            "token = Client(headers={'X-Forwarded-Proto': 'https'}).get('/login/').cookies['csrftoken']; "
            "print(token['secure'], token['samesite'])"
        )
        variables: dict[str, Any] = {
            "SONDER_HTTPS": "true",
            "SONDER_HSTS_SECONDS": "3600",
            "ALLOWED_HOSTS": "testserver",
            "CSRF_TRUSTED_ORIGINS": "https://sonder.example.com",
        }
        ran = site("shell", "-v", "0", "-c", code, **variables)
        expected = [
            "200 max-age=3600",
            "301 https://testserver/api/v1/docs/",
            "True True ['https://sonder.example.com']",
            "True Lax",
        ]
        assert ran.stdout.splitlines() == expected, ran.stderr


@pytest.mark.parametrize("library", ["httpx", "httpx2", "httpcore", "httpcore2", "openai"])
def test_the_clients_of_model_servers_log_no_address(library: str) -> None:
    assert logging.getLogger(library).level == logging.WARNING


class TestTheRequestId:
    pytestmark = pytest.mark.django_db

    def test_is_in_every_answer_and_new_for_each_request(self) -> None:
        told = [Client().get(path).headers["X-Request-ID"] for path in ("/healthz", "/api/v1/tasks/", "/nowhere")]
        assert len({*told}) == 3
        assert all(len(each) == 36 for each in told)

    def test_of_a_proxy_is_kept_and_what_is_none_is_replaced(self) -> None:
        assert Client().get("/healthz", headers={"X-Request-ID": "edge-12345678"}).headers["X-Request-ID"] == (
            "edge-12345678"
        )
        for hostile in ("<script>", "x" * 65, "short", "a b c d e f g h", '"}{"level":"error'):
            assert Client().get("/healthz", headers={"X-Request-ID": hostile}).headers["X-Request-ID"] != hostile

    def test_stands_on_a_page_that_refuses(self, client: Client, operator: Any) -> None:
        client.force_login(operator)
        refused = client.get("/review/lessons/00000000-0000-7000-8000-000000000000/")
        assert refused.status_code == 404
        assert refused.headers["X-Request-ID"] in refused.content.decode()
