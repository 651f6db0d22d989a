"""What the evidence of a policy says first, and what would free or quarantine the lesson, in plain words.

`evidence` is what the policies put together for a decision, with the fields that docs/evidence.md lists.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from memory.rules.attribution import TOLERANCE
from memory.rules.description import quantity
from memory.rules.words import count

#: How many quarantines of each policy are wrong where the harmful lessons are known: what `evaluate trust` found in its
#: worlds `base` and `large`, drawn together. The rarer harmful lessons are, the more.
WRONG: Final[Mapping[str, str]] = MappingProxyType({"trial": "1 in 8", "reference": "2 in 3"})


@dataclass(frozen=True, kw_only=True)
class Lead:
    """The sentences that lead the page of a lesson which the policy `trial` judges."""

    comparison: str  # with it and without it
    odds: str  # what the record speaks for
    warning: str  # why not to judge by eye; empty where the counts suffice


def lead(evidence: Mapping[str, Any]) -> Lead | None:
    """The leading sentences; None under another policy, and while the ledger is empty."""
    shown = evidence.get("with_it")
    if not shown or not shown["n"]:
        return None
    controls = evidence["without_it"]
    without = [
        f"{when}, {rows['lost']} of {rows['n']}"
        for kind, when in (
            ("coin", "when a coin left it out of the same kind of task"),
            ("quarantine", "while quarantine kept it out"),
        )
        if (rows := controls.get(kind))
    ]
    expected = quantity(shown["expected"])
    return Lead(
        comparison=f"With this lesson {shown['lost']} of {shown['n']} {_were(shown['lost'])} lost where {expected} "
        f"{'was' if expected == '1' else 'were'} expected; "
        f"{'; '.join(without) or 'it was never left out for comparison yet'}.",
        odds=_odds(evidence),
        warning=""
        if evidence["enough_to_judge"]
        else "These are too few servings to judge by eye; the odds allow for that.",
    )


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _odds(evidence: Mapping[str, Any]) -> str:
    ratio = f"{evidence['constants']['odds_ratio']:g}"
    if evidence["s"] <= TOLERANCE:
        return f"Nothing in the record speaks for it multiplying the odds of losing by {ratio}."
    return (
        f"The record is {odds_in_words(evidence['odds'])} times likelier if the lesson multiplies the odds of losing "
        f"by {ratio} than if it does nothing."
    )


def odds_in_words(odds: float) -> str:
    """`3.3`, `148`, `over a million`: what stands before ` : 1`."""
    if odds >= 1_000_000:
        return "over a million"
    return f"{odds:,.0f}" if odds >= 10 else f"{odds:.1f}"


def would_free(evidence: Mapping[str, Any], *, by_person: bool = False) -> str:
    """What takes a quarantined lesson out of quarantine, in plain words; `by_person`: a reviewer quarantined it."""
    if by_person:
        return "A person quarantined it, and only a person frees it."
    if evidence["policy"] == "reference":
        return (
            "A win on a probation sample frees it, and so does a correction of its losses after which a condition of "
            "quarantine no longer holds. A loss on probation starts the pause before the next sample anew."
        )
    release = evidence["constants"]["release_odds"]
    occasion = "a win on probation, a loss of the same kind of work without it, or a correction"
    above = evidence["s"] - math.log(release)
    if above <= TOLERANCE:
        return f"Its odds are at {release:g} : 1 or below already; {occasion} frees it now."
    return (
        f"{occasion[0].upper()}{occasion[1:]} frees it once its odds, {odds_in_words(evidence['odds'])} : 1, are at "
        f"{release:g} : 1 or below.{_rows_needed(evidence, above, loss=False)}"
    )


def would_quarantine(evidence: Mapping[str, Any]) -> str:
    """What takes a lesson in service into quarantine, in plain words."""
    gates = {gate["name"]: gate for gate in evidence["gates"]}
    if evidence["policy"] == "reference":
        unmet = " ".join(gate["words"] for gate in gates.values() if not gate["passed"])
        left = f"Not yet met: {unmet}" if unmet else "All of them are met: the next judged serving decides."
        return f"All four conditions at once quarantine it. {left} One win clears the losses before it."
    needed = odds_needed(evidence)
    tasks = evidence["constants"]["loss_tasks"]
    return (
        f"A loss quarantines it at odds of {odds_in_words(needed)} : 1 or more, with losses on at least "
        f"{count(tasks, 'task')}; its odds are {odds_in_words(evidence['odds'])} : 1, and it was lost on "
        f"{count(evidence['loss_tasks'], 'task')}.{_rows_needed(evidence, math.log(needed) - evidence['s'], loss=True)}"
    )


def odds_needed(evidence: Mapping[str, Any]) -> float:
    """At which odds a loss quarantines a lesson that the policy `trial` judges: more after a release to trial."""
    thresholds = (gate["threshold"] for gate in evidence["gates"] if gate["name"] == "odds")
    return float(next(thresholds, evidence["constants"]["quarantine_odds"]))


def _rows_needed(evidence: Mapping[str, Any], nats: float, *, loss: bool) -> str:
    """How many rows in a row would do, all by a caller and each as hard as those before it; empty if unknown."""
    shown, constants = evidence["with_it"], evidence["constants"]
    weight = float(constants["weights"]["caller"])
    if not shown["n"] or not weight or nats <= TOLERANCE:
        return ""
    lowered = math.log1p((constants["odds_ratio"] - 1) * shown["expected"] / shown["n"])
    gained = weight * (math.log(constants["odds_ratio"]) - lowered if loss else lowered)
    if gained <= TOLERANCE:  # a win where nothing is ever lost says nothing, nor a loss where everything is
        return ""
    rows = math.ceil(nats / gained - TOLERANCE)
    result = count(rows, *(("loss", "losses") if loss else ("win", "wins")))
    return f" About {result} in a row by a caller would do, each as hard as the work so far."
