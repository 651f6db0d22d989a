"""Who plays, and what is there already."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q

from memory.errors import Conflict
from memory.models import (
    Account,
    ApiKey,
    Fact,
    ImportRun,
    Interaction,
    Lesson,
    LessonEmbedding,
    LessonStanding,
    Membership,
    Outcome,
    Preference,
    Project,
    ReviewItem,
    TrustEvent,
)
from memory.models.base import told_at
from memory.models.scope import scoped
from memory.models.vocabulary import LessonState, ReviewPolicy, ReviewStatus, Role, TrustEventKind
from memory.rules.text import clean, digest
from memory.services import authority, keys
from memory.services.authority import Person
from memory.services.caller import Caller
from memory.services.demo import story
from memory.services.scoping import lesson_account


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Who plays, and when the story is told."""

    account: Account
    callers: Mapping[str, Caller]  # by source
    ana: Person
    run: ImportRun

    @property
    def scope(self) -> UUID | None:
        """The account that the lessons belong to; None where lessons are global."""
        return lesson_account(self.account.pk)

    def at(self, ago: float) -> datetime:
        """A moment of the story, in days before it was first told: an interrupted one goes on in the same time."""
        return self.run.created_at - timedelta(days=ago)


def set_up() -> Stage:
    """The account with its keys, person, projects, preferences and facts; what is there stays.

    Raises Conflict if the account is gated.
    """
    _refuse_gated()
    run = story.run() or _begin()
    with told_at(run.created_at - timedelta(days=story.BEGUN)):
        defaults = {"name": "Demo", "review_policy": ReviewPolicy.AUTO.value}
        account, _ = Account.objects.get_or_create(slug=story.ACCOUNT, defaults=defaults)
        projects = [
            Project.objects.get_or_create(account=account, slug=slug, defaults={"name": name})[0]
            for slug, name in story.PROJECTS.items()
        ]
        for scope, key, text in story.PREFERENCES:
            values = {"text": text, "confidence": 0.5, "evidence_count": 1, "enabled": True, "revision": 1}
            Preference.objects.get_or_create(account=account, scope=scope, key=key, defaults=values)
        for key, text in story.FACTS:
            if not Fact.objects.filter(project=projects[0], key=key).exists():
                Fact.objects.create(account=account, project=projects[0], key=key, text=text)
        callers = {source: _caller(account, source) for source in story.SOURCES}
        return Stage(account=account, callers=callers, ana=_ana(account), run=run)


def _refuse_gated() -> None:
    if Account.objects.filter(slug=story.ACCOUNT).exclude(review_policy=ReviewPolicy.AUTO.value).exists():
        raise Conflict(
            f"The account '{story.ACCOUNT}' is handed reviewed lessons only. Set its review policy to auto first."
        )


def _begin() -> ImportRun:
    sha256 = hashlib.sha256(story.LESSONS.read_bytes()).hexdigest()
    return ImportRun.objects.create(name=story.RUN, sha256=sha256, actor="system")


def _caller(account: Account, source: str) -> Caller:
    key = ApiKey.objects.filter(account=account, outcome_source=source, revoked_at__isnull=True).first()
    # The secret of a new key is told to nobody: only this script plays with it.
    return keys.caller_of(
        key or keys.create_key(account, name=f"{story.KEY}{source}", source=source, scopes=["loop", "read"]).key
    )


def _ana(account: Account) -> Person:
    """A reviewer without a password."""
    users = get_user_model().objects
    user = users.filter(username=story.PERSON).first() or users.create_user(story.PERSON)
    Membership.objects.get_or_create(account=account, user=user, defaults={"role": Role.REVIEWER.value})
    return authority.person(user.pk, story.PERSON)


def lessons_of(stage: Stage) -> dict[str, UUID]:
    """The stored lessons of the file, by their id in it."""
    digests = {digest(clean(told.text)): told.ref for told in story.read_lessons()}
    rows = Lesson.objects.filter(scoped(stage.scope), text_sha256__in=digests).values_list("text_sha256", "pk")
    return {digests[text_sha256]: pk for text_sha256, pk in rows}


def summary(stage: Stage) -> dict[str, Any]:
    """What the store shows of it now, as JSON."""
    lessons = Lesson.objects.filter(pk__in=lessons_of(stage).values())
    work = Interaction.objects.filter(account=stage.account, idempotency_key__startswith=story.MARK)
    said = Outcome.objects.filter(interaction__in=work)
    freed = TrustEvent.objects.filter(kind=TrustEventKind.REHABILITATED).values("lesson")
    tested = LessonStanding.objects.filter(on_trial=True).values("lesson")
    waiting = ReviewItem.objects.filter(status=ReviewStatus.OPEN.value).values_list("kind", flat=True)
    return {
        "account": stage.account.slug,
        "lessons": lessons.count(),
        "embedded": LessonEmbedding.objects.filter(lesson__in=lessons, space__is_active=True).count(),
        "interactions": work.count(),
        "not_judged": work.filter(~Q(pk__in=said.values("interaction"))).count(),
        "outcomes": said.count(),
        "wins": said.filter(reward__gt=0).count(),
        "losses": said.filter(reward__lt=0).count(),
        "corrected": said.filter(sequence__gt=1, reward__gt=0).count(),
        "retracted": said.filter(signal="retracted").count(),
        "on_trial": list(lessons.filter(pk__in=tested).values_list("text", flat=True)),
        "quarantined": list(lessons.filter(state=LessonState.QUARANTINED).values_list("text", flat=True)),
        "rehabilitated": list(lessons.filter(pk__in=freed).values_list("text", flat=True)),
        "preferences": Preference.objects.filter(account=stage.account).count(),
        "facts": Fact.objects.filter(account=stage.account, retracted_at__isnull=True).count(),
        "questions": {kind: list(waiting).count(kind) for kind in sorted(set(waiting))},
    }
