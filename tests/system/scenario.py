"""A store's history, played by a process of its own: `python -m tests.system.scenario prepare|report|check`.

`prepare` makes lessons and interactions, `report` sends outcomes as agents would, and `check` runs the sweeps to the
end and prints what came of it as JSON.
"""

import json
import random
import sys

import django

INTERACTIONS = 120
SEED = 3041


def prepare() -> None:
    from memory.models import Account
    from memory.services.space import open_first_space
    from tests.services.play import make_callers, make_lessons, random_cohort, serve

    open_first_space()
    rng = random.Random(SEED)
    account = Account.objects.create(slug="busy", name="Busy", review_policy="auto")
    make_callers(account)
    lessons = make_lessons(12)
    for n in range(INTERACTIONS):
        serve(account, f"task {n % 17}", *random_cohort(rng, lessons))


def report() -> None:
    """Every interaction is judged once to four times, by judges who correct themselves and each other."""
    from memory.models import ApiKey, Interaction, Outcome
    from memory.services.keys import caller_of
    from tests.services.play import PRICED, say

    rng = random.Random(SEED)
    callers = [caller_of(key) for key in ApiKey.objects.order_by("name")]
    works = list(Interaction.objects.order_by("id").values_list("pk", flat=True))
    plan = [work for work in works for _ in range(rng.randint(1, 4))]
    rng.shuffle(plan)
    for work in plan:
        say(rng.choice(callers), work, rng.choice([*PRICED, "failed", "retracted"]))
    for work in set(works) - set(Outcome.objects.values_list("interaction_id", flat=True)):
        say(callers[0], work, "used")  # it had only drawn retractions of nothing


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
    {"prepare": prepare, "report": report, "check": check}[sys.argv[1]]()
