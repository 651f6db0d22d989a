"""What a person's verdict on one piece of work is worth: whether it would change how a lesson is trusted.

Ground truth is the scarce thing, so the queue offers first the work whose verdict would move a lesson across one of its
policy's thresholds (value of information in the sense of Howard, Information Value Theory, IEEE Transactions on Systems
Science and Cybernetics 2, 1966: an answer that changes no decision is worth nothing).
"""

import hashlib
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from memory.rules.attribution import TOLERANCE
from memory.rules.ledger import DEFAULTS as LEDGER
from memory.rules.ledger import LedgerConstants, step
from memory.rules.quarantine import DEFAULTS as REFERENCE
from memory.rules.quarantine import ReferenceConstants

#: Of ten interactions one is judged without sight of the machine's verdict: enough to tell within a month whether
#: people agree with the machine or follow it, and few enough to leave nine easy ones.
BLIND_SHARE: Final = 0.10


class Change(StrEnum):
    """What crossing a threshold does to a lesson."""

    TRIAL = "trial"  # a coin decides from now on
    QUARANTINE = "quarantine"  # it is kept out
    CLEARED = "cleared"  # its trial ends
    FREED = "freed"  # its quarantine ends


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The threshold that a verdict would move a lesson towards."""

    at: float  # in the same measure as the prospect
    change: Change  # what happens there


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """Where a lesson stands, and where either verdict would take it, in its policy's own measure."""

    now: float  # S in nats under `trial`; the losses that fall to it since its last win under `reference`
    if_lost: float  # the same after a loss here
    if_won: float  # the same after a win here
    expected: float  # probability that the work was lost, if the lesson did nothing, in (0, 1)
    above: Limit | None  # what a loss moves it towards; None if nothing
    below: Limit | None  # what a win moves it towards; None if nothing


@dataclass(frozen=True, kw_only=True)
class Information:
    """What a verdict would tell about one lesson."""

    value: float  # in [0, 1]; 0.5 or more where a verdict would cross a threshold, below where none would
    loss: Change | None  # what a loss would bring about
    win: Change | None  # what a win would bring about
    nearer: Change | None  # where neither would: what they bring nearer


def information(prospect: Prospect) -> Information:
    """The worth of a verdict: the expected part of the way to a threshold that it covers.

    A verdict that would cross a threshold always comes before one that would only bring it nearer.
    """
    up = _covered(prospect.now, prospect.if_lost, prospect.above)
    down = _covered(prospect.now, prospect.if_won, prospect.below)
    loss = prospect.above.change if prospect.above and up >= 1 else None
    win = prospect.below.change if prospect.below and down >= 1 else None
    share = prospect.expected * up + (1 - prospect.expected) * down
    crosses = loss is not None or win is not None
    leading = prospect.above if prospect.expected * up >= (1 - prospect.expected) * down else prospect.below
    return Information(
        value=(1 + share) / 2 if crosses else share / 2,
        loss=loss,
        win=win,
        nearer=leading.change if leading and share > 0 and not crosses else None,
    )


def _covered(now: float, then: float, limit: Limit | None) -> float:
    """The part of the way from `now` to a limit that is covered, in [0, 1]; 1 means that it is reached or passed."""
    if limit is None:
        return 0.0
    sign = -1 if limit.change in (Change.CLEARED, Change.FREED) else 1
    way, moved = sign * (limit.at - now), sign * (then - now)
    return 1.0 if way <= TOLERANCE or moved >= way - TOLERANCE else max(0.0, moved / way)


@dataclass(frozen=True, kw_only=True)
class Said:
    """What counts about the interaction until now."""

    weight: float  # of who judged, in (0, 1]
    loss: int  # 1 for a loss, 0 for a win


def by_ledger(
    *,
    s: float,
    expected: float,
    said: Said | None,
    quarantined: bool,
    lost_tasks: int,
    released_s: float | None = None,
    weight: float = 1.0,
    constants: LedgerConstants = LEDGER,
) -> Prospect:
    """Under the policy `trial`: S with a caller's word in place of what counts until now.

    The row is taken out of S and put in again as if it were the latest. `lost_tasks` are the different tasks that
    losses would fall on with a loss here: too few, and no loss quarantines. `released_s` is S at a release to trial.
    """
    without = s - (step(weight=said.weight, loss=said.loss, expected=expected, constants=constants) if said else 0.0)
    trial, quarantine = math.log(constants.trial_odds), math.log(constants.quarantine_odds)
    above: Limit | None = Limit(at=trial, change=Change.TRIAL)
    below: Limit | None = None
    if quarantined:
        above, below = None, Limit(at=math.log(constants.release_odds), change=Change.FREED)
    elif s >= trial - TOLERANCE:
        if released_s is not None:
            quarantine = max(quarantine, released_s + math.log(constants.relapse_odds))
        above = Limit(at=quarantine, change=Change.QUARANTINE) if lost_tasks >= constants.loss_tasks else None
        below = Limit(at=trial - 2 * TOLERANCE, change=Change.CLEARED)  # at the threshold itself it is still on trial
    return Prospect(
        now=s,
        if_lost=max(0.0, without + step(weight=weight, loss=1, expected=expected, constants=constants)),
        if_won=max(0.0, without + step(weight=weight, loss=0, expected=expected, constants=constants)),
        expected=expected,
        above=above,
        below=below,
    )


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """A lesson's losses since its last win, as the policy `reference` counts them."""

    losses: int
    tasks: int  # different tasks among them
    share: float  # losses that fall to the lesson once each is divided by its cohort

    def progress(self, rate: float, constants: ReferenceConstants = REFERENCE) -> float:
        """How much of what quarantine needs is there, by the condition that is furthest from it; 1 is all of it."""
        needed = constants.losses if self.tasks >= constants.tasks else constants.losses_one_task
        chance = self.share * math.log(rate) / math.log(constants.p)
        return min(self.losses / needed, self.share / constants.share, chance)


def by_epoch(*, epoch: Epoch, with_loss: Epoch, rate: float, expected: float, quarantined: bool) -> Prospect:
    """Under the policy `reference`: a loss brings every condition nearer, a win clears them all.

    `with_loss` is the epoch with a loss here; `rate` is the loss rate of the lesson's band, in (0, 1).
    """
    above, below = Limit(at=1.0, change=Change.QUARANTINE), Limit(at=1 - 2 * TOLERANCE, change=Change.FREED)
    return Prospect(
        now=epoch.progress(rate),
        if_lost=with_loss.progress(rate),
        if_won=0.0,
        expected=expected,
        above=None if quarantined else above,
        below=below if quarantined else None,
    )


_IF_CROSSED: Final = {
    Change.TRIAL: "A loss here would put {name} on trial.",
    Change.QUARANTINE: "A loss here would quarantine {name}.",
    Change.CLEARED: "A win here would end the trial of {name}.",
    Change.FREED: "A win here would bring {name} to where its quarantine ends.",
}
_IF_NEARER: Final = {
    Change.TRIAL: "A loss here would bring {name} nearer to a trial.",
    Change.QUARANTINE: "A loss here would bring {name} nearer to quarantine.",
    Change.CLEARED: "A win here would bring {name} nearer to the end of its trial.",
    Change.FREED: "A win here would bring {name} nearer to the end of its quarantine.",
}
NOTHING: Final = "No lesson's standing hangs on this verdict; it still counts in every rate."


def in_words(found: Information, name: str) -> str:
    """What hangs on the verdict, in at most two sentences; `name` is what the lesson is called. Empty if nothing."""
    crossed = [_IF_CROSSED[change] for change in (found.loss, found.win) if change is not None]
    if not crossed and found.nearer is not None:
        crossed = [_IF_NEARER[found.nearer]]
    return " ".join(sentence.replace("{name}", name) for sentence in crossed)


def judged_blind(interaction: UUID) -> bool:
    """Whether the machine's verdict on this interaction stays hidden until a person has judged it.

    Always the same answer: the first 8 bytes of SHA-256 over the id, as a share of 2**64, below `BLIND_SHARE`.
    """
    return int.from_bytes(hashlib.sha256(interaction.bytes).digest()[:8], "big") / 2**64 < BLIND_SHARE
