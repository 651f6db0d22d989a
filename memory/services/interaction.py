"""Interactions: start one with the lessons that fit, and finish it with what the agent answered."""

from dataclasses import dataclass
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from pgvector import HalfVector

from memory.errors import Conflict, NotFound
from memory.models import Account, ApiKey, Fact, Interaction, Preference, Project, Session
from memory.models.base import new_id
from memory.search import EmbeddedQuery
from memory.services import distillation
from memory.services.caller import Caller
from memory.services.preference import learn
from memory.services.retrieval import HandedOut, hand_out


@dataclass(frozen=True, kw_only=True)
class Start:
    """What an agent says about the work it begins."""

    task: str
    project: str | None = None  # slug; made on first use
    session: str | None = None  # the agent's own id of its conversation; made on first use
    tier: str = ""
    model: str = ""
    k: int = 5  # lessons wanted at most
    retrieve: bool = True
    idempotency_key: str | None = None
    id: UUID | None = None  # of the interaction, where its maker needs to know it before


@dataclass(frozen=True, kw_only=True)
class Started:
    """The interaction and everything handed out with it."""

    interaction: Interaction
    handed_out: HandedOut
    preferences: list[Preference]
    facts: list[Fact]


@transaction.atomic
def start(caller: Caller, request: Start, query: EmbeddedQuery | None) -> Started:
    """Records the interaction and its exposures in one transaction. `query` is the embedded task, if retrieving."""
    account = Account.objects.get(pk=caller.account_id)
    project = _project(account, request.project)
    session = _session(account, project, request.session)
    if request.idempotency_key is not None:
        _refuse_reuse(account, request.idempotency_key)
    embedded = query is not None and query.vector is not None
    interaction = Interaction(
        id=request.id or new_id(),
        account=account,
        project=project or (session.project if session else None),
        project_explicit=project is not None,
        session=session,
        task=request.task,
        tier=request.tier,
        model=request.model,
        api_key=ApiKey(pk=caller.key_id),
        idempotency_key=request.idempotency_key,
        task_embedding=HalfVector(np.asarray(query.vector)) if query is not None and embedded else None,
        space=query.space if query is not None and embedded else None,
    )
    interaction.save(force_insert=True)
    learn(interaction)
    if query is None:
        handed_out = HandedOut(lessons=(), context="", mode="none")
    else:
        handed_out = hand_out(interaction, account, query, request.k)
    if handed_out.context:
        interaction.retrieved_context = handed_out.context
        interaction.save(update_fields=["retrieved_context"])
    return Started(
        interaction=interaction,
        handed_out=handed_out,
        preferences=current_preferences(account, interaction.project),
        facts=current_facts(account, interaction.project),
    )


def _project(account: Account, slug: str | None) -> Project | None:
    if slug is None:
        return None
    project, _ = Project.objects.get_or_create(account=account, slug=slug, defaults={"name": slug})
    return project


def _session(account: Account, project: Project | None, external_id: str | None) -> Session | None:
    if external_id is None:
        return None
    session, _ = Session.objects.get_or_create(account=account, external_id=external_id, defaults={"project": project})
    return session


def _refuse_reuse(account: Account, key: str) -> None:
    earlier = Interaction.objects.filter(account=account, idempotency_key=key).first()
    if earlier is not None:
        raise Conflict(
            f"This Idempotency-Key made interaction {earlier.pk} and is too old to replay. Use a new key.",
            {"Idempotency-Key": ["use a new key."]},
        )


def current_preferences(account: Account, project: Project | None) -> list[Preference]:
    """Enabled preferences that apply: global ones, and the project's."""
    scopes = ["global"] + ([f"project:{project.slug}"] if project else [])
    found = Preference.objects.filter(account=account, enabled=True, scope__in=scopes)
    surest = found.order_by("-confidence", "-id")[:50]  # newer first among equals: old ones do not crowd out a new one
    return sorted(surest, key=lambda preference: (preference.scope, preference.key))


def current_facts(account: Account, project: Project | None) -> list[Fact]:
    """The project's facts that are believed and valid now, newest first."""
    if project is None:
        return []
    started = Q(valid_from__isnull=True) | Q(valid_from__lte=Now())
    lasting = Q(valid_until__isnull=True) | Q(valid_until__gt=Now())
    facts = Fact.objects.filter(started, lasting, account=account, project=project, retracted_at__isnull=True)
    return list(facts.order_by("-recorded_at")[:50])


@dataclass(frozen=True, kw_only=True)
class Finish:
    """What the agent answered; a field left out stays as it is."""

    changes: dict[str, object]  # of response, tokens_in, tokens_out, token_source


@transaction.atomic
def finish(caller: Caller, interaction_id: UUID, request: Finish) -> Interaction:
    """Writes the named fields and no others. Raises NotFound for another account's interaction."""
    changed = Interaction.objects.filter(pk=interaction_id, account_id=caller.account_id).update(**request.changes)
    if not changed:
        raise NotFound("There is no such interaction in your account.")
    if "response" in request.changes:
        distillation.consider(interaction_id)
    return Interaction.objects.get(pk=interaction_id)
