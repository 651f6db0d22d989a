"""Asks every question: what retrieval ranks before its gate, and what it hands out behind it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import transaction
from django.utils import timezone

from memory.models import EmbeddingSpace
from memory.rules.calibration import Gate, Question, fit, folds, without
from memory.search import Ranked, find
from memory.services.calibration import values_of_gate
from memory.services.labelled import Asked, Evidence
from memory.services.measuring import Embedded, K, ask, considered, embedded, ungated, with_thresholds

DEEP: Final = 20  # lessons of a longer answer
SEED: Final = 7  # of the divisions into five


@dataclass(frozen=True, kw_only=True)
class Handed:
    """What is handed out for a question."""

    first: tuple[UUID, ...]  # an answer of K lessons
    deep: tuple[UUID, ...]  # an answer of DEEP


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A question with everything that was found for it."""

    asked: Asked
    question: Question  # as the gate sees it
    ranked: tuple[Ranked, ...]  # before the gate
    ungated: Handed  # handed out with every lesson let through
    in_force: Handed  # with the thresholds of the space
    fitted: tuple[Handed, ...]  # with thresholds that were fitted to other questions, once for each division


@dataclass(frozen=True, kw_only=True)
class Answers:
    """All questions."""

    tasks: tuple[Answered, ...]
    off_domain: tuple[Answered, ...]
    gates: tuple[Gate, ...]  # every gate that was fitted: FOLDS for each division


def answer(evidence: Evidence, space: EmbeddingSpace, divisions: int, tell: Callable[[int, int], None]) -> Answers:
    """Asks everything. The thresholds that answer a question were fitted to four fifths that it is not among.

    Raises ValueError where the questions are too few, or too alike, to fit anything.
    """
    every = [*evidence.tasks, *evidence.off_domain]
    now, total = timezone.now(), 2 * len(every)
    open_space = ungated(space)
    questions, rankings = [], []
    for n, asked in enumerate(every, start=1):
        question = embedded(asked, open_space)
        rankings.append(tuple(considered(question, asked.scope, now)))
        questions.append(ask(question, asked, now))
        tell(n, total)
    count = len(evidence.tasks)
    chosen, gates = _fitted(questions[:count], questions[count:], divisions)
    found = []
    for i, asked in enumerate(every):
        found.append(
            Answered(
                asked=asked,
                question=questions[i],
                ranked=rankings[i],
                ungated=handed(embedded(asked, open_space), asked, now),
                in_force=handed(embedded(asked, space), asked, now),
                fitted=tuple(_behind(gate, asked, space, now) for gate in chosen[i]),
            )
        )
        tell(len(every) + i + 1, total)
    return Answers(tasks=tuple(found[:count]), off_domain=tuple(found[count:]), gates=tuple(gates))


def _fitted(
    tasks: Sequence[Question], off_domain: Sequence[Question], divisions: int
) -> tuple[list[list[Gate]], list[Gate]]:
    """For every question, tasks first, the gate of each division that was fitted without it; and all gates."""
    chosen: list[list[Gate]] = [[] for _ in range(len(tasks) + len(off_domain))]
    gates = []
    for division in range(divisions):
        chance = np.random.default_rng(SEED + division)
        some, others = (chance.permutation(len(each)).tolist() for each in (tasks, off_domain))
        for left, right in zip(folds(len(tasks)), folds(len(off_domain)), strict=True):
            out, strange = [some[i] for i in left], [others[i] for i in right]
            gate = fit(without(tasks, out), without(off_domain, strange))
            gates.append(gate)
            for i in [*out, *(len(tasks) + j for j in strange)]:
                chosen[i].append(gate)
    return chosen, gates


def _behind(gate: Gate, asked: Asked, space: EmbeddingSpace, now: datetime) -> Handed:
    values: dict[str, Any] = values_of_gate(gate)
    return handed(embedded(asked, with_thresholds(space, **values)), asked, now)


def handed(question: Embedded, asked: Asked, now: datetime) -> Handed:
    """What the product hands out for a question in a space; a look-up, nothing is recorded."""
    with transaction.atomic():
        first, deep = (find(question.query, asked.scope, k, now).chosen for k in (K, DEEP))
    return Handed(
        first=tuple(found.ranked.candidate.lesson_id for found in first),
        deep=tuple(found.ranked.candidate.lesson_id for found in deep),
    )
