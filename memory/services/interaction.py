"""Interactions: start one with the lessons that fit, and finish it with what the agent answered."""

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from pgvector import HalfVector

from memory.embedding import Vectors
from memory.errors import Conflict, NotFound
from memory.models import Account, ApiKey, Fact, Interaction, Preference, Project, Session
from memory.models.base import new_id
from memory.models.rows import Rows, insert
from memory.models.sql import fetch
from memory.search import EmbeddedQuery
from memory.services import distillation
from memory.services.caller import Caller
from memory.services.preference import learn
from memory.services.retrieval import NOTHING, HandedOut, choose, record

_ACCOUNT, _PREFERENCE = Rows(Account, "a"), Rows(Preference, "p")


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


@transaction.atomic(savepoint=False)
def start(caller: Caller, request: Start, query: EmbeddedQuery | None) -> Started:
    """Records the interaction and its exposures in one transaction. `query` is the embedded task, if retrieving.

    A refusal ends the transaction around this too.
    """
    account = _account(caller)
    project = _project(account, request.project)
    session = _session(account, project, request.session)
    if request.idempotency_key is not None:
        _refuse_reuse(account, request.idempotency_key)
    interaction = _interaction(caller, request, query)
    interaction.account, interaction.session = account, session
    interaction.project = project or (session.project if session else None)
    choice = NOTHING if query is None else choose(interaction.pk, account, query, request.k)
    interaction.retrieved_context = choice.handed_out.context
    insert([interaction])
    record(interaction, choice)
    learn(interaction)
    return Started(
        interaction=interaction,
        handed_out=choice.handed_out,
        preferences=current_preferences(account, interaction.project),
        facts=current_facts(account, interaction.project),
    )


class _Written(HalfVector):
    """A vector with its text, which the search has sent before; pgvector would write all digits of every number."""

    def __init__(self, vector: Vectors, text: str) -> None:
        super().__init__(vector)
        self._text = text

    def to_text(self) -> str:
        return self._text


def _account(caller: Caller) -> Account:
    """As it is now: whether only approved lessons are handed out may have changed since the key was read."""
    (row,) = fetch(f"SELECT {_ACCOUNT.columns} FROM account a WHERE a.id = %s", [caller.account_id])
    return _ACCOUNT.read(row)


def _interaction(caller: Caller, request: Start, query: EmbeddedQuery | None) -> Interaction:
    """The row to be, but for what it belongs to and what is handed out."""
    vector = None if query is None or query.vector is None else _Written(query.vector, query.literal or "")
    return Interaction(
        id=request.id or new_id(),
        project_explicit=request.project is not None,
        task=request.task,
        tier=request.tier,
        model=request.model,
        api_key=ApiKey(pk=caller.key_id),
        idempotency_key=request.idempotency_key,
        task_embedding=vector,
        space=query.space if query is not None and vector is not None else None,
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
    # Newer first among equals: old ones do not crowd out a new one.
    rows = fetch(
        f"SELECT {_PREFERENCE.columns} FROM preference p WHERE p.account_id = %s AND p.enabled AND p.scope = ANY(%s) "
        "ORDER BY p.confidence DESC, p.id DESC LIMIT 50",
        [account.pk, scopes],
    )
    surest = (_PREFERENCE.read(row) for row in rows)
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
