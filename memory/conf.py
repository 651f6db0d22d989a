"""Project settings: every constant, its default, and where the default comes from.

Each field is the environment variable ``SONDER_<NAME>`` (read once, by ``sonder_site/settings.py``) and the Django
setting of the same name. ``current()`` gives the values in force as one immutable object.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from memory.rules.webhooks import networks
from memory.rules.weights import parse_weights

PREFIX = "SONDER_"
RATE = re.compile(r"[1-9]\d*/(s|sec|second|m|min|minute|h|hour|d|day)")


class SettingError(ValueError):
    """A setting that cannot be used; the message says which, and what it may be."""


def setting(
    default: Any, reason: str, *, choices: tuple[str, ...] = (), low: float | None = None, high: float | None = None
) -> Any:
    """A field with its reason and the values it may take; `low` and `high` are inclusive."""
    return field(default=default, metadata={"reason": reason, "choices": choices, "low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class Conf:
    """The settings in force. Units are in the names or in the reasons."""

    var: str = setting("var", "Folder of the embedded store, its broker and the assembled model.")
    lesson_scope: str = setting(
        "global",
        "Procedural knowledge is meant to cross accounts; `account` shares no lesson between them.",
        choices=("global", "account"),
    )
    trust_policy: str = setting(
        "trial",
        "Which rule quarantines lessons. In simulated worlds with known harmful lessons `trial` recovers over half "
        "of what an oracle could and is right in 7 of 8 quarantines; `reference`, the rule of the system that this one "
        "grew from, recovers under a fifth and is right in 1 of 3.",
        choices=("trial", "reference"),
    )
    odds_ratio: float = setting(3.0, "The harm that the ledger is built to detect: odds of losing times this.", low=1.1)
    ledger_window: int = setting(64, "Rows of a lesson that its ledger reads.", low=8, high=1000)
    trial_odds: float = setting(10.0, "Odds from which a coin decides whether a lesson is served.", low=1.1)
    quarantine_odds: float = setting(200.0, "Odds at which a loss takes a lesson out of service.", low=1.1)
    release_odds: float = setting(50.0, "Odds at or below which it comes back.", low=1.1)
    source_weights: str = setting(
        "caller=1,machine=0.7,self_curriculum=0.5,attributed=0,unknown=0",
        "What each judge's word weighs. A program's verdict is less than someone's judgement, an agent's own exam less "
        "still; hearsay and what nobody signed move nothing.",
    )
    probation_after_hours: float = setting(
        24.0, "Hours without probation after entering quarantine, and after the last loss under `reference`.", low=0
    )
    probation_share: float = setting(
        0.05,
        "One in twenty tasks (`reference`) or interactions (`trial`) lets a quarantined lesson through.",
        low=0,
        high=0.5,
    )
    quarantine_cooldown_hours: float = setting(
        0.0,
        "Hours after which a clock alone lifts a quarantine; 0 is off, because the clock lifts right and wrong "
        "quarantines alike. 168 is the reference system's value.",
        low=0,
    )
    live_bands: bool = setting(False, "Measure band loss rates in this store instead of using the reference system's.")
    lambda_mmr: float = setting(
        0.8,
        "MMR balance between relevance and novelty; measured on the real lessons, where 0.5 costs a tenth of the "
        "recall.",
        low=0,
        high=1,
    )
    rrf_k: int = setting(60, "Rank constant of reciprocal rank fusion (Cormack et al. 2009).", low=1)
    half_life_days: float = setting(30.0, "Days in which the variable part of the age factor halves.", low=1)
    exact_search_limit: int = setting(
        20000, "Vectors an account may have before its search uses the HNSW index (account scope only).", low=0
    )
    prune_exact_limit: int = setting(
        100000,
        "Lessons among which a command finds near pairs by comparing all (a page or a job: 20000 at most); above that "
        "the vector index finds them.",
        low=0,
    )
    prune_archive_days: int = setting(30, "Days for which a plan that was applied can be undone.", low=1)
    job_probes: int = setting(
        20000, "Lessons that one scheduled run looks around in a store above that size; the next goes on.", low=100
    )
    stale_after_days: float = setting(60.0, "Days without an outcome before a lesson can be stale.", low=0)
    stale_below: float = setting(0.2, "Effective score below which such a lesson is stale.", low=-1, high=1)
    lexical_budget: int = setting(
        4000, "Documents the lexical part may score for one query; bounds its work at any store size.", low=100
    )
    context_tokens: int = setting(2000, "Upper bound of the `context` block, in estimated tokens.", low=200)
    embedding: str = setting(
        "local", "Embedding provider: `local`, `fastembed:<name>`, `openai`, or `hashing` (tests)."
    )
    embedding_url: str = setting("", "Base address of an OpenAI-compatible server, ending in /v1.")
    embedding_model: str = setting("", "Model name for the `openai` provider.")
    embedding_revision: str = setting(
        "", "Revision label for the `openai` provider's model; a change opens a new space."
    )
    embedding_key: str = setting("", "API key for the `openai` provider; never logged.")
    embedding_timeout_seconds: float = setting(
        10.0,
        "Seconds to wait for the embedding server: longer than a batch of 64 lessons takes on a small machine. "
        "Retrieval goes on with words alone after that.",
        low=0.1,
        high=120,
    )
    embedding_pause_seconds: float = setting(
        30.0,
        "Seconds for which a model that failed three times in a row is not asked again: retrieval uses words alone at "
        "once instead of waiting, and the model has time to restart.",
        low=0,
        high=3600,
    )
    distiller: str = setting(
        "auto",
        "What makes lessons of good work: `chat` asks a language model, `extractive` takes advice that the agent wrote "
        "down itself, `auto` is `chat` where an address is set and `extractive` elsewhere, `off` is none.",
        choices=("auto", "chat", "extractive", "off"),
    )
    distiller_url: str = setting("", "Base address of a server with /v1/chat/completions, ending in /v1.")
    distiller_model: str = setting("", "Model name for `chat`.")
    distiller_key: str = setting("", "API key for `chat`; never logged.")
    distill_timeout_seconds: float = setting(
        20.0, "Seconds to wait for the model's answer; a sentence takes a few.", low=0.1, high=60
    )
    distill_max_attempts: int = setting(
        5, "Attempts, crashes among them, before a distillation fails and waits for an operator.", low=1, high=10
    )
    distill_lease_seconds: float = setting(
        300.0,
        "Seconds for which a worker holds a distillation without a sign of life. Longer than any one step: asking a "
        "model takes a few times the timeout at most.",
        low=240,
        high=3600,
    )
    distill_pitfalls: bool = setting(
        False,
        "Also make warnings of failures that name their error. Off, because a failure shows what went wrong and rarely "
        "what would have been right.",
    )
    query_cache: int = setting(1024, "Query embeddings kept in memory by each process.", low=0)
    throttle_loop: str = setting("600/min", "Requests a key may make on the loop's endpoints.")
    throttle_read: str = setting("300/min", "Requests a key may make on reading endpoints.")
    idempotency_hours: int = setting(24, "Hours for which an Idempotency-Key replays its answer.", low=1)
    turn_lease_seconds: float = setting(
        120.0,
        "Seconds for which an agent holds a session's turn without a sign of life: longer than one answer of a model "
        "takes, short enough that a crashed agent's session is free within minutes.",
        low=1,
        high=3600,
    )
    summariser: str = setting(
        "auto",
        "What says what a session was about: `chat` asks the distiller's language model, `extractive` takes the "
        "session's own most telling sentences, `auto` is `chat` where `SONDER_DISTILLER_URL` is set.",
        choices=("auto", "chat", "extractive"),
    )
    summary_characters: int = setting(
        1200, "Upper bound of a session's summary: half a page, which fits into any prompt.", low=100, high=10_000
    )
    summary_after_minutes: float = setting(
        10.0, "Age at which an interaction enters its session's summary: most are answered and judged by then.", low=0
    )
    summary_seconds: int = setting(300, "Seconds between runs that summarise sessions.", low=5)
    retain_texts_days: int = setting(
        0, "Days after which responses and pasted contexts are emptied; the evidence stays. 0 keeps them.", low=0
    )
    retain_refusals_days: int = setting(180, "Days for which refused writes are listed; 0 keeps them.", low=0)
    retain_job_runs_days: int = setting(30, "Days for which runs of scheduled jobs are listed; 0 keeps them.", low=0)
    webhook_networks: str = setting(
        "",
        "Networks that webhooks may reach although they are not public, as `10.20.0.0/16,127.0.0.1/32`: loopback also "
        "by plain http, others by https. None, because an address that somebody enters must not open what lies behind "
        "the firewall; link-local addresses, where clouds keep credentials, are never reached.",
    )
    retain_deliveries_days: int = setting(
        30, "Days for which webhook deliveries that are done are listed; 0 keeps them.", low=0
    )
    https: bool = setting(
        False,
        "The site is reached over HTTPS alone, through a proxy that sets X-Forwarded-Proto itself: cookies are sent "
        "over HTTPS only, plain HTTP is redirected, and browsers are told to remember it. Off, because `up` serves "
        "plain HTTP to its own machine.",
    )
    hsts_seconds: int = setting(
        2_592_000,
        "Seconds for which a browser refuses plain HTTP once it was here by HTTPS; counts with `SONDER_HTTPS` only. A "
        "month outlives most visits, and a mistake passes. 0 tells browsers nothing.",
        low=0,
        high=63_072_000,
    )
    metrics_key: str = setting(
        "",
        "The bearer token that `/metrics` asks for; without one there is no such page. Never logged. The figures name "
        "no account and no text, and still are nobody else's business.",
    )
    sweep_seconds: int = setting(30, "Seconds between sweeps for work whose message was lost.", low=5)


def parse(name: str, raw: str, default: object) -> object:
    """The text of a setting as a value of its default's type. Raises SettingError."""
    if isinstance(default, bool):
        words = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)
        if raw.strip().lower() not in words:
            raise SettingError(f"{name} is {raw!r}; use true or false.")
        return words[raw.strip().lower()]
    if isinstance(default, int | float):
        try:
            value = int(raw) if isinstance(default, int) else float(raw)
        except ValueError:
            raise SettingError(f"{name} is {raw!r}; use a number.") from None
        if not math.isfinite(value):
            raise SettingError(f"{name} is {raw!r}; use a finite number.")
        return value
    return raw


def from_environment(environ: Mapping[str, str], base: Path) -> dict[str, object]:
    """The Django settings ``SONDER_*``. Raises SettingError, with a sentence, for a name or a value it cannot use."""
    known = {PREFIX + f.name.upper(): f for f in fields(Conf)}
    for name in environ:
        if name.startswith(PREFIX) and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.85)
            hint = f"Did you mean {near[0]}?" if near else "docs/settings.md lists those that there are."
            raise SettingError(f"{name} is no setting. {hint}")
    values: dict[str, object] = {}
    for name, f in known.items():
        values[name] = parse(name, environ[name], f.default) if name in environ else f.default
        _check(name, values[name], f.metadata)
    _check_together(values)
    if not str(values["SONDER_VAR"]).strip():
        raise SettingError("SONDER_VAR is empty; name the folder of the store, or leave it unset.")
    values["SONDER_VAR"] = str((base / str(values["SONDER_VAR"])).resolve())
    return values


def _check(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    if metadata["choices"] and value not in metadata["choices"]:
        raise SettingError(f"{name} is {value!r}; choose one of {', '.join(metadata['choices'])}.")
    if metadata["low"] is not None and value < metadata["low"]:
        raise SettingError(f"{name} is {value!r}; the lowest value allowed is {metadata['low']}.")
    if metadata["high"] is not None and value > metadata["high"]:
        raise SettingError(f"{name} is {value!r}; the highest value allowed is {metadata['high']}.")
    if name.startswith("SONDER_THROTTLE_") and not RATE.fullmatch(value):
        raise SettingError(f"{name} is {value!r}; write a number of requests and a period, as in 600/min.")


def _check_together(values: Mapping[str, Any]) -> None:
    """What a rule would refuse later, in the middle of somebody's request."""
    try:
        parse_weights(values["SONDER_SOURCE_WEIGHTS"])
    except ValueError as error:
        raise SettingError(f"SONDER_SOURCE_WEIGHTS: {error}") from None
    try:
        networks(values["SONDER_WEBHOOK_NETWORKS"])
    except ValueError as error:
        raise SettingError(f"SONDER_WEBHOOK_NETWORKS: {error}") from None
    trial, release, quarantine = (values[f"SONDER_{name}_ODDS"] for name in ("TRIAL", "RELEASE", "QUARANTINE"))
    if not (trial < quarantine and release < quarantine):
        raise SettingError(
            f"SONDER_TRIAL_ODDS ({trial:g}) and SONDER_RELEASE_ODDS ({release:g}) must be below "
            f"SONDER_QUARANTINE_ODDS ({quarantine:g})."
        )


@lru_cache(maxsize=1)
def current() -> Conf:
    """The settings in force; tests that override a setting get a fresh object."""
    from django.conf import settings

    return Conf(**{f.name: getattr(settings, PREFIX + f.name.upper()) for f in fields(Conf)})


def forget(**_: object) -> None:
    """Called when Django announces a changed setting."""
    current.cache_clear()
