"""Building evidence without retrieval: interactions with chosen exposures, and reports by chosen judges."""

import random
from collections.abc import Sequence
from uuid import UUID

from memory.models import Account, ApiKey, Interaction, Lesson, LessonUsage, Outcome
from memory.models.vocabulary import Exposure, OutcomeSource, Signal
from memory.rules.text import digest
from memory.services import outcome
from memory.services.caller import Caller
from memory.services.keys import create_key

PRICED = [signal for signal in Signal.values if signal != "retracted"]


def make_lessons(n: int) -> list[Lesson]:
    """Bare lessons, without vectors: these tests retrieve nothing."""
    texts = [f"Prefer `tool_{i}()` over writing loop number {i} by hand." for i in range(n)]
    return [
        Lesson.objects.create(text=text, text_sha256=digest(text), origin="imported", state="active", identifiers="")
        for text in texts
    ]


def make_callers(account: Account) -> dict[str, Caller]:
    """A caller of each kind."""
    keys = {
        source: create_key(account, name=source, source=source, scopes=["loop"]).key for source in OutcomeSource.values
    }
    return {
        source: Caller(account_id=account.pk, source=source, actor=f"api_key:{key.prefix}", key_id=key.pk)
        for source, key in keys.items()
    }


def serve(
    account: Account,
    task: str,
    lessons: Sequence[Lesson],
    withheld: Sequence[Lesson] = (),
    exposure: str = Exposure.SERVED.value,
) -> Interaction:
    """An interaction that was handed these lessons, and from which others were held back."""
    key = ApiKey.objects.filter(account=account).first()
    assert key is not None
    interaction = Interaction.objects.create(account=account, project_explicit=False, task=task, api_key=key)
    shown = [(lesson, exposure) for lesson in lessons]
    shown += [(lesson, Exposure.WITHHELD_QUARANTINE.value) for lesson in withheld]
    LessonUsage.objects.bulk_create(
        LessonUsage(lesson=lesson, interaction=interaction, exposure=kind, rank=rank, fused_score=0.01, probability=1.0)
        for rank, (lesson, kind) in enumerate(shown, start=1)
    )
    return interaction


def say(caller: Caller, interaction: UUID, signal: str) -> None:
    """A report; withdrawing what was never said is left out."""
    spoke = Outcome.objects.filter(interaction_id=interaction, source=caller.source).exists()
    if signal != "retracted" or spoke:
        outcome.report(caller, interaction, signal)


def random_cohort(rng: random.Random, lessons: Sequence[Lesson]) -> tuple[list[Lesson], list[Lesson]]:
    """Some lessons to hand out, and some others to hold back."""
    chosen = rng.sample(list(lessons), rng.randint(0, 6))
    cut = rng.randint(0, len(chosen))
    return chosen[:cut], chosen[cut:]
