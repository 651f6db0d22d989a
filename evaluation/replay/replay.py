"""One replay from end to end: the log, the engine, and what would have become of each serving."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils import timezone

from evaluation.replay.constants import Chosen, Value, choose
from evaluation.replay.engine import Engine
from evaluation.replay.judges import judge_of
from evaluation.replay.log import events, revisited
from evaluation.replay.result import Course, ReplayResult, Scope
from evaluation.report import Progress
from memory import conf
from memory.models import BandRate, Credit, LessonUsage
from memory.models.scope import scoped
from memory.models.vocabulary import COHORT, Exposure

TELL_EVERY: Final = 500  # credits


def replay(policy: str | None, constants: Mapping[str, Value], scope: Scope, tell: Progress) -> ReplayResult:
    """What this policy with these constants would have decided over the log of the scope.

    `None` and an empty mapping stand for what is in force. Reads the store and changes nothing; takes about a minute
    for 100,000 servings. Raises Invalid naming the policy or the constant that cannot be used.
    """
    chosen = choose(policy, constants)
    until = timezone.now()
    engine = Engine(judge_of(chosen, _rates(scope)), chosen.ledger.weights, revisited(scope.account_id), scope.since)
    total = Credit.objects.filter(scoped(scope.account_id)).count()
    for event in events(scope.account_id, until):
        before = engine.credits
        engine.take(event)
        if engine.credits != before and engine.credits % TELL_EVERY == 0:
            tell(engine.credits, total, "credits")
    tell(total, total, "servings")
    _servings(engine, scope.since, until)
    return _result(chosen, scope, until, engine)


def _rates(scope: Scope) -> dict[int, float]:
    """The bands' loss rates as they were measured last, where the store's own are in use."""
    if not conf.current().live_bands:
        return {}
    return dict(BandRate.objects.filter(scoped(scope.account_id)).values_list("lower", "rate"))


def _servings(engine: Engine, since: datetime | None, until: datetime) -> None:
    """Counts the servings of which the replay would have made something else.

    A sample that probation let through is taken to be one in the replay too, where the lesson is quarantined there.
    """
    lessons = {*engine.spans.lessons(), *(lesson for lesson, course in engine.courses.items() if course.decided)}
    rows = LessonUsage.objects.filter(lesson__in=lessons, created_at__lte=until)
    if since is not None:
        rows = rows.filter(created_at__gte=since)
    columns = ("lesson_id", "interaction_id", "created_at", "exposure", "reward")
    for lesson, interaction, at, exposure, reward in rows.values_list(*columns).iterator():
        withheld = engine.spans.withholds(lesson, interaction, at)
        if withheld and exposure == Exposure.SERVED:
            engine.course(lesson).withheld.count(reward)
        elif not withheld and exposure not in COHORT:
            engine.course(lesson).served.count(reward)


def _result(chosen: Chosen, scope: Scope, until: datetime, engine: Engine) -> ReplayResult:
    courses: dict[UUID, Course] = dict(sorted(engine.courses.items()))
    return ReplayResult(
        policy=chosen.policy,
        constants=chosen.values,
        is_own=chosen.is_own,
        scope=scope,
        until=until,
        credits=engine.credits,
        corrections=engine.corrections,
        lessons=engine.lessons,
        given=engine.given,
        merges=engine.merges,
        courses=courses,
    )
