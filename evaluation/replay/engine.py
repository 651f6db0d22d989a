"""The replay: goes through the log once, keeps the sums, and lets a policy decide where the store's own did.

What people decided is taken as it was, and what the clock lifted. Before `since` the journal decides for the machine
too, so that the replayed policy takes over a store as it stood then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from evaluation.replay import spans
from evaluation.replay.judges import Judge, Standing
from evaluation.replay.log import Credited, Event, Excused, Told
from evaluation.replay.result import Course, Decision, Kind
from evaluation.replay.sums import Sums, Work
from memory.models.vocabulary import COHORT, TrustEventKind
from memory.rules.ledger import Release
from memory.rules.signals import Verdict, decide, reward_of
from memory.services.evidence import Occasion

KINDS: Final[Mapping[str, Kind]] = {TrustEventKind.QUARANTINED: "entered", TrustEventKind.REHABILITATED: "left"}
TRIALS: Final[Mapping[str, bool]] = {TrustEventKind.TRIAL_OPENED: True, TrustEventKind.TRIAL_CLOSED: False}
#: What a person decided about a lesson in a way that an undo can take back.
DECISIONS: Final = (
    TrustEventKind.QUARANTINED_BY_REVIEWER, TrustEventKind.RELEASED_BY_REVIEWER, TrustEventKind.RELEASED_TO_TRIAL,
    TrustEventKind.REJECTED_BY_REVIEWER, TrustEventKind.RESTORED_BY_REVIEWER, TrustEventKind.APPROVED,
    TrustEventKind.EDITED, TrustEventKind.PRUNED,
)  # fmt: skip


class Engine:
    """One replay. Give it every event in order."""

    def __init__(
        self, judge: Judge, weights: Mapping[str, Decimal], revisited: dict[UUID, int], since: datetime | None
    ) -> None:
        self._judge, self._weights, self._since = judge, weights, since
        self._looked_at = Occasion(
            exposure="served", weight=weights["caller"], loss=None, weight_before=weights["caller"]
        )
        self.sums = Sums(weights)
        self._left = revisited  # of interactions with several outcomes: how many are still to come
        self._open: dict[UUID, tuple[Work | None, list[Verdict]]] = {}  # of these: the work, and what was said of it
        self.standings: dict[UUID, Standing] = {}
        self._before: dict[UUID, list[tuple[datetime, Standing]]] = {}  # each person's decision: when, and what it met
        self._seq = 0
        self.spans = spans.Spans()
        self.courses: dict[UUID, Course] = {}
        self.credits = self.corrections = self.given = self.merges = 0

    def take(self, event: Event) -> None:
        """One event of the log."""
        match event:
            case Credited():
                self._credit(event)
            case Told():
                self._hear(event)
            case Excused():
                self._excuse(event)

    @property
    def lessons(self) -> int:
        """Lessons with at least one row so far."""
        return len(self.sums.lessons)

    def course(self, lesson: UUID) -> Course:
        return self.courses.setdefault(lesson, Course())

    def _standing(self, lesson: UUID) -> Standing:
        return self.standings.setdefault(lesson, Standing())

    # What was credited, and corrected

    def _credit(self, event: Credited) -> None:
        work, said = self._open.pop(event.interaction, (None, []))
        decided_before, said = decide(said), [*said, *event.said]
        decided = decide(said)
        weight_before = None if work is None else self._weight(work)
        if decided != decided_before:
            work = self._first(event) if work is None else self._again(work)
            self._settle(work, decided)
            self._evaluate(self._occasions(event, work, weight_before), event.at)
        if self._left.get(event.interaction, 0) > len(event.said):
            self._left[event.interaction] -= len(event.said)
            self._open[event.interaction] = (work, said)

    def _weight(self, work: Work) -> Decimal:
        return Decimal(0) if work.reward is None else self._weights[work.source]

    def _first(self, event: Credited) -> Work:
        self.credits += 1
        self._seq = event.seq
        work = Work(
            interaction=event.interaction,
            seq=event.seq,
            task=event.task,
            b=event.b,
            cohort=tuple(self.sums.lesson(e.lesson) for e in event.exposed if e.exposure in COHORT),
            held=tuple((self.sums.lesson(e.lesson), e.expected) for e in event.exposed if e.exposure not in COHORT),
        )
        for lesson in work.cohort:
            lesson.rows.append(work)
        return work

    def _again(self, work: Work) -> Work:
        self.corrections += 1
        if work.reward is not None:
            self.sums.take_back(work)
        return work

    def _settle(self, work: Work, decided: Verdict | None) -> None:
        """This outcome decides now; the sums follow."""
        if decided is None:
            work.reward = None
            return
        work.source, work.reward = decided.source, reward_of(decided.signal)
        self.sums.add(work)

    def _occasions(self, event: Credited, work: Work, weight_before: Decimal | None) -> dict[UUID, Occasion]:
        """What this credit is to each lesson concerned."""
        loss = None if work.reward is None else work.loss
        return {
            e.lesson: Occasion(exposure=e.exposure, weight=self._weight(work), loss=loss, weight_before=weight_before)
            for e in event.exposed
        }

    def _evaluate(self, occasions: Mapping[UUID, Occasion], at: datetime) -> None:
        """The replayed policy looks at lessons and decides."""
        if self._since is not None and at < self._since:
            return
        for lesson, occasion in occasions.items():
            standing = self._standing(lesson)
            verdict = self._judge.judge(self.sums.lesson(lesson), standing, self.sums, occasion)
            standing.s, standing.on_trial = verdict.s, verdict.on_trial
            if standing.state == spans.IN_SERVICE and verdict.enter:
                self._decide(lesson, standing, "entered", at)
            elif standing.state == spans.QUARANTINE and verdict.leave and not standing.held:
                self._decide(lesson, standing, "left", at)
            self._note(lesson, standing, at)

    def _decide(self, lesson: UUID, standing: Standing, kind: Kind, at: datetime) -> None:
        self.course(lesson).replayed.append(Decision(credit_seq=self._seq, lesson=lesson, kind=kind, at=at))
        _move(standing, kind)

    def _note(self, lesson: UUID, standing: Standing, at: datetime) -> None:
        if standing.on_trial and standing.state == spans.IN_SERVICE:
            self.spans.note(lesson, at, spans.TRIAL, self._judge.withheld(standing))
        else:
            self.spans.note(lesson, at, standing.state)

    def _look(self, lessons: Iterable[UUID], at: datetime) -> None:
        """No outcome came, but evidence moved."""
        self._evaluate(dict.fromkeys(lessons, self._looked_at), at)

    # What the journal says

    def _hear(self, event: Told) -> None:
        standing = self._standing(event.lesson)
        if event.kind in KINDS and not event.by_clock:
            self._compare(event, standing, KINDS[event.kind])
        elif event.kind in TRIALS:
            if self._since is not None and event.at < self._since:
                standing.on_trial = TRIALS[event.kind]
        elif event.kind == TrustEventKind.MERGED:
            self.merges += 1
            losses = replace(self._looked_at, loss=1)
            self._evaluate({event.lesson: losses}, event.at)
        else:
            self._follow(event, standing)
        self._note(event.lesson, standing, event.at)

    def _compare(self, event: Told, standing: Standing, kind: Kind) -> None:
        """What the store's policy decided: beside the replay's from `since` on, in its place before."""
        if self._since is not None and event.at < self._since:
            _move(standing, kind)
            return
        decision = Decision(credit_seq=self._seq, lesson=event.lesson, kind=kind, at=event.at)
        self.course(event.lesson).decided.append(decision)

    def _follow(self, event: Told, standing: Standing) -> None:
        """What a person or the clock decided happens here too."""
        if event.kind in DECISIONS:
            self._before.setdefault(event.lesson, []).append((event.at, replace(standing)))
            self.given += 1
        match event.kind:
            case TrustEventKind.QUARANTINED_BY_REVIEWER:
                self._look([event.lesson], event.at)
                standing.state, standing.held, standing.released = spans.QUARANTINE, True, None
            case TrustEventKind.RELEASED_BY_REVIEWER | TrustEventKind.RELEASED_TO_TRIAL:
                self._release(event, standing)
            case TrustEventKind.REJECTED_BY_REVIEWER | TrustEventKind.PRUNED:
                standing.state = spans.OUT
            case TrustEventKind.EDITED if event.is_old:
                standing.state = spans.OUT
            case TrustEventKind.RESTORED_BY_REVIEWER:
                standing.state = self._state_before_merge(event) if event.of_plan else spans.IN_SERVICE
                self._look([event.lesson], event.at)
            case TrustEventKind.UNDONE if event.undone_at is not None:
                self._undo(event.lesson, event.undone_at, standing)
            case TrustEventKind.REHABILITATED:  # by the clock
                self.given += 1
                if standing.state == spans.QUARANTINE and not standing.held:
                    standing.state = spans.IN_SERVICE

    def _release(self, event: Told, standing: Standing) -> None:
        """A release begins the ledger anew; one to trial keeps it, unless the policy knows no trial."""
        seq = self._seq if event.seq is None else event.seq
        if standing.state == spans.QUARANTINE:
            standing.state, standing.held = spans.IN_SERVICE, False
        if event.kind == TrustEventKind.RELEASED_TO_TRIAL and self._judge.knows_trial:
            s = standing.s if standing.s is not None else event.s
            standing.released = Release(credit_seq=seq, s=s or 0.0)
        else:
            standing.ledger_from, standing.released = seq, None
        self._look([event.lesson], event.at)

    def _state_before_merge(self, event: Told) -> str:
        """As the lesson was when it was merged."""
        met = [standing.state for _, standing in self._before.get(event.lesson, ())]
        return next((state for state in reversed(met) if state != spans.OUT), spans.IN_SERVICE)

    def _undo(self, lesson: UUID, decided_at: datetime, standing: Standing) -> None:
        """Puts the standing back as the decision of that time met it."""
        met = self._before.get(lesson, [])
        while met and met[-1][0] > decided_at:
            met.pop()
        if met:
            _, before = met.pop()
            standing.state, standing.held = before.state, before.held
            standing.ledger_from, standing.released = before.ledger_from, before.released
            self.given += 1

    def _excuse(self, event: Excused) -> None:
        standing = self._standing(event.lesson)
        self.given += 1
        if event.is_back:
            standing.excused -= {event.interaction}
        else:
            self._before.setdefault(event.lesson, []).append((event.at, replace(standing)))
            standing.excused |= {event.interaction}
        self._look([event.lesson], event.at)


def _move(standing: Standing, kind: Kind) -> None:
    """Into quarantine by a policy's word, or out of it."""
    if kind == "entered":
        standing.state, standing.held, standing.released = spans.QUARANTINE, False, None
    else:
        standing.state = spans.IN_SERVICE
