"""A store's history, played by a process of its own: `python -m tests.system.scenario`.

Each line that it reads is a part and perhaps a number, and is answered with a line of JSON. `prepare N` makes lessons
and N interactions, `report N` sends as many outcomes as agents would, or without N all that are left, and `check` runs
the sweeps to the end and tells what came of it. `teach N` makes N interactions that are worth learning from, and
`distilled` tells what was learned. `stock N` makes lessons that retrieval finds, `outcomes` names all there are,
`crowd N` makes what a crowd judges, and `sequential N` holds what came of that against the same words said one after
the other.
"""

import json
import random
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

import django
from django.db import connection

from tests.system import crowd as crowded

SEED = 3041
TAUGHT = "Use `tool_{n}()` for job {n}, because writing it by hand takes an hour."  # what a model says of work n
JOB = "do job {n}"


class Reporting:
    """Every interaction is judged once to four times, by judges who correct themselves and each other."""

    def __init__(self) -> None:
        from memory.models import ApiKey, Interaction
        from memory.services.keys import caller_of

        self._rng = random.Random(SEED)
        self._callers = [caller_of(key) for key in ApiKey.objects.order_by("name")]
        self._plan = [work for work in _works(Interaction) for _ in range(self._rng.randint(1, 4))]
        self._rng.shuffle(self._plan)

    def report(self, n: int) -> None:
        from tests.services.play import PRICED, say

        for _ in range(min(max(n, 0), len(self._plan))):
            chosen = self._rng.choice(self._callers)
            say(chosen, self._plan.pop(), self._rng.choice([*PRICED, "failed", "retracted"]))

    def report_the_rest(self) -> None:
        """Also about interactions that had only drawn retractions of nothing."""
        from memory.models import Interaction, Outcome
        from tests.services.play import say

        self.report(len(self._plan))
        for work in sorted(set(_works(Interaction)) - set(Outcome.objects.values_list("interaction_id", flat=True))):
            say(self._callers[0], work, "used")


def _works(model: Any) -> list[UUID]:
    return list(model.objects.order_by("id").values_list("pk", flat=True))


_reporting: list[Reporting] = []


def prepare(n: int) -> dict[str, Any]:
    from memory.models import Account
    from memory.services.space import open_first_space
    from tests.services.play import make_callers, make_lessons, random_cohort, serve

    open_first_space()
    rng = random.Random(SEED)
    account = Account.objects.create(slug="busy", name="Busy", review_policy="auto")
    make_callers(account)
    lessons = make_lessons(12)
    for i in range(n):
        serve(account, f"task {i % 17}", *random_cohort(rng, lessons))
    _reporting.append(Reporting())
    return {"interactions": n}


def report(n: int = 0) -> dict[str, Any]:
    """How many outcomes there are afterwards."""
    from memory.models import Outcome

    (reporting,) = _reporting
    reporting.report(n) if n else reporting.report_the_rest()
    return {"outcomes": Outcome.objects.count()}


def teach(n: int) -> dict[str, Any]:
    from memory.models import Account
    from memory.services.space import open_first_space
    from tests.services.workshop import good_work

    open_first_space()
    account = Account.objects.create(slug="busy", name="Busy", review_policy="auto")
    for i in range(n):
        good_work(account, task=JOB.format(n=i), response="Done, as you wanted it.")
    return {"interactions": n}


def distilled() -> dict[str, Any]:
    """How each distillation ended, and the lessons that there are."""
    from collections import Counter

    from memory.models import Lesson, LessonDistillation, LessonEmbedding

    rows = list(LessonDistillation.objects.select_related("interaction"))
    lessons = {row.lesson for row in rows if row.lesson}
    strays = [*Lesson.objects.exclude(pk__in=lessons), *LessonEmbedding.objects.exclude(lesson__in=lessons)]
    return {
        "ends": Counter(row.result_reason for row in rows),
        "claims": sum(row.claim_token is not None for row in rows),
        "attempts": {row.interaction.task: row.attempts for row in rows},
        "lessons": [row.text for row in Lesson.objects.filter(pk__in=lessons)],
        "strays": [str(row) for row in strays],
    }


def stock(n: int) -> dict[str, Any]:
    """Lessons with their vectors, that agents are handed out."""
    from memory.models.vocabulary import Origin
    from memory.services.lesson import NewLesson, store
    from memory.services.space import embed, open_first_space

    space = open_first_space()
    for i in range(n):
        text = f"Prefer `tool_{i}()` over writing loop number {i} by hand."
        written = store(NewLesson(text=text, origin=Origin.IMPORTED, path="test", actor="system"))
        assert written.lesson is not None, written.verdict
        embed([written.lesson], space)
    return {"lessons": n}


def outcomes() -> dict[str, Any]:
    from memory.models import Outcome

    ids = [str(pk) for pk in Outcome.objects.values_list("pk", flat=True)]
    return {"ids": ids, "uncredited": Outcome.objects.filter(credited_at=None).count()}


def _judged(slug: str, works: int) -> tuple[dict[str, Any], list[Any]]:
    """An account's keys by source, and interactions that were handed the same lessons in every such account."""
    from memory.models import Account, Lesson
    from memory.services.keys import create_key
    from tests.services.play import random_cohort, serve

    rng = random.Random(SEED)
    account = Account.objects.create(slug=slug, name=slug, review_policy="auto")
    keys = {source: create_key(account, name=source, source=source, scopes=["loop"]) for source in crowded.SOURCES}
    lessons = list(Lesson.objects.order_by("text"))
    return keys, [serve(account, f"task {i % 17}", *random_cohort(rng, lessons)) for i in range(works)]


def crowd(n: int) -> dict[str, Any]:
    """Interactions for so many outcomes of a crowd, and the keys they come with."""
    keys, works = _judged("crowd", crowded.works_of(n))
    return {"keys": {source: made.secret for source, made in keys.items()}, "works": [str(work.pk) for work in works]}


def sequential(n: int) -> dict[str, Any]:
    """Says what the crowd said, one word after the other; which interactions then have another credit."""
    from memory.services import outcome
    from memory.services.credit import credit
    from memory.services.keys import caller_of

    keys, works = _judged("sequential", crowded.works_of(n))
    for chain in crowded.chains(n):
        for signal in chain.signals:
            outcome.report(caller_of(keys[chain.source].key), works[chain.work].pk, signal)
    for work in works:
        credit(work.pk)
    expected, found = _credited("sequential"), _credited("crowd")
    assert len(expected) == len(works)
    return {"differing": [i for i, (one, other) in enumerate(zip(expected, found, strict=True)) if one != other]}


def _credited(slug: str) -> list[Any]:
    """Of each interaction of an account, in order: who decided what with which weight, on it and on its exposures.

    What was said and taken back before it was credited has no row, and after it an empty one: both count for nothing.
    """
    from memory.models import Credit, Interaction, LessonUsage

    fields = ("rank", "lesson_id", "outcome_signal", "reward", "outcome_source", "weight")
    told = []
    for work in Interaction.objects.filter(account__slug=slug).order_by("id"):
        row = Credit.objects.filter(pk=work.pk).exclude(y=None).values_list("source", "y", "weight").first()
        usages = LessonUsage.objects.filter(interaction=work).exclude(outcome_signal=None).order_by("rank")
        told.append((row, list(usages.values_list(*fields))))
    return told


def check() -> dict[str, Any]:
    from memory.models import Credit, LessonUsage, Outcome
    from memory.rules.signals import Verdict, decide
    from memory.services.credit import sweep
    from memory.services.standing import differences

    while sweep():
        pass
    wrong = []
    for work in set(Outcome.objects.values_list("interaction_id", flat=True)):
        rows = Outcome.objects.filter(interaction_id=work)
        verdicts = [Verdict(id=o.pk, source=o.source, sequence=o.sequence, signal=o.signal) for o in rows]
        expected = decide(verdicts)
        row = Credit.objects.filter(pk=work).first()
        credited = row.outcome_id if row else None
        on_usages = set(LessonUsage.objects.filter(interaction_id=work).values_list("credited_outcome_id", flat=True))
        if credited != (expected.id if expected else None) or on_usages - {credited}:
            wrong.append(str(work))
    sequences = sorted(Credit.objects.values_list("credit_seq", flat=True))
    return {
        "outcomes": Outcome.objects.count(),
        "uncredited": Outcome.objects.filter(credited_at=None).count(),
        "credits": len(sequences),
        "gaps": sequences != list(range(1, len(sequences) + 1)),
        "wrong": wrong,
        "differences": len(differences()),
    }


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "prepare": prepare, "report": report, "teach": teach, "distilled": distilled, "check": check, "stock": stock,
    "outcomes": outcomes, "crowd": crowd, "sequential": sequential,
}  # fmt: skip


def main() -> None:
    for line in iter(sys.stdin.readline, ""):
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # of Django's PostgreSQL backends: it may have died since
        part, *numbers = line.split()
        print(json.dumps(PARTS[part](*map(int, numbers))), flush=True)


if __name__ == "__main__":
    django.setup()
    main()
