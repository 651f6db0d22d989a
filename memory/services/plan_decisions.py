"""A person applies a plan for pruning, except for what they take out of it."""

from collections.abc import Sequence
from uuid import UUID

from memory.errors import Invalid
from memory.models import Comment
from memory.models.vocabulary import Role
from memory.rules.words import count
from memory.services import applying
from memory.services.applying import Exclusion, Outcome
from memory.services.authority import Person
from memory.services.planned import clusters_of


def apply_plan(
    person: Person, account_id: UUID | None, digest: str, *, typed: int, exclude: Sequence[Exclusion] = ()
) -> list[Outcome]:
    """Applies a plan for a maintainer who has typed how many lessons go; why others stay is a comment on each.

    Applied twice it is applied once, whatever was typed then. Raises Forbidden, NotFound, Invalid naming `count` or
    `exclude`, or Conflict if the store is no longer what the plan saw.
    """
    person.need(Role.MAINTAINER, account_id)
    plan = applying.find(account_id, digest)
    if plan.applied_at is not None:
        return applying.apply(account_id, digest)
    out = {exclusion.lesson for exclusion in exclude}
    going = sum(
        cluster.keeper not in out and member.lesson not in out
        for cluster in clusters_of(plan)
        for member in cluster.members
    )
    if typed != going:
        raise Invalid.field("count", f"you typed {typed}; {count(going, 'lesson')} would be merged. Type {going}.")
    outcomes = applying.apply(account_id, digest, actor=person.actor, exclude=exclude)
    for exclusion in exclude:
        text = f"Kept when plan {digest[:8]} was applied: {exclusion.reason}"
        Comment.objects.get_or_create(subject=exclusion.lesson, author_id=person.user_id, text=text)
    return outcomes
