"""Changes of what may be handed out, one after the other, in every way that the product has."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from memory.embedding.hashing import HashingProvider
from memory.errors import EmbeddingUnavailable, SonderError
from memory.models import Account, ImportRun, Lesson
from memory.models.vocabulary import LessonState, Origin, Verdict
from memory.rules.reasons import reasons_for
from memory.search import embed_query
from memory.services import adjudication, applying, credit, interaction, outcome, pruning, space
from memory.services.adjudication import Decision, decide, version_of
from memory.services.authority import Person
from memory.services.erasure import erase
from memory.services.importing import Line, import_lines
from memory.services.lesson import NewLesson, store
from tests.system.storm import texts
from tests.system.storm.board import Board, State
from tests.system.storm.stage import Asked, Scope, Slot, Stage, have_model

REMEMBERED: Final = 20  # works and decisions of a scope
#: Every way in which the product changes what may be handed out, in the order in which they take turns.
TURNS: Final = (
    "credited", "quarantined", "undone", "pruned", "quarantined", "approved", "erased", "proposed", "gated", "released",
    "rejected", "edited", "quarantined", "released to trial", "erased", "imported", "restored", "unpruned", "forgotten",
    "switched",
)  # fmt: skip
KINDS: Final = tuple(dict.fromkeys(TURNS))
LOSSES: Final = 4  # in a row are enough for a quarantine, with the odds of a storm


class Changer:
    """Changes the lessons of some scopes, which nobody else does."""

    def __init__(self, stage: Stage, scopes: Sequence[Scope], seed: int, *, kept_out: float) -> None:
        self._kept_out = kept_out  # share of a scope's lessons up to which what is out stays out
        self._board: Board = stage.board
        self._scopes = scopes
        self._rng = random.Random(seed)
        self._person = Person(user_id=stage.reviewer, name="rita", everywhere=True)
        self._run = ImportRun.objects.create(name=f"storm {seed}", sha256=f"{seed:064x}", actor="system")
        self.refused = Counter[str]()  # changes that the product did not make, by why
        self._acts: dict[str, Callable[[Scope], bool]] = {
            "imported": self._import,
            "proposed": self._propose,
            "credited": self._credit,
            "quarantined": self._decide(Verdict.QUARANTINE, "active", "candidate"),
            "approved": self._decide(Verdict.APPROVE, "active", "candidate"),
            "pruned": self._prune,
            "released": self._decide(Verdict.RELEASE, "quarantined", back=True),
            "gated": self._gate,
            "rejected": self._decide(Verdict.REJECT, "active", "quarantined", but_twins=True),
            "edited": self._edit,
            "released to trial": self._decide(Verdict.RELEASE_TO_TRIAL, "quarantined", back=True),
            "erased": self._erase,
            "restored": self._decide(Verdict.RESTORE, "rejected", back=True),
            "forgotten": self._forget,
            "unpruned": self._unprune,
            "undone": self._undo,
        }
        if scopes[0].account_id is None:
            self._acts["switched"] = self._switch

    def fill(self) -> None:
        """A lesson at every place."""
        for scope in self._scopes:
            while self._import(scope, all_of_them=True):
                pass

    def changes(self) -> Iterator[str]:
        """Makes one after the other, each kind in turn; yields its kind, or '' where no scope had anything for it."""
        for kind in filter(self._acts.get, itertools.cycle(TURNS)):
            scopes = self._rng.sample(self._scopes, len(self._scopes))
            yield kind if any(self._acts[kind](scope) for scope in scopes) else ""

    # What is where

    def _pick(self, scope: Scope, *states: str, but_twins: bool = False, back: bool = False) -> Slot | None:
        """One at random, for a way out or `back`."""
        found = [s for s in scope.slots if s.state in states and not (but_twins and s.number < texts.TWINS)]
        return self._rng.choice(found) if self._are_many(scope, found, back) else None

    def _are_many(self, scope: Scope, found: Sequence[Slot], back: bool = True) -> bool:
        return len(found) > (self._kept_out * len(scope.slots) if back else 0)

    @contextmanager
    def _changing(self, slots: Sequence[Slot]) -> Iterator[None]:
        """Around a change: afterwards the store itself says what it came to, also where it was refused."""
        with self._board.changing([slot.place for slot in slots]):
            try:
                yield
            except SonderError as refusal:
                self.refused[f"{type(refusal).__name__}: {refusal.detail[:60]}"] += 1
            self._settle(slots)

    def _settle(self, slots: Sequence[Slot]) -> None:
        ids = [slot.lesson for slot in slots if slot.lesson]
        rows = {
            pk: (state, reviewed is not None)
            for pk, state, reviewed in Lesson.objects.filter(pk__in=ids).values_list("pk", "state", "reviewed_at")
        }
        for slot in slots:
            slot.state, reviewed = rows.get(slot.lesson, ("", False)) if slot.lesson else ("", False)
            slot.merged = slot.merged and not slot.state
            if slot.lesson and not slot.state and not slot.merged:
                slot.lesson = slot.source = None
            self._board.settle(slot.place, slot.incarnation, _state_of(slot, reviewed=reviewed))

    # Ways in

    def _import(self, scope: Scope, *, all_of_them: bool = False) -> bool:
        """What an operator brings in: often the very text that was erased."""
        empty = [slot for slot in scope.slots if slot.lesson is None]
        chosen = empty if all_of_them else empty[:1] * self._are_many(scope, empty)
        if not chosen:
            return False
        for slot in chosen:
            slot.incarnation += self._rng.random() < 0.5
        with self._changing(chosen):
            lines = (Line(number=n, text=slot.text, ref="") for n, slot in enumerate(chosen, start=1))
            *_, (_, report) = import_lines(lines, self._run, account_id=scope.account_id)
            self._find(scope, chosen)
            if not report.stored:
                self.refused.update(report.refused)
        return any(slot.lesson for slot in chosen)

    def _find(self, scope: Scope, slots: Sequence[Slot]) -> None:
        """The ids of what was stored."""
        texts_of = {slot.text: slot for slot in slots}
        found = Lesson.objects.filter(account_id=scope.account_id, text__in=list(texts_of))
        for pk, text, source in found.values_list("pk", "text", "source_interaction"):
            texts_of[text].lesson, texts_of[text].source = pk, source

    def _propose(self, scope: Scope) -> bool:
        """What is learned from work, where a person has to approve it first."""
        empty = [slot for slot in scope.slots if slot.lesson is None]
        if not self._are_many(scope, empty):
            return False
        slot = self._rng.choice(empty)
        slot.incarnation += 1
        source = scope.works[-1] if scope.works else None
        with self._changing([slot]):
            written = store(
                NewLesson(
                    text=slot.text, origin=Origin.DISTILLED, path="distillation", actor="system",
                    state=LessonState.CANDIDATE, account_id=scope.account_id, source_interaction=source,
                )
            )  # fmt: skip
            if written.lesson:
                slot.lesson, slot.source = written.lesson.pk, source
                space.embed_one(written.lesson.pk)
        return slot.lesson is not None

    # Ways out, and back

    def _credit(self, scope: Scope) -> bool:
        """Losses, or now and then a win, of work that a lesson was handed out in: the policy decides."""
        slot = self._pick(scope, "active")
        if slot is None:
            return False
        asked = self._rng.choice(scope.accounts)
        signal = "failed" if self._rng.random() < 0.8 else "accepted"
        for n in range(LOSSES if signal == "failed" else 1):
            self._judge(scope, asked, f"{texts.task(slot.group, slot.number)}, part {n}", signal)
            if slot.state != "active":
                break
        return True

    def _judge(self, scope: Scope, asked: Asked, task: str, signal: str) -> None:
        request = interaction.Start(task=task, k=1)
        started = interaction.start(asked.caller, request, embed_query(task)).interaction
        outcome.report(asked.caller, started.pk, signal)
        with self._changing(scope.slots):
            credit.credit(started.pk)
        scope.works.append(started.pk)
        del scope.works[:-REMEMBERED]

    def _decide(
        self, verdict: Verdict, *states: str, but_twins: bool = False, back: bool = False
    ) -> Callable[[Scope], bool]:
        """A reviewer's word about a lesson in one of these states."""

        def act(scope: Scope) -> bool:
            slot = self._pick(scope, *states, but_twins=but_twins, back=back)
            if slot is None or slot.lesson is None:
                return False
            with self._changing([slot]):
                made = decide(self._decision(verdict, slot.lesson))
                scope.decisions.append(made.pk)
                del scope.decisions[:-REMEMBERED]
            return True

        return act

    def _decision(self, verdict: Verdict, lesson: UUID, **data: str) -> Decision:
        codes = reasons_for(verdict.value)
        return Decision(
            person=self._person, verdict=verdict, subject=lesson, expected_version=version_of(lesson),
            reason_code=codes[0][0] if codes else "", data=data,
        )  # fmt: skip

    def _edit(self, scope: Scope) -> bool:
        slot = self._pick(scope, "active", "quarantined", but_twins=True)
        if slot is None or slot.lesson is None:
            return False
        old = slot.lesson
        new = texts.text(slot.dozen, slot.group, slot.number, slot.incarnation + 1)
        with self._changing([slot]):
            made = decide(self._decision(Verdict.EDIT, old, text=new))
            slot.incarnation += 1
            slot.lesson = UUID(made.before["successor"])
        return slot.lesson != old

    def _erase(self, scope: Scope) -> bool:
        slot = self._rng.choice([slot for slot in scope.slots if slot.lesson] or [None])
        if slot is None or slot.lesson is None:
            return False
        with self._changing(scope.slots):
            slot.merged = False
            erase("lesson", slot.lesson, account_id=None, actor="system")
        return True

    def _forget(self, scope: Scope) -> bool:
        """Erases work, with what was learned from it: evidence goes, and lessons may go free."""
        if not scope.works:
            return False
        with self._changing(scope.slots):
            erase("interaction", scope.works.pop(), account_id=None, actor="system")
        return True

    def _prune(self, scope: Scope) -> bool:
        try:
            where = pruning.scope(scope.account_id)
        except EmbeddingUnavailable:  # while the other model's space is the active one
            return False
        pruned: set[UUID] = set()
        with self._changing(scope.slots):
            *_, last = pruning.making(where, complete=True)
            assert last.plan is not None
            if last.plan.clusters:
                done = applying.apply(scope.account_id, last.plan.digest)
                pruned = {lesson for each in done for lesson in each.pruned}
                scope.plans.append(last.plan.digest)
            for slot in scope.slots:
                slot.merged = slot.merged or slot.lesson in pruned
        return bool(pruned)

    def _unprune(self, scope: Scope) -> bool:
        if not scope.plans:
            return False
        back: list[UUID] = []
        with self._changing(scope.slots):
            back = applying.restore(scope.account_id, scope.plans.pop(), reviewer=self._person.user_id)
        return bool(back)

    def _undo(self, scope: Scope) -> bool:
        if not scope.decisions:
            return False
        with self._changing(scope.slots):
            adjudication.undo(scope.decisions.pop(), self._person)
        return True

    # What is not a lesson's

    def _gate(self, scope: Scope) -> bool:
        """The account that is handed approved lessons only is handed all, or the other way round."""
        asked = scope.accounts[-1]
        policy = Account.objects.values_list("review_policy", flat=True).get(pk=asked.id)
        after = "auto" if policy == "gated" else "gated"
        with self._board.changing([asked.place]):
            Account.objects.filter(pk=asked.id).update(review_policy=after)
            self._board.settle(asked.place, 0, State.GATED if after == "gated" else State.OPEN)
        return True

    def _switch(self, _: Scope) -> bool:
        """The other model's space becomes the active one; a process that has the former is left with words."""
        have_model("2" if HashingProvider.revision == "1" else "1")
        after = space.configured_space()
        while batch := space.missing(after, space.BATCH):
            space.embed(batch, after)
        space.activate(after)
        return True


def _state_of(slot: Slot, *, reviewed: bool) -> State:
    if slot.state == "active":
        return State.SERVES if reviewed else State.UNREVIEWED
    if slot.state == "quarantined":
        return State.QUARANTINED
    return State.GONE if slot.lesson or not slot.incarnation else State.ERASED
