"""A small world of work: lessons whose effect is known, tasks of uneven difficulty, and judges who sometimes err.

A lesson changes the log odds of success of the work that it is handed out for: some help, some do harm, the others do
nothing. What each does is drawn by the seed, not by its words: nothing in the product could read it off the text.
Everything that chance decides about a piece of work is drawn before anyone works, so arms that play the same seed meet
the same work with the same luck (common random numbers).
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

PHRASES: Final = Path(__file__).with_name("phrases.json")
SERVICES: Final = ("the billing service", "the shop", "the mobile backend", "the partner portal", "the data platform")
POPULARITY: Final = 1.0  # exponent of Zipf's law: the most usual situation comes up twice as often as the second
EASE: Final = (1.2, 0.7)  # mean and standard deviation of a task's log odds of success without any lesson
HELPS, HARMS = 0.6, -2.0  # what a helpful and a harmful lesson add to the log odds
HELPFUL_SHARE: Final = 0.40  # of all lessons
UNWRITTEN_SHARE: Final = 0.2  # of all lessons: not in the store at first, written down by an agent that succeeds
WRITES: Final = 0.1  # share of the work after which the agent writes down what it learned
ERRS: Final = 0.05  # share of verdicts that are wrong
CALLER_SHARE: Final = 0.7  # of verdicts that someone with judgement gives; the rest are a machine's
_LESSONS, _WORK = range(2)  # streams of random numbers of one seed


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A lesson of the world."""

    text: str
    situation: int  # what it is about
    effect: float  # added to the log odds of success
    written: bool  # in the store from the beginning


@dataclass(frozen=True, kw_only=True)
class Job:
    """One piece of work, with its luck."""

    task: str
    ease: float  # log odds of success without any lesson
    luck: float  # in [0, 1): it succeeds if this lies below its probability of success
    judge: str  # `caller` or `machine`
    errs: bool  # the judge says the contrary of what happened
    learned: str  # the lesson that the agent writes down if it is told that it succeeded; "" for none

    def succeeds(self, effect: float) -> bool:
        """Whether the work succeeds when the lessons handed out add `effect` to its log odds."""
        return self.luck < 1 / (1 + math.exp(-(self.ease + effect)))


@cache
def _phrases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(PHRASES.read_text(encoding="utf-8"))
    return found


def situations() -> list[str]:
    """What work is about."""
    return [situation for topic in _phrases() for situation in topic["situations"]]


def texts() -> list[tuple[int, str]]:
    """Every lesson's situation and text: each situation of a topic with each practice of that topic."""
    found: list[tuple[int, str]] = []
    for topic in _phrases():
        for situation in topic["situations"]:
            number = len(found) // len(topic["practices"])
            found += [(number, f"When {situation}, {practice}.") for practice in topic["practices"]]
    return found


class World:
    """Everything that a seed decides."""

    def __init__(self, seed: int, harmful_share: float) -> None:
        self._seed = seed
        rng = np.random.default_rng([seed, _LESSONS])
        self.lessons = [_advice(rng, situation, text, harmful_share) for situation, text in texts()]
        self._names = [name.replace("`", "") for name in situations()]
        weights = 1 / np.arange(1, len(self._names) + 1) ** POPULARITY
        self._shares = rng.permutation(weights / weights.sum())
        self._ease = rng.normal(*EASE, size=(len(self._names), len(SERVICES)))

    @property
    def effects(self) -> Mapping[str, float]:
        """What each lesson does, by its text."""
        return {advice.text: advice.effect for advice in self.lessons}

    def jobs(self, count: int) -> Iterator[Job]:
        """The first `count` pieces of work; the same for every arm."""
        rng = np.random.default_rng([self._seed, _WORK])
        unwritten = [[a.text for a in self.lessons if a.situation == s and not a.written] for s in self._numbers()]
        for _ in range(count):
            situation, service = int(rng.choice(len(self._names), p=self._shares)), int(rng.integers(len(SERVICES)))
            luck, judge, errs, writes, which = rng.random(5)
            new = unwritten[situation] if writes < WRITES else []
            yield Job(
                task=f"Help with {self._names[situation]} in {SERVICES[service]}",
                ease=float(self._ease[situation, service]),
                luck=float(luck),
                judge="caller" if judge < CALLER_SHARE else "machine",
                errs=bool(errs < ERRS),
                learned=new[int(which * len(new))] if new else "",
            )

    def _numbers(self) -> range:
        return range(len(self._names))


def _advice(rng: np.random.Generator, situation: int, text: str, harmful_share: float) -> Advice:
    kind, known = rng.random(2)
    effect = HARMS if kind < harmful_share else HELPS if kind < harmful_share + HELPFUL_SHARE else 0.0
    return Advice(text=text, situation=situation, effect=effect, written=bool(known >= UNWRITTEN_SHARE))
