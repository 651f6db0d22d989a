"""Random histories of a store, played through the services: work, verdicts and corrections, and what people decide."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import UUID

from memory.errors import Conflict, Invalid
from memory.models import Account, Adjudication, Lesson, LessonStanding, LessonUsage
from memory.models.vocabulary import COHORT, Exposure, LessonState, Verdict
from memory.services.adjudication import decide, undo
from memory.services.authority import Person
from memory.services.caller import Caller
from memory.services.credit import credit
from tests.services.people import decision
from tests.services.play import say, serve

SOURCES = ("caller", "caller", "caller", "machine", "self_curriculum", "unknown")
SIGNALS = ("used", "accepted", "compiled")
DECISIONS = (
    Verdict.QUARANTINE,
    Verdict.RELEASE,
    Verdict.RELEASE_TO_TRIAL,
    Verdict.UPHOLD,
    Verdict.REJECT,
    Verdict.RESTORE,
)


class History:
    """A store in which the first lessons do harm, and a quarantined one is sampled and controlled."""

    def __init__(self, rng: random.Random, account: Account, callers: dict[str, Caller], lessons: Sequence[Lesson]):
        self._rng, self._account, self._callers, self._lessons = rng, account, callers, lessons
        self._works: list[UUID] = []
        self._harm = {lesson.pk: 0.95 if place < 2 else 0.1 for place, lesson in enumerate(lessons)}

    def play(self, steps: int, *, person: Person | None = None) -> None:
        """So many pieces of work, with corrections between them, and decisions if somebody decides."""
        for _ in range(steps):
            self._work()
            if self._rng.random() < 0.15:
                self._say_again()
            if person is not None and self._rng.random() < 0.12:
                self._decide(person)

    def _work(self) -> None:
        rng = self._rng
        states = dict(Lesson.objects.values_list("pk", "state"))
        tested = set(LessonStanding.objects.filter(on_trial=True).values_list("pk", flat=True))
        shown, held = [], []
        for lesson in rng.sample(list(self._lessons), rng.randint(1, 4)):
            out = 0.6 if states[lesson.pk] == LessonState.QUARANTINED else 0.5 if lesson.pk in tested else 0.0
            if states[lesson.pk] in (LessonState.ACTIVE, LessonState.QUARANTINED):
                (held if rng.random() < out else shown).append(lesson)
        work = serve(self._account, f"task {rng.randint(1, 40)}", shown, held)
        LessonUsage.objects.filter(interaction=work, lesson__state="quarantined", exposure="served").update(
            exposure=Exposure.PROBATION.value
        )
        self._works.append(work.pk)
        if rng.random() < 0.95:
            # Work that a quarantined lesson was held back from is mostly lost all the same, which frees the lesson.
            kept_out = any(states[lesson.pk] == LessonState.QUARANTINED for lesson in held)
            chance = max([0.85 if kept_out else 0.1, *(self._harm[lesson.pk] for lesson in shown)])
            self._say(work.pk, "failed" if rng.random() < chance else rng.choice(SIGNALS))

    def _say(self, work: UUID, signal: str) -> None:
        say(self._callers[self._rng.choice(SOURCES)], work, signal)
        if self._rng.random() < 0.8:  # else it is credited together with what is said next
            credit(work)

    def _say_again(self) -> None:
        work = self._rng.choice(self._works)
        self._say(work, self._rng.choice(["failed", "rejected", "used", "retracted", "accepted"]))

    def _decide(self, person: Person) -> None:
        """Something that a person may do now; what the services refuse is not done."""
        self._try(self._rng.choice([self._verdict, self._verdict, self._excuse, self._undo]), person)

    def _try(self, act: Callable[[Person], object], person: Person) -> None:
        with suppress(Conflict, Invalid):
            act(person)

    def _verdict(self, person: Person) -> None:
        decide(decision(person, self._rng.choice(DECISIONS), self._rng.choice(self._lessons).pk))

    def _excuse(self, person: Person) -> None:
        # By what the seed decides: ids of one millisecond come in any order.
        losses = LessonUsage.objects.filter(reward__lt=0, exposure__in=COHORT).order_by("credit_seq", "rank")
        usage = self._rng.choice(list(losses))
        decide(decision(person, Verdict.EXEMPT_ROW, usage.lesson_id, data={"usage": str(usage.pk)}))

    def _undo(self, person: Person) -> None:
        made = Adjudication.objects.filter(reverts__isnull=True, adjudication__isnull=True).order_by("-created_at")
        if latest := made.first():
            undo(latest.pk, person)
