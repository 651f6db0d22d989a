"""A replay with what is in force tells a store's history again: decision by decision, and sum by sum."""

import random
from collections import Counter
from datetime import datetime
from decimal import Decimal

import pytest
from django.utils import timezone

from evaluation.replay.constants import choose
from evaluation.replay.engine import Engine
from evaluation.replay.judges import judge_of
from evaluation.replay.log import events, revisited
from evaluation.replay.replay import replay
from evaluation.replay.result import ReplayResult, Scope
from evaluation.replay.sums import PLACES, WEIGHTED, Sums
from memory.models import (
    Account,
    LessonPairSum,
    LessonSourceSum,
    LessonStanding,
    LessonSum,
    LessonTaskSum,
    SourceSum,
    TaskSum,
    TrustEvent,
)
from memory.models.sql import fetch
from memory.services.caller import Caller
from tests.evaluation.histories import History
from tests.services.people import member
from tests.services.play import make_callers, make_lessons

pytestmark = pytest.mark.django_db


@pytest.fixture
def callers(account: Account) -> dict[str, Caller]:
    return make_callers(account)


def again(**scope) -> ReplayResult:
    return replay(None, {}, Scope(**scope), lambda done, total, what: None)


def engine() -> Engine:
    """A replay of everything, with what is in force, looked into."""
    chosen = choose(None, {})
    made = Engine(judge_of(chosen, {}), chosen.ledger.weights, revisited(None), None)
    for event in events(None, timezone.now()):
        made.take(event)
    return made


def play(rng: random.Random, account: Account, callers: dict[str, Caller], steps: int) -> datetime:
    """Plays work and people's decisions; returns when half of it was done."""
    person = member(account, "maintainer", "Mary")
    history = History(rng, account, callers, make_lessons(6))
    history.play(steps // 2, person=person)
    half = timezone.now()
    history.play(steps - steps // 2, person=person)
    return half


def exactly(sums: Sums) -> dict:
    """Every sum that is not empty, by its key, as the store keeps it."""
    told: dict = {}
    for source, pair in sums.source.items():
        told[source] = tuple(pair)
    for task, (o, e) in sums.task.items():
        told[task] = (Decimal(o), Decimal(e) / PLACES)
    for lesson in sums.lessons.values():
        told[lesson.id] = tuple(Decimal(part) / WEIGHTED for part in lesson.total)
        told[lesson.id, "without"] = (Decimal(lesson.without[0]), Decimal(lesson.without[1]) / PLACES)
        for source, pair in lesson.by_source.items():
            told[lesson.id, source] = tuple(pair)
        for task, (o, e) in lesson.by_task.items():
            told[lesson.id, task] = (Decimal(o), Decimal(e) / PLACES)
        for peer, pair in lesson.by_peer.items():
            if lesson.id < peer.id:
                told[lesson.id, peer.id] = tuple(Decimal(part) / WEIGHTED for part in pair)
    return {key: value for key, value in told.items() if any(value)}


def stored() -> dict:
    """The same from the store's tables."""
    told: dict = {source: pair for source, *pair in SourceSum.objects.values_list("source", "n", "losses")}
    told |= {task: pair for task, *pair in TaskSum.objects.values_list("task_digest", "o", "e")}
    told |= {lesson: pair for lesson, *pair in LessonSum.objects.values_list("lesson_id", "o", "e")}
    for lesson, key, *pair in [
        *LessonSourceSum.objects.values_list("lesson_id", "source", "n", "losses"),
        *LessonTaskSum.objects.values_list("lesson_id", "task_digest", "o", "e"),
        *LessonPairSum.objects.values_list("lesson_id", "other_id", "o", "e"),
        *fetch("SELECT lesson_id, 'without', sum(o), sum(e) FROM withheld_sum GROUP BY 1"),
    ]:
        told[lesson, key] = pair
    return {key: tuple(value) for key, value in told.items()}


@pytest.mark.parametrize(("policy", "seed", "steps"), [("trial", 8, 170), ("reference", 1, 110)])
def test_with_what_is_in_force_every_decision_comes_again_at_the_same_credit(
    account, callers, settings, policy, seed, steps
) -> None:
    settings.SONDER_TRUST_POLICY = policy
    half = play(random.Random(seed), account, callers, steps)
    found = again()
    assert found.is_own
    assert found.decided == found.replayed
    assert {decision.kind for decision in found.decided} == {"entered", "left"}
    assert found.corrections > 3

    later = again(since=half)
    assert later.decided == later.replayed == [decision for decision in found.decided if decision.at >= half]
    assert later.decided

    happened = Counter(TrustEvent.objects.values_list("kind", flat=True))
    assert happened["exempted"] > 0
    assert found.given > 5

    looked_into = engine()
    assert exactly(looked_into.sums) == stored()
    if policy == "trial":
        kept = dict(LessonStanding.objects.values_list("pk", "s"))
        assert {lesson: looked_into.standings[lesson].s for lesson in kept} == pytest.approx(kept, rel=1e-12)
