"""Credit: the deciding outcome of an interaction, written to every exposure of it, once, whatever the order.

May run any number of times for an interaction, in any order with others, and ends the same: the deciding outcome
follows from the stored outcomes, and `b`, `credit_seq` and the expectations stored at first credit never change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import DataError, IntegrityError, transaction

from memory.models import Credit, Interaction, LessonUsage, Outcome
from memory.models.base import recorded
from memory.models.scope import scoped
from memory.models.sql import execute
from memory.models.vocabulary import COHORT
from memory.rules import expectation, signals
from memory.rules.expectation import Expectation
from memory.services import quarantine, sums
from memory.services.evidence import Occasion
from memory.services.scoping import lesson_account, lock_scope
from memory.services.task_digest import task_digest
from memory.services.weights import weight_of


@dataclass(frozen=True, kw_only=True)
class Credited:
    """What crediting one interaction came to."""

    interaction: UUID
    outcome: UUID | None  # the deciding one; None when every judge has retracted
    moved: bool  # the deciding outcome is another than before
    lessons: tuple[UUID, ...]  # whose evidence moved


@transaction.atomic
def credit(interaction_id: UUID) -> Credited | None:
    """Credits one interaction and evaluates the lessons concerned; None if it is gone or was never judged."""
    interaction = Interaction.objects.filter(pk=interaction_id).first()
    if interaction is None:
        return None
    scope = lesson_account(interaction.account_id)
    lock_scope(scope)
    outcomes = list(Outcome.objects.filter(interaction_id=interaction_id).order_by("source", "sequence"))
    decided = _decide(outcomes)
    earlier = Credit.objects.filter(pk=interaction_id).first()
    if not outcomes or (earlier is None and decided is None):
        _mark(outcomes)
        return None
    usages = list(LessonUsage.objects.filter(interaction_id=interaction_id).order_by("lesson_id"))
    weight_before = earlier.weight if earlier else None
    moved = earlier is None or earlier.outcome_id != (decided.pk if decided else None)
    if earlier is None and decided is not None:
        _first(interaction, scope, decided, usages)
    elif earlier is not None and moved:
        _correct(earlier, decided, usages)
    _mark(outcomes)
    touched = _occasions(usages, decided, weight_before) if moved else {}
    if touched:
        quarantine.evaluate(touched, scope)
    return Credited(
        interaction=interaction_id, outcome=decided.pk if decided else None, moved=moved, lessons=tuple(touched)
    )


def _occasions(
    usages: Sequence[LessonUsage], decided: Outcome | None, weight_before: Decimal | None
) -> dict[UUID, Occasion]:
    """What this credit is to each lesson concerned."""
    loss = _loss(decided) if decided else None
    weight = weight_of(decided.source) if decided else Decimal(0)
    return {
        u.lesson_id: Occasion(exposure=u.exposure, weight=weight, loss=loss, weight_before=weight_before)
        for u in usages
    }


def _decide(outcomes: Sequence[Outcome]) -> Outcome | None:
    verdicts = [signals.Verdict(id=o.pk, source=o.source, sequence=o.sequence, signal=o.signal) for o in outcomes]
    winner = signals.decide(verdicts)
    return next((o for o in outcomes if winner is not None and o.pk == winner.id), None)


def _mark(outcomes: Sequence[Outcome]) -> None:
    """Takes the outcomes that were read off the queue; one that lands meanwhile stays on it."""
    waiting = [o.pk for o in outcomes if o.credited_at is None]
    if waiting:
        Outcome.objects.filter(pk__in=waiting).update(credited_at=recorded())


def _loss(outcome: Outcome) -> int:
    loss = signals.loss_of(outcome.reward)
    assert loss is not None, "only `retracted` has no price, and it never decides"
    return loss


def _cohort(usages: Sequence[LessonUsage]) -> tuple[UUID, ...]:
    return tuple(u.lesson_id for u in usages if u.exposure in COHORT)


def _first(interaction: Interaction, scope: UUID | None, decided: Outcome, usages: list[LessonUsage]) -> None:
    """The first credit: place in the order, baseline and expectations from the sums as they stand, then the sums."""
    digest = task_digest(interaction.task)
    before = sums.read(scope, decided.source, digest, [u.lesson_id for u in usages])
    n, losses = before.source
    newest = Credit.objects.filter(scoped(scope)).order_by("-credit_seq")
    latest = newest.values_list("credit_seq", flat=True).first() or 0
    row = Credit.objects.create(
        interaction=interaction,
        account_id=scope,
        outcome=decided,
        source=decided.source,
        y=_loss(decided),
        weight=weight_of(decided.source),
        b=expectation.baseline(losses=losses, n=n),
        task_digest=digest,
        credit_seq=latest + 1,
    )
    cohort = _cohort(usages)
    for usage in usages:
        _expect(usage, _expectation(before, usage, cohort))
    _write_outcome(row, decided, usages)
    sums.add(contribution(row, decided, usages))


def _expectation(before: sums.Sums, usage: LessonUsage, cohort: tuple[UUID, ...]) -> Expectation:
    """The loss to expect if the lesson did nothing; a control row ignores who else was there."""
    lesson = usage.lesson_id
    n, losses = before.source_without(lesson)
    task = before.task_without(lesson)
    if usage.exposure not in COHORT:
        return expectation.withheld_expectation(losses=losses, n=n, task=task)
    return expectation.expected_loss(
        losses=losses,
        n=n,
        task=task,
        peers=[before.without(lesson, peer) for peer in cohort if peer != lesson],
        niche=before.withheld.get(lesson, expectation.Tally()),
    )


def _expect(usage: LessonUsage, e: Expectation) -> None:
    usage.expected_loss = expectation.to_stored(e.expected_loss)
    usage.source_rate, usage.task_factor = e.rate, e.task_factor
    usage.peer_factor, usage.niche_factor = e.peer_factor, e.niche_factor


def _correct(row: Credit, decided: Outcome | None, usages: list[LessonUsage]) -> None:
    """Another outcome decides now: the sums move from the old source to the new; place, b and expectations stay."""
    if row.outcome is not None:
        sums.take_back(contribution(row, row.outcome, usages))
    if decided is None:
        row.outcome, row.y, row.weight = None, None, Decimal(0)
    else:
        row.outcome, row.source, row.y, row.weight = decided, decided.source, _loss(decided), weight_of(decided.source)
    row.save(update_fields=["outcome", "source", "y", "weight"])
    _write_outcome(row, decided, usages)
    if decided is not None:
        sums.add(contribution(row, decided, usages))


def contribution(row: Credit, outcome: Outcome, usages: Sequence[LessonUsage]) -> sums.Contribution:
    """What a credited interaction adds to the sums with these exposures."""
    assert row.y is not None
    return sums.Contribution(
        account_id=row.account_id,
        source=row.source,
        task_digest=row.task_digest,
        y=row.y,
        weight=row.weight,
        reward=outcome.reward,
        b=row.b,
        cohort=_cohort(usages),
        withheld=tuple(
            (u.lesson_id, u.exposure, u.expected_loss)
            for u in usages
            if u.exposure not in COHORT and u.expected_loss is not None
        ),
    )


def _write_outcome(row: Credit, decided: Outcome | None, usages: Sequence[LessonUsage]) -> None:
    """The credited outcome on every exposure of the interaction; all of it null after a retraction."""
    at: datetime | None = decided.created_at if decided else None
    for usage in usages:
        usage.credited_outcome = decided
        usage.outcome_signal = decided.signal if decided else None
        usage.reward = decided.reward if decided else None
        usage.outcome_source = decided.source if decided else None
        usage.outcome_at = at
        usage.weight, usage.credit_seq = row.weight, row.credit_seq
    _save(usages)


# What a single broken row can raise. A database that is away is none of it: then the whole sweep waits.
FAULTS = (IntegrityError, DataError, AssertionError, ValueError, ArithmeticError, LookupError)

_COLUMNS = (
    ("id", "uuid"),
    ("credited_outcome_id", "uuid"),
    ("outcome_signal", "text"),
    ("reward", "numeric"),
    ("outcome_source", "text"),
    ("outcome_at", "timestamptz"),
    ("expected_loss", "numeric"),
    ("source_rate", "float8"),
    ("task_factor", "float8"),
    ("peer_factor", "float8"),
    ("niche_factor", "float8"),
    ("weight", "numeric"),
    ("credit_seq", "bigint"),
)


def _save(usages: Sequence[LessonUsage]) -> None:
    """One statement for all exposures of an interaction."""
    if not usages:
        return
    names = [name for name, _ in _COLUMNS]
    arrays = ", ".join(f"%s::{kind}[]" for _, kind in _COLUMNS)
    moved = ", ".join(f"{name} = new.{name}" for name in names[1:])
    execute(
        f"UPDATE lesson_usage AS old SET {moved} FROM unnest({arrays}) AS new({', '.join(names)}) "
        "WHERE old.id = new.id",
        [[getattr(usage, name) for usage in usages] for name in names],
    )


def sweep(limit: int = 5000) -> int:
    """Credits what no message announced, oldest first; returns how many interactions were taken up.

    One that cannot be credited is left for the next sweep and does not keep the others waiting; the faults are raised
    together at the end.
    """
    waiting = Outcome.objects.filter(credited_at__isnull=True).order_by("created_at", "id")
    ids = list(dict.fromkeys(waiting.values_list("interaction_id", flat=True)[:limit]))
    faults = []
    for interaction_id in ids:
        try:
            credit(interaction_id)
        except FAULTS as fault:
            fault.add_note(f"while crediting interaction {interaction_id}")
            faults.append(fault)
    if faults:
        raise ExceptionGroup(f"{len(faults)} of {len(ids)} interactions could not be credited", faults)
    return len(ids)
