"""A standing in sentences, for people who are no statisticians."""

from collections.abc import Mapping, Sequence
from typing import Any


def count(n: int, one: str, many: str | None = None) -> str:
    """`1 loss`, `2 losses`; the plural adds an s unless it is given."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def standing_in_words(state: str, *, wins: int, losses: int, evidence: Mapping[str, Any]) -> list[str]:
    """What the lesson's state is, what its record is, and what would change it; two to four sentences."""
    sentences = [_state(state), _record(wins, losses)]
    gates: Sequence[Mapping[str, Any]] = evidence.get("gates", ())
    epoch = evidence.get("epoch", {})
    if epoch.get("losses"):
        sentences.append(
            f"Since its last win it lost {count(epoch['losses'], 'time')} on {count(epoch['tasks'], 'task')}; divided "
            f"by the lessons handed out with it, {epoch['share']:.2f} of these losses are its own."
        )
    if state == "quarantined":
        sentences.append("A win on a probation sample would free it.")
    elif state == "active" and gates:
        unmet = [gate["words"] for gate in gates if not gate["passed"]]
        sentences.append(
            f"It is not quarantined: {unmet[0]}" if unmet else "Its record meets every condition of quarantine."
        )
    return sentences


def _state(state: str) -> str:
    return {
        "active": "Active: it is handed out where it fits.",
        "quarantined": "Quarantined: it is kept out, but for a sample.",
        "candidate": "Candidate: it waits for a reviewer.",
        "rejected": "Rejected: a reviewer turned the value down, and it stays out.",
        "superseded": "Superseded: another lesson took its place.",
    }[state]


def _record(wins: int, losses: int) -> str:
    if wins + losses == 0:
        return "Nobody has judged work that it was handed out for yet."
    return (
        f"Of {count(wins + losses, 'judged interaction')} it was handed out for, {wins} went well and {losses} did not."
    )
