"""An agent whose success depends on the lessons that it is handed, at work through the services that agents use."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from uuid import UUID

from evaluation.loop.world import Job, World
from memory.models import Account, ApiKey, Lesson, LessonDistillation, LessonEmbedding, LessonUsage, Outcome, TrustEvent
from memory.models.vocabulary import (
    COHORT,
    DistillationState,
    LessonState,
    Origin,
    OutcomeSource,
    TrustEventKind,
)
from memory.rules.text import digest
from memory.search import embed_query
from memory.services import interaction, keys, outcome
from memory.services.caller import Caller
from memory.services.importing import refresh_statistics
from memory.services.interaction import Finish, Start
from memory.services.lesson import NewLesson, store
from memory.services.space import embed, open_first_space
from memory.tasks import credit_sweep, distill_sweep, maintenance_embed_sweep

ACCOUNT: Final = "loop"
BATCH: Final = 50  # interactions between two waits for the worker
POLL_SECONDS: Final = 0.05
SWEEP_SECONDS: Final = 20.0  # of waiting after which the sweeps are asked for, as the schedule would
PATIENCE_SECONDS: Final = 300.0  # of waiting after which there seems to be no worker
JUDGES: Final = (OutcomeSource.CALLER.value, OutcomeSource.MACHINE.value)
OPEN: Final = (DistillationState.PENDING, DistillationState.CLAIMED, DistillationState.RETRYABLE)

Say = Callable[[int], None]  # called with the number of interactions done
Settle = Callable[[], None]  # returns when all that came of the work so far has been done in the background


class NoWorker(Exception):
    """Nobody does the background work."""


@dataclass(kw_only=True)
class Played:
    """What one arm came to; plain data."""

    won: list[int] = field(default_factory=list)  # of each interaction: 1 if the work succeeded, whatever was said
    harmful: list[int] = field(default_factory=list)  # harmful lessons that were handed out for it
    handed_out: list[int] = field(default_factory=list)  # lessons that were handed out for it
    lessons: int = 0  # in the store at the end
    learned: int = 0  # of these, from the agent's own work
    bad: int = 0  # of the lessons, harmful ones
    caught: int = 0  # harmful lessons in quarantine at the end
    quarantines: int = 0  # decisions of the policy
    right: int = 0  # of these, about harmful lessons
    withheld_good: int = 0  # servings of lessons that do no harm that a coin or a quarantine held back
    served_good: int = 0
    waited_s: float = 0.0  # seconds of waiting for the worker

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def prepare() -> None:
    """An account with its keys, and the space opened: what every arm begins with."""
    open_first_space()
    account = Account.objects.create(slug=ACCOUNT, name="Loop", review_policy="auto")
    for source in JUDGES:
        keys.create_key(account, name=source, source=source, scopes=["loop"])


def stock(world: World) -> None:
    """Stores what the world has written down, and embeds it."""
    space = open_first_space()
    for advice in world.lessons:
        if advice.written:
            written = store(NewLesson(text=advice.text, origin=Origin.IMPORTED, path="loop", actor="system"))
            assert written.lesson is not None, written.verdict
    embed(list(Lesson.objects.all()), space)
    refresh_statistics()


class Agent:
    """Plays a world's work against the store that this process is connected to."""

    def __init__(self, world: World, *, retrieves: bool, settle: Settle) -> None:
        self._retrieves, self._settle = retrieves, settle
        self._effects = {digest(text): effect for text, effect in world.effects.items()}
        account = Account.objects.get(slug=ACCOUNT)
        self._callers: dict[str, Caller] = {
            key.outcome_source: keys.caller_of(key) for key in ApiKey.objects.filter(account=account)
        }
        self._effect_of: dict[UUID, float] = {}
        self.played = Played()

    def play(self, jobs: Sequence[Job], say: Say) -> Played:
        """Works through the jobs; after each batch waits until all that came of it is done."""
        for done, job in enumerate(jobs, start=1):
            self._work(job)
            if done % BATCH == 0 or done == len(jobs):
                if self._retrieves:
                    began = time.monotonic()
                    self._settle()
                    self.played.waited_s += time.monotonic() - began
                say(done)
        self._look()
        return self.played

    def _work(self, job: Job) -> None:
        caller = self._callers[job.judge]
        query = embed_query(job.task) if self._retrieves else None
        started = interaction.start(caller, Start(task=job.task, retrieve=self._retrieves), query)
        effects = [self._effect(found.ranked.candidate.lesson_id) for found in started.handed_out.lessons]
        won = job.succeeds(sum(effects))
        self.played.won.append(int(won))
        self.played.handed_out.append(len(effects))
        self.played.harmful.append(sum(effect < 0 for effect in effects))
        if job.learned and self._retrieves:
            response = f"It works now.\n\nLesson: {job.learned}\n"
            interaction.finish(caller, started.interaction.pk, Finish(changes={"response": response}))
        said = won != job.errs
        signal = ("accepted" if job.judge == "caller" else "tests_passed") if said else "failed"
        outcome.report(caller, started.interaction.pk, signal)

    def _effect(self, lesson: UUID) -> float:
        if lesson not in self._effect_of:
            self._effect_of[lesson] = self._effects[Lesson.objects.values_list("text_sha256", flat=True).get(pk=lesson)]
        return self._effect_of[lesson]

    def _look(self) -> None:
        """What the store shows at the end."""
        played = self.played
        lessons = {pk: (self._effects[sha], state, origin) for pk, sha, state, origin in _lessons()}
        played.lessons = len(lessons)
        played.learned = sum(origin == "distilled" for _, _, origin in lessons.values())
        played.bad = sum(effect < 0 for effect, _, _ in lessons.values())
        kept_out = {pk for pk, (_, state, _) in lessons.items() if state == LessonState.QUARANTINED}
        played.caught = sum(lessons[pk][0] < 0 for pk in kept_out)
        events = TrustEvent.objects.filter(kind=TrustEventKind.QUARANTINED).values_list("lesson", flat=True)
        played.quarantines = len(events)
        played.right = sum(lessons[pk][0] < 0 for pk in events)
        good: Counter[bool] = Counter()
        for lesson, exposure in LessonUsage.objects.values_list("lesson_id", "exposure").iterator():
            if lessons[lesson][0] >= 0:
                good[exposure in COHORT] += 1
        played.served_good, played.withheld_good = good[True], good[False]


def wait_for_worker() -> None:
    """Until every outcome is credited, every distillation has ended and every lesson has a vector. Raises NoWorker."""
    began = asked = time.monotonic()
    while _waiting():
        now = time.monotonic()
        if now - began > PATIENCE_SECONDS:
            raise NoWorker(f"After {PATIENCE_SECONDS:.0f} s the worker has not done its work.")
        if now - asked > SWEEP_SECONDS:
            for task in (credit_sweep, distill_sweep, maintenance_embed_sweep):
                task.apply_async(expires=SWEEP_SECONDS)
            asked = now
        time.sleep(POLL_SECONDS)


def _waiting() -> bool:
    if Outcome.objects.filter(credited_at__isnull=True).exists():
        return True
    if LessonDistillation.objects.filter(state__in=OPEN).exists():
        return True
    return Lesson.objects.exclude(pk__in=LessonEmbedding.objects.values("lesson_id")).exists()


def _lessons() -> list[tuple[UUID, str, str, str]]:
    return list(Lesson.objects.values_list("pk", "text_sha256", "state", "origin"))
