"""What the tests of the queues look at: so many questions of one kind, without the work that leads to them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone
from playwright.sync_api import Route

from memory.models import Account, Interaction, Lesson, LessonStanding, ReviewItem
from memory.models.vocabulary import LessonState, ReviewKind
from memory.services import quarantine, questions
from memory.services.authority import Person, person
from memory.services.questions import Question
from tests.browser.conftest import Visitor
from tests.services.play import make_callers, make_lessons, serve

PATIENCE = 30_000  # milliseconds for what happens beside the page


def new_lessons(n: int) -> list[ReviewItem]:
    """So many candidates that wait for their first look, the first the most urgent."""
    lessons = make_lessons(n)
    Lesson.objects.filter(pk__in=[one.pk for one in lessons]).update(state=LessonState.CANDIDATE.value)
    return _ask(ReviewKind.NEW_LESSON, [(one.pk, None) for one in lessons])


def unjudged(account: Account, n: int) -> list[Interaction]:
    """So much work that a verdict is asked for, the first the most valuable."""
    make_callers(account)
    lessons = make_lessons(2)
    works = [serve(account, f"Write exporter number {number}.", lessons) for number in range(n)]
    Interaction.objects.update(response="Here it is:\n\ndef export(rows): ...")
    _ask(ReviewKind.OUTCOME_NEEDED, [(work.pk, account.pk) for work in works])
    return works


def burst(n: int) -> list[Lesson]:
    """So many lessons that the policy quarantined within a quarter of an hour."""
    lessons, now = make_lessons(n), timezone.now()
    LessonStanding.objects.bulk_create(
        LessonStanding(
            pk=one.pk, policy="reference", wins=4, losses=6, on_trial=False, version=1, evidence={},
            quarantined_at=now - timedelta(minutes=15 * place / n),
        )
        for place, one in enumerate(lessons)
    )  # fmt: skip
    for one in lessons:
        quarantine.move(one.pk, LessonState.ACTIVE, LessonState.QUARANTINED)
    _ask(ReviewKind.QUARANTINE, [(one.pk, None) for one in lessons])
    return lessons


def _ask(kind: ReviewKind, about: list[tuple[Any, Any]]) -> list[ReviewItem]:
    since = timezone.now() - timedelta(hours=1)
    questions.ask(
        Question(kind=kind, subject=subject, account_id=account, severity=0.9 - place / 1000, since=since)
        for place, (subject, account) in enumerate(about)
    )
    return list(ReviewItem.objects.filter(kind=kind.value).order_by("-priority"))


def named(name: str) -> Person:
    """One of the people, as services know them."""
    return person(get_user_model().objects.get(username=name).pk, name)


def words(subject: Any) -> str:
    """A lesson as a page shows it."""
    return Lesson.objects.get(pk=subject).text.replace("`", "")


def state(subject: Any) -> str:
    return Lesson.objects.values_list("state", flat=True).get(pk=subject)


def holder(item: ReviewItem) -> str:
    """Who holds a question now; nobody is empty."""
    found = ReviewItem.objects.select_related("claimed_by").get(pk=item.pk)
    if found.claimed_by is None or found.claim_expires_at is None or found.claim_expires_at <= timezone.now():
        return ""
    return found.claimed_by.get_username()


def becomes(someone: Visitor, expected: Any, now: Callable[[], Any]) -> None:
    """Waits until what a page does beside its own requests has happened."""
    for _ in range(PATIENCE // 50):
        if now() == expected:
            return
        someone.page.wait_for_timeout(50)
    assert now() == expected


def on_card(someone: Visitor) -> str:
    """The lesson of the question beside the list."""
    return someone.page.locator("#card-title").inner_text()


def stall(someone: Visitor, path: str) -> list[Route]:
    """The server takes its time for this: what is sent waits here until it is let go on."""
    waiting: list[Route] = []
    someone.page.route(path, lambda route: waiting.append(route))
    return waiting
