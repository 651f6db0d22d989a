"""Trust that arrives: the rows that it rests on as they were, and every sum and standing computed from them here."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.db.models import Max, Q

from memory.models import Credit, Lesson
from memory.services import quarantine
from memory.services.policies import policy
from memory.services.standing import rebuild_sums
from memory.services.transfer.arrival import Arrival

BATCH: Final = 200  # lessons judged at once


def newest_credits() -> dict[UUID | None, int]:
    """The newest place in the order of credits, by scope."""
    return dict(Credit.objects.values_list("account").annotate(latest=Max("credit_seq")).order_by())


def settle(arrival: Arrival) -> None:
    """The sums from the rows that are here now, and the standings that they concern. Moves no lesson's state."""
    rebuild_sums()
    rule = policy()
    judged = Lesson.objects.filter(pk__in=arrival.judged | arrival.new["lesson"])
    known = judged.filter(Q(lessonsourcesum__isnull=False) | Q(lessonstanding__isnull=False)).distinct()
    by_scope: dict[UUID | None, list[UUID]] = {}
    for lesson in known.order_by("pk").only("pk", "account_id"):
        by_scope.setdefault(lesson.account_id, []).append(lesson.pk)
    for account, lessons in by_scope.items():
        for batch in _batches(lessons):
            quarantine.keep(rule.assess(batch, account), rule.name)


def _batches(lessons: list[UUID]) -> Iterable[list[UUID]]:
    return (lessons[start : start + BATCH] for start in range(0, len(lessons), BATCH))
