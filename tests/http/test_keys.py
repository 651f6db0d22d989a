"""Keys: who is let in, with what right, and that the secret stays the caller's."""

import hashlib
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from memory.models import Account, ApiKey
from memory.models.sql import fetch
from memory.services.keys import create_key, find_key
from tests.conftest import Agent, make_agent
from tests.http.calls import (
    INTERACTIONS,
    LESSONS,
    MISSING,
    OUTCOMES,
    RETRIEVE,
    nothing_changes,
    raw,
    refused,
    report,
    start,
)

pytestmark = pytest.mark.django_db

ROUTES = [
    ("GET", INTERACTIONS, "read"),
    ("POST", INTERACTIONS, "loop"),
    ("GET", f"{INTERACTIONS}{MISSING}/", "read"),
    ("PATCH", f"{INTERACTIONS}{MISSING}/", "loop"),
    ("POST", f"{INTERACTIONS}{MISSING}/outcomes/", "loop"),
    ("GET", OUTCOMES, "read"),
    ("POST", RETRIEVE, "loop"),
    ("GET", LESSONS, "read"),
    ("GET", f"{LESSONS}{MISSING}/", "read"),
    ("GET", f"{LESSONS}{MISSING}/evidence/", "read"),
    ("GET", f"{LESSONS}{MISSING}/history/", "read"),
    ("GET", f"{LESSONS}{MISSING}/neighbours/", "read"),
]
every_route = pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
UNKNOWN = f"sonder_{'a' * 12}_{'A' * 43}"


def with_header(value: str) -> APIClient:
    return APIClient(headers={"Authorization": value}, raise_request_exception=False)


def unauthorized(client: APIClient | Client, method: str = "GET", path: str = INTERACTIONS) -> dict[str, Any]:
    with nothing_changes():
        response = raw(client, method, path, b'{"task": "x"}', content_type="application/json")
        document = refused(response, 401)
    assert response.headers["WWW-Authenticate"].startswith('Bearer realm="Sonder"')
    return document


class TestWithoutAValidKey:
    @every_route
    def test_nothing_answers(self, method: str, path: str, scope: str) -> None:
        unauthorized(APIClient(), method, path)
        unauthorized(with_header(f"Bearer {UNKNOWN}"), method, path)

    @pytest.mark.parametrize(
        "value",
        [
            "Bearer",
            "Bearer ",
            "Bearer  ",
            "bearer x",
            "Bearer sonder_",
            f"Bearer {UNKNOWN}x",
            f"Bearer {UNKNOWN} {UNKNOWN}",
            f"Bearer {UNKNOWN.upper()}",
            "Bearer sonder_%00_" + "A" * 43,
            "Bearer " + "x" * 100_000,
            "Bearer \x00",
            "Bearer schlüssel",
            "Bearer ' OR 1=1 --",
            " ",
            "\t",
        ],
        ids=lambda value: value[:30],
    )
    def test_a_malformed_or_unknown_one_is_refused(self, db: None, value: str) -> None:
        unauthorized(with_header(value))

    def test_a_key_under_another_scheme_is_told_the_scheme(self, agent: Agent) -> None:
        for scheme in ("Basic", "Token", "Digest", "BearerX"):
            document = unauthorized(with_header(f"{scheme} {agent.token}"))
            assert "Authorization: Bearer" in document["detail"]
        assert with_header(f"bearer  {agent.token} ").get(INTERACTIONS).status_code == 200  # RFC 9110: any case

    def test_a_key_anywhere_but_in_the_header_is_no_key(self, agent: Agent) -> None:
        for name in ("key", "api_key", "access_token", "token"):
            unauthorized(APIClient(), "GET", f"{INTERACTIONS}?{name}={agent.token}")
        client = APIClient()
        client.cookies["sessionid"] = agent.token
        unauthorized(client)

    def test_a_login_is_no_key(self, operator: Any) -> None:
        browser = Client()
        browser.force_login(operator)
        unauthorized(browser)
        unauthorized(browser, "POST")

    def test_a_key_with_a_wrong_secret_is_refused_and_the_right_one_is_not(self, agent: Agent) -> None:
        changed = agent.token[:-1] + ("A" if agent.token[-1] != "A" else "B")
        unauthorized(with_header(f"Bearer {changed}"))
        assert agent.client.get(INTERACTIONS).status_code == 200

    def test_a_revoked_key_is_refused_at_once(self, agent: Agent) -> None:
        assert agent.client.get(INTERACTIONS).status_code == 200
        ApiKey.objects.filter(pk=agent.key.pk).update(revoked_at=timezone.now())
        unauthorized(agent.client)

    def test_a_key_is_refused_from_the_moment_it_expires(self, agent: Agent) -> None:
        ApiKey.objects.filter(pk=agent.key.pk).update(expires_at=timezone.now() + timedelta(minutes=1))
        assert agent.client.get(INTERACTIONS).status_code == 200
        ApiKey.objects.filter(pk=agent.key.pk).update(expires_at=timezone.now())
        unauthorized(agent.client)

    def test_the_refusal_does_not_tell_an_unknown_key_from_a_revoked_one(self, agent: Agent) -> None:
        ApiKey.objects.filter(pk=agent.key.pk).update(revoked_at=timezone.now())
        assert unauthorized(agent.client) == unauthorized(with_header(f"Bearer {UNKNOWN}"))


class TestScopes:
    @every_route
    def test_a_key_without_the_scope_is_refused_and_the_scope_named(
        self, account: Account, method: str, path: str, scope: str
    ) -> None:
        others = make_agent(
            account, "caller", [other for other in ("loop", "read", "govern", "admin") if other != scope]
        )
        with nothing_changes():
            response = raw(others.client, method, path, b'{"task": "x"}', content_type="application/json")
            assert f"'{scope}'" in refused(response, 403)["detail"]

    @every_route
    def test_a_key_with_that_scope_alone_is_let_in(self, account: Account, method: str, path: str, scope: str) -> None:
        client = make_agent(account, "caller", [scope]).client
        response = raw(client, method, path, b'{"task": "x"}', content_type="application/json")
        assert response.status_code in ({200, 201} if MISSING not in path else {404, 400})

    def test_the_scope_is_asked_before_the_body_is_read(self, reader: Agent) -> None:
        refused(raw(reader.client, "POST", INTERACTIONS, b"{", content_type="application/json"), 403)


class TestTheSecret:
    def test_is_stored_as_a_hash_alone(self, agent: Agent) -> None:
        (stored,) = fetch("SELECT to_jsonb(k)::text FROM api_key k")
        secret = agent.token.rpartition("_")[2]
        assert hashlib.sha256(agent.token.encode()).hexdigest() in stored[0]
        assert agent.token not in stored[0]
        assert secret not in stored[0]

    def test_is_256_random_bits(self, account: Account) -> None:
        made = {create_key(account, name="x", source="caller", scopes=["read"]).secret for _ in range(20)}
        assert len({token.split("_", 2)[2] for token in made}) == 20
        assert all(len(token.split("_", 2)[2]) == 43 for token in made)  # 32 bytes in base64

    def test_appears_in_no_answer_and_no_log(self, agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
        secret = agent.token.split("_", 2)[2]
        answers = []
        with caplog.at_level(logging.DEBUG):
            own = start(agent.client)["id"]
            answers += [report(agent.client, own, "accepted"), report(agent.client, own, "nonsense")]
            for path in (INTERACTIONS, f"{INTERACTIONS}{own}/", OUTCOMES, LESSONS, "/api/v1/nothing/", RETRIEVE):
                answers.append(agent.client.get(path))
            answers.append(with_header(f"Token {agent.token}").get(INTERACTIONS))
            answers.append(with_header(f"Bearer {agent.token}x").get(INTERACTIONS))
            ApiKey.objects.update(revoked_at=timezone.now())
            answers.append(agent.client.get(INTERACTIONS))
        assert {answer.status_code for answer in answers} == {200, 201, 400, 401, 404, 405}
        for answer in answers:
            assert secret not in answer.content.decode() + str(answer.headers)
        assert "request_finished" in caplog.text  # the requests were logged
        assert secret not in caplog.text
        assert all(secret not in str(vars(record)) for record in caplog.records)


class TestWhenAKeyWasLastUsed:
    def stamp(self, agent: Agent, seconds_ago: float | None) -> None:
        at = None if seconds_ago is None else timezone.now() - timedelta(seconds=seconds_ago)
        ApiKey.objects.filter(pk=agent.key.pk).update(last_used_at=at)

    def seen(self, agent: Agent) -> object:
        return ApiKey.objects.values_list("last_used_at", flat=True).get(pk=agent.key.pk)

    def test_is_noted_at_its_first_use(self, agent: Agent) -> None:
        assert self.seen(agent) is None
        agent.client.get(INTERACTIONS)
        assert self.seen(agent) is not None

    def test_is_written_at_most_once_a_minute(self, agent: Agent) -> None:
        self.stamp(agent, 55)
        before = self.seen(agent)
        for _ in range(3):
            agent.client.get(INTERACTIONS)
        assert self.seen(agent) == before
        self.stamp(agent, 61)
        stale = self.seen(agent)
        agent.client.get(INTERACTIONS)
        assert self.seen(agent) != stale

    def test_is_not_moved_by_a_refused_key(self, agent: Agent) -> None:
        ApiKey.objects.update(expires_at=timezone.now())
        agent.client.get(INTERACTIONS)
        assert find_key(agent.token[:-1] + "-") is None
        assert self.seen(agent) is None
