"""A standing in sentences, for people who are no statisticians."""

from collections.abc import Mapping, Sequence
from typing import Any

from memory.rules.outlook import lead, would_free
from memory.rules.words import count

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


def standing_in_words(
    state: str,
    *,
    wins: int,
    losses: int,
    evidence: Mapping[str, Any],
    on_trial: bool = False,
    by_person: bool = False,  # a reviewer, and not the policy, quarantined it
) -> list[str]:
    """What the lesson's state is, what its record is, and what would change it; two to six sentences."""
    sentences = [ON_TRIAL if on_trial and state == "active" else STATES[state], _record(wins, losses)]
    sentences += _odds(evidence) if evidence.get("policy") == "trial" else _epoch(state, evidence)
    if state == "quarantined" and (by_person or evidence.get("policy")):
        sentences.append(would_free(evidence, by_person=by_person))
    return sentences


def _record(wins: int, losses: int) -> str:
    if wins + losses == 0:
        return "Nobody has judged work that it was handed out for yet."
    judged = count(wins + losses, "judged interaction")
    return f"Of {judged} it was handed out for, {wins} went well and {losses} did not."


def _odds(evidence: Mapping[str, Any]) -> list[str]:
    """The sentences that lead."""
    found = lead(evidence)
    if found is None:
        return []
    return [sentence for sentence in (found.comparison, found.warning, found.odds) if sentence]


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
    if state == "active" and gates:
        unmet = [gate["words"] for gate in gates if not gate["passed"]]
        sentences.append(
            f"It is not quarantined: {unmet[0]}" if unmet else "Its record meets every condition of quarantine."
        )
    return sentences
