"""How often two judges of the same work say the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from memory.models.sql import fetch
from memory.rules.health import Interval, wilson
from memory.services.ids import first_id

ENOUGH: Final = 30  # from here on a 95% interval is under 36 points wide


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The latest word of callers against the latest of the machine, on interactions that both judged."""

    both_won: int
    only_caller_won: int  # the machine said loss
    only_machine_won: int  # the caller said loss
    both_lost: int

    @property
    def n(self) -> int:
        return self.both_won + self.only_caller_won + self.only_machine_won + self.both_lost

    @property
    def same(self) -> int:
        return self.both_won + self.both_lost

    @property
    def enough(self) -> bool:
        return self.n >= ENOUGH

    @property
    def missing(self) -> int:
        """How many more are needed before a share says much."""
        return max(0, ENOUGH - self.n)

    @property
    def share(self) -> float | None:
        """In [0, 1]; None where too few were judged by both."""
        return self.same / self.n if self.enough else None

    @property
    def interval(self) -> Interval:
        return wilson(self.same, self.n)


def agreement(accounts: Sequence[UUID] | None, since: datetime) -> Agreement:
    """Over interactions begun since a moment, of these accounts; None means every account."""
    mine = "true" if accounts is None else "i.account_id = ANY(%(accounts)s)"
    rows = fetch(
        f"""
        SELECT caller, machine, count(*) FROM (
            SELECT max(sign(reward)) FILTER (WHERE source = 'caller') AS caller,
                max(sign(reward)) FILTER (WHERE source = 'machine') AS machine
            FROM (
                SELECT DISTINCT ON (o.interaction_id, o.source) o.interaction_id, o.source, o.reward
                FROM interaction i JOIN outcome o ON o.interaction_id = i.id
                WHERE i.id >= %(first)s AND i.created_at >= %(since)s AND {mine} AND o.source IN ('caller', 'machine')
                ORDER BY o.interaction_id, o.source, o.sequence DESC
            ) latest GROUP BY interaction_id
        ) said WHERE caller <> 0 AND machine <> 0 GROUP BY 1, 2
        """,
        {
            "first": first_id(since),
            "since": since,
            "accounts": list(accounts or ()),
        },
    )
    n = {(int(caller), int(machine)): count for caller, machine, count in rows}
    return Agreement(
        both_won=n.get((1, 1), 0),
        only_caller_won=n.get((1, -1), 0),
        only_machine_won=n.get((-1, 1), 0),
        both_lost=n.get((-1, -1), 0),
    )
