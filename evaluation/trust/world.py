"""One world: tasks of uneven difficulty, the lessons distilled from some of them, and the stream of work.

What makes the judgement hard is in here. Rarely seen tasks are harder, and rare lessons sit on them, so that harmless
lessons lose often. Lessons travel together. Judges are mistaken, each in a way of its own. Some lessons turn bad late.
"""

import hashlib
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from evaluation.trust.worlds import Scenario
from memory.rules.signals import SOURCES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NEUTRAL, HELPFUL, HARMFUL, TURNING, CONTEXT = range(5)
CANDIDATES: Final = 16  # nearest lessons of a task that retrieval looks at
DIMENSIONS: Final = 24  # of the embeddings
EXAM: Final = SOURCES.index("self_curriculum")
MISLINKABLE: Final = SOURCES.index("attributed")


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """What there is to do. Arrays over tasks."""

    vectors: Floats  # (tasks, DIMENSIONS), of length 1
    popularity: Floats  # share of the work, sums to 1
    exam: Floats  # share of an agent's own exam, sums to 1
    difficulty: Floats  # logits, without the intercept
    in_context: Flags  # where lessons that do harm in a context do it


@dataclass(frozen=True, kw_only=True)
class Lessons:
    """What there is to hand out. Arrays over lessons; effects are added to the logit of success."""

    vectors: Floats  # (lessons, DIMENSIONS), of length 1
    kind: Ints  # NEUTRAL to CONTEXT
    before: Floats  # effect before `onset`
    effect: Floats  # effect from then on
    effect_in_context: Floats  # the same on tasks of the context
    born: Ints  # first interaction in which it can be handed out
    onset: Ints  # first interaction of the later effects


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything but the policy. Two runs with one world differ only by what the policies decide."""

    scenario: Scenario
    lessons: Lessons
    in_context: Flags  # of tasks
    vectors: Floats  # of tasks
    base: Floats  # of tasks: logit of success without lessons
    candidates: Ints  # (tasks, CANDIDATES): lessons, nearest first
    reach: Ints  # of tasks: how many of the candidates are near enough to be retrieved
    task: Ints  # of interactions
    source: Ints  # of interactions: who judges, index of SOURCES
    scored: Flags  # whether anybody judges
    chance: Floats  # uniform number that decides about success
    verdict: Floats  # uniform number that decides about what the judge says
    about: Ints  # interaction that the verdict is really about
    broken: Flags  # whether the machinery that judges tells a loss whatever happened
    fits: Flags  # (interactions, CANDIDATES): whether the candidate fits the words of this query
    lesson_ids: tuple[UUID, ...]
    interaction_ids: tuple[UUID, ...]
    digests: tuple[str, ...]  # of tasks

    def harms(self, lesson: int, at: int) -> bool:
        """Whether the lesson counts as harmful in interaction `at`. Lessons that harm in a context never do."""
        kind = self.lessons.kind[lesson]
        return bool(kind == HARMFUL or (kind == TURNING and at >= self.lessons.onset[lesson]))


def build(scenario: Scenario, seed: int) -> World:
    """The world of this seed; the same seed gives the same world on any machine with this numpy."""
    tasks_rng, lessons_rng, stream_rng, names_rng = (np.random.default_rng((seed, part)) for part in range(4))
    tasks = _tasks(scenario, tasks_rng)
    lessons = _lessons(scenario, tasks, lessons_rng)
    candidates, reach = _candidates(scenario, tasks, lessons)
    count = len(tasks.popularity)
    source = stream_rng.choice(len(SOURCES), scenario.interactions, p=_mix(scenario))
    task = stream_rng.choice(count, scenario.interactions, p=tasks.popularity)
    exams = source == EXAM
    task[exams] = stream_rng.choice(count, int(exams.sum()), p=tasks.exam)
    n = scenario.interactions
    about = np.arange(n)
    mistaken = (source == MISLINKABLE) & (stream_rng.random(n) < scenario.mislinked)
    about[mistaken] = np.maximum(0, about[mistaken] - stream_rng.integers(1, 12, int(mistaken.sum())))
    return World(
        scenario=scenario,
        lessons=lessons,
        in_context=tasks.in_context,
        vectors=tasks.vectors,
        base=_intercept(scenario, tasks) - tasks.difficulty,
        candidates=candidates,
        reach=reach,
        task=task,
        source=source,
        scored=stream_rng.random(n) < scenario.scored,
        chance=stream_rng.random(n),
        verdict=stream_rng.random(n),
        about=about,
        broken=_bursts(n, scenario.bursts, stream_rng) & (stream_rng.random(n) < 0.8),
        fits=stream_rng.random((n, CANDIDATES)) < scenario.kept,
        lesson_ids=_uuids(scenario.lessons, names_rng),
        interaction_ids=_uuids(n, names_rng),
        digests=tuple(hashlib.sha256(f"{seed} {task}".encode()).hexdigest() for task in range(count)),
    )


def _tasks(scenario: Scenario, rng: np.random.Generator) -> Tasks:
    """Tasks lie around topics; the farther off, the rarer and the harder. Residual difficulty has heavy tails."""
    topics = scenario.topics
    count = int(np.clip(0.35 * scenario.interactions, 700, 9000))
    popular = np.arange(1, topics + 1) ** -1.2
    centres = _unit(rng.normal(size=(topics, DIMENSIONS)))
    hard = rng.normal(0, 0.5, topics) + np.linspace(-1, 1, topics)
    topic = rng.choice(topics, count, p=popular**0.8 / (popular**0.8).sum())
    unusual = np.minimum(rng.gamma(1.2, 0.5, count), 4.0)
    noise = rng.normal(size=(count, DIMENSIONS)) / np.sqrt(DIMENSIONS)
    popularity = (rng.pareto(1.2, count) + 0.1) * np.exp(-3 * unusual)
    popularity /= popularity.sum()
    rarity = -np.log(popularity)
    rarity = (rarity - rarity.mean()) / rarity.std()
    difficulty = hard[topic] + 1.6 * unusual + 0.6 * rarity + 0.6 * rng.standard_t(3, count)
    in_exams = (rng.random(topics) < 0.3)[topic]
    exam = popularity * np.exp(-0.7 * np.clip(difficulty, -4, 4)) * (in_exams if in_exams.any() else 1.0)
    return Tasks(
        vectors=_unit(centres[topic] + 2 * (0.30 + 0.45 * unusual)[:, None] * noise),
        popularity=popularity,
        exam=exam / exam.sum(),
        difficulty=difficulty,
        in_context=rng.random(count) < 0.35,
    )


def _lessons(scenario: Scenario, tasks: Tasks, rng: np.random.Generator) -> Lessons:
    """Lessons are distilled from tasks, so rare lessons sit on unusual tasks. Two in five are born during the run."""
    count, n = scenario.lessons, scenario.interactions
    wanted = tasks.popularity**0.2
    parents = rng.choice(len(wanted), count, p=wanted / wanted.sum())
    noise = rng.normal(size=(count, DIMENSIONS)) / np.sqrt(DIMENSIONS)
    kind = _kinds(scenario, rng)
    neutral = rng.normal(0, 0.05, count)
    harm = -np.maximum(rng.normal(scenario.harm, 0.5, count), 0.8 * min(1.0, scenario.harm))
    help_ = np.clip(rng.gamma(2.0, 0.25, count), 0.05, 1.5)
    fixed = np.select([kind == HELPFUL, kind == HARMFUL], [help_, harm], neutral)
    born = np.where(rng.random(count) < 0.6, 0, rng.integers(0, max(1, n // 2), count))
    born[kind == TURNING] = 0
    turn = (rng.uniform(0.2, 0.6, count) * n).astype(np.int64)
    return Lessons(
        vectors=_unit(tasks.vectors[parents] + 0.45 * noise),
        kind=kind,
        before=np.select([kind == TURNING, kind == CONTEXT], [np.abs(neutral) + 0.2, np.full(count, 0.2)], fixed),
        effect=np.select([kind == TURNING, kind == CONTEXT], [harm, np.full(count, 0.2)], fixed),
        effect_in_context=np.where((kind == TURNING) | (kind == CONTEXT), harm, fixed),
        born=born,
        onset=np.where(kind == TURNING, turn, born),
    )


def _kinds(scenario: Scenario, rng: np.random.Generator) -> Ints:
    kind = np.full(scenario.lessons, NEUTRAL)
    order = rng.permutation(scenario.lessons)
    shares = (scenario.harmful, scenario.turning, scenario.context, scenario.helpful)
    ends = np.cumsum([round(share * scenario.lessons) for share in shares])
    for each, part in zip((HARMFUL, TURNING, CONTEXT, HELPFUL), np.split(order, ends), strict=False):
        kind[part] = each
    return kind


def _candidates(scenario: Scenario, tasks: Tasks, lessons: Lessons) -> tuple[Ints, Ints]:
    """Each task's nearest lessons, and how many lie above the threshold that gives cohorts of the wanted size."""
    parts = [_nearest(tasks.vectors[i : i + 500], lessons.vectors) for i in range(0, len(tasks.vectors), 500)]
    nearest, similar = (np.concatenate(halves) for halves in zip(*parts, strict=True))
    low, high = 0.0, 1.0
    for _ in range(40):
        threshold = (low + high) / 2
        sizes = np.minimum(5, 0.8 * scenario.kept * (similar >= threshold).sum(axis=1))
        too_many = (tasks.popularity * sizes).sum() > scenario.cohort
        low, high = (threshold, high) if too_many else (low, threshold)
    return nearest, (similar >= low).sum(axis=1)


def _nearest(tasks: Floats, lessons: Floats) -> tuple[Ints, Floats]:
    """The nearest lessons of some tasks, nearest first, and their cosines."""
    cosines = tasks @ lessons.T
    many = min(CANDIDATES, len(lessons))
    some = np.argpartition(-cosines, many - 1, axis=1)[:, :many]
    order = np.argsort(-np.take_along_axis(cosines, some, 1), axis=1, kind="stable")
    nearest = np.take_along_axis(some, order, 1)
    return nearest, np.take_along_axis(cosines, nearest, 1)


def _intercept(scenario: Scenario, tasks: Tasks) -> float:
    """The logit that gives the wanted loss rate over all work without lessons, found by bisection."""
    exams = _mix(scenario)[EXAM]
    low, high = -10.0, 15.0
    for _ in range(60):
        middle = (low + high) / 2
        work = (tasks.popularity * _sigmoid(tasks.difficulty - middle)).sum()
        exam = (tasks.exam * _sigmoid(tasks.difficulty - middle - scenario.exam_bonus)).sum()
        too_hard = (1 - exams) * work + exams * exam > scenario.loss_rate
        low, high = (middle, high) if too_hard else (low, middle)
    return high


def _mix(scenario: Scenario) -> Floats:
    mix = np.array(scenario.mix)
    return np.asarray(mix / mix.sum())


def _bursts(n: int, share: float, rng: np.random.Generator) -> Flags:
    """Stretches of 25 interactions."""
    broken = np.zeros(n, dtype=np.bool_)
    if share > 0:
        for start in rng.integers(0, n, max(1, round(n * share / 25))):
            broken[start : start + 25] = True
    return broken


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


def _uuids(n: int, rng: np.random.Generator) -> tuple[UUID, ...]:
    data = rng.bytes(16 * n)
    return tuple(UUID(bytes=data[i : i + 16]) for i in range(0, len(data), 16))
