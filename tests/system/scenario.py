"""A store's history, played by a process of its own: `python -m tests.system.scenario PART [N]`.

`prepare N` makes lessons and N interactions, `report` sends outcomes as agents would, and `check` runs the sweeps to
the end and prints what came of it as JSON. `teach N` makes N interactions that are worth learning from, and
`distilled` prints what was learned.
"""

import json
import random
import sys
from itertools import chain

import django

SEED = 3041
TAUGHT = "Use `tool_{n}()` for job {n}, because writing it by hand takes an hour."  # what a model says of work n
JOB = "do job {n}"


def prepare(n: str) -> None:
    from memory.models import Account
    from memory.services.space import open_first_space
    from tests.services.play import make_callers, make_lessons, random_cohort, serve

    open_first_space()
    rng = random.Random(SEED)
    account = Account.objects.create(slug="busy", name="Busy", review_policy="auto")
    make_callers(account)
    lessons = make_lessons(12)
    for i in range(int(n)):
        serve(account, f"task {i % 17}", *random_cohort(rng, lessons))


def report() -> None:
    """Every interaction is judged once to four times, by judges who correct themselves and each other.

    As many outcomes at a time as a line of the input says, all that are left at its end; says each time that it has.
    """
    from memory.models import ApiKey, Interaction, Outcome
    from memory.services.keys import caller_of
    from tests.services.play import PRICED, say

    rng = random.Random(SEED)
    callers = [caller_of(key) for key in ApiKey.objects.order_by("name")]
    works = list(Interaction.objects.order_by("id").values_list("pk", flat=True))
    plan = [work for work in works for _ in range(rng.randint(1, 4))]
    rng.shuffle(plan)
    for line in chain(sys.stdin, [str(len(plan))]):
        for _ in range(min(int(line), len(plan))):
            say(rng.choice(callers), plan.pop(), rng.choice([*PRICED, "failed", "retracted"]))
        print("reported", flush=True)
    for work in set(works) - set(Outcome.objects.values_list("interaction_id", flat=True)):
        say(callers[0], work, "used")  # it had only drawn retractions of nothing


def teach(n: str) -> None:
    from memory.models import Account
    from memory.services.space import open_first_space
    from tests.services.workshop import good_work

    open_first_space()
    account = Account.objects.create(slug="busy", name="Busy", review_policy="auto")
    for i in range(int(n)):
        good_work(account, task=JOB.format(n=i), response="Done, as you wanted it.")


def distilled() -> None:
    """Prints how each distillation ended, and the lessons that there are."""
    from collections import Counter

    from memory.models import Lesson, LessonDistillation, LessonEmbedding

    rows = list(LessonDistillation.objects.select_related("interaction"))
    lessons = {row.lesson for row in rows if row.lesson}
    strays = [*Lesson.objects.exclude(pk__in=lessons), *LessonEmbedding.objects.exclude(lesson__in=lessons)]
    told = {
        "ends": Counter(row.result_reason for row in rows),
        "claims": sum(row.claim_token is not None for row in rows),
        "attempts": {row.interaction.task: row.attempts for row in rows},
        "lessons": [row.text for row in Lesson.objects.filter(pk__in=lessons)],
        "strays": [str(row) for row in strays],
    }
    print(json.dumps(told))


def check() -> None:
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
    told = {
        "outcomes": Outcome.objects.count(),
        "uncredited": Outcome.objects.filter(credited_at=None).count(),
        "credits": len(sequences),
        "gaps": sequences != list(range(1, len(sequences) + 1)),
        "wrong": wrong,
        "differences": len(differences()),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    django.setup()
    {"prepare": prepare, "report": report, "teach": teach, "distilled": distilled, "check": check}[sys.argv[1]](
        *sys.argv[2:]
    )
