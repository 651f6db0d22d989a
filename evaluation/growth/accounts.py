"""Thousands of accounts in one store: what one of them waits, and what grows with their number."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from evaluation.growth import bounds
from evaluation.growth.comparing import grown, usual
from evaluation.growth.stand import filled, inside, parameters, started
from evaluation.report import Figure, Progress, Report, Table

FEW: Final = 64  # accounts of the store that is compared with
ROUNDS: Final = 10  # loops of each account, after one that is not counted
KEYS: Final = 64  # accounts that work

HOW: Final = """
Two stores of the same lessons, each with lessons that belong to accounts (three in ten to the first, the others spread
evenly): one of few accounts, one of many. In each, agents of 64 different accounts work over HTTP one after the other,
each with a key and a connection of its own. Then every review page is looked at by an operator, who sees all accounts,
and every scheduled job is run, in one process; medians of five looks, jobs run once and then again. For each of them
the planner is asked which large tables it reads from end to end; so it is for a whole loop of the largest account and
of a small one. The report of performance (performance.md) compares the search itself with an exact one: semantic top
20 for the large account and for small ones among 5,000.
""".strip().replace("\n", " ")

LIMITS: Final = (
    "The lessons were written in bulk and belong to accounts evenly, but for the first: real ones are more unlike.",
    "Most accounts did nothing; what grows with their work grows with the number of interactions.",
)


def measure(tell: Progress) -> Report:
    """GROWTH_ACCOUNTS beside FEW."""
    began = time.monotonic()
    lessons, many = bounds.number("GROWTH_LESSONS"), bounds.number("GROWTH_ACCOUNTS")
    seen = {}
    for done, accounts in enumerate((FEW, many)):
        tell(done, 2, f"{accounts:,} accounts")
        seen[accounts] = _seen(lessons, accounts)
    machine = seen[many]["machine"]
    return Report(
        name="accounts",
        title=f"Accounts: {many:,} in one store",
        question="What does an account feel of the others, and which pages and jobs grow with their number?",
        answer=_answer(seen, many),
        command="make growth ARGS=accounts",
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(time.monotonic() - began, 1),
        parameters={"lessons": lessons, "accounts": many, **parameters(machine)},
        figures=tuple(_figures(seen, many)),
        how=HOW,
        limits=LIMITS,
        tables=(_loops(seen), _costs(seen, many)),
    )


def _seen(lessons: int, accounts: int) -> dict[str, Any]:
    """What a store of so many accounts shows."""
    with filled(lessons, accounts=accounts, agents=KEYS) as store:
        with started(store) as stand:
            agents = stand.agents(KEYS)
            for _ in range(ROUNDS + 1):
                for agent in agents:
                    agent.loop()
            for agent in agents:
                agent.close()
        told = {name: inside(store.var, name, **store.settings) for name in ("plans", "costs")}
        return {
            **told,
            "starts": [seconds * 1000 for agent in agents for seconds in agent.starts[1:]],
            "errors": [each for agent in agents for each in agent.errors],
            "machine": store.machine,
        }


def _figures(seen: Mapping[int, Mapping[str, Any]], many: int) -> list[Figure]:
    found, errors = seen[many], [each for one in seen.values() for each in one["errors"]]
    first = f", the first: {errors[0]}" if errors else ""
    plans = found["plans"]
    scanned = sorted({table for plan in plans.values() for table in plan["scans"]})
    growing = grown(seen[FEW]["costs"], found["costs"])
    return [
        *(
            Figure(
                key=f"accounts.start_p{share}",
                label=f"start of an interaction, {share} of 100 within",
                value=round(float(np.percentile(found["starts"], share)), 1),
                unit="ms",
            )
            for share in (50, 95)
        ),
        Figure(key="accounts.errors", label=f"errors{first}", value=len(errors), bar="0", met=not errors),
        Figure(
            key="accounts.scans",
            label=f"large tables that a loop reads from end to end: {', '.join(scanned) or 'none'}",
            value=len(scanned), bar="0", met=not scanned,
        ),
        Figure(
            key="accounts.growing",
            label=f"pages and jobs that take twice as long as with {FEW} accounts: {', '.join(growing) or 'none'}",
            value=len(growing), bar="0", met=not growing,
        ),
    ]  # fmt: skip


def _answer(seen: Mapping[int, Mapping[str, Any]], many: int) -> str:
    middle = {accounts: float(np.median(found["starts"])) for accounts, found in seen.items()}
    growing = grown(seen[FEW]["costs"], seen[many]["costs"])
    return (
        f"Half of the starts are answered within {middle[many]:.0f} ms, with {FEW} accounts within {middle[FEW]:.0f}; "
        f"{len(growing)} of {len(seen[many]['costs'])} pages and jobs grow with the number of accounts."
    )


def _loops(seen: Mapping[int, Mapping[str, Any]]) -> Table:
    rows = []
    for accounts, found in seen.items():
        within: Sequence[float] = [round(float(np.percentile(found["starts"], share)), 1) for share in (50, 95)]
        for whose, plan in found["plans"].items():
            scanned, used = ", ".join(plan["scans"]) or "none", ", ".join(plan["indexes"])
            rows.append((accounts, *within, whose, plan["lessons"], plan["statements"], scanned, used))
    return Table(
        title="One loop",
        columns=("accounts", "start p50, ms", "p95", "account", "lessons handed out", "statements with the credit",
                 "large tables read from end to end", "indexes of lessons that were read"),
        rows=tuple(rows),
    )  # fmt: skip


def _costs(seen: Mapping[int, Mapping[str, Any]], many: int) -> Table:
    few, more = seen[FEW]["costs"], seen[many]["costs"]
    return Table(
        title="Pages and jobs",
        columns=("what", f"ms, {FEW} accounts", f"ms, {many:,} accounts", "statements", f"then with {many:,}",
                 "kB of page", f"then with {many:,}", "large tables read from end to end"),
        rows=tuple(
            (name, round(usual(few[name]) * 1000, 1), round(usual(cost) * 1000, 1), few[name]["statements"],
             cost["statements"], round(few[name]["characters"] / 1000), round(cost["characters"] / 1000),
             ", ".join(cost["scans"]) or "none")
            for name, cost in more.items()
        ),
        note="A job's time is that of its second run, which finds nothing new.",
    )  # fmt: skip
