"""Verdicts that are withheld from view: one piece of work in ten is judged without sight of what programs said."""

from uuid import UUID

from memory.models.vocabulary import OutcomeSource
from memory.rules.information import judged_blind


def withheld(interaction: UUID, source: str | None) -> bool:
    """Whether the verdict that stands, of this source, would tell a blind judge what a program said."""
    return source is not None and source != OutcomeSource.CALLER.value and judged_blind(interaction)
