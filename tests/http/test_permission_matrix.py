"""Every route of the site for everybody who could ask: let in, sent to the login, refused, or told of nothing.

The tables say what a route needs. A route without a line fails, and so does a line without a route.
"""

import logging
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from typing import Any, Final

import pytest
from django.template.backends.django import Template
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from memory.models import Account, Adjudication, Lesson
from sonder_site.asgi import compose
from tests.http.calls import MISSING, nothing_changes
from tests.http.permission_tables import (
    ADDED,
    ADMIN,
    API,
    DELETED,
    FOREIGN,
    MODEL_PAGES,
    PAGES,
    ROW_BY_ROW,
    SITE,
    Page,
)
from tests.http.permission_world import ROLES, SCOPES, World, build
from tests.http.routes import IN, LOGIN, ROUTES, Route, answer_of, let_in, named

pytestmark = pytest.mark.django_db

MODEL_PAGE: Final = re.compile(rf"admin:(\w+)_({'|'.join(MODEL_PAGES)})")
OF_MODELS: Final = {
    name: found for name in ROUTES if name.removeprefix("admin:") not in ADMIN and (found := MODEL_PAGE.fullmatch(name))
}
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
Answers = dict[tuple[str, str, str], str]  # by who asked, method and route


@pytest.fixture(autouse=True)
def _in_short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Who gets a page is the question here, and not what is on it; and thousands of refusals are no news."""
    monkeypatch.setattr(Template, "render", lambda *_, **__: "")
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def world(settings: Any, account: Account, rival_account: Account, lesson: Callable[..., Lesson]) -> World:
    settings.SONDER_LESSON_SCOPE = "account"  # what one account has learned, no other may read
    return build(account, rival_account, lesson)


def other_than(expected: Answers, got: Answers) -> dict[tuple[str, str, str], str]:
    """What was answered otherwise than the tables say."""
    return {case: f"{got[case]}, not {answer}" for case, answer in expected.items() if got[case] != answer}


class TestTheTables:
    def test_have_a_line_for_every_route_and_no_other(self) -> None:
        api = {name for name, route in ROUTES.items() if route.pattern.startswith("api/")}
        review = {name.removeprefix("review:") for name in ROUTES if name.startswith("review:")}
        admin = {name for name, route in ROUTES.items() if route.pattern.startswith("admin/")}
        site = set(ROUTES) - api - admin - {f"review:{name}" for name in review}
        of_site = {name for _, name in SITE}
        assert {name for _, name in API} == api - of_site
        assert {name for _, name in PAGES} == review
        assert site == of_site - api
        own = {name for name in admin if name not in OF_MODELS and name.startswith("admin:")}
        assert own == {f"admin:{name}" for name in (*ADMIN, "login", "logout")}
        models = {found[1] for found in OF_MODELS.values()}
        assert {model for model in models if not model.startswith("memory_")} == FOREIGN

    def test_say_which_methods_each_route_of_the_api_has(self) -> None:
        offered = {
            (method, name)
            for name, method in product({name for _, name in API}, METHODS)
            if hasattr(ROUTES[name].view.cls, method.lower())
        }
        assert offered == set(API)

    def test_leave_out_mcp_alone_which_asks_for_the_same_keys(self) -> None:
        """Which key opens it, and which tool, `tests/mcp` shows."""
        assert [getattr(route, "path", None) for route in compose().routes] == ["/mcp", "/mcp/", ""]


class TestTheAPI:
    def addresses(self, world: World) -> dict[tuple[str, str], str]:
        more = {"depends_on": world.ids["depends_on"]}
        return {
            case: named(ROUTES[case[1]], {"pk": world.ids[operation.of], **more}) for case, operation in API.items()
        }

    def ask(self, clients: dict[str, APIClient], world: World, ask: Callable[..., str]) -> Answers:
        at, got = self.addresses(world), {}
        for (who, client), (case, operation) in product(clients.items(), API.items()):
            sent = {} if case[0] == "GET" else {"data": world.filled(operation.body), "format": "json"}
            got[who, *case] = ask(client, case[0], at[case], **sent)
        return got

    def test_lets_a_key_do_what_its_scope_says_in_its_own_account(self, world: World) -> None:
        keys = {scope: world.key(scope).client for scope in SCOPES}
        rival = {"rival": world.key(*SCOPES, at=world.rival).client}
        got = self.ask(keys | rival, world, let_in)
        expected = {(who, *case): IN if who == op.scope else "403" for who in keys for case, op in API.items()}
        foreign = {("rival", *case): "404" if op.owned else IN for case, op in API.items()}
        assert other_than(expected | foreign, got) == {}

    def test_is_closed_to_whoever_has_no_live_key(self, world: World, operator: Any) -> None:
        now, secret = timezone.now(), world.key(*SCOPES).token
        browser = APIClient()
        browser.force_login(operator)
        strangers = {
            "nobody": APIClient(),
            "revoked": world.key(*SCOPES, revoked_at=now).client,
            "expired": world.key(*SCOPES, expires_at=now - timedelta(seconds=1)).client,
            "another scheme": APIClient(headers={"Authorization": f"Basic {secret}"}),
            "a cookie": APIClient(headers={"Cookie": f"sessionid={secret}; key={secret}"}),
            "a login": browser,
        }
        with nothing_changes():
            got = self.ask(strangers, world, lambda client, method, address, **sent: answer_of(
                getattr(client, method.lower())(address, **sent)
            ))  # fmt: skip
            got |= self.ask({"in the address": APIClient()}, world, lambda client, method, address, **sent: answer_of(
                getattr(client, method.lower())(f"{address}?key={secret}&api_key={secret}", **sent)
            ))  # fmt: skip
        assert {case: answer for case, answer in got.items() if answer != "401"} == {}

    def test_has_no_other_method(self, world: World) -> None:
        everything, at = world.key(*SCOPES).client, self.addresses(world)
        known = {name: address for (_, name), address in at.items()}
        with nothing_changes():
            got = {
                (name, method): getattr(everything, method.lower())(address).status_code
                for (name, address), method in product(known.items(), METHODS)
                if (method, name) not in API
            }
        assert set(got.values()) == {405}


class TestThePages:
    PEOPLE = ("anonymous", "nobody", *ROLES, "rival", "clerk", "operator")

    def expected(self, who: str, page: Page) -> str:
        if who == "anonymous":
            return LOGIN
        if who in ("nobody", "clerk"):  # the dashboard tells them that they have no role
            return "403"
        if who == "operator" or page.role == "person":
            return IN
        if page.role == "operator":
            return "403"
        if who == "rival":
            return "403 or 404" if page.owned else IN
        return IN if ROLES.index(who) >= ROLES.index(page.role) else "403"

    @pytest.mark.parametrize("who", PEOPLE)
    def test_answer_each_person_as_the_tables_say(self, world: World, who: str) -> None:
        browser, got = world.browser(who), {}
        expected = {case: self.expected(who, page) for case, page in PAGES.items()}
        sent = {case: (world.page(case[1]), world.filled(page.form)) for case, page in PAGES.items()}
        with nothing_changes():
            for case in (case for case, answer in expected.items() if answer != IN):
                got[case] = answer_of(getattr(browser, case[0].lower())(*sent[case]))
        for case in (case for case, answer in expected.items() if answer == IN):
            got[case] = let_in(browser, case[0], *sent[case])
        assert {
            case: f"{got[case]}, not {answer}" for case, answer in expected.items() if got[case] not in answer
        } == {}

    @pytest.mark.parametrize("name", ROW_BY_ROW)
    def test_about_many_rows_change_none_for_a_viewer(self, world: World, name: str) -> None:
        address, form = world.page(name), world.filled(PAGES["POST", name].form)
        viewer, rival, reviewer = (world.browser(who) for who in ("viewer", "rival", "reviewer"))
        with nothing_changes():
            viewer.post(address, form)
            rival.post(address, form)
        reviewer.post(address, form)
        assert Adjudication.objects.filter(reviewer__username="reviewer").count() == 1


class TestTheRest:
    @pytest.mark.parametrize(("who", "column"), [("anonymous", 0), ("nobody", 1)])
    def test_of_the_site_is_open_or_asks_for_a_login(self, world: World, who: str, column: int) -> None:
        browser = world.browser(who)
        got = {case: let_in(browser, case[0], named(ROUTES[case[1]], {}), {}) for case in SITE}
        assert got == {case: answers[column] for case, answers in SITE.items()}

    def test_metrics_open_for_their_own_key_alone(self, world: World, settings: Any) -> None:
        settings.SONDER_METRICS_KEY = right = "of the one who scrapes"
        keys = {"": "401", world.key(*SCOPES).token: "401", right[:-1]: "401", right: IN}
        for key, expected in keys.items():
            assert answer_of(Client().get(reverse("metrics"), headers={"Authorization": f"Bearer {key}"})) == expected
        assert answer_of(Client().get(reverse("metrics"), {"key": right})) == "401"


class TestTheAdmin:
    """Every page of every model; what an operator sees on the product's own, `test_admin.py` shows too."""

    VALUES: Final = {"object_id": MISSING, "id": 0, "content_type_id": 0, "app_label": "memory"}

    def address(self, route: Route) -> str:
        return reverse(
            route.name, kwargs={key: self.VALUES[key] for key in re.findall(r"<(?:\w+:)?(\w+)>", route.pattern)}
        )

    def everywhere(self) -> list[str]:
        """One address for each of its routes, those without a name too."""
        return [
            self.address(route) if route.name.startswith("admin:") else f"/{re.sub('<.*?>', MISSING, route.name)}"
            for route in ROUTES.values()
            if route.pattern.startswith("admin/") and not route.pattern.startswith("admin/(")
        ] + ["/admin/nothing/"]

    @pytest.mark.parametrize("who", ["anonymous", "maintainer"])
    def test_sends_whoever_is_no_staff_to_the_login(self, world: World, who: str) -> None:
        browser = world.browser(who)
        open_to_all = {reverse("admin:login"), reverse("admin:logout")}
        with nothing_changes():
            got = {
                address: answer_of(browser.get(address)) for address in self.everywhere() if address not in open_to_all
            }
        assert {address: answer for address, answer in got.items() if answer != LOGIN} == {}

    def test_shows_staff_without_a_permission_nothing_and_lets_them_do_nothing(self, world: World) -> None:
        clerk = world.browser("clerk")
        with nothing_changes():
            got = {name: answer_of(clerk.get(self.address(ROUTES[f"admin:{name}"]))) for name in ADMIN}
            pages = {
                (method, name): answer_of(getattr(clerk, method)(self.address(ROUTES[name])))
                for name, method in product(OF_MODELS, ("get", "post"))
                if name.endswith("_add") or (name.endswith("_changelist") and method == "get")
            }
        assert got == {name: answers[0] for name, answers in ADMIN.items()}
        assert set(pages.values()) == {"403"}

    def test_lets_an_operator_add_and_delete_what_is_theirs_alone(self, world: World) -> None:
        operator = world.browser("operator")
        got = {name: let_in(operator, "GET", self.address(ROUTES[f"admin:{name}"])) for name in ADMIN}
        assert got == {name: answers[1] for name, answers in ADMIN.items()}
        with nothing_changes():
            for name, found in OF_MODELS.items():
                theirs = {"add": ADDED, "delete": DELETED}.get(found[2])
                model = found[1].removeprefix("memory_")
                if theirs is None or found[1] in FOREIGN or model in theirs:
                    continue
                for method in ("get", "post"):
                    assert answer_of(getattr(operator, method)(self.address(ROUTES[name]))) == "403", name
