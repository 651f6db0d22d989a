"""A person says that one lesson repeats another: the two become one, however far apart, until a maintainer undoes it.

It goes the way of a plan with one cluster, so that the same archive gives everything back.
"""

from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Lesson, PrunePlan
from memory.rules.pruning import Cluster, Member
from memory.services import applying, pruning, similarity, snapshot
from memory.services.applying import Outcome
from memory.services.merging import Exempted
from memory.services.planned import as_json
from memory.services.rejection import LIVE
from memory.services.scoping import lock_scope

UNKNOWN: Final = 0.0  # cosine of two lessons of which one has no vector yet
MERGED_BY: Final = "merged_by"  # in a plan's states: the person whose word it was, where no search made it


@transaction.atomic
def merge_into(member: UUID, keeper: UUID, *, reviewer: int, reason: str) -> PrunePlan:
    """Makes `member` part of `keeper`: its evidence moves, its row goes to the archive, its value stays known.

    Returns the plan under which it can be undone. How near the two are does not matter, for a person decides; both
    must be live and of one scope. Raises NotFound, Invalid naming `keeper`, or Conflict.
    """
    lessons = _held(member, keeper)
    plan = _plan(lessons[member], lessons[keeper], reviewer)
    cosine = plan.clusters[0]["members"][0]["cosine"]
    try:
        beside = applying.prune(plan, keeper, member, cosine, f"user:{reviewer}", reason)
    except Exempted:
        raise Conflict(
            "In some work both lessons had a part, and a person excused a loss of the one whose row would have to go. "
            "Reject the duplicate instead; what was said of it stays."
        ) from None
    applying.judge_again(keeper, set(beside) - {member, keeper}, lessons[keeper].account_id)
    outcome = Outcome(keeper=keeper, pruned=(member,))
    plan.applied_at, plan.states = timezone.now(), {**plan.states, "outcome": [outcome.to_json()]}
    plan.save(update_fields=["applied_at", "states"])
    return plan


def _held(member: UUID, keeper: UUID) -> dict[UUID, Lesson]:
    """Both lessons, under the scope's lock and their own."""
    if member == keeper:
        raise Invalid.field("keeper", "a lesson is no duplicate of itself. Choose another one.")
    scopes = dict(Lesson.objects.filter(pk__in=(member, keeper)).values_list("pk", "account_id"))
    if member not in scopes:
        raise NotFound("There is no such lesson.")
    if keeper not in scopes or scopes[keeper] != scopes[member]:
        raise Invalid.field("keeper", "there is no such lesson beside this one.")
    lock_scope(scopes[member])
    applying.hold([member, keeper])
    lessons = Lesson.objects.in_bulk([member, keeper])
    for pk in (member, keeper):
        if pk not in lessons:
            raise Conflict("One of the two lessons is gone by now. Look at what is there before you decide.")
        if lessons[pk].state not in LIVE:
            which = "The lesson to keep" if pk == keeper else "The lesson"
            raise Conflict(f"{which} is {lessons[pk].state} by now. Look at it again before you decide.")
    return lessons


def _plan(member: Lesson, keeper: Lesson, reviewer: int) -> PrunePlan:
    """One cluster. It names no space and no threshold, so that no search takes it for one that a search made."""
    cosine = similarity.cosine_of(member.pk, keeper.pk) or UNKNOWN
    cluster = Cluster(keeper=keeper.pk, members=(Member(lesson=member.pk, cosine=cosine),))
    body: dict[str, Any] = {
        "account": None if keeper.account_id is None else str(keeper.account_id),
        "lessons": {str(lesson.pk): [lesson.text_sha256, lesson.state] for lesson in (keeper, member)},
        MERGED_BY: reviewer,
    }
    return pruning.store_plan([as_json(cluster)], body, {})


def separate(digest: str, kept: snapshot.Snapshot, account_id: UUID | None, *, reviewer: int) -> None:
    """Takes a merge back, unless the kept lesson changed since: `kept` is how it stood then.

    Runs under the scope's lock. Nothing is noted about the pair, for nothing was decided. Raises Conflict.
    """
    if snapshot.take(map(UUID, kept)) != kept:
        raise Conflict(
            "The lesson that it became part of has changed since, so this cannot be undone. A maintainer can still "
            "restore it under Prune plan."
        )
    plan = applying.find(account_id, digest)
    for lesson in applying.archived(plan):
        applying.bring_back(plan, lesson, reviewer=reviewer)
