"""Handing out lessons: what was handed out is written in the same transaction as the answer."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from memory import conf
from memory.models import Account, Interaction, LessonUsage, TrustEvent
from memory.models.vocabulary import Exposure, TrustEventKind
from memory.rules.context import FencedLesson, fence
from memory.rules.probation import ProbationConstants, admits_reference
from memory.search import Candidate, EmbeddedQuery, Found, Retrieved, find
from memory.services.scoping import search_scope
from memory.services.task_digest import task_digest

SYSTEM = "system"


@dataclass(frozen=True, kw_only=True)
class HandedOut:
    """The answer to an interaction."""

    lessons: tuple[Found, ...]
    context: str  # the block to paste into a prompt; holds exactly these lessons
    mode: str  # 'hybrid' or 'lexical'


@dataclass(frozen=True, kw_only=True)
class Probation:
    """Policy `reference`: a fixed sample of tasks lets a quarantined lesson through, some time after its last loss."""

    digest: str  # of the task
    now: datetime
    constants: ProbationConstants

    def waited(self, candidate: Candidate) -> bool:
        """Whether the pause since the last loss is over."""
        since = candidate.last_loss_at
        return since is None or self.now - since >= timedelta(hours=self.constants.after_hours)

    def admits(self, candidate: Candidate) -> bool:
        since = candidate.last_loss_at
        hours = (self.now - since).total_seconds() / 3600 if since else self.constants.after_hours
        return admits_reference(
            lesson=candidate.lesson_id,
            task_digest=self.digest,
            hours_since_loss=max(0.0, hours),
            after_hours=self.constants.after_hours,
            share=self.constants.share,
        )

    def withheld_probability(self, candidate: Candidate) -> float:
        """Probability of being held back, as the sample has it: certain during the pause."""
        return 1 - self.constants.share if self.waited(candidate) else 1.0


def probation_for(task: str, now: datetime) -> Probation:
    """The sampling rule in force for one task."""
    settings = conf.current()
    constants = ProbationConstants(after_hours=settings.probation_after_hours, share=settings.probation_share)
    return Probation(digest=task_digest(task), now=now, constants=constants)


def look_up(account: Account, query: EmbeddedQuery, k: int) -> Retrieved:
    """The same lessons without consequences: nothing recorded, no quarantined lesson let through."""
    return find(query, search_scope(account), k, timezone.now())


def hand_out(interaction: Interaction, account: Account, query: EmbeddedQuery, k: int) -> HandedOut:
    """Retrieves for an interaction and records every exposure. Runs in the interaction's transaction."""
    now = timezone.now()
    probation = probation_for(interaction.task, now)
    found = find(query, search_scope(account), k, now, probation.admits)
    shown = [FencedLesson(id=str(f.ranked.candidate.lesson_id), text=f.ranked.candidate.text) for f in found.chosen]
    context, fitting = fence(shown, max_tokens=conf.current().context_tokens)
    chosen = found.chosen[:fitting]
    rows = [_usage(interaction, f, *_exposure(f, probation)) for f in chosen]
    rows += [
        _usage(interaction, f, Exposure.WITHHELD_QUARANTINE, probation.withheld_probability(f.ranked.candidate))
        for f in found.controls
    ]
    LessonUsage.objects.bulk_create(rows)
    _journal_first_probations(interaction, chosen)
    return HandedOut(lessons=chosen, context=context, mode=found.mode)


def _exposure(found: Found, probation: Probation) -> tuple[Exposure, float]:
    if found.ranked.candidate.state == "quarantined":
        return Exposure.PROBATION, probation.constants.share
    return Exposure.SERVED, 1.0


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
