"""The answers as a report's figures, tables and pictures."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final
from uuid import UUID

from django.utils import timezone

from evaluation.report import Cell, Figure, Plot, Series, Table
from evaluation.retrieval.answers import Answered, Answers, Handed, handed
from evaluation.retrieval.baselines import Baselines
from evaluation.retrieval.scores import KS, Estimate, bootstrap, found_within, reciprocal_rank, share
from evaluation.retrieval.sets import LabelledSet
from memory.rules.relevance import SupportGate
from memory.services.calibration import COSINES, SUPPORTS, distribution, supports
from memory.services.measuring import K, best_cosines, embedded

BARS: Final = {"before.recall5": 95.0, "before.mrr": 0.86, "after.recall5": 93.0, "after.noise": 0.0}
Ranking = Callable[[Answered, int], Sequence[Sequence[UUID]]]  # of a task for recall@k: one ranking a division
#: What the four numbers of a gate are called.
GATE: Final = ("enough alone", "with two shared words", "support of the store's kind", "enough with that support")


def before(asked: Answered, k: int) -> list[Sequence[UUID]]:
    """In the order of fused scores."""
    return [[ranked.candidate.lesson_id for ranked in asked.ranked]]


def after(asked: Answered, k: int) -> list[Sequence[UUID]]:
    """Handed out behind gates that were fitted to other questions."""
    return [_of(given, k) for given in asked.fitted]


def in_force(asked: Answered, k: int) -> list[Sequence[UUID]]:
    """Handed out with the thresholds in force."""
    return [_of(asked.in_force, k)]


def ungated(asked: Answered, k: int) -> list[Sequence[UUID]]:
    """Handed out without a gate."""
    return [_of(asked.ungated, k)]


def _of(given: Handed, k: int) -> Sequence[UUID]:
    return given.first if k <= K else given.deep


class Findings:
    """What a report says of the answers."""

    def __init__(self, given: LabelledSet, found: Answers) -> None:
        self._given, self._found = given, found

    def recall(self, ranking: Ranking, k: int) -> Estimate:
        """Of tasks, those with a fitting lesson among the first k; a task's share of the divisions is its value."""
        return bootstrap([_mean(found_within(r, t.asked.fits, k) for r in ranking(t, k)) for t in self._found.tasks])

    def mrr(self, ranking: Ranking) -> Estimate:
        """The mean reciprocal rank of the first fitting lesson, in lists of twenty or all of those considered."""
        deep = KS[-1]
        return bootstrap([_mean(reciprocal_rank(r, t.asked.fits) for r in ranking(t, deep)) for t in self._found.tasks])

    def noise(self, ranking: Ranking) -> Estimate:
        """Of off-domain questions, those that get a lesson, in the division where most do."""
        strangers = self._found.off_domain
        hits = [[bool(given) for given in ranking(each, K)] for each in strangers]
        return share(max(sum(division) for division in zip(*hits, strict=True)), len(strangers))

    def answer(self) -> str:
        recall, noise = self.recall(after, 5), self.noise(after)
        n = len(self._found.off_domain)
        return (
            f"With thresholds that did not see the questions, a fitting lesson is among the first five for "
            f"{recall.value:.1%} of {len(self._found.tasks)} tasks, and {round(noise.value * n)} of {n} off-domain "
            "questions get a lesson."
        )

    def figures(self) -> tuple[Figure, ...]:
        ranked = "Before the gate"
        behind = "Handed out, cross-validated"
        found = [
            *(self._percent(f"before.recall{k}", f"{ranked}: recall@{k}", self.recall(before, k)) for k in KS),
            self._plain("before.mrr", f"{ranked}: mean reciprocal rank", self.mrr(before)),
            *(self._percent(f"after.recall{k}", f"{behind}: recall@{k}", self.recall(after, k)) for k in KS),
            self._plain("after.mrr", f"{behind}: mean reciprocal rank", self.mrr(after)),
            self._percent("after.noise", f"{behind}: off-domain questions that get a lesson", self.noise(after)),
            self._percent("in_force.recall5", "With the thresholds in force: recall@5", self.recall(in_force, 5)),
            self._percent(
                "in_force.noise", "With the thresholds in force: off-domain questions that get a lesson",
                self.noise(in_force),
            ),
        ]  # fmt: skip
        return (*found, *self._intents_figure())

    def _percent(self, key: str, label: str, found: Estimate) -> Figure:
        scaled = Estimate(value=100 * found.value, low=100 * found.low, high=100 * found.high)
        return self._figure(key, label, scaled, "%")

    def _plain(self, key: str, label: str, found: Estimate) -> Figure:
        return self._figure(key, label, found, "")

    def _figure(self, key: str, label: str, found: Estimate, unit: str) -> Figure:
        least = BARS.get(key) if self._given.is_file else None
        at_most = key.endswith("noise")
        words = f"at least {least:g}{unit}" if least else "none"
        return Figure(
            key=key,
            label=label,
            value=found.value,
            low=found.low,
            high=found.high,
            unit=unit,
            bar="" if least is None else words,
            met=None if least is None else (found.value <= least if at_most else found.value >= least),
        )

    @cached_property
    def _intents(self) -> list[tuple[str, str]]:
        """Each intent with the first lesson that it is handed, '' for none."""
        now, shown = timezone.now(), []
        texts = {r.candidate.lesson_id: r.candidate.text for t in self._found.tasks for r in t.ranked}
        for asked in self._given.intents:
            given = handed(embedded(asked, self._given.space), asked, now)
            shown.append((asked.text, texts.get(given.first[0], "a lesson") if given.first else ""))
        return shown

    def _intents_figure(self) -> list[Figure]:
        if not self._intents:
            return []
        found = sum(bool(first) for _, first in self._intents)
        return [
            Figure(
                key="intents",
                label=f"Intents that are handed a lesson, of {len(self._intents)}",
                value=found,
                bar="all",
                met=found == len(self._intents),
            )
        ]

    def tables(self) -> tuple[Table, ...]:
        return tuple(table for table in (self._methods(), self._gates(), *self._quoted()) if table.rows)

    def _methods(self) -> Table:
        rows = [
            *self._baselines(),
            self._method("before the gate", before, None),
            self._method("handed out, no gate", ungated, self.noise(ungated)),
            self._method("handed out, cross-validated gate", after, self.noise(after)),
            self._method("handed out, thresholds in force", in_force, self.noise(in_force)),
        ]
        columns = ("search", "recall@1, %", "recall@5, %", "recall@20, %", "reciprocal rank", "noise, %")
        note = "Noise: off-domain questions that get a lesson. Without a gate every question gets some."
        return Table(title="Beside simpler searches", columns=columns, rows=tuple(rows), note=note)

    def _method(self, name: str, ranking: Ranking, noise: Estimate | None) -> tuple[Cell, ...]:
        recalls = [round(100 * self.recall(ranking, k).value, 1) for k in KS]
        return (name, *recalls, round(self.mrr(ranking).value, 3), 100.0 if noise is None else 100 * noise.value)

    def _baselines(self) -> list[tuple[Cell, ...]]:
        scopes = {task.asked.scope for task in self._found.tasks}
        if not all(Baselines.affordable(scope) for scope in scopes):
            return []
        readers = {scope: Baselines(self._given.space, scope) for scope in scopes}
        ranked = {id(task): readers[task.asked.scope].rank(task.asked) for task in self._found.tasks}
        return [
            self._method("meaning alone", lambda task, k: [ranked[id(task)].semantic], None),
            self._method("words alone (BM25)", lambda task, k: [ranked[id(task)].words], None),
            self._method("both, plainly fused", lambda task, k: [ranked[id(task)].fused], None),
        ]

    def _gates(self) -> Table:
        """The least, the middle and the highest of each threshold over all fits: how much the data move them."""
        gates = self._found.gates
        supported = [gate.supported for gate in gates if gate.supported]
        fits = dict(
            zip(
                GATE,
                (
                    [gate.thresholds.uncorroborated_min_similarity for gate in gates],
                    [gate.thresholds.min_similarity for gate in gates],
                    [each.min_support for each in supported],
                    [each.min_similarity for each in supported],
                ),
                strict=True,
            )
        )
        rows = [
            (name, min(values), sorted(values)[len(values) // 2], max(values), self._threshold(name))
            for name, values in fits.items()
            if values
        ]
        columns = ("threshold", "lowest fit", "middle", "highest", "in force")
        return Table(title="Fitted thresholds", columns=columns, rows=tuple(rows))

    def _threshold(self, name: str) -> float | None:
        space = self._given.space
        gate = SupportGate(**space.gate) if space.gate else None
        values = (
            space.uncorroborated_min_similarity,
            space.min_similarity,
            gate.min_support if gate else None,
            gate.min_similarity if gate else None,
        )
        return dict(zip(GATE, values, strict=True))[name]

    def _quoted(self) -> list[Table]:
        """Tables with texts: of a set of files only."""
        if not self._given.is_file:
            return []
        lost = [
            (task.asked.text, _place(task), *_closest(task), task.question.support)
            for task in self._found.tasks
            if _mean(found_within(r, task.asked.fits, K) for r in after(task, K)) < 1
        ]
        columns = ("task", "place before the gate", "similarity", "shared words", "support")
        return [
            Table(title="Tasks whose lesson is not always found", columns=columns, rows=tuple(lost)),
            Table(
                title="Intents, and the first lesson each is handed",
                columns=("intent", "lesson"),
                rows=tuple(self._intents),
                note="Which lesson fits an intent is not labelled: read them.",
            ),
        ]

    def plots(self) -> tuple[Plot, ...]:
        tasks = [task.question for task in self._found.tasks]
        strangers = [each.question for each in self._found.off_domain]
        cosines = best_cosines(tasks, fitting=True), best_cosines(strangers)
        known = supports(tasks), supports(strangers)
        labels = ("tasks, with the lesson that fits", "off-domain questions, with the most similar lesson")
        made = [self._plot("Similarity", "cosine", dict(zip(labels, cosines, strict=True)), COSINES, GATE[:2])]
        if all(known):
            labels = ("tasks", "off-domain questions")
            made.append(self._plot("Support", "support", dict(zip(labels, known, strict=True)), SUPPORTS, GATE[2:3]))
        return tuple(made)

    def _plot(self, what: str, unit: str, scores: dict[str, list[float]], width: float, marks: Sequence[str]) -> Plot:
        drawn = [distribution(label, values, width) for label, values in scores.items()]
        return Plot(
            title=f"{what} of tasks and of off-domain questions, and the thresholds in force",
            kind="steps",
            x_label=unit,
            y_label="% of questions",
            series=tuple(
                Series(label=each.name, x=each.edges, y=tuple(100 * share for share in each.shares)) for each in drawn
            ),
            marks=tuple((value, name) for name in marks if (value := self._threshold(name)) is not None),
        )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _place(task: Answered) -> int | None:
    places = (n for n, ranked in enumerate(task.ranked, start=1) if ranked.candidate.lesson_id in task.asked.fits)
    return next(places, None)


def _closest(task: Answered) -> tuple[float | None, int | None]:
    pairs = [pair for pair in task.question.pairs if pair.fits]
    best = max(pairs, key=lambda pair: pair.cosine, default=None)
    return (best.cosine, best.shared_anchors) if best else (None, None)
