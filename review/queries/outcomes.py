"""Work and what is said of it: the next piece worth judging, what a judge needs to see, and how often judges agree."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Exists, FloatField, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Now

from memory.models import Adjudication, Interaction, Lesson, LessonStanding, LessonUsage, Outcome, ReviewItem
from memory.models.sql import fetch
from memory.models.vocabulary import COHORT, OutcomeSource, ReviewKind, ReviewStatus, Role, Verdict
from memory.rules.information import in_words, judged_blind
from memory.services.authority import Person
from memory.services.bulk_decisions import versions
from memory.services.judging import KINDS, SKIPPED, VALUE
from memory.services.questions import UNRESOLVED
from memory.services.weighing import Weighed, weigh
from review.queries.agreement import Agreement

RETRACTED: Final = "retracted"
LATEST: Final = 500  # of a person's judgements that the running agreement looks back on


@dataclass(frozen=True, kw_only=True)
class Vote:
    """What one judge says of the work."""

    who: str  # a person, an agent's key or a kind of judge
    source: str
    signal: str
    at: datetime
    note: str
    latest: bool  # of its source: it counts unless a stronger source speaks
    person: int | None  # user id, where a person judged in the browser

    @property
    def worked(self) -> bool | None:
        """None where it was taken back."""
        return None if self.signal == RETRACTED else self.signal not in ("rejected", "failed")


@dataclass(frozen=True, kw_only=True)
class Served:
    """A lesson that the work was handed."""

    number: int  # from 1, also its key
    lesson: Lesson
    usage: LessonUsage
    weighed: Weighed | None  # None where nothing hangs on it
    version: int  # what a decision about it must still find
    excused: bool
    hidden: bool  # what a program said of this very work is withheld

    @property
    def wins(self) -> int:
        """Of its judged work. Of work that is judged blind its own verdict is not among them, nor below."""
        return (self.standing.wins if self.standing else 0) - (self._itself and not self._lost)

    @property
    def losses(self) -> int:
        return (self.standing.losses if self.standing else 0) - (self._itself and self._lost)

    @property
    def _itself(self) -> bool:
        """Whether the lesson's record counts this work, and must not here."""
        return self.hidden and bool(self.usage.weight) and self.standing is not None

    @property
    def _lost(self) -> bool:
        return self.usage.reward is not None and self.usage.reward < 0

    @property
    def key(self) -> str:
        return str(self.number)

    @property
    def standing(self) -> LessonStanding | None:
        return standing_of(self.lesson)

    @property
    def may_excuse(self) -> bool:
        """Only a credited loss can be taken out of a lesson's ledger."""
        return self.usage.reward is not None and self.usage.reward < 0 and not self.excused


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A piece of work as a judge sees it. What is hidden from a blind judge is not in here."""

    interaction: Interaction
    hidden: bool  # the machine's verdict, until a person has judged
    votes: tuple[Vote, ...]  # newest first
    served: tuple[Served, ...]

    @property
    def caller(self) -> Vote | None:
        """The word of a person or an agent with judgement that stands."""
        return self._standing(OutcomeSource.CALLER.value)

    @property
    def machine(self) -> Vote | None:
        return self._standing(OutcomeSource.MACHINE.value)

    def _standing(self, source: str) -> Vote | None:
        vote = next((vote for vote in self.votes if vote.source == source and vote.latest), None)
        return vote if vote and vote.worked is not None else None

    @property
    def disputed(self) -> bool:
        return self.caller is not None and self.machine is not None and self.caller.worked != self.machine.worked

    @property
    def sides(self) -> tuple[Vote, ...]:
        """The caller's word and the machine's, as they stand."""
        return tuple(vote for vote in (self.caller, self.machine) if vote is not None)

    @property
    def at_stake(self) -> str:
        """What hangs on the verdict, in words."""
        ranked = sorted((s for s in self.served if s.weighed), key=lambda s: -_value(s))
        crossing = [s for s in ranked if _value(s) >= 0.5][:2] or ranked[:1]
        return " ".join(filter(None, (in_words(s.weighed.information, _name(s)) for s in crossing if s.weighed)))


def standing_of(lesson: Lesson) -> LessonStanding | None:
    """The standing that was read with the lesson; None while nobody has judged its work."""
    return getattr(lesson, "lessonstanding", None)


def _value(served: Served) -> float:
    return served.weighed.information.value if served.weighed else 0.0


def _name(served: Served) -> str:
    text = served.lesson.text
    return f"“{text if len(text) <= 60 else text[:59].rstrip() + '…'}”"


def show(interaction: Interaction) -> Shown:
    """Everything about one piece of work, in seven reads."""
    said = list(interaction.outcome_set.select_related("judge", "api_key").order_by("-created_at", "-id"))
    latest = {(o.source, max(p.sequence for p in said if p.source == o.source)) for o in said}
    judged = any(o.source == "caller" and o.signal != RETRACTED and (o.source, o.sequence) in latest for o in said)
    hidden = judged_blind(interaction.pk) and not judged
    seen = [o for o in said if o.source == OutcomeSource.CALLER or not hidden]
    votes = [_vote(outcome, (outcome.source, outcome.sequence) in latest) for outcome in seen]
    return Shown(
        interaction=interaction,
        hidden=hidden,
        votes=tuple(sorted([*votes, *_confirmations(interaction.pk, seen)], key=lambda vote: vote.at, reverse=True)),
        served=tuple(_served(interaction.pk, hidden)),
    )


def _vote(outcome: Outcome, latest: bool) -> Vote:
    return Vote(
        who=outcome.judge.get_username() if outcome.judge else (outcome.api_key.name if outcome.api_key else ""),
        source=outcome.source,
        signal=outcome.signal,
        at=outcome.created_at,
        note=outcome.detail,
        latest=latest,
        person=outcome.judge_id,
    )


def _confirmations(interaction: UUID, said: Iterable[Outcome]) -> list[Vote]:
    """People who judged as somebody had before them: the store holds no second row of it, their decision does."""
    judges = {str(outcome.pk): outcome.judge_id for outcome in said}
    made = Adjudication.objects.filter(
        subject=interaction, verdict=Verdict.JUDGE_OUTCOME.value, adjudication__isnull=True
    ).select_related("reviewer")
    return [
        Vote(
            who=decision.reviewer.get_username(),
            source=OutcomeSource.CALLER.value,
            signal=decision.before["signal"],
            at=decision.created_at,
            note=decision.note,
            latest=False,
            person=decision.reviewer_id,
        )
        for decision in made
        if judges.get(decision.before["outcome"]) != decision.reviewer_id
    ]


def _served(interaction: UUID, hidden: bool) -> list[Served]:
    rows = LessonUsage.objects.filter(interaction=interaction, exposure__in=COHORT).order_by("rank")
    usages = list(rows.select_related("lesson__lessonstanding"))
    weighed = {w.lesson: w for w in weigh([interaction], [interaction] if hidden else ()).get(interaction, ())}
    seen, excused = versions([usage.lesson_id for usage in usages]), _excused([usage.pk for usage in usages])
    return [
        Served(
            number=number,
            lesson=usage.lesson,
            usage=usage,
            weighed=weighed.get(usage.lesson_id),
            version=seen[usage.lesson_id],
            excused=usage.pk in excused,
            hidden=hidden,
        )
        for number, usage in enumerate(usages, start=1)
    ]


def _excused(usages: Sequence[UUID]) -> set[UUID]:
    statement = """
        SELECT usage_id FROM usage_exemption x WHERE usage_id = ANY(%s) AND reverts_id IS NULL
            AND NOT EXISTS (SELECT 1 FROM usage_exemption r WHERE r.reverts_id = x.id)
    """
    return {usage for (usage,) in fetch(statement, [list(usages)])}


def queue(person: Person) -> QuerySet[ReviewItem]:
    """Open questions that this person may be offered, the one whose answer would change most first.

    What they could not tell about is left out, and so are disputes in which the word that stands is their own.
    """
    accounts = person.accounts(Role.JUDGE)
    mine = Q() if accounts is None else Q(account__in=accounts)
    there = Exists(Interaction.objects.filter(pk=OuterRef("subject")))
    items = ReviewItem.objects.filter(mine, there, kind__in=KINDS, status=ReviewStatus.OPEN.value)
    own = Outcome.objects.filter(judge=person.user_id, source="caller").values("interaction")
    return (
        items.exclude(priority_parts__contains={SKIPPED: [person.user_id]})
        .exclude(kind=ReviewKind.OUTCOME_CONFLICT.value, subject__in=own)
        .alias(value=Cast(KeyTextTransform(VALUE, "priority_parts"), FloatField()))
        .order_by("-value", "created_at", "id")
    )


def free(person: Person) -> QuerySet[ReviewItem]:
    """Those of the queue that nobody else holds; what the person holds already comes first by itself."""
    return queue(person).filter(
        Q(claimed_by__isnull=True) | Q(claimed_by=person.user_id) | Q(claim_expires_at__lte=Now())
    )


def open_item(interaction: UUID) -> ReviewItem | None:
    """The unresolved question about a piece of work."""
    items = ReviewItem.objects.filter(subject=interaction, kind__in=KINDS, status__in=UNRESOLVED)
    return items.select_related("claimed_by").order_by("-priority").first()


def running(person: Person) -> tuple[Agreement, Agreement]:
    """How often the person's latest judgements agree with the machine: all of them, and those that they made blind.

    Only the second is an independent comparison.
    """
    made = Adjudication.objects.filter(
        reviewer=person.user_id, verdict=Verdict.JUDGE_OUTCOME.value, adjudication__isnull=True
    )
    said: dict[UUID, bool] = {}
    for subject, before in made.order_by("-created_at").values_list("subject", "before")[:LATEST]:
        said.setdefault(subject, before["signal"] == "accepted")
    machine = _machine(said)
    return _agreement(said, machine), _agreement({pk: won for pk, won in said.items() if judged_blind(pk)}, machine)


def _machine(interactions: Collection[UUID]) -> dict[UUID, bool]:
    """Where the machine's latest word stands: whether it says that the work succeeded."""
    rows = fetch(
        """
        SELECT s.id, m.reward > 0 FROM unnest(%s::uuid[]) AS s(id) CROSS JOIN LATERAL (
            SELECT reward FROM outcome WHERE interaction_id = s.id AND source = 'machine' ORDER BY sequence DESC LIMIT 1
        ) m WHERE m.reward <> 0
        """,
        [list(interactions)],
    )
    return dict(rows)


def _agreement(said: dict[UUID, bool], machine: dict[UUID, bool]) -> Agreement:
    both = [(won, machine[pk]) for pk, won in said.items() if pk in machine]
    return Agreement(
        both_won=both.count((True, True)),
        only_caller_won=both.count((True, False)),
        only_machine_won=both.count((False, True)),
        both_lost=both.count((False, False)),
    )


def judged_today(person: Person) -> int:
    """How much work they have judged since midnight, UTC."""
    made = Adjudication.objects.filter(reviewer=person.user_id, verdict=Verdict.JUDGE_OUTCOME.value)
    ((midnight,),) = fetch("SELECT date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'")
    return made.filter(created_at__gte=midnight, adjudication__isnull=True).count()
