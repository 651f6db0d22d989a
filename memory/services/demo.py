"""A store to look at: lessons good and bad, and work that shows which is which, through the services that agents use.

Nothing is written past them: what is quarantined here was quarantined by the policy in force. Every step looks at what
is stored before it acts, so an interrupted run goes on where it stopped and a second run changes nothing.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.embedding.active import usable_space
from memory.errors import Conflict, EmbeddingUnavailable
from memory.models import (
    Account,
    ApiKey,
    Fact,
    Interaction,
    Lesson,
    LessonEmbedding,
    LessonUsage,
    Outcome,
    Preference,
    Project,
    TrustEvent,
)
from memory.models.scope import scoped
from memory.models.vocabulary import COHORT, LessonState, Origin, OutcomeSource, ReviewPolicy, TrustEventKind
from memory.rules.text import clean, digest
from memory.search import embed_query
from memory.services import interaction, keys, outcome
from memory.services.caller import Caller
from memory.services.credit import credit
from memory.services.importing import read_lines, refresh_statistics, start_run
from memory.services.lesson import NewLesson, store
from memory.services.scoping import lesson_account
from memory.services.space import embed

ACCOUNT = "demo"
PROJECT = "api"
PATH = "demo"  # how journals name this way of writing lessons
MARK = "demo:"  # begins the idempotency keys of the interactions played here
SOURCES = (OutcomeSource.CALLER.value, OutcomeSource.MACHINE.value)
FOLDER = Path(__file__).resolve().parent.parent / "demo"
LESSONS = FOLDER / "lessons.jsonl"
INTERACTIONS = FOLDER / "interactions.jsonl"

PREFERENCES = (
    ("global", "answer-language", "I prefer short answers in plain English."),
    (f"project:{PROJECT}", "test-first", "Write the failing test before the fix."),
)
FACTS = (
    ("database", "The API runs on PostgreSQL 16 behind PgBouncer in transaction mode."),
    ("deploys", "Deploys start at 14:00 UTC on Tuesday and Thursday."),
)


@dataclass(frozen=True, kw_only=True)
class Word:
    """What one judge says."""

    source: str
    signal: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A piece of work with what is said of it; or, without a task, what is said later of the work of the same key."""

    key: str
    task: str = ""
    project: str | None = None
    session: str | None = None
    k: int = 5
    says: tuple[Word, ...] = ()
    # Id of the lesson that makes this work fail wherever it is handed out; skipped once that lesson was quarantined.
    fails_with: str = ""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Who plays."""

    account: Account
    callers: Mapping[str, Caller]  # by source

    @property
    def scope(self) -> UUID | None:
        """The account that the lessons belong to; None where lessons are global."""
        return lesson_account(self.account.pk)


def read_steps() -> list[Step]:
    """The script, in order."""
    lines = [json.loads(line) for line in INTERACTIONS.read_text(encoding="utf-8").splitlines()]
    return [Step(**{**line, "says": tuple(Word(**word) for word in line.get("says", ()))}) for line in lines]


def set_up() -> Stage:
    """The account with its keys, a project, preferences and facts; what is there stays. Raises Conflict if gated."""
    defaults = {"name": "Demo", "review_policy": ReviewPolicy.AUTO.value}
    account, _ = Account.objects.get_or_create(slug=ACCOUNT, defaults=defaults)
    if account.review_policy != ReviewPolicy.AUTO.value:
        raise Conflict(f"The account '{ACCOUNT}' is handed reviewed lessons only. Set its review policy to auto first.")
    project, _ = Project.objects.get_or_create(account=account, slug=PROJECT, defaults={"name": "Shop API"})
    for scope, key, text in PREFERENCES:
        values = {"text": text, "confidence": 0.5, "evidence_count": 1, "enabled": True, "revision": 1}
        Preference.objects.get_or_create(account=account, scope=scope, key=key, defaults=values)
    for key, text in FACTS:
        if not Fact.objects.filter(project=project, key=key).exists():
            Fact.objects.create(account=account, project=project, key=key, text=text)
    return Stage(account=account, callers={source: _caller(account, source) for source in SOURCES})


def _caller(account: Account, source: str) -> Caller:
    key = ApiKey.objects.filter(account=account, outcome_source=source, revoked_at__isnull=True).first()
    # The secret of a new key is told to nobody: only this script plays with it.
    return keys.caller_of(
        key or keys.create_key(account, name=f"demo, {source}", source=source, scopes=["loop", "read"]).key
    )


def _lessons(stage: Stage) -> dict[str, UUID]:
    """The stored lessons of the file, by their id in it."""
    digests = {digest(clean(line.text)): line.ref for line in read_lines(LESSONS)}
    rows = Lesson.objects.filter(scoped(stage.scope), text_sha256__in=digests).values_list("text_sha256", "pk")
    return {digests[text_sha256]: pk for text_sha256, pk in rows}


def store_lessons(stage: Stage) -> Iterator[tuple[int, int]]:
    """Stores the lessons that are not there yet, then embeds them; yields how many of how many are done."""
    there, lines = _lessons(stage), list(read_lines(LESSONS))
    run = start_run(LESSONS)
    for done, line in enumerate(lines, start=1):
        if line.ref not in there:
            store(
                NewLesson(
                    text=line.text,
                    origin=Origin.SEEDED,
                    path=PATH,
                    actor="system",
                    account_id=stage.scope,
                    source_import=run.pk,
                    source_ref=line.ref,
                )
            )
        yield done, len(lines)
    _embed(stage)
    refresh_statistics()


def _embed(stage: Stage) -> None:
    """Without a usable model the lessons are found by their words, and embedded in the background later."""
    try:
        space = usable_space()
        have = LessonEmbedding.objects.filter(space=space).values("lesson_id")
        embed(list(Lesson.objects.filter(pk__in=_lessons(stage).values()).exclude(pk__in=have)), space)
    except EmbeddingUnavailable:
        return


def play(stage: Stage) -> Iterator[tuple[int, int]]:
    """Plays the script; yields how many of how many steps are done."""
    lessons, steps = _lessons(stage), read_steps()
    said: Counter[tuple[str, str]] = Counter()
    for done, step in enumerate(steps, start=1):
        work = _work(stage, step, lessons)
        if work is not None:
            for word in _words(step, work, lessons):
                said[step.key, word.source] += 1
                _say(stage, work, word, said[step.key, word.source])
        yield done, len(steps)


def _work(stage: Stage, step: Step, lessons: Mapping[str, UUID]) -> UUID | None:
    """The step's interaction, started now if it was not before; None where the step is to be skipped."""
    if step.fails_with and step.fails_with not in lessons:
        return None
    key = MARK + step.key
    played = Interaction.objects.filter(account=stage.account, idempotency_key=key).values_list("pk", flat=True).first()
    if played is not None or not step.task:
        return played
    if step.fails_with and _was_quarantined(lessons[step.fails_with]):
        return None
    request = interaction.Start(
        task=step.task, project=step.project, session=step.session, k=step.k, idempotency_key=key
    )
    return interaction.start(stage.callers["caller"], request, embed_query(step.task)).interaction.pk


def _was_quarantined(lesson: UUID) -> bool:
    return TrustEvent.objects.filter(lesson=lesson, kind=TrustEventKind.QUARANTINED).exists()


def _words(step: Step, work: UUID, lessons: Mapping[str, UUID]) -> tuple[Word, ...]:
    if not step.fails_with:
        return step.says
    usages = LessonUsage.objects.filter(interaction_id=work, lesson_id=lessons[step.fails_with])
    handed_out = usages.filter(exposure__in=COHORT).exists()
    return (Word(source="caller", signal="failed" if handed_out else "accepted"),)


def _say(stage: Stage, work: UUID, word: Word, place: int) -> None:
    """Reports the judge's word unless it was reported before: it is that source's `place`th on this work."""
    if Outcome.objects.filter(interaction_id=work, source=word.source).count() < place:
        outcome.report(stage.callers[word.source], work, word.signal, word.detail)
    if Outcome.objects.filter(interaction_id=work, credited_at__isnull=True).exists():
        credit(work)


def summary(stage: Stage) -> dict[str, Any]:
    """What the store shows of it now, as JSON."""
    lessons = Lesson.objects.filter(pk__in=_lessons(stage).values())
    work = Interaction.objects.filter(account=stage.account, idempotency_key__startswith=MARK)
    said = Outcome.objects.filter(interaction__in=work)
    freed = TrustEvent.objects.filter(kind=TrustEventKind.REHABILITATED).values("lesson")
    return {
        "account": stage.account.slug,
        "lessons": lessons.count(),
        "embedded": LessonEmbedding.objects.filter(lesson__in=lessons, space__is_active=True).count(),
        "interactions": work.count(),
        "not_judged": work.filter(~Q(pk__in=said.values("interaction"))).count(),
        "outcomes": said.count(),
        "wins": said.filter(reward__gt=0).count(),
        "losses": said.filter(reward__lt=0).count(),
        "corrected": said.filter(sequence__gt=1, reward__gt=0).count(),
        "retracted": said.filter(signal="retracted").count(),
        "quarantined": list(lessons.filter(state=LessonState.QUARANTINED).values_list("text", flat=True)),
        "rehabilitated": list(lessons.filter(pk__in=freed).values_list("text", flat=True)),
        "preferences": Preference.objects.filter(account=stage.account).count(),
        "facts": Fact.objects.filter(account=stage.account, retracted_at__isnull=True).count(),
    }
