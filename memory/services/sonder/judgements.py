"""How work was judged, and what distillation had made of it."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Max

from memory.models import ImportedRow, Lesson, LessonDistillation, Outcome
from memory.models.vocabulary import DistillationReason, DistillationState, OutcomeSource
from memory.rules.signals import RETRACTED, REWARDS
from memory.services.sonder import values
from memory.services.sonder.job import Job, before, each, following, ordered_id
from memory.services.sonder.snapshot import Row
from memory.services.sonder.values import Skipped

# Why a lesson of the file was refused, as the reason of the distillation that had stored it there.
REFUSALS = {word: word for word in ("private", "rejected_value", "exact_duplicate")}


def outcomes(job: Job, rows: Sequence[Row]) -> None:
    """Outcomes in the order in which they were reported. Who judged is `unknown` unless the file says it."""
    works = job.known("interaction", (row.get("interaction_id") for row in rows))
    known = job.known("outcome", (_name(row) for row in rows))
    subjects = [found.subject for found in works.values() if found.subject]
    latest = Outcome.objects.filter(interaction__in=subjects).values_list("interaction_id", "source")
    sequences = Counter[tuple[UUID, str]]({key[:2]: key[2] for key in latest.annotate(n=Max("sequence")).order_by()})
    new: dict[str, Outcome] = {}

    def take(row: Row) -> bool:
        work = following(works, values.ident(row.get("interaction_id")))
        signal, source = _signal(row), _source(row)
        name = values.ident(_name(row))
        if before(known, name, new):
            return False
        at = values.moment(row.get("ts"), job.now)
        sequences[work, source] += 1
        new[name] = Outcome(
            id=ordered_id(at, row["rowid"]),
            created_at=at,
            interaction_id=work,
            source=source,
            sequence=sequences[work, source],
            signal=signal,
            reward=REWARDS[signal],
        )
        return True

    each(job, "outcomes", rows, take, "interaction_id")
    Outcome.objects.bulk_create(new.values())
    job.remember("outcome", ((name, outcome.pk) for name, outcome in new.items()))


def _name(row: Row) -> str:
    """The old store gave outcomes no id; it kept one of each signal for an interaction."""
    return f"{row.get('interaction_id')}:{row.get('signal')}"


def _signal(row: Row) -> str:
    """The signal, if the file prices it as it always was: a reward that does not fit says that the row was changed."""
    signal = row.get("signal")
    if not isinstance(signal, str) or signal not in REWARDS or signal == RETRACTED:
        raise Skipped("unknown_signal")
    reward = row.get("reward")
    if not isinstance(reward, int | float) or abs(reward - float(REWARDS[signal])) > 1e-9:
        raise Skipped("reward_disagrees")
    return signal


def _source(row: Row) -> str:
    source = row.get("source")
    return source if isinstance(source, str) and source in OutcomeSource.values else OutcomeSource.UNKNOWN.value


def distillations(job: Job, rows: Sequence[Row]) -> None:
    """What distillation came to. What it had not finished is not taken over: its worker is not here."""
    works = job.known("interaction", (row.get("interaction_id") for row in rows))
    subjects = [found.subject for found in works.values() if found.subject]
    there = set(LessonDistillation.objects.filter(pk__in=subjects).values_list("pk", flat=True))
    made = dict(Lesson.objects.filter(source_interaction__in=subjects).values_list("source_interaction", "pk"))
    lost = {o.interaction_id for o in Outcome.objects.filter(interaction__in=subjects, reward__lt=0)}
    refused = _refused(job, works.keys())
    new: dict[UUID, LessonDistillation] = {}

    def take(row: Row) -> bool:
        legacy = values.ident(row.get("interaction_id"))
        work = following(works, legacy)
        if work in there:
            return False
        if work in new:
            raise Skipped("repeated")
        came_to = _came_to(row, made.get(work), refused.get(legacy, ""), contradicted=work in lost)
        new[work] = LessonDistillation(
            interaction_id=work,
            signal=_of_signal(row),
            attempts=values.whole(row.get("attempts"), least=0),
            created_at=values.moment(row.get("created_ts"), job.now),
            completed_at=values.moment(
                row.get("completed_ts") or row.get("updated_ts") or row.get("created_ts"), job.now
            ),
            last_error="",
            **came_to,
        )
        return True

    each(job, "lesson_distillations", rows, take, "interaction_id")
    LessonDistillation.objects.bulk_create(new.values())


def _came_to(row: Row, lesson: UUID | None, refusal: str, *, contradicted: bool) -> dict[str, Any]:
    """State, reason and lesson here. Raises Skipped for what is not finished, or told of a lesson that is not here."""
    state, reason = row.get("state"), row.get("result_reason")
    if state == "stored" and lesson is not None:
        return {"state": DistillationState.STORED, "result_reason": DistillationReason.STORED, "lesson": lesson}
    if state == "stored" and refusal:
        return {"state": DistillationState.NO_LESSON, "result_reason": REFUSALS.get(refusal, "not_concrete")}
    if state == "stored":
        raise Skipped("lesson_gone")
    if state in ("no_lesson", "legacy_no_lesson"):
        is_ours = reason in DistillationReason.values and reason != DistillationReason.STORED
        found = reason if is_ours else DistillationReason.NO_CANDIDATE
        return {"state": DistillationState.NO_LESSON, "result_reason": found}
    if state == "cancelled":
        why = DistillationReason.CONTRADICTED if contradicted else DistillationReason.CANCELLED_BY_OPERATOR
        return {"state": DistillationState.CANCELLED, "result_reason": why}
    raise Skipped("unfinished" if state in ("claimed", "retryable") else "bad_value")


def _of_signal(row: Row) -> str:
    signal = row.get("signal")
    if not isinstance(signal, str) or signal not in REWARDS or signal == RETRACTED:
        raise Skipped("unknown_signal")
    return signal


def _refused(job: Job, works: Collection[str]) -> dict[str, str]:
    """Why the lesson that came of an interaction there was refused here, by the interaction's old id."""
    if not {"id", "source_interaction"} <= job.source.tables.get("lessons", frozenset()):
        return {}
    mark = ",".join("?" * len(works))
    rows = job.source.connection.execute(
        f"SELECT id, source_interaction FROM lessons WHERE source_interaction IN ({mark})", list(works)
    ).fetchall()
    sources = {legacy: source for legacy, source in rows if values.optional_id(legacy)}
    refused = ImportedRow.objects.filter(account=job.account, kind="lesson", legacy_id__in=sources, refusal__gt="")
    return {sources[legacy]: refusal for legacy, refusal in refused.values_list("legacy_id", "refusal")}
