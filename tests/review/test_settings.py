"""How a person likes the pages, their password, and the pages that browsers get for errors."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.template.loader import render_to_string
from django.test import Client

from memory.models import Account
from memory.services.authority import Person
from review.models import Look
from review.views import settings as views
from tests.services.people import member

pytestmark = pytest.mark.django_db
PAGE = "/review/settings/"


@pytest.fixture
def ana(account: Account) -> Person:
    return member(account, "viewer", "ana")


@pytest.fixture
def page(client: Client, ana: Person) -> Client:
    client.force_login(get_user_model().objects.get(pk=ana.user_id))
    return client


class TestTheLook:
    def test_is_saved_for_the_person_and_shown_at_once(self, page: Client, ana: Person, account: Account) -> None:
        ben = member(account, "viewer", "ben")
        Look.objects.create(user_id=ben.user_id)
        answer = page.post(PAGE, {"theme": "dark", "density": "compact"}, follow=True)
        text = answer.content.decode()
        assert 'data-theme="dark" data-density="compact"' in text
        assert 'data-keys="off"' in text
        assert "Saved." in text
        assert Look.objects.get(user=ben.user_id).theme == "auto"

    def test_of_somebody_else_cannot_be_changed(self, page: Client, ana: Person, account: Account) -> None:
        ben = member(account, "viewer", "ben")
        page.post(PAGE, {"theme": "dark", "density": "compact", "user": ben.user_id, "user_id": ben.user_id})
        assert not Look.objects.filter(user=ben.user_id).exists()
        assert Look.objects.get().user.pk == ana.user_id

    def test_is_refused_where_a_choice_is_not_one(self, page: Client) -> None:
        answer = page.post(PAGE, {"theme": "pink", "density": "compact"})
        assert answer.status_code == 422
        assert "Select a valid choice" in answer.content.decode()
        assert not Look.objects.exists()

    def test_is_not_written_by_looking(self, page: Client) -> None:
        assert page.get(PAGE).status_code == 200
        assert not Look.objects.exists()

    def test_keeps_the_last_visit(self, page: Client, ana: Person) -> None:
        seen = "2026-01-02T03:04:05Z"
        Look.objects.create(user_id=ana.user_id, last_visit=seen)
        page.post(PAGE, {"theme": "dark", "density": "compact", "keys": "on"})
        assert Look.objects.get().last_visit.isoformat() == "2026-01-02T03:04:05+00:00"

    def test_needs_a_login(self, client: Client) -> None:
        assert client.get(PAGE).headers["Location"] == f"/login/?next={PAGE}"


class TestThePassword:
    def change(self, page: Client, new: str, old: str = "ana") -> Any:
        return page.post("/password/", {"old_password": old, "new_password1": new, "new_password2": new}, follow=True)

    def test_is_linked_from_the_settings(self, page: Client) -> None:
        assert 'href="/password/"' in page.get(PAGE).content.decode()

    def test_is_changed_and_the_person_stays_logged_in(self, page: Client, client: Client) -> None:
        assert "Your password is changed." in self.change(page, "correct horse 9").content.decode()
        assert page.get(PAGE).status_code == 200
        assert get_user_model().objects.get(username="ana").check_password("correct horse 9")

    def test_is_refused_without_the_old_one(self, page: Client) -> None:
        text = self.change(page, "correct horse 9", old="wrong").content.decode()
        assert "Your old password was entered incorrectly" in text
        assert get_user_model().objects.get(username="ana").check_password("ana")

    def test_is_refused_where_it_is_weak(self, page: Client) -> None:
        assert "This password is too short" in self.change(page, "a1").content.decode()

    def test_needs_a_login(self, client: Client) -> None:
        assert client.get("/password/").headers["Location"] == "/login/?next=/password/"


class TestErrorPages:
    @pytest.mark.parametrize("path", ["/nowhere", "/review/nowhere/", "/login/x"])
    def test_what_is_not_there_is_told_as_a_page(self, client: Client, path: str) -> None:
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["Content-Type"].startswith("text/html")
        assert "There is nothing here" in answer.content.decode()

    def test_what_is_not_there_is_told_as_a_problem_under_the_api(self, client: Client) -> None:
        answer = client.get("/api/v1/nowhere/")
        assert answer.status_code == 404
        assert answer.headers["Content-Type"] == "application/problem+json"

    def test_a_form_out_of_date_says_that_nothing_was_saved(self, account: Account) -> None:
        strict = Client(enforce_csrf_checks=True)
        answer = strict.post("/login/", {"username": "ana", "password": "ana"})
        assert answer.status_code == 403
        assert "The form is out of date" in answer.content.decode()

    def test_a_crash_is_told_without_the_database(
        self, page: Client, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("a fault")

        monkeypatch.setattr(views, "LookForm", fail)
        page.raise_request_exception = False
        answer = page.get(PAGE)
        assert answer.status_code == 500
        assert "Something went wrong here" in answer.content.decode()
        with django_assert_num_queries(0):
            render_to_string("500.html")

    def test_a_request_that_cannot_be_read_is_told_as_a_page(self, client: Client) -> None:
        answer = client.get("/review/", headers={"host": "evil.example"})
        assert answer.status_code == 400
        assert "The request could not be read" in answer.content.decode()
