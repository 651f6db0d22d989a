"""Every page costs as many reads in a large store as in a small one, at most 25, and looking at it writes nothing."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluation.performance.desk import Desk, addresses, lay, wish
from memory.models import (
    Account,
    ApiKey,
    Contradiction,
    EmbeddingSpace,
    Interaction,
    Lesson,
    ReviewItem,
)
from memory.rules.text import digest
from memory.services import pruning
from memory.services.credit import sweep
from tests.services.near import place
from tests.services.people import member
from tests.services.play import make_callers, say, serve

pytestmark = pytest.mark.django_db
SMALL, LARGE, MOST = 20, 300, 25
READ_IN_PARTS = {"audit_export"}  # a file of all of it: so many rows at a time, however many there are
WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|MERGE|COPY|TRUNCATE)\b|\bFOR (NO KEY )?UPDATE\b", re.IGNORECASE)


@pytest.fixture
def store(account: Account, space: EmbeddingSpace, settings: Any) -> Callable[[int, int], Desk]:
    """Adds what is missing up to a size; gives the same things to look at each time."""
    settings.SONDER_TRUST_POLICY = "trial"  # it reads more than the other
    callers, who = make_callers(account), member(account, "maintainer", "mia")
    key = ApiKey.objects.filter(account=account)[0]

    def grow(since: int, until: int) -> Desk:
        lessons = [_lesson(n, space) for n in range(since, until)]
        first = Lesson.objects.order_by("pk")[0]
        lay(account, key, who, lessons, works=until - since)
        for n in range(since, until, 3):
            work = serve(account, f"Judged work {n}", [first, lessons[n - since]] if n else [first])
            say(callers["machine" if n % 2 else "caller"], work.pk, "accepted" if n % 4 else "failed")
        sweep()
        liked = wish(account, until - since, refined=(until - since) // 2)
        return Desk(
            lesson=first,
            item=ReviewItem.objects.filter(kind="new_lesson").order_by("pk")[1],
            contradiction=Contradiction.objects.order_by("pk")[0],
            work=Interaction.objects.filter(task="Work 1 of today").order_by("pk")[0],
            preference=liked,
            plan=pruning.current(None),
        )

    return grow


def _lesson(n: int, space: EmbeddingSpace) -> Lesson:
    """Every second one says what the one before it says."""
    text = f"Close each `cursor_{n // 2}` before {'its' if n % 2 else 'the'} connection goes back to the pool."
    made = Lesson.objects.create(text=text, text_sha256=digest(text), origin="imported", state="active", identifiers="")
    return place(made, space, 0.99, n // 2 % 100)


def look(client: Client, desk: Desk) -> dict[str, list[str]]:
    """The statements of one look at each address that can be looked at."""
    return {name: made for name, url in addresses(desk).items() if (made := _look(client, url)) is not None}


def _look(client: Client, url: str) -> list[str] | None:
    """Of the second look: the first may fill what a process remembers. None where an address answers posts alone."""
    first = client.get(url)
    if first.status_code == 405:
        return None
    with CaptureQueriesContext(connection) as seen:
        answer = client.get(url)
        if answer.streaming:
            list(answer)
    assert answer.status_code in (200, 302), f"{url} answers {answer.status_code}"
    return [query["sql"] for query in seen.captured_queries if "SAVEPOINT" not in query["sql"]]  # the test's own


def test_what_a_page_costs_does_not_depend_on_the_size_of_the_store(client: Client, store: Any) -> None:
    desk = store(0, SMALL)
    client.force_login(get_user_model().objects.get(username="mia"))
    small = look(client, desk)
    desk = store(SMALL, LARGE)
    large = look(client, desk)
    assert len(large) > 30
    grown = {name: (len(small[name]), len(large[name])) for name in small if len(large[name]) > len(small[name])}
    assert grown.keys() <= READ_IN_PARTS, grown
    assert {name: len(made) for name, made in large.items() if len(made) > MOST} == {}
    assert {name: sql for name, made in large.items() for sql in made if WRITES.search(sql)} == {}
