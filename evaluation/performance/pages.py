"""What a look at each review page costs in a store of 10,000 lessons and 100,000 servings, and what a decision does.

In one process, through the whole of Django and back, without the network. A decision is measured as people wait for it:
sent, carried out, and the next page in its place.
"""

import html
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from django.contrib.auth import get_user_model
from django.http import HttpResponseBase
from django.test import Client
from django.urls import reverse

from evaluation.performance.bench import Bench
from evaluation.performance.desk import Desk, addresses, lay, wish
from evaluation.performance.finding import Bar, Finding, compared
from evaluation.performance.forms import fields
from evaluation.performance.store import Shape, scratch
from evaluation.performance.timing import Floats, Side, in_turns, median_ms, quantile_ms
from memory.models import Account, ApiKey, Contradiction, Interaction, Lesson, Membership, ReviewItem
from memory.models.sql import execute
from memory.models.vocabulary import Role
from memory.services import pruning
from memory.services.authority import Person, person
from memory.services.standing import rebuild_sums
from review.queries.inbox import PAGE
from review.urls import urlpatterns

SHAPE: Final = Shape(lessons=10_000, servings=10)
ASKED: Final = 6_000  # lessons with a question: over a hundred pages of the inbox
UNJUDGED: Final = 1_000  # works with a question, five times what the product asks for at once
JUDGED: Final = 2_000  # servings in the record of the busiest lesson
LOOKS: Final = 60
DECISIONS: Final = 200
FAR: Final = 100  # the page of the inbox that is compared with the first
OFTEN: Final = 0.95
LOOK: Final = Bar(limit=1000)  # ms: the first question is there
DECISION: Final = Bar(limit=200)  # ms: decided, and the next one is there


def measure(bench: Bench) -> list[Finding]:
    with scratch(bench.shape):  # what follows furnishes and decides
        who = _reviewer()
        desk = _furnish(who)
        client = _Client(headers={"Host": "localhost"})
        client.force_login(get_user_model().objects.get(pk=who.user_id))
        return [*_looks(bench, client, desk), _paging(bench, client), *_decisions(bench, client)]


class _Client(Client):
    """A reader who notices when a page fails."""

    def look(self, url: str) -> HttpResponseBase:
        """The whole answer, also where it comes in pieces. Raises RuntimeError where there is none."""
        answer = self.get(url)
        if answer.status_code >= 400:
            raise RuntimeError(f"{url} answers {answer.status_code}.")
        if answer.streaming:
            b"".join(answer)
        return answer


def _reviewer() -> Person:
    user = get_user_model().objects.create_user("reviewer")
    Membership.objects.create(account=Account.objects.order_by("pk")[0], user=user, role=Role.MAINTAINER.value)
    return person(user.pk, "reviewer")


def _furnish(who: Person) -> Desk:
    """Questions of every kind about half of the lessons; the first lesson has a long record."""
    account, key = Account.objects.order_by("pk")[0], ApiKey.objects.order_by("pk")[0]
    lessons = list(Lesson.objects.order_by("pk")[:ASKED])
    lay(account, key, who, lessons, works=UNJUDGED)
    execute(
        "UPDATE lesson_usage SET lesson_id = %(busy)s WHERE id IN (SELECT u.id FROM lesson_usage u WHERE u.rank = 5 "
        "AND NOT EXISTS (SELECT 1 FROM lesson_usage v WHERE v.interaction_id = u.interaction_id "
        "AND v.lesson_id = %(busy)s) ORDER BY u.credit_seq DESC LIMIT %(rows)s)",
        {"busy": lessons[0].pk, "rows": JUDGED},
    )
    rebuild_sums()
    liked = wish(account, 200, refined=30)
    plan = pruning.current(None)
    execute("VACUUM (ANALYZE)")
    return Desk(
        lesson=lessons[0],
        item=ReviewItem.objects.filter(kind="new_lesson").order_by("pk")[1],
        contradiction=Contradiction.objects.order_by("pk")[0],
        work=Interaction.objects.filter(response__isnull=False).order_by("-pk")[0],
        preference=liked,
        plan=plan,
    )


def _looks(bench: Bench, client: _Client, desk: Desk) -> list[Finding]:
    """Each page that can be looked at, in turns."""
    routes = {str(each.name): "/review/" + re.sub(r"<[^>]+>", "{id}", str(each.pattern)) for each in urlpatterns}
    logging.disable(logging.WARNING)  # an address that answers no look is asked once, which is no accident
    urls = addresses(desk)
    answers = {name: client.get(url) for name, url in urls.items()}
    logging.disable(logging.NOTSET)
    files = {name for name, answer in answers.items() if answer.has_header("Content-Disposition")}
    sides = {
        name: Side(act=_looking(client, urls[name])) for name, answer in answers.items() if answer.status_code != 405
    }
    taken = in_turns(sides, rounds=LOOKS, warm_up=3)
    # A file of everything takes as long as everything is long, and nobody waits for it before the first question.
    return [_often(bench, routes[name], seconds, None if name in files else LOOK) for name, seconds in taken.items()]


def _looking(client: _Client, url: str) -> Callable[[int], object]:
    return lambda _: client.look(url)


def _often(bench: Bench, what: str, seconds: Floats, bar: Bar | None) -> Finding:
    return Finding(
        key=f"pages.{what}",
        lessons=bench.lessons,
        what=f"{what}, 95 times in 100 within",
        result=quantile_ms(seconds, OFTEN),
        unit="ms",
        ours_ms=median_ms(seconds).value,
        bar=bar,
    )


def _paging(bench: Bench, client: _Client) -> Finding:
    """The inbox far down beside its beginning."""
    inbox = reverse("review:inbox")
    order = ReviewItem.objects.filter(kind="new_lesson", status="open").order_by("-priority", "created_at", "pk")
    last = order.values_list("pk", flat=True)[(FAR - 1) * PAGE - 1]
    taken = in_turns(
        {"first": Side(act=_looking(client, inbox)), "far": Side(act=_looking(client, f"{inbox}?after={last}"))},
        rounds=LOOKS,
        warm_up=3,
    )
    return compared(
        bench.lessons,
        "pages.far",
        f"page {FAR} of the inbox",
        ours=taken["far"],
        floor=taken["first"],
        against="page 1 of the inbox",
        at_most=1.5,
    )


@dataclass(frozen=True, kw_only=True)
class _Queue:
    """Where decisions are made, and how one is read off the page."""

    name: str
    what: str
    form: Callable[[str], dict[str, str]]


def _decisions(bench: Bench, client: _Client) -> list[Finding]:
    queues = (
        _Queue(name="inbox", what="a lesson approved, and the next one", form=_form("approve")),
        _Queue(
            name="outcomes",
            what="work judged, and the next",
            form=lambda page: _form("judge_outcome")(page) | {"signal": "accepted"},
        ),
        _Queue(name="contradictions", what="a pair settled, and the next one", form=_asked("not_a_contradiction")),
    )
    found = []
    for queue in queues:
        at = _Seat(client, queue)
        taken = in_turns({"decision": Side(act=at.decide, before=at.read)}, rounds=DECISIONS, warm_up=5)
        found.append(_often(bench, queue.what, taken["decision"], DECISION))
    return found


class _Seat:
    """Somebody at a queue, who decides about what is before them again and again."""

    def __init__(self, client: _Client, queue: _Queue) -> None:
        self._client, self._queue = client, queue
        self._page = self._text(client.look(reverse(f"review:{queue.name}")))
        self._sent: Mapping[str, str] = {}
        self._n = 0

    @staticmethod
    def _text(answer: HttpResponseBase) -> str:
        return str(answer.content.decode())  # type: ignore[attr-defined]  # no queue comes in pieces

    def read(self, _: int) -> None:
        """What the browser has done by the time that a key is pressed."""
        self._n += 1
        self._sent = self._queue.form(self._page) | {"idempotency_key": f"{self._queue.name}-{self._n}"}

    def decide(self, _: int) -> None:
        answer = self._client.post(reverse("review:decide"), self._sent, follow=True)
        if answer.status_code != 200 or not answer.redirect_chain:
            raise RuntimeError(f"A decision in {self._queue.name} was answered with {answer.status_code}.")
        self._page = self._text(answer)


def _form(verdict: str) -> Callable[[str], dict[str, str]]:
    """The fields of the form that gives this verdict at once."""
    return lambda page: fields(page, verdict)


def _asked(verdict: str) -> Callable[[str], dict[str, str]]:
    """The fields of the dialog that a verdict opens, without its reason."""

    def fields(page: str) -> dict[str, str]:
        found = re.search(rf'href="({reverse("review:ask", args=[verdict])}[^"]+)"', page)
        assert found is not None, "the queue offers something to decide"
        query = parse_qs(urlsplit(html.unescape(found[1])).query)
        return {"decision": verdict, **{name: values[0] for name, values in query.items()}}

    return fields
