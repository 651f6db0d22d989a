"""Applying a plan for pruning, cluster by cluster, and undoing it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from memory import conf
from memory.errors import Conflict, Forbidden, Invalid, NotFound
from memory.models import Lesson, Membership, PruneArchive, PrunePlan
from memory.models.scope import scoped
from memory.models.sql import fetch
from memory.models.vocabulary import Exposure, LessonState, Role, TombstoneReason, TrustEventKind
from memory.rules.pruning import Cluster
from memory.services import merging, pruning, questions, tombstone
from memory.services.contradiction import keep_both
from memory.services.evidence import Occasion
from memory.services.merging import Exempted
from memory.services.pairs import Where
from memory.services.planned import changes, clusters_of, lessons_of
from memory.services.quarantine import evaluate, journal
from memory.services.rejection import looked_at
from memory.services.scoping import lock_scope

SYSTEM = "system"


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """A lesson that somebody takes out of a plan: it is kept, and no later plan proposes it with the same others."""

    lesson: UUID
    reason: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one cluster. Either everything in it that was not excluded went into the keeper, or nothing."""

    keeper: UUID
    pruned: tuple[UUID, ...] = ()
    excluded: tuple[UUID, ...] = ()
    skipped: dict[UUID, str] = field(default_factory=dict)  # what had changed since the plan, by lesson

    def to_json(self) -> dict[str, Any]:
        return {
            "keeper": str(self.keeper),
            "pruned": [str(lesson) for lesson in self.pruned],
            "excluded": [str(lesson) for lesson in self.excluded],
            "skipped": {str(lesson): reason for lesson, reason in self.skipped.items()},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Outcome":
        return cls(
            keeper=UUID(data["keeper"]),
            pruned=tuple(map(UUID, data["pruned"])),
            excluded=tuple(map(UUID, data["excluded"])),
            skipped={UUID(lesson): reason for lesson, reason in data["skipped"].items()},
        )


def find(account_id: UUID | None, digest: str) -> PrunePlan:
    """The scope's plan of this digest. Raises NotFound."""
    account = None if account_id is None else str(account_id)
    plan = PrunePlan.objects.filter(digest=digest, states__account=account).first()
    if plan is None:
        raise NotFound("There is no plan with this digest. Get the current one.")
    return plan


def apply(
    account_id: UUID | None, digest: str, *, actor: str = SYSTEM, exclude: Sequence[Exclusion] = ()
) -> list[Outcome]:
    """Applies a plan; see `applying`."""
    return list(applying(account_id, digest, actor=actor, exclude=exclude))


def applying(
    account_id: UUID | None, digest: str, *, actor: str = SYSTEM, exclude: Sequence[Exclusion] = ()
) -> Iterator[Outcome]:
    """Applies a plan, a transaction for each cluster; a cluster that changed meanwhile is skipped, and it says why.

    Applied twice it is applied once, and answers the same; interrupted it goes on. Raises NotFound, Invalid naming
    `exclude`, and Conflict if the store is no longer what the plan saw.
    """
    plan = find(account_id, digest)
    if plan.applied_at is not None:
        yield from map(Outcome.from_json, plan.states["outcome"])
        return
    where = pruning.scope(account_id)
    wanted = [_without(cluster, exclude) for cluster in _checked(plan, exclude)]
    _refuse_moved(plan, where, [cluster for cluster, _ in wanted if cluster.members])
    _keep_apart(plan, exclude, int(actor[5:]) if actor.startswith("user:") else None)
    outcomes = []
    for cluster, excluded in wanted:
        outcomes.append(_apply(plan, where, cluster, excluded, actor))
        yield outcomes[-1]
    if any(outcome.pruned for outcome in outcomes):
        _finish(plan, outcomes)


def _checked(plan: PrunePlan, exclude: Sequence[Exclusion]) -> list[Cluster]:
    found = clusters_of(plan)
    known = {lesson for cluster in found for lesson in lessons_of(cluster)}
    for exclusion in exclude:
        if exclusion.lesson not in known:
            raise Invalid.field("exclude", f"{exclusion.lesson} is not in this plan.")
        if not exclusion.reason.strip():
            raise Invalid.field("exclude", f"say why {exclusion.lesson} is to be kept.")
    return found


def _without(cluster: Cluster, exclude: Sequence[Exclusion]) -> tuple[Cluster, tuple[UUID, ...]]:
    """The cluster without what is excluded, and what that was; without its keeper nothing is left of it."""
    named = {exclusion.lesson for exclusion in exclude}
    out = tuple(lesson for lesson in lessons_of(cluster) if lesson in named)
    left = tuple(m for m in cluster.members if m.lesson not in named) if cluster.keeper not in named else ()
    return Cluster(keeper=cluster.keeper, members=left), out


def moved(plan: PrunePlan, where: Where, clusters: Sequence[Cluster]) -> dict[UUID, str]:
    """What of these clusters is not as the plan saw it, by lesson; empty if they can be applied. See `changes`.

    Raises Conflict if the space or its threshold is another.
    """
    known = (str(where.space.pk), where.space.prune_similarity)
    if (plan.states["space"], plan.states["prune_similarity"]) != known:
        raise Conflict("The embedding space or its threshold is another by now. Get a new plan.")
    changed = changes(plan, where, clusters)
    # Read after the changes: what another call has applied by now is not a change but a part of this plan.
    done = set(PruneArchive.objects.filter(plan=plan).values_list("lesson", flat=True))
    return {
        lesson: changed[lesson]
        for cluster in clusters
        if not any(member.lesson in done for member in cluster.members)
        for lesson in lessons_of(cluster)
        if lesson in changed
    }


def _refuse_moved(plan: PrunePlan, where: Where, clusters: Sequence[Cluster]) -> None:
    """Raises Conflict if the plan's space, threshold or lessons are not what they were."""
    found = moved(plan, where, clusters)
    if found:
        listed = [f"{lesson}: {reason}" for lesson, reason in sorted(found.items())]
        raise Conflict(f"The store has moved since this plan: {len(found)} lessons. Get a new one.", {"digest": listed})


def _keep_apart(plan: PrunePlan, exclude: Sequence[Exclusion], reviewer: int | None) -> None:
    """Notes what is excluded as decided, so that the next plan does not ask again."""
    named = {exclusion.lesson for exclusion in exclude}
    for cluster in clusters_of(plan):
        lessons = Lesson.objects.in_bulk(lessons_of(cluster)) if named & set(lessons_of(cluster)) else {}
        for member in cluster.members:
            if (named & {cluster.keeper, member.lesson}) and {cluster.keeper, member.lesson} <= lessons.keys():
                keep_both(lessons[cluster.keeper], lessons[member.lesson], member.cosine, reviewer)


@transaction.atomic
def _apply(plan: PrunePlan, where: Where, cluster: Cluster, excluded: tuple[UUID, ...], actor: str) -> Outcome:
    """One cluster under lock: everything, or nothing with the reasons."""
    lock_scope(where.account_id)
    lessons = lessons_of(cluster)
    done = PruneArchive.objects.filter(plan=plan, lesson__in=lessons, kind=merging.LESSON)
    if applied := tuple(sorted(done.values_list("lesson", flat=True))):
        return Outcome(keeper=cluster.keeper, pruned=applied, excluded=excluded)
    if not cluster.members:
        return Outcome(keeper=cluster.keeper, excluded=excluded)
    hold(lessons)
    if changed := changes(plan, where, [cluster]):
        return Outcome(keeper=cluster.keeper, excluded=excluded, skipped=changed)
    beside: set[UUID] = set()
    for member in cluster.members:
        try:
            beside |= prune(plan, cluster.keeper, member.lesson, member.cosine, actor)
        except Exempted:
            transaction.set_rollback(True)  # also what went into the keeper before
            return Outcome(keeper=cluster.keeper, excluded=excluded, skipped={member.lesson: "exempted"})
    judge_again(cluster.keeper, beside - set(lessons), where.account_id)
    return Outcome(keeper=cluster.keeper, pruned=tuple(m.lesson for m in cluster.members), excluded=excluded)


def hold(lessons: Sequence[UUID]) -> None:
    """Lets nobody hand these lessons out, change them or merge them until the transaction ends."""
    fetch("SELECT id FROM lesson WHERE id = ANY(%s) ORDER BY id FOR UPDATE", [list(lessons)])


def prune(plan: PrunePlan, keeper: UUID, member: UUID, cosine: float, actor: str, reason: str = "") -> frozenset[UUID]:
    """Buries a member and gives its evidence to the keeper; returns whose cohort became smaller.

    Runs under the scope's lock with both lessons held. Raises Exempted; the transaction must be rolled back then.
    """
    expires = timezone.now() + timedelta(days=conf.current().prune_archive_days)
    tombstone.write(member, TombstoneReason.NEAR_DUPLICATE_PRUNED, keeper)
    tombstone.inherit(member, keeper)
    questions.withdraw_about([member])
    merged = merging.merge(plan, keeper, member, expires)
    evidence = {"plan": plan.digest, "similarity": cosine, "rows": merged.moved, "shared": merged.shared}
    evidence |= {"reason": reason} if reason else {}
    journal(member, TrustEventKind.PRUNED, {**evidence, "keeper": str(keeper)}, actor)
    journal(keeper, TrustEventKind.MERGED, {**evidence, "lesson": str(member)}, actor)
    return merged.beside


def judge_again(keeper: UUID, beside: set[UUID], account_id: UUID | None) -> None:
    """The keeper's new evidence decides about it at once; what was handed out beside it is looked at."""
    losses = Occasion(exposure=Exposure.SERVED.value, weight=Decimal(1), loss=1, weight_before=Decimal(1))
    nothing = Occasion(exposure=Exposure.SERVED.value, weight=Decimal(0), loss=None)
    evaluate({keeper: losses, **dict.fromkeys(beside, nothing)}, account_id)


def _finish(plan: PrunePlan, outcomes: Sequence[Outcome]) -> None:
    """Marks the plan as applied, if no other call was faster."""
    states = {**plan.states, "outcome": [outcome.to_json() for outcome in outcomes]}
    PrunePlan.objects.filter(pk=plan.pk, applied_at__isnull=True).update(applied_at=timezone.now(), states=states)


def restore(account_id: UUID | None, digest: str, *, reviewer: int, reason: str = "") -> list[UUID]:
    """Undoes an applied plan: its lessons come back with their rows, their tombstones go. Returns the lessons.

    Only a maintainer may, while the archive keeps them. What was erased since does not come back. No later plan
    proposes the same again. Raises Forbidden, NotFound, or Conflict if nothing is left to undo, or a later plan has
    to be undone first.
    """
    _need_maintainer(account_id, reviewer)
    plan = find(account_id, digest)
    lessons = archived(plan)
    for lesson in lessons:
        with transaction.atomic():
            lock_scope(account_id)
            if PruneArchive.objects.filter(plan=plan, lesson=lesson).exists():  # else another call was faster
                keeper, cosine = bring_back(plan, lesson, reviewer=reviewer, reason=reason)
                _keep_both(lesson, keeper, cosine, reviewer)
    return lessons


def _need_maintainer(account_id: UUID | None, reviewer: int) -> None:
    person = get_user_model().objects.filter(pk=reviewer, is_active=True).first()
    roles = Membership.objects.filter(user_id=reviewer, role=Role.MAINTAINER.value)
    if account_id is not None:
        roles = roles.filter(scoped(account_id))
    if person is None or not (person.is_superuser or roles.exists()):
        raise Forbidden("Only a maintainer may undo a plan.")


def archived(plan: PrunePlan) -> list[UUID]:
    """The lessons of a plan that can come back, in the order in which they do: the last one that went comes first.

    Raises Conflict if there are none, or if what they were merged into was merged itself.
    """
    kept = PruneArchive.objects.filter(plan=plan, kind=merging.LESSON, expires_at__gt=timezone.now())
    lessons = list(kept.order_by("-pk").values_list("lesson", flat=True))
    if not lessons:
        days = conf.current().prune_archive_days
        raise Conflict(f"There is nothing to undo: a plan that was applied can be undone once, within {days} days.")
    keepers = _keepers(plan)
    went_on = PruneArchive.objects.filter(kind=merging.LESSON, lesson__in=[keepers[lesson][0] for lesson in lessons])
    if later := went_on.select_related("plan").first():
        raise Conflict(f"A later plan merged what this one kept. Undo {later.plan.digest} first.")
    return lessons


def _keepers(plan: PrunePlan) -> dict[UUID, tuple[UUID, float]]:
    """What each member was merged into, and how near the two are."""
    return {m.lesson: (cluster.keeper, m.cosine) for cluster in clusters_of(plan) for m in cluster.members}


def bring_back(plan: PrunePlan, lesson: UUID, *, reviewer: int, reason: str = "") -> tuple[UUID, float]:
    """Puts a merged lesson back as it was, with its rows; returns what it had become part of, and how near that is.

    Runs under the scope's lock. A value that was quarantined is known as that again.
    """
    keeper, cosine = _keepers(plan)[lesson]
    owners = merging.unmerge(plan, lesson)
    lifted = tombstone.lift(lesson, TombstoneReason.NEAR_DUPLICATE_PRUNED)
    back = Lesson.objects.get(pk=lesson)
    if back.state == LessonState.QUARANTINED:
        tombstone.write(lesson, TombstoneReason.QUARANTINED)
    evidence = {"plan": plan.digest, "keeper": str(keeper), "tombstones_lifted": lifted}
    evidence |= {"reason": reason} if reason else {}
    journal(lesson, TrustEventKind.RESTORED_BY_REVIEWER, evidence, f"user:{reviewer}")
    evaluate(dict.fromkeys([lesson, *owners], looked_at()), back.account_id)
    return keeper, cosine


def _keep_both(lesson: UUID, keeper: UUID, cosine: float, reviewer: int) -> None:
    """A person has said that these two are not the same: no later plan proposes it."""
    there = Lesson.objects.in_bulk([lesson, keeper])
    if len(there) == 2:
        keep_both(there[lesson], there[keeper], cosine, reviewer)
