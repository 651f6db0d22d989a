"""What a lesson rests on is kept, leads back to its source, goes with it, and can be counted again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from memory.models import (
    BandRate,
    EmbeddingSpace,
    ImportRun,
    Interaction,
    Lesson,
    LessonEmbedding,
    LessonStanding,
    LessonTombstone,
    LessonUsage,
    Preference,
    PruneArchive,
    ReviewItem,
)
from memory.rules.text import digest
from memory.services import applying, pruning, rejection
from memory.services.space import INDEXED_STATES, index_name
from memory.services.standing import SUMS
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, CURSOR, CURSOR_TASK, TIMEOUT, TIMEOUT_TASK
from tests.conftest import Agent
from tests.http.admin_pages import address, body
from tests.http.calls import INTERACTIONS, LESSONS, report, start

pytestmark = pytest.mark.django_db


def source_of(lesson: Lesson) -> Interaction | ImportRun | None:
    """The record that a lesson came from."""
    if lesson.source_interaction is not None:
        return Interaction.objects.filter(pk=lesson.source_interaction).first()
    return lesson.source_import


def test_evidence_claim_resolves_to_source(agent: Agent, lesson_scope: str, pages: Any, reviewer: Any) -> None:
    """Learned, imported, reworded and seeded lessons that reached a prompt; the admin shows each one's source."""
    acts.learn(agent, TIMEOUT)
    acts.imported(agent.account, CLOCK)
    old = acts.imported(
        agent.account, "Close your `psycopg` cursor early, because an open one keeps the snapshot alive."
    )
    rejection.supersede(old.pk, CURSOR, reviewer=reviewer.pk)
    acts.command("seed_demo")
    for task in (TIMEOUT_TASK, CLOCK_TASK, CURSOR_TASK):
        assert start(agent.client, task)["context"]
    reached = Lesson.objects.filter(pk__in=LessonUsage.objects.filter(exposure="served").values("lesson"))
    assert {lesson.origin for lesson in reached} == {"distilled", "imported", "edited", "seeded"}
    for lesson in reached:
        source = source_of(lesson)
        assert source is not None, lesson.origin
        if isinstance(source, Interaction):
            assert lesson.text in (source.response or "")
        page = body(pages.get(address(Lesson, "change", lesson.pk)))
        assert f"{address(type(source), 'change', source.pk)}" in page or str(source) in page


def test_evidence_source_delete_reaches_derived(
    agent: Agent, governor: Agent, lesson_scope: str, reviewer: Any, settings: Any
) -> None:
    """`manage.py erase interaction` takes everything that came from it; its twin keeps everything of its own."""
    settings.SONDER_PROBATION_AFTER_HOURS = 0.0
    gone, kept = (
        derive_everything(agent, governor, reviewer, word, text, task)
        for word, text, task in (("quince", TIMEOUT, TIMEOUT_TASK), ("medlars", CLOCK, CLOCK_TASK))
    )
    before = {word: acts.tables_with(word) for word in ("quince", "medlars")}
    assert set(before["quince"]) >= {
        "interaction", "outcome", "preference", "refinement_history", "idempotency_record", "prune_archive",
    }  # fmt: skip
    assert set(acts.tables_naming(gone["interaction"], *gone["lessons"])) >= {
        "lesson", "lesson_embedding", "lesson_tombstone", "lesson_usage", "lesson_standing", "lesson_source_sum",
        "trust_event", "review_item", "lesson_distillation", "outcome", "credit", "prune_archive", "prune_plan",
    }  # fmt: skip

    dry = acts.command("erase", "interaction", gone["interaction"])
    assert acts.tables_with("quince") == before["quince"], "a dry run only tells"
    real = acts.command("erase", "interaction", gone["interaction"], "--apply")
    assert real["counts"] == dry["counts"]

    assert acts.tables_with("quince") == []
    assert acts.tables_naming(gone["interaction"], *gone["lessons"]) == []
    assert not acts.tables_with(digest(TIMEOUT))
    assert agent.client.get(f"{INTERACTIONS}{gone['interaction']}/").status_code == 404

    assert acts.tables_with("medlars") == before["medlars"]
    assert agent.client.get(f"{INTERACTIONS}{kept['interaction']}/").status_code == 200
    first, second = kept["lessons"]
    assert Lesson.objects.filter(pk=first, state="superseded").exists()
    assert PruneArchive.objects.filter(lesson=second).exists()
    assert LessonTombstone.objects.filter(source_lesson__in=kept["lessons"]).count() == 2
    assert ReviewItem.objects.filter(subject=first).exists()
    assert Preference.objects.get().text == "Mention the medlars, 2."
    assert [text for text in acts.recalled(agent, CLOCK_TASK) if "time_machine" in text]

    acts.command("erase", "interaction", kept["served"], "--apply")  # its exposures are in the archive as well
    assert acts.tables_naming(kept["served"]) == []
    assert PruneArchive.objects.filter(lesson=second, kind="lesson").exists()

    learned = acts.learn(agent, CURSOR)
    lesson = acts.lesson_of(learned)
    merge(
        agent, lesson, CURSOR.replace("an open cursor keeps", "every open cursor is what keeps"), CURSOR_TASK, reviewer
    )
    acts.command("erase", "interaction", learned, "--apply")  # nothing but the archive has its lesson
    assert acts.tables_with(CURSOR) == []
    assert acts.tables_naming(learned, lesson.pk) == []
    assert len(acts.recalled(agent, CURSOR_TASK)) == 1
    assert acts.command("doctor")["clean"]


def derive_everything(agent: Agent, governor: Agent, reviewer: Any, word: str, text: str, task: str) -> dict[str, Any]:
    """An interaction from which one of each kind of derived row came, and the lessons among them.

    Its lesson is quarantined, reworded by a reviewer, and the new wording is merged into an imported one.
    """
    kept = {"headers": {"Idempotency-Key": f"key-{len(word)}"}, "format": "json"}
    task_of_it = {"task": f"I always prefer reports that mention the {word}.", "project": "fruit", "session": "talk"}
    interaction = agent.client.post(INTERACTIONS, task_of_it, **kept).json()["id"]
    acts.finish(agent, interaction, f"The {word} is in.\n\nLesson: {text}")
    report(agent.client, interaction, "accepted", detail=f"the {word} is there")
    acts.background()
    first = acts.lesson_of(interaction)
    for attempt in range(5):
        report(agent.client, start(agent.client, f"{task}, attempt {attempt}")["id"], "failed")
    acts.background()
    assert Lesson.objects.get(pk=first.pk).state == "quarantined"
    wording = text.replace("because", f"while {word} ripens slowly on southern walls, because")
    second = rejection.supersede(first.pk, wording, reviewer=reviewer.pk, reason="clearer").lesson
    assert second is not None
    refine(governor, word)
    served = merge(agent, second, second.text.replace(word, "pomegranate"), task, reviewer)
    return {"interaction": interaction, "lessons": [str(first.pk), str(second.pk)], "served": served}


def refine(governor: Agent, word: str) -> None:
    """The newest preference, changed twice."""
    wanted = acts.pages(governor, acts.PREFERENCES)[0]
    for version in (1, 2):
        change = {
            "expected_version": version, "text": f"Mention the {word}, {version}.", "expected_outcome": "clear reports",
            "evidence": [{"kind": "note", "text": f"said so about the {word}"}],
        }  # fmt: skip
        answer = governor.client.post(
            f"{acts.PREFERENCES}{wanted['id']}/refinements/",
            change,
            format="json",
            headers={"Idempotency-Key": f"refine-{len(word)}-{version}"},
        )
        assert answer.status_code == 201, answer.content


def merge(agent: Agent, lesson: Lesson, longer: str, task: str, reviewer: Any) -> str:
    """Prunes a lesson: an imported one that a reviewer knows, with more words for the same claim, takes its place.

    Returns an interaction that was handed both.
    """
    keeper = acts.imported(agent.account, longer)
    rejection.reject(keeper.pk, reviewer=reviewer.pk, reason="by mistake")
    rejection.restore(keeper.pk, reviewer=reviewer.pk, reason="it was right")
    started = start(agent.client, task)
    assert {str(lesson.pk), str(keeper.pk)} <= {found["id"] for found in started["lessons"]}
    report(agent.client, started["id"], "accepted")
    acts.background()
    plan = pruning.make(pruning.scope(lesson.account_id))
    assert [str(pk) for pk in applying.apply(lesson.account_id, plan.digest)[0].pruned] == [str(lesson.pk)]
    return str(started["id"])


TOKENS = ("qx7vr2mzkd", "hw3tp9ynbc", "jk5fz8wgas")  # no model knows them: words alone find them


@pytest.mark.django_db(transaction=True)
def test_evidence_rebuild_from_retained(agent: Agent, lesson_scope: str, settings: Any) -> None:
    """Without its search columns, vectors, indexes, sums, standings and band rates the store finds the tokens again."""
    settings.SONDER_LIVE_BANDS = True
    for token in TOKENS:
        acts.imported(
            agent.account, f"Call `{token}.{token[::-1]}()` before `{token}` is opened, or the {token} hangs."
        )
    for attempt in range(5):
        report(agent.client, start(agent.client, f"open the {TOKENS[2]}, attempt {attempt}")["id"], "failed")
    report(agent.client, start(agent.client, f"open the {TOKENS[0]}")["id"], "accepted")
    acts.background()
    before = answers(agent)
    assert [len(found) for found in before["lessons"]] == [1, 1, 0, 1, 1, 0]
    assert [rate[2] for rate in before["band rates"] if rate[2]] == [1, 5]

    with without_what_is_derived():
        assert not LessonEmbedding.objects.exists()
        assert not LessonStanding.objects.exists()
    assert acts.command("doctor", "--repair")["clean"]
    acts.background()

    assert answers(agent) == before
    assert acts.command("doctor")["clean"]


def answers(agent: Agent) -> dict[str, Any]:
    """What the store says, but for times and what ages with them."""
    acts.forget_caches()
    asked = [f"open the {token}" for token in TOKENS] + [f"the {token[::-1]} call fails" for token in TOKENS]
    found = [acts.looked_up(agent, task) for task in asked]
    lessons = sorted(row["id"] for row in acts.pages(agent, LESSONS))
    evidence = [agent.client.get(f"{LESSONS}{pk}/evidence/").json() for pk in lessons]
    return {
        "lessons": [[{**row, "score": None} for row in answer["lessons"]] for answer in found],
        "explained": [sorted((row["id"], row["reason"]) for row in answer["explain"]) for answer in found],
        "evidence": [{**shown, "quarantined_at": bool(shown["quarantined_at"])} for shown in evidence],
        "band rates": list(
            BandRate.objects.order_by("lower").values_list("lower", "upper", "scored", "losses", "rate")
        ),
    }


@contextmanager
def without_what_is_derived() -> Iterator[None]:
    """Drops all that can be computed from what is retained; afterwards the columns are there again, and empty."""
    column = Lesson._meta.get_field("search")
    gin = next(index for index in Lesson._meta.indexes if index.fields == ["search"])
    tables = [*SUMS, "lesson_standing", "lesson_embedding", "band_rate"]
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"DELETE FROM {table}")
        for name in (index_name(EmbeddingSpace.objects.get(is_active=True), state) for state in INDEXED_STATES):
            cursor.execute(f"DROP INDEX {name}")
        cursor.execute("UPDATE lesson SET identifiers = ''")
    with connection.schema_editor() as editor:
        editor.remove_field(Lesson, column)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            editor.add_field(Lesson, column)
            editor.add_index(Lesson, gin)
