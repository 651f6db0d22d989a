"""A standing in sentences, for people who are no statisticians."""

from collections.abc import Mapping, Sequence
from typing import Any

STATES = {
    "active": "Active: it is handed out where it fits.",
    "quarantined": "Quarantined: it is kept out, but for a sample.",
    "candidate": "Candidate: it waits for a reviewer.",
    "rejected": "Rejected: a reviewer turned the value down, and it stays out.",
    "superseded": "Superseded: another lesson took its place.",
}
ON_TRIAL = (
    "Being tested: a coin decides whether it is handed out, so that work with it can be compared with work without."
)


def count(n: int, one: str, many: str | None = None) -> str:
    """`1 loss`, `2 losses`; the plural adds an s unless it is given."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def standing_in_words(
    state: str, *, wins: int, losses: int, evidence: Mapping[str, Any], on_trial: bool = False
) -> list[str]:
    """What the lesson's state is, what its record is, and what would change it; two to five sentences."""
    sentences = [ON_TRIAL if on_trial and state == "active" else STATES[state], _record(wins, losses)]
    if evidence.get("policy") == "trial":
        sentences += _odds(state, evidence)
    else:
        sentences += _epoch(state, evidence)
    return sentences


def _record(wins: int, losses: int) -> str:
    if wins + losses == 0:
        return "Nobody has judged work that it was handed out for yet."
    judged = count(wins + losses, "judged interaction")
    return f"Of {judged} it was handed out for, {wins} went well and {losses} did not."


def _odds(state: str, evidence: Mapping[str, Any]) -> list[str]:
    """The two sentences that lead, and what would free it."""
    shown, sentences = evidence["with_it"], []
    if not shown["n"]:
        return []
    sentences.append(
        f"With this lesson {shown['lost']} of {shown['n']} were lost where {shown['expected']:.1f} were expected; "
        f"{_controls(evidence['without_it'])}"
    )
    if not evidence["enough_to_judge"]:
        sentences.append("These are too few servings to judge by eye; the odds allow for that.")
    constants = evidence["constants"]
    sentences.append(
        f"The record is {evidence['odds']:,.1f} times likelier if the lesson multiplies the odds of losing by "
        f"{constants['odds_ratio']:g} than if it does nothing."
    )
    if state == "quarantined":
        sentences.append(
            "Wins on probation, or losses of the same kind of work without it, would free it once the odds are at "
            f"{constants['release_odds']:g} or below."
        )
    return sentences


def _controls(controls: Mapping[str, Mapping[str, Any]]) -> str:
    """What happened without the lesson."""
    parts = [
        f"{when}, {rows['lost']} of {rows['n']} where {rows['expected']:.1f} were expected"
        for kind, when in (("coin", "when a coin left it out"), ("quarantine", "while quarantine kept it out"))
        if (rows := controls.get(kind))
    ]
    return "; ".join(parts) + "." if parts else "it was never left out for comparison yet."


def _epoch(state: str, evidence: Mapping[str, Any]) -> list[str]:
    """The losses since the last win, and the condition that decides."""
    sentences = []
    epoch = evidence.get("epoch", {})
    if epoch.get("losses"):
        sentences.append(
            f"Since its last win it lost {count(epoch['losses'], 'time')} on {count(epoch['tasks'], 'task')}; divided "
            f"by the lessons handed out with it, {epoch['share']:.2f} of these losses are its own."
        )
    gates: Sequence[Mapping[str, Any]] = evidence.get("gates", ())
    if state == "quarantined":
        sentences.append("A win on a probation sample would free it.")
    elif state == "active" and gates:
        unmet = [gate["words"] for gate in gates if not gate["passed"]]
        sentences.append(
            f"It is not quarantined: {unmet[0]}" if unmet else "Its record meets every condition of quarantine."
        )
    return sentences
