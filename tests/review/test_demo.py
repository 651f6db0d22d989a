"""The banner of a store with demo data, the page that says what to try, and the button that takes them back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from memory.models import Account, EmbeddingSpace, ErasureRecord, Lesson, Preference
from memory.services.authority import Person
from memory.services.demo import people, play, stage, story
from tests.services.people import member

pytestmark = pytest.mark.django_db
PAGE, REMOVE = "/review/demo/", "/review/demo/remove/"
PARTS = ("thumbnail", "webhook-replay", "load-plan", "base-image", "preview-memory")


@pytest.fixture(autouse=True)
def own_ledger(settings: Any, tmp_path: Path) -> None:
    settings.SONDER_VAR = str(tmp_path)


@pytest.fixture
def demo(space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch) -> Account:
    """The parts of the story that the page leads to."""
    steps = [step for step in story.read_steps() if step.key.startswith(PARTS)]
    monkeypatch.setattr(play, "read_steps", lambda: steps)
    EmbeddingSpace.objects.filter(pk=space.pk).update(contradiction_similarity=0.6)
    place = stage.set_up()
    for _ in (*play.store_lessons(place), *play.play(place), *people.review(place)):
        pass
    return place.account


@pytest.fixture
def begun(space: EmbeddingSpace) -> Account:
    """A story that has just begun."""
    return stage.set_up().account


def body(client: Client, page: str = PAGE) -> str:
    answer = client.get(page)
    assert answer.status_code == 200
    return answer.content.decode()


class TestTheBanner:
    @pytest.mark.parametrize("page", ["/review/", "/review/lessons/", "/review/health/"])
    def test_is_there_with_the_data_and_only_then(
        self, client: Client, login: Callable[..., Person], begun: Account, page: str
    ) -> None:
        login("viewer")
        assert "This store holds demo data." in body(client, page)
        story.run().delete()  # type: ignore[union-attr]  # it is there
        assert "demo data" not in body(client, page).split("<main")[0]


class TestThePage:
    def test_leads_to_what_there_is_to_try_and_every_link_answers(
        self, client: Client, login: Callable[..., Person], demo: Account
    ) -> None:
        login("maintainer", at=demo)
        text = body(client)
        preference = Preference.objects.get(account=demo, key="answer-language")
        for link, words in (
            (f"/review/lessons/{Lesson.objects.get(state='quarantined').pk}/", "kept out"),
            ("/review/inbox/", "let"),
            ("/review/prune/", "stale"),
            (f"/review/preferences/{preference.pk}/", "versions"),
            ("/review/contradictions/", "opposite"),
        ):
            assert f'href="{link}' in text
            assert words in text.lower()
        for link in {part.split('"')[0] for part in text.split('class="cover" href="')[1:]}:
            assert client.get(link).status_code == 200, link

    def test_lets_somebody_come_too_late_and_keeps_what_they_wrote(
        self, client: Client, login: Callable[..., Person], demo: Account
    ) -> None:
        login("maintainer", at=demo)
        form = body(client).split('aria-labelledby="clash"')[1].split("</form>")[0]
        fields = dict(part.split('" value="', 1) for part in form.split('type="hidden" name="')[2:])
        sent = {name: value.split('"')[0] for name, value in fields.items()}
        preference = Preference.objects.get(account=demo, key="answer-language")
        answer = client.post(f"/review/preferences/{preference.pk}/edit/", sent)
        assert answer.status_code == 409
        assert sent["text"] in answer.content.decode()
        preference.refresh_from_db()
        assert (preference.revision, preference.text) == (5, people.REFINEMENTS[-1].changes["text"])

    def test_says_how_to_load_some_where_there_are_none(self, client: Client, login: Callable[..., Person]) -> None:
        login("viewer")
        assert "python manage.py seed_demo" in body(client)

    def test_asks_for_a_login(self, client: Client) -> None:
        assert client.get(PAGE).status_code == client.post(REMOVE).status_code == 302


class TestTheButton:
    def test_takes_all_of_it_back_and_the_banner_with_it(
        self, client: Client, login: Callable[..., Person], begun: Account, account: Account
    ) -> None:
        """The maintainer's role keeps the account, and another account is not touched."""
        who = login("maintainer", at=begun)
        answer = client.post(REMOVE, follow=True)
        text = answer.content.decode()
        assert "The demo data are gone" in text
        assert "This store holds demo data" not in text
        assert ErasureRecord.objects.get().actor == who.actor
        assert set(Account.objects.values_list("slug", flat=True)) == {"demo", "acme"}
        assert not Preference.objects.exists()
        assert client.post(REMOVE).status_code == 404

    @pytest.mark.parametrize("role", ["viewer", "judge", "reviewer"])
    def test_is_disabled_with_the_reason_for_whoever_is_no_maintainer_there(
        self, client: Client, begun: Account, account: Account, role: str
    ) -> None:
        who = member(begun, role, "ben")
        member_elsewhere = member(account, "maintainer", "eve")
        for person in (who, member_elsewhere):
            client.force_login(get_user_model().objects.get(pk=person.user_id))
            text = body(client)
            assert '<button class="danger" disabled>' in text
            assert "Needs the role maintainer in the account demo" in text
            assert client.post(REMOVE).status_code == 403
        assert story.is_there()

    def test_is_a_post(self, client: Client, operator: Any, begun: Account) -> None:
        client.force_login(operator)
        assert client.get(REMOVE).status_code == 405
        assert '<button class="danger">' in body(client)
        assert story.is_there()
