"""Work that is judged blind: no page tells what a program said of it, until a person has judged."""

import html
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory.models import Account, Interaction, Lesson, LessonUsage
from memory.rules.information import judged_blind
from memory.services.credit import sweep
from tests.services.play import make_callers, make_lessons, say, serve

pytestmark = pytest.mark.django_db
BLIND = "The request that is judged blind"


@pytest.fixture(autouse=True)
def trial(settings: Any) -> None:
    """Every row counts, won or lost; under `reference` a win ends the count, whoever may see it."""
    settings.SONDER_TRUST_POLICY = "trial"


@pytest.fixture
def callers(account: Account) -> dict[str, Any]:
    return make_callers(account)


@pytest.fixture
def work(account: Account, callers: dict[str, Any]) -> Callable[..., Interaction]:
    """A piece of work that was handed lessons and judged, and whose verdict is withheld or not."""

    def make(task: str, lessons: list[Lesson], *, blind: bool, source: str, signal: str, at: Any = None) -> Interaction:
        made = serve(at or account, task, lessons)
        while judged_blind(made.pk) is not blind:
            LessonUsage.objects.filter(interaction=made).delete()
            made.delete()
            made = serve(at or account, task, lessons)
        Interaction.objects.filter(pk=made.pk).update(response="Done.")
        say(callers[source], made.pk, signal)
        sweep()
        return made

    return make


@pytest.fixture
def one() -> Lesson:
    return make_lessons(1)[0]


def lesson_page(client: Client, lesson: Lesson) -> str:
    answer = client.get(reverse("review:lesson", args=[lesson.pk]))
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def rows_of_the_timeline(shown: str) -> int:
    strip = shown.split('aria-labelledby="record"')[1].split("</table>")[0]
    return strip.split("<tbody>")[1].count("<tr>")


@pytest.mark.parametrize("signal", ["failed", "tests_passed"])
class TestALessonsPage:
    def test_leaves_the_verdict_out_and_says_so(self, client, login, work, one, signal) -> None:
        work("An open one", [one], blind=False, source="machine", signal="failed")
        before = rows_of_the_timeline(self.seen(client, login, one))
        work(BLIND, [one], blind=True, source="machine", signal=signal)
        shown = lesson_page(client, one)
        assert BLIND not in shown
        assert "An open one" in shown
        assert rows_of_the_timeline(shown) == before
        assert "1 loss that counts now, beside what is withheld" in shown
        assert "1 verdict of programs is withheld from view, won or lost" in shown
        assert "The figures count it" in shown

    def test_says_the_same_whichever_way_it_went(self, client, login, work, one, signal) -> None:
        work(BLIND, [one], blind=True, source="machine", signal=signal)
        shown = self.seen(client, login, one)
        assert "0 losses that count now, beside what is withheld" in shown
        assert "No loss counts at present but what may be withheld." in shown

    def test_shows_it_once_a_person_has_judged(self, client, login, work, one, callers, signal) -> None:
        made = work(BLIND, [one], blind=True, source="machine", signal=signal)
        say(callers["caller"], made.pk, "rejected")
        sweep()
        shown = self.seen(client, login, one)
        assert BLIND in shown
        assert "withheld" not in shown.split('id="record"')[1].split('id="losses"')[0]

    def test_withholds_nothing_of_accounts_that_are_not_the_readers(
        self, client, login, work, one, rival_account, signal
    ) -> None:
        work(BLIND, [one], blind=True, source="machine", signal=signal)
        login("judge", "max", rival_account)
        shown = lesson_page(client, one)
        assert BLIND not in shown
        assert "withheld from view" not in shown

    def seen(self, client: Client, login: Any, lesson: Lesson) -> str:
        login("judge")
        return lesson_page(client, lesson)


@pytest.mark.parametrize(("signal", "record"), [("failed", "0 won, 1 lost"), ("tests_passed", "0 won, 1 lost")])
def test_the_record_beside_the_work_counts_the_others_alone(
    client, login, work, one, callers, signal: str, record: str
) -> None:
    """With the verdict of this very work in it, it would tell it."""
    work("An open one", [one], blind=False, source="machine", signal="failed")
    made = work(BLIND, [one], blind=True, source="machine", signal=signal)
    login("judge")
    address = reverse("review:interaction", args=[made.pk])
    shown = client.get(address).content.decode()
    assert f"{record} elsewhere" in shown
    assert "judged blind" in shown
    say(callers["caller"], made.pk, "rejected")
    sweep()
    assert "0 won, 2 lost</span>" in client.get(address).content.decode()


def test_an_excuse_for_what_is_withheld_is_not_offered_anywhere(client, login, work, one) -> None:
    made = work(BLIND, [one], blind=True, source="machine", signal="failed")
    login("reviewer")
    for address in (reverse("review:lesson", args=[one.pk]), reverse("review:interaction", args=[made.pk])):
        assert "exempt_row" not in client.get(address).content.decode()
