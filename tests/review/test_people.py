"""The page of people: who sees whom, who changes what, and what a refusal keeps."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from memory.models import Account, Membership
from memory.services.authority import Person
from review.queries import people as reads
from tests.services.people import member

pytestmark = pytest.mark.django_db
PAGE = "/review/people/"
QUERIES = 9


@pytest.fixture
def mia(account: Account) -> Person:
    return member(account, "maintainer", "mia")


def logged_in(client: Client, who: Person) -> Client:
    client.force_login(get_user_model().objects.get(pk=who.user_id))
    return client


@pytest.fixture
def page(client: Client, mia: Person) -> Client:
    return logged_in(client, mia)


def role(user: str) -> str | None:
    return Membership.objects.filter(user__username=user).values_list("role", flat=True).first()


class TestWhatIsShown:
    def test_a_maintainer_sees_everybody_of_the_account_and_a_form_for_each(
        self, page: Client, account: Account, rival_account: Account
    ) -> None:
        member(account, "viewer", "vic")
        member(rival_account, "maintainer", "rita")
        text = page.get(PAGE).content.decode()
        assert "vic" in text
        assert 'aria-label="Change the role of vic"' in text
        assert "rita" not in text
        assert "The last maintainer keeps the role." in text
        assert 'aria-label="Take away the role of mia"' not in text

    def test_a_viewer_sees_who_is_here_and_no_form(self, client: Client, account: Account, mia: Person) -> None:
        text = logged_in(client, member(account, "viewer", "vic")).get(PAGE).content.decode()
        assert "mia" in text
        assert "Give the role" not in text
        assert "A maintainer of this account or an operator can change roles." in text

    def test_an_operator_sees_every_account(
        self, client: Client, operator: Any, mia: Person, rival_account: Account
    ) -> None:
        client.force_login(operator)
        text = client.get(PAGE).content.decode()
        assert "Acme" in text
        assert "Rival" in text
        assert "Nobody has a role here yet." in text

    def test_a_store_without_accounts_says_how_to_make_one(self, client: Client, operator: Any) -> None:
        client.force_login(operator)
        assert "No account yet" in client.get(PAGE).content.decode()

    @pytest.mark.parametrize("n", [1, 20])
    def test_takes_the_same_queries_for_any_number(
        self, page: Client, account: Account, n: int, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        for i in range(n):
            member(account, "viewer", f"v{i}")
        page.get(PAGE)
        with django_assert_num_queries(QUERIES):
            page.get(PAGE)

    def test_of_many_accounts_a_page_is_shown_and_whoever_is_given_a_role_is_on_it(
        self, client: Client, operator: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reads, "PAGE", 2)
        made = [Account.objects.create(slug=f"a{n}", name=f"Account {n}", review_policy="auto") for n in range(5)]
        client.force_login(operator)

        def shown(query: str = "") -> list[str]:
            return re.findall(r"Account \d", client.get(f"{PAGE}{query}").content.decode())

        assert shown() == ["Account 0", "Account 1"]
        assert 'href="/review/people/?from=a2"' in client.get(PAGE).content.decode()
        assert shown("?from=a3") == ["Account 3", "Account 4"]
        assert "No account from here on" in client.get(f"{PAGE}?from=b").content.decode()
        get_user_model().objects.create_user("nina")
        answer = client.post(f"{PAGE}{made[4].pk}/", {"username": "nina", "role": "judge"})
        assert answer.headers["Location"] == "/review/people/?from=a4"
        refused = client.post(f"{PAGE}{made[3].pk}/", {"username": "nobody", "role": "judge"})
        assert 'value="nobody"' in refused.content.decode()

    def test_a_name_is_escaped(self, page: Client, account: Account) -> None:
        member(account, "viewer", "<b>bold</b>")
        assert "<b>bold" not in page.get(PAGE).content.decode()


class TestWhatIsDone:
    def test_a_role_is_given_changed_and_taken_away(self, page: Client, account: Account) -> None:
        nina = get_user_model().objects.create_user("nina")
        answer = page.post(f"{PAGE}{account.pk}/", {"username": "nina", "role": "judge"}, follow=True)
        assert "nina is judge now." in answer.content.decode()
        address = f"{PAGE}{account.pk}/{nina.pk}/"
        page.post(address, {"role": "viewer", "expected": "judge"})
        assert role("nina") == "viewer"
        page.post(address, {"role": "viewer", "expected": "viewer", "remove": "1"})
        assert role("nina") is None

    def test_a_name_that_nobody_has_stays_in_the_form(self, page: Client, account: Account) -> None:
        answer = page.post(f"{PAGE}{account.pk}/", {"username": "nnina", "role": "judge"})
        assert answer.status_code == 422
        text = answer.content.decode()
        assert 'value="nnina"' in text
        assert "<option selected>judge</option>" in text
        assert "there is no such person" in text

    def test_a_role_that_changed_meanwhile_is_a_conflict(self, page: Client, account: Account) -> None:
        vic = member(account, "reviewer", "vic")
        answer = page.post(f"{PAGE}{account.pk}/{vic.user_id}/", {"role": "judge", "expected": "viewer"})
        assert answer.status_code == 409
        assert role("vic") == "reviewer"

    def test_the_last_maintainer_stays(self, page: Client, account: Account, mia: Person) -> None:
        address = f"{PAGE}{account.pk}/{mia.user_id}/"
        assert page.post(address, {"remove": "1", "expected": "maintainer"}).status_code == 409
        assert role("mia") == "maintainer"

    def test_a_viewer_changes_nothing(self, client: Client, account: Account, mia: Person) -> None:
        page = logged_in(client, member(account, "viewer", "vic"))
        address = f"{PAGE}{account.pk}/{mia.user_id}/"
        assert page.post(address, {"role": "viewer", "expected": "maintainer"}).status_code == 403
        assert page.post(f"{PAGE}{account.pk}/", {"username": "vic", "role": "maintainer"}).status_code == 403
        assert role("mia") == "maintainer"
        assert role("vic") == "viewer"

    def test_another_account_is_not_there(self, page: Client, rival_account: Account) -> None:
        rita = member(rival_account, "viewer", "rita")
        assert page.post(f"{PAGE}{rival_account.pk}/", {"username": "mia", "role": "viewer"}).status_code == 404
        address = f"{PAGE}{rival_account.pk}/{rita.user_id}/"
        assert page.post(address, {"role": "judge", "expected": "viewer"}).status_code == 404
        assert role("rita") == "viewer"

    def test_who_leaves_is_told_so_on_the_way_out(self, page: Client, account: Account, mia: Person) -> None:
        member(account, "maintainer", "max")
        address = f"{PAGE}{account.pk}/{mia.user_id}/"
        answer = page.post(address, {"remove": "1", "expected": "maintainer"}, follow=True)
        assert answer.status_code == 403
        assert "You have no role yet" in answer.content.decode()

    def test_looking_changes_nothing(self, page: Client, account: Account) -> None:
        assert page.get(f"{PAGE}{account.pk}/").status_code == 405
        assert Membership.objects.count() == 1
