"""Handing out lessons: what was handed out is written in the same transaction as the answer."""

from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone

from memory import conf
from memory.models import Account, Interaction, LessonUsage, TrustEvent
from memory.models.base import present
from memory.models.rows import insert
from memory.models.vocabulary import Exposure, TrustEventKind
from memory.rules.context import FencedLesson, fence
from memory.search import EmbeddedQuery, Found, Retrieved, find
from memory.services.holding import hold
from memory.services.sampling import sampling
from memory.services.scoping import search_scope

SYSTEM = "system"


@dataclass(frozen=True, kw_only=True)
class HandedOut:
    """The answer to an interaction."""

    lessons: tuple[Found, ...]
    context: str  # the block to paste into a prompt; holds exactly these lessons
    mode: str  # 'hybrid' or 'lexical'


def look_up(account: Account, query: EmbeddedQuery, k: int) -> Retrieved:
    """The same lessons without consequences: nothing recorded, no quarantined lesson let through."""
    return find(query, search_scope(account), k, timezone.now())


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What will be handed out for an interaction, and everything that its record needs."""

    handed_out: HandedOut
    exposures: tuple[tuple[Found, Exposure, float], ...]  # each with its probability


NOTHING = Choice(handed_out=HandedOut(lessons=(), context="", mode="none"), exposures=())


def choose(interaction: UUID, account: Account, query: EmbeddedQuery, k: int) -> Choice:
    """Retrieves for an interaction that begins. What is chosen stays in the store until the transaction ends."""
    now = present()
    rule = sampling(interaction, query.text, now)
    found = find(query, search_scope(account), k, now, admits=rule.admits, withholds=rule.withholds)
    reached = [*found.chosen, *found.withheld, *found.controls]
    here = hold([f.ranked.candidate.lesson_id for f in reached])
    shown = [f for f in found.chosen if f.ranked.candidate.lesson_id in here]
    fenced = [FencedLesson(id=str(f.ranked.candidate.lesson_id), text=f.ranked.candidate.text) for f in shown]
    context, kept = fence(fenced, max_tokens=conf.current().context_tokens)
    chosen = tuple(shown[i] for i in kept)
    exposures = [(f, _exposure(f)) for f in chosen]
    exposures += [(f, Exposure.WITHHELD_TRIAL) for f in found.withheld if f.ranked.candidate.lesson_id in here]
    exposures += [(f, Exposure.WITHHELD_QUARANTINE) for f in found.controls if f.ranked.candidate.lesson_id in here]
    return Choice(
        handed_out=HandedOut(lessons=chosen, context=context, mode=found.mode),
        exposures=tuple((f, what, rule.probability(f.ranked.candidate, what)) for f, what in exposures),
    )


def record(interaction: Interaction, choice: Choice) -> None:
    """Writes every exposure, in the transaction of the choice and of the interaction."""
    insert([_usage(interaction, f, exposure, probability) for f, exposure, probability in choice.exposures])
    _journal_first_probations(interaction, choice.handed_out.lessons)


def _exposure(found: Found) -> Exposure:
    return Exposure.PROBATION if found.ranked.candidate.state == "quarantined" else Exposure.SERVED


def _usage(interaction: Interaction, found: Found, exposure: Exposure, probability: float) -> LessonUsage:
    ranked = found.ranked
    return LessonUsage(
        lesson_id=ranked.candidate.lesson_id,
        interaction=interaction,
        exposure=exposure.value,
        rank=found.rank,
        similarity=ranked.candidate.cosine,
        lexical_rank=ranked.lexical_rank,
        fused_score=ranked.score,
        probability=probability,
    )


def _journal_first_probations(interaction: Interaction, chosen: tuple[Found, ...]) -> None:
    """The journal says when probation began: at the first sample that a quarantine let through."""
    ids = [f.ranked.candidate.lesson_id for f in chosen if f.ranked.candidate.state == "quarantined"]
    for lesson_id in ids:
        kinds = (TrustEventKind.QUARANTINED, TrustEventKind.QUARANTINED_BY_REVIEWER, TrustEventKind.PROBATION_OPENED)
        last = TrustEvent.objects.filter(lesson=lesson_id, kind__in=kinds).order_by("-created_at", "-id").first()
        if last is None or last.kind != TrustEventKind.PROBATION_OPENED:
            TrustEvent.objects.create(
                lesson=lesson_id,
                kind=TrustEventKind.PROBATION_OPENED.value,
                evidence={"interaction": str(interaction.pk)},
                actor=SYSTEM,
            )
