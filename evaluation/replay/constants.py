"""Which policy is replayed, with which constants: the store's own where nothing else is named."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Final

from memory import conf
from memory.errors import Invalid
from memory.rules.ledger import LedgerConstants
from memory.rules.quarantine import ReferenceConstants
from memory.rules.signals import SOURCES
from memory.rules.weights import parse_weights
from memory.services.trial import ledger_constants

POLICIES: Final = ("trial", "reference")
Value = int | float | str


@dataclass(frozen=True, kw_only=True)
class Constant:
    """One constant that may be set."""

    field: str  # its name in the rule's constants
    kind: type  # int, float or str
    low: float = -math.inf  # lowest value, inclusive
    high: float = math.inf  # highest value, inclusive


def _setting(name: str, field: str, kind: type) -> Constant:
    """A constant that is a setting, within the setting's own limits."""
    (limits,) = (f.metadata for f in fields(conf.Conf) if f.name == name)
    low, high = limits["low"], limits["high"]
    return Constant(
        field=field, kind=kind, low=-math.inf if low is None else low, high=math.inf if high is None else high
    )


#: By policy: the names that `--set` knows. A constant that is a setting is called as the setting, without SONDER_.
KNOWN: Final[Mapping[str, Mapping[str, Constant]]] = {
    "trial": {
        "odds_ratio": _setting("odds_ratio", "odds_ratio", float),
        "ledger_window": _setting("ledger_window", "window", int),
        "trial_odds": _setting("trial_odds", "trial_odds", float),
        "quarantine_odds": _setting("quarantine_odds", "quarantine_odds", float),
        "release_odds": _setting("release_odds", "release_odds", float),
        "relapse_odds": Constant(field="relapse_odds", kind=float, low=1),
        "loss_tasks": Constant(field="loss_tasks", kind=int, low=1, high=1000),
        "source_weights": Constant(field="weights", kind=str),
    },
    "reference": {
        "losses": Constant(field="losses", kind=int, low=1, high=256),
        "losses_one_task": Constant(field="losses_one_task", kind=int, low=1, high=256),
        "tasks": Constant(field="tasks", kind=int, low=1, high=256),
        "mean_reward": Constant(field="mean_reward", kind=float, low=-1, high=0),
        "share": Constant(field="share", kind=float, low=0, high=256),
        "p": Constant(field="p", kind=float, low=0, high=1),
        "sources": Constant(field="sources", kind=str),
    },
}


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A policy with its constants."""

    policy: str  # one of POLICIES
    ledger: LedgerConstants  # of `trial`; its weights say under both which judges count at all
    reference: ReferenceConstants
    is_own: bool  # exactly what is in force in this store

    @property
    def values(self) -> dict[str, Value]:
        """Every constant of the policy by its name here."""
        own: LedgerConstants | ReferenceConstants = self.ledger if self.policy == "trial" else self.reference
        return {name: _told(getattr(own, constant.field)) for name, constant in KNOWN[self.policy].items()}


def choose(policy: str | None, given: Mapping[str, Value]) -> Chosen:
    """The policy with the constants that are given, the others as they are in force.

    Raises Invalid naming the policy or the constant, with what it may be.
    """
    in_force = conf.current().trust_policy
    name = policy or in_force
    if name not in KNOWN:
        raise Invalid.field("policy", f"{name!r} is none; choose one of {', '.join(POLICIES)}.")
    values = {KNOWN[name][key].field: _value(name, key, raw) for key, raw in _known(name, given)}
    ledger, reference = ledger_constants(), ReferenceConstants()
    before = (in_force, ledger, reference)
    if name == "trial":
        _check_order(replace_odds(ledger, values))
        ledger = replace(ledger, **values)
    else:
        reference = replace(reference, **values)
    return Chosen(policy=name, ledger=ledger, reference=reference, is_own=(name, ledger, reference) == before)


def parse(words: list[str]) -> dict[str, str]:
    """`name=value` pairs as the command line has them. Raises Invalid for what is none."""
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise Invalid.field("--set", f"{word!r} is no constant: write name=value, as in --set quarantine_odds=100.")
        pairs[name.strip()] = value.strip()
    return pairs


def _known(policy: str, given: Mapping[str, Value]) -> list[tuple[str, Value]]:
    for name in given:
        if name not in KNOWN[policy]:
            near = get_close_matches(name.lower().removeprefix("sonder_"), KNOWN[policy], n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise Invalid.field(
                name, f"the policy `{policy}` has no such constant. {hint}It has {', '.join(KNOWN[policy])}."
            )
    return list(given.items())


def _value(policy: str, name: str, raw: Value) -> Any:
    constant = KNOWN[policy][name]
    if constant.field == "weights":
        try:
            return parse_weights(str(raw))
        except ValueError as error:
            raise Invalid.field(name, str(error)) from None
    if constant.field == "sources":
        return _sources(name, str(raw))
    try:
        value = constant.kind(str(raw))
    except ValueError:
        kind = "a whole number" if constant.kind is int else "a number"
        raise Invalid.field(name, f"{raw!r} is not {kind}; use one, {_range(constant)}.") from None
    if not (constant.low <= value <= constant.high and math.isfinite(value)):
        raise Invalid.field(name, f"{raw} is out of range; use a value {_range(constant)}.")
    return value


def _range(constant: Constant) -> str:
    low, high = constant.low, constant.high
    return f"of {low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"


def _sources(name: str, raw: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in raw.split(",")))
    if unknown := [source for source in found if source not in SOURCES]:
        raise Invalid.field(
            name, f"{unknown[0]!r} is no judge; name some of {', '.join(SOURCES)}, as in caller,machine."
        )
    return found


def replace_odds(ledger: LedgerConstants, values: Mapping[str, Any]) -> dict[str, float]:
    """The three thresholds as they would be."""
    return {name: values.get(name, getattr(ledger, name)) for name in ("trial_odds", "release_odds", "quarantine_odds")}


def _check_order(odds: Mapping[str, float]) -> None:
    """What the rule itself refuses, in words that say what to change."""
    for name in ("trial_odds", "release_odds"):
        if odds[name] >= odds["quarantine_odds"]:
            raise Invalid.field(
                name,
                f"{odds[name]:g} must be below quarantine_odds ({odds['quarantine_odds']:g}); set a lower one, or "
                "raise quarantine_odds too.",
            )


def _told(value: Any) -> Value:
    """A constant as people write it."""
    if isinstance(value, Mapping):
        return ",".join(f"{source}={weight:g}" for source, weight in value.items())
    return ",".join(value) if isinstance(value, tuple) else value
