"""A second opinion is given blind: until it is saved, no page says what the one who asked thinks."""

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from memory.models import Account, ReviewItem, SecondOpinion
from memory.models.vocabulary import Verdict
from memory.services import second_opinion
from tests.browser.scene import build
from tests.browser.scene_inbox import named

pytestmark = pytest.mark.django_db
OPINIONS = (Verdict.APPROVE, Verdict.REJECT, None)
PAGES = (
    "/review/items/{item}/", "/review/inbox/?tab=second", "/review/inbox/?tab=second&item={item}",
    "/review/lessons/{lesson}/", "/review/", "/review/quarantine/", "/review/audit/",
)  # fmt: skip


@pytest.fixture
def asked(account: Account) -> ReviewItem:
    """Ana is not sure about a lesson, and says nothing else."""
    scene = build(account)
    return second_opinion.request(scene.lessons["vague"].pk, named("ana"))


def think(asked: ReviewItem, verdict: Verdict | None) -> None:
    """What ana thinks, in place of what she thought."""
    SecondOpinion.objects.filter(author__username="ana").delete()
    if verdict is not None:
        author = get_user_model().objects.get(username="ana")
        SecondOpinion.objects.create(subject=asked.subject, author=author, verdict=verdict.value)


def seen(client: Client, path: str) -> str:
    """A page without what is another on each load: tokens, keys and the number of the request."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    return re.sub(r'value="[A-Za-z0-9]{32,64}"|<code>[0-9a-f-]{36}</code>', "", answer.content.decode())


def test_every_page_is_the_same_whatever_the_other_thinks(client: Client, asked: ReviewItem) -> None:
    client.force_login(get_user_model().objects.get(username="ben"))
    for path in PAGES:
        pages: dict[Any, str] = {}
        for verdict in OPINIONS:
            think(asked, verdict)
            pages[verdict] = seen(client, path.format(item=asked.pk, lesson=asked.subject))
        assert pages[Verdict.APPROVE] == pages[Verdict.REJECT] == pages[None], path


def test_both_are_shown_once_both_have_said_theirs(client: Client, asked: ReviewItem) -> None:
    think(asked, Verdict.REJECT)
    second_opinion.save(asked.pk, named("ben"), Verdict.APPROVE, asked.version)
    client.force_login(get_user_model().objects.get(username="ben"))
    shown = seen(client, f"/review/items/{asked.pk}/")
    assert "<strong>ana</strong>: Reject" in shown
    assert "<strong>ben</strong>: Approve" in shown
