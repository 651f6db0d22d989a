"""What people wrote and decided about a piece of work goes with it: questions, comments, opinions, snapshots, notes."""

from typing import Any
from uuid import UUID

import pytest

from memory.models import Adjudication, Comment, Lesson, LessonUsage, ReviewItem, SecondOpinion, UsageExemption
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, CURSOR, TIMEOUT, TIMEOUT_TASK
from tests.acceptance.browser import Browser, at_browser
from tests.acceptance.test_people_gateway import ALWAYS, pair_of
from tests.conftest import Agent
from tests.http.calls import report, start

pytestmark = pytest.mark.django_db
TOUCHED = {"adjudication", "comment", "review_item", "second_opinion", "trust_event", "outcome", "lesson"}
PAGES = (
    "/review/", "/review/inbox/", "/review/lessons/", "/review/quarantine/", "/review/contradictions/",
    "/review/outcomes/", "/review/interactions/", "/review/audit/", "/review/preferences/", "/review/health/",
)  # fmt: skip


@pytest.fixture
def rita(agent: Agent) -> Browser:
    return at_browser(agent.account, "maintainer", "rita.b")


@pytest.fixture
def ben(agent: Agent) -> Browser:
    return at_browser(agent.account, "reviewer", "ben")


def derive(agent: Agent, rita: Browser, ben: Browser, word: str, text: str, task: str) -> dict[str, Any]:
    """Work with everything that people can make of it, each with the word in it; returns the ids that name it."""
    lesson = acts.lesson_of(acts.learn(agent, text, task=f"prefer the {word}", project="fruit"))
    source = str(lesson.source_interaction)
    comment(rita, lesson, f"Ask whoever sent the {word}.")
    opinion(rita, ben, lesson)
    rita.did("approve", lesson, note=f"The {word} is right.")
    for n in range(2):
        lost = str(start(agent.client, f"{task}, attempt {n}")["id"])
        report(agent.client, lost, "failed")
        acts.background()
    usage = LessonUsage.objects.get(interaction=lost, lesson=lesson)
    rita.did("exempt_row", lesson, usage=usage.pk, note=f"The host was down, not the {word}.")
    judge(agent, rita, source, f"Seen with the {word}.")
    ben.client.post(f"/review/interactions/{source}/private/", {"note": f"Who is {word}?"})
    rita.did("quarantine", lesson, note=f"Until the {word} is clear.")
    wording = text.replace("because", f"while {word} ripens slowly on southern walls, because")
    rita.did("edit", lesson, text=wording, note=f"With the {word}.")
    successor = Lesson.objects.get(supersedes=lesson.pk)
    ask_for_opinion(rita, successor)
    return {"source": source, "ids": [source, str(lesson.pk), str(successor.pk)], "lesson": lesson}


def comment(browser: Browser, lesson: Lesson, text: str) -> None:
    """On the question about a new lesson."""
    item = browser.item("new_lesson", lesson)
    assert browser.client.post(f"/review/items/{item.pk}/comment/", {"text": text}).status_code == 302


def ask_for_opinion(browser: Browser, lesson: Lesson) -> None:
    answer = browser.client.post(f"/review/lessons/{lesson.pk}/second-opinion/", {"decision": "approve"})
    assert answer.status_code == 302


def opinion(asks: Browser, gives: Browser, lesson: Lesson) -> None:
    ask_for_opinion(asks, lesson)
    item = gives.item("second_opinion", lesson)
    sent = {"decision": "reject", "expected_version": item.version}
    assert gives.client.post(f"/review/items/{item.pk}/opinion/", sent).status_code == 302
    assert SecondOpinion.objects.filter(subject=lesson.pk).count() == 2


def judge(agent: Agent, browser: Browser, interaction: str, note: str) -> None:
    browser.did("judge_outcome", UUID(interaction), signal="rejected", note=note)
    browser.undo()
    browser.did("judge_outcome", UUID(interaction), signal="accepted", note=note)


def test_evidence_source_delete_reaches_derived(agent: Agent, rita: Browser, ben: Browser, lesson_scope: str) -> None:
    """An operator erases one of two pieces of work: of it no row and no page says a word, the other is as it was."""
    acts.imported(agent.account, CURSOR)
    gone, kept = (
        derive(agent, rita, ben, word, text, task)
        for word, text, task in (("quince", TIMEOUT, TIMEOUT_TASK), ("medlar", CLOCK, CLOCK_TASK))
    )
    before = {word: acts.tables_with(word) for word in ("quince", "medlar")}
    assert set(before["quince"]) >= TOUCHED - {"review_item", "second_opinion"}
    assert set(acts.tables_naming(*gone["ids"])) >= TOUCHED
    of_the_other = journals(kept)
    assert [len(rows) for rows in of_the_other] == [2, 3, 3, 7]

    acts.command("erase", "interaction", gone["source"], "--apply")

    assert acts.tables_with("quince") == []
    assert acts.tables_naming(*gone["ids"]) == []
    assert not UsageExemption.objects.filter(usage__lesson=gone["lesson"].pk).exists()
    for browser in (rita, ben):
        for address in PAGES:
            assert "quince" not in browser.page(address), address
        for pk in gone["ids"]:
            for room in ("lessons", "interactions"):
                assert browser.client.get(f"/review/{room}/{pk}/").status_code == 404

    assert acts.tables_with("medlar") == before["medlar"]
    assert journals(kept) == of_the_other
    shown = rita.page(f"/review/lessons/{kept['lesson'].pk}/")
    assert "Ask whoever sent the medlar." in shown
    assert "medlar" in rita.page("/review/audit/")
    assert UsageExemption.objects.filter(usage__lesson=kept["lesson"].pk).count() == 1
    assert acts.command("doctor")["clean"]


def journals(of: dict[str, Any]) -> list[list[tuple[Any, ...]]]:
    """What people left about a piece of work and its lessons, row by row."""
    models = (Comment, ReviewItem, SecondOpinion, Adjudication)
    rows = [model._default_manager.filter(subject__in=of["ids"]).order_by("id").values_list() for model in models]
    return [list(found) for found in rows]


def test_a_decision_about_a_pair_goes_with_either_of_its_lessons(
    agent: Agent, rita: Browser, lesson_scope: str, space: Any
) -> None:
    """The snapshot of the pair names both, so it goes with the one that is erased; the other keeps its own journal."""
    pair = pair_of(agent, space, axis=5)
    other = acts.stored(agent.account, ALWAYS)
    erased = pair.second if pair.first == other.pk else pair.first
    rita.did("approve", other, note="Read.")
    rita.did("not_a_contradiction", pair, note="They are about different peers.")
    assert Adjudication.objects.count() == 2
    acts.command("erase", "lesson", str(erased), "--apply")
    assert acts.tables_with("different peers") == []
    assert acts.tables_naming(erased, pair.pk) == []
    assert [made.subject for made in Adjudication.objects.all()] == [other.pk]
    assert "Read." in rita.page("/review/audit/")
