"""What a person's verdict on a contradiction does.

One side goes, both stay each with the scope in which it holds, one new wording takes the place of both, or nothing.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from memory.models import Contradiction, Lesson, LessonTombstone
from memory.models.vocabulary import Verdict
from memory.rules.text import clean
from memory.services import contradiction, rejection
from memory.services.similarity import cosine_of

#: The new wordings that may come with a verdict that keeps both, by the side that each is of.
FIRST, SECOND = "first_text", "second_text"
INHERITED: Final = "inherited"  # in a decision's journal: tombstones in which the second lesson was the successor
APART: Final = "apart"  # in a decision's journal: the pair of new wordings, which is not asked about


def settle(pair: UUID, verdict: Verdict, data: Mapping[str, Any], *, reviewer: int, reason: str) -> dict[str, Any]:
    """Carries a verdict out in the caller's transaction; returns what the journal should keep.

    `data` has `text` for MERGE_BOTH, and may have `first_text` and `second_text` for KEEP_BOTH. Raises NotFound,
    Conflict, or Invalid naming one of these.
    """
    if verdict == Verdict.MERGE_BOTH:
        return _merge(pair, str(data.get("text", "")), reviewer=reviewer, reason=reason)
    if verdict == Verdict.KEEP_BOTH:
        return _keep_both(pair, data, reviewer=reviewer, reason=reason)
    contradiction.settle(pair, verdict, reviewer=reviewer, reason=reason)
    return {}


def take_back(pair: UUID, kept: Mapping[str, Any]) -> None:
    """Reverses what a verdict did beside moving lessons, once they are back where they were."""
    contradiction.reopen(pair)
    second = Contradiction.objects.values_list("second", flat=True).get(pk=pair)
    LessonTombstone.objects.filter(pk__in=kept.get(INHERITED, ())).update(successor_lesson=second)
    Contradiction.objects.filter(pk=kept.get(APART, UUID(int=0))).delete()


def _merge(pair: UUID, text: str, *, reviewer: int, reason: str) -> dict[str, Any]:
    """One new lesson in the place of both."""
    row = contradiction.mark(pair, Verdict.MERGE_BOTH, reviewer)
    inherited = list(LessonTombstone.objects.filter(successor_lesson=row.second).values_list("pk", flat=True))
    made = _reword(row.first, text, "text", reviewer=reviewer, reason=reason, also=row.second)
    return {**_made([made]), INHERITED: [str(pk) for pk in inherited]}


def _keep_both(pair: UUID, wordings: Mapping[str, Any], *, reviewer: int, reason: str) -> dict[str, Any]:
    """Both, each with the wording that says where it holds, if it is given one.

    The pair of new wordings counts as decided: it still looks like a contradiction to a detector.
    """
    row = contradiction.mark(pair, Verdict.KEEP_BOTH, reviewer)
    was = Lesson.objects.in_bulk([row.first, row.second])
    now, made = dict(was), []
    for field, side in ((FIRST, row.first), (SECOND, row.second)):
        text = clean(str(wordings.get(field, ""))).strip()
        if text and text != was[side].text:
            now[side] = _reword(side, text, field, reviewer=reviewer, reason=reason)
            made.append(now[side])
    if not made:
        return {}
    a, b = now[row.first], now[row.second]
    cosine = cosine_of(a.pk, b.pk)
    apart = contradiction.keep_both(a, b, row.similarity if cosine is None else cosine, reviewer, row.basis)
    return {**_made(made), APART: str(apart.pk)}


def _reword(lesson: UUID, text: str, field: str, *, reviewer: int, reason: str, also: UUID | None = None) -> Lesson:
    written = rejection.supersede(lesson, text, reviewer=reviewer, reason=reason, also=also)
    if written.lesson is None:
        raise rejection.WordingRefused(field, written.verdict)
    return written.lesson


def _made(lessons: list[Lesson]) -> dict[str, Any]:
    return {"lessons": [lesson.pk for lesson in lessons], "successors": [str(lesson.pk) for lesson in lessons]}
