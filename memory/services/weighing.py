"""What hangs on a verdict about a piece of work: where it would take each lesson that was handed out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from memory import conf
from memory.models.sql import fetch
from memory.models.vocabulary import LessonState, OutcomeSource
from memory.rules import expectation
from memory.rules.bands import band_of
from memory.rules.information import Epoch, Information, Prospect, Said, by_epoch, by_ledger, information
from memory.services.trial import ledger_constants
from memory.services.weights import weight_of

SERVING: Final = (LessonState.ACTIVE.value, LessonState.QUARANTINED.value)

# The rows of a cohort with their lessons' standings. Rows before a release have left the ledger: nothing hangs on them.
_ROWS: Final = """
    SELECT u.interaction_id, u.lesson_id, u.id, l.account_id, l.state, u.expected_loss, u.weight, u.reward < 0,
        count(*) OVER (PARTITION BY u.interaction_id), coalesce(s.s, 0), s.released_s,
        coalesce((s.evidence->>'loss_tasks')::int, 0), coalesce((s.evidence->'epoch'->>'losses')::int, 0),
        coalesce((s.evidence->'epoch'->>'tasks')::int, 0), coalesce((s.evidence->'epoch'->>'share')::float, 0),
        (s.evidence->'band'->>'rate')::float,
        EXISTS (
            SELECT 1 FROM jsonb_array_elements(s.evidence->'rows') r
            WHERE r->>'task' = left(c.task_digest, 12) AND (r->>'reward')::float < 0
        ),
        coalesce(u.credit_seq > coalesce(s.ledger_from_seq, 0), true)
    FROM lesson_usage u
        JOIN lesson l ON l.id = u.lesson_id
        LEFT JOIN lesson_standing s ON s.lesson_id = u.lesson_id
        LEFT JOIN credit c ON c.interaction_id = u.interaction_id
    WHERE u.interaction_id = ANY(%s) AND u.exposure IN ('served', 'probation')
"""


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """What a verdict would tell about one lesson that was handed out."""

    interaction: UUID
    lesson: UUID
    usage: UUID  # its row of the exposure log
    prospect: Prospect
    information: Information


def weigh(interactions: Collection[UUID], blind: Collection[UUID] = ()) -> dict[UUID, list[Weighed]]:
    """For each interaction the lessons in service that it was handed, the ones that most hangs on first.

    What was expected is taken from the row, or where nobody has judged it yet from how often callers find a loss. Where
    a verdict is to be given `blind`, the answer does not depend on what counts there until now. Two reads.
    """
    rates = _caller_rates()
    found: dict[UUID, list[Weighed]] = {}
    for row in fetch(_ROWS, [list(interactions)]):
        if row[4] not in SERVING or not row[-1]:
            continue
        prospect = _prospect(row, rates, hidden=row[0] in blind)
        weighed = Weighed(
            interaction=row[0], lesson=row[1], usage=row[2], prospect=prospect, information=information(prospect)
        )
        found.setdefault(row[0], []).append(weighed)
    for own in found.values():
        own.sort(key=lambda weighed: (-weighed.information.value, weighed.lesson))
    return found


def _caller_rates() -> dict[UUID | None, float]:
    """How often callers find a loss, by scope of lessons."""
    rows = fetch("SELECT account_id, n, losses FROM source_sum WHERE source = %s", [OutcomeSource.CALLER.value])
    return {account: expectation.rate(losses=losses, n=n) for account, n, losses in rows}


def _prospect(row: Sequence[Any], rates: Mapping[UUID | None, float], *, hidden: bool) -> Prospect:
    _, _, _, account, state, expected, weight, lost, *_ = row
    usual = rates.get(account, expectation.rate(losses=0, n=0))
    chance = usual if expected is None or hidden else float(expected)
    said = Said(weight=float(weight), loss=int(lost)) if weight and lost is not None and not hidden else None
    *_, cohort, s, released_s, tasks, losses, epoch_tasks, share, rate, same, _ = row
    new_task = 0 if same and not hidden else 1
    quarantined = state == LessonState.QUARANTINED
    if conf.current().trust_policy == "trial":
        return by_ledger(
            s=s,
            expected=chance,
            said=said,
            quarantined=quarantined,
            lost_tasks=tasks + new_task,
            released_s=released_s,
            weight=float(weight_of(OutcomeSource.CALLER.value)),
            constants=ledger_constants(),
        )
    added = 0 if said and said.loss else 1
    after = Epoch(losses=losses + added, tasks=epoch_tasks + added * new_task, share=share + added / cohort)
    before = Epoch(losses=losses, tasks=epoch_tasks, share=share)
    rate = rate or band_of(1).prior
    return by_epoch(epoch=before, with_loss=after, rate=rate, expected=chance, quarantined=quarantined)
