"""What the journal of trust calls things, in words, and the state that each event leads to."""

from typing import Final

from memory.models.vocabulary import TrustEventKind

#: Of each event: the words, and the chip that it leads to; without one it moves nothing.
EVENTS: Final[dict[str, tuple[str, str]]] = {
    TrustEventKind.TRIAL_OPENED: ("Put on trial", "trial"),
    TrustEventKind.TRIAL_CLOSED: ("Trial ended", "active"),
    TrustEventKind.QUARANTINED: ("Quarantined by its evidence", "quarantined"),
    TrustEventKind.PROBATION_OPENED: ("Probation began", "probation"),
    TrustEventKind.PROBATION_LOSS: ("Lost on probation", "probation"),
    TrustEventKind.REHABILITATED: ("Freed by its evidence", "active"),
    TrustEventKind.RELEASED_BY_REVIEWER: ("Released", "active"),
    TrustEventKind.RELEASED_TO_TRIAL: ("Released to trial", "trial"),
    TrustEventKind.UPHELD: ("Quarantine upheld", "quarantined"),
    TrustEventKind.QUARANTINED_BY_REVIEWER: ("Quarantined by a person", "quarantined"),
    TrustEventKind.REJECTED_BY_REVIEWER: ("Rejected", "rejected"),
    TrustEventKind.RESTORED_BY_REVIEWER: ("Restored", "active"),
    TrustEventKind.APPROVED: ("Approved", "active"),
    TrustEventKind.EDITED: ("Reworded", "superseded"),
    TrustEventKind.MERGED: ("Took in a duplicate", ""),
    TrustEventKind.PRUNED: ("Pruned", "retired"),
    TrustEventKind.EXEMPTED: ("Loss excused", ""),
    TrustEventKind.UNDONE: ("Decision undone", ""),
}
#: What others want to hear of: lessons that went out of service or came back.
NEWS: Final = (
    TrustEventKind.QUARANTINED,
    TrustEventKind.QUARANTINED_BY_REVIEWER,
    TrustEventKind.REHABILITATED,
    TrustEventKind.RELEASED_BY_REVIEWER,
    TrustEventKind.RELEASED_TO_TRIAL,
)


def event_in_words(kind: str) -> str:
    """What happened; the kind itself where the table does not know it."""
    return EVENTS.get(kind, (kind.replace("_", " "), ""))[0]
