"""The agents' part of the story: lessons, work, answers, and what judges say."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.embedding.active import provider, usable_space
from memory.errors import EmbeddingUnavailable
from memory.models import Interaction, Lesson, LessonEmbedding, LessonStanding, LessonUsage, Outcome
from memory.models.base import new_id, present, told_at
from memory.models.vocabulary import COHORT, LessonState, Origin
from memory.rules.probation import ProbationConstants, admits_trial, counted_evidence, withheld_by_coin, withheld_share
from memory.rules.text import clean
from memory.search import embed_query
from memory.services import interaction, outcome
from memory.services.credit import credit
from memory.services.demo.stage import Stage, lessons_of
from memory.services.demo.story import BEGUN, MARK, PATH, Step, Told, Word, read_lessons, read_steps
from memory.services.gates import Meaning
from memory.services.importing import refresh_statistics
from memory.services.interaction import Finish, Start
from memory.services.lesson import NewLesson, store
from memory.services.space import embed

#: Ids that are drawn until one sees the exposure that the script tells: a sample of 1 in 200 is missed once in 1e10.
DRAWS: Final = 5_000


def store_lessons(stage: Stage) -> Iterator[tuple[int, int]]:
    """Stores and embeds the lessons that were there from the beginning, unless they are; yields done and total."""
    there, told = lessons_of(stage), [told for told in read_lessons() if told.ago == BEGUN]
    with told_at(stage.at(BEGUN)):
        for done, each in enumerate(told, start=1):
            if each.ref not in there:
                store(_new(stage, each))
            yield done, len(told)
    _embed(stage)
    refresh_statistics()


def _new(stage: Stage, told: Told, meaning: Meaning | None = None) -> NewLesson:
    source = None
    if told.learned_from:
        source = Interaction.objects.get(account=stage.account, idempotency_key=MARK + told.learned_from).pk
    return NewLesson(
        text=told.text,
        origin=Origin.SEEDED,
        path=PATH,
        actor="system",
        state=LessonState.CANDIDATE if told.learned_from else LessonState.ACTIVE,
        account_id=stage.scope,
        source_import=stage.run.pk,
        source_ref=told.ref,
        source_interaction=source,
        meaning=meaning,
    )


def _embed(stage: Stage) -> None:
    """Without a usable model the lessons are found by their words, and embedded in the background later."""
    try:
        space = usable_space()
        have = LessonEmbedding.objects.filter(space=space).values("lesson_id")
        embed(list(Lesson.objects.filter(pk__in=lessons_of(stage).values()).exclude(pk__in=have)), space)
    except EmbeddingUnavailable:
        return


def store_later(stage: Stage) -> None:
    """Stores what came later, with its meaning: the gates see what is like another, or vague, and ask about it."""
    there = lessons_of(stage)
    for told in read_lessons():
        if told.ago < BEGUN and told.ref not in there:
            with told_at(stage.at(told.ago)):
                store(_new(stage, told, _meaning(told.text)))
    refresh_statistics()


def _meaning(text: str) -> Meaning | None:
    try:
        return Meaning(vector=provider().embed([clean(text).strip()])[0], space=usable_space())
    except EmbeddingUnavailable:
        return None


def play(stage: Stage) -> Iterator[tuple[int, int]]:
    """Plays the script; yields how many of how many steps are done."""
    lessons, steps = lessons_of(stage), read_steps()
    said: Counter[tuple[str, str]] = Counter()
    for done, step in enumerate(steps, start=1):
        with told_at(stage.at(step.ago)), transaction.atomic():
            work = _work(stage, step, lessons)
            if work is not None:
                for word in _words(step, work, lessons):
                    said[step.key, word.source] += 1
                    _say(stage, work, word, said[step.key, word.source])
        yield done, len(steps)


def _work(stage: Stage, step: Step, lessons: Mapping[str, UUID]) -> UUID | None:
    """The step's interaction, started and answered now if it was not before; None where there is none."""
    work = Interaction.objects.filter(account=stage.account, idempotency_key=MARK + step.key).first()
    if work is None and step.task:
        request = Start(
            task=step.task,
            project=step.project,
            session=step.session,
            tier=step.tier,
            model=step.model,
            k=step.k,
            idempotency_key=MARK + step.key,
            id=_drawn(step, lessons),
        )
        work = interaction.start(stage.callers["caller"], request, embed_query(step.task)).interaction
    if work is not None and step.answer and not work.response:
        interaction.finish(stage.callers["caller"], work.pk, Finish(changes={"response": step.answer}))
    return work.pk if work else None


def _drawn(step: Step, lessons: Mapping[str, UUID]) -> UUID:
    """An id for which the coin falls as the script tells, where one decides: every demo store tells the same story."""
    lesson = lessons.get(step.about.lesson) if step.about else None
    standing = LessonStanding.objects.filter(pk=lesson).select_related("lesson").first()
    if step.about is None or standing is None or conf.current().trust_policy != "trial":
        return new_id()
    drawn = new_id()
    for drawn in islice(iter(new_id, None), DRAWS):
        if _is_held_back(standing, drawn) == (step.about.exposure == "withheld"):
            break
    return drawn


def _is_held_back(standing: LessonStanding, interaction: UUID) -> bool:
    settings = conf.current()
    constants = ProbationConstants(after_hours=settings.probation_after_hours, share=settings.probation_share)
    if standing.quarantined_at is None:
        counted = counted_evidence(standing.s or 0.0, released_s=standing.released_s, trial_odds=settings.trial_odds)
        share = withheld_share(counted, constants)
        return standing.on_trial and withheld_by_coin(lesson=standing.lesson_id, interaction=interaction, share=share)
    return not admits_trial(
        lesson=standing.lesson_id,
        interaction=interaction,
        hours_since_entry=(present() - standing.quarantined_at).total_seconds() / 3600,
        d=standing.d or 0.0,
        constants=constants,
    )


def _words(step: Step, work: UUID, lessons: Mapping[str, UUID]) -> tuple[Word, ...]:
    if step.about is None or step.about.lesson not in lessons:
        return step.says
    usages = LessonUsage.objects.filter(interaction_id=work, lesson_id=lessons[step.about.lesson])
    handed_out = usages.filter(exposure__in=COHORT).exists()
    word = step.about.with_it if handed_out else step.about.without_it
    return (*([word] if word else []), *step.says)


def _say(stage: Stage, work: UUID, word: Word, place: int) -> None:
    """Reports the judge's word unless it was reported before: it is that source's `place`th on this work."""
    if Outcome.objects.filter(interaction_id=work, source=word.source).count() < place:
        outcome.report(stage.callers[word.source], work, word.signal, word.detail)
    if Outcome.objects.filter(interaction_id=work, credited_at__isnull=True).exists():
        credit(work)
