"""Embedding spaces: opened with their indexes, filled in the background, changed only by `reembed`."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog
from django.contrib.postgres.functions import RandomUUID
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone
from pgvector import HalfVector

from memory.embedding.active import provider, usable_space
from memory.embedding.base import embed_each
from memory.embedding.presets import preset_for
from memory.errors import Invalid
from memory.models import EmbeddingSpace, JobRun, Lesson, LessonEmbedding
from memory.models.lesson import SIMILARITIES
from memory.models.vocabulary import OperatorAction
from memory.services import acts, tombstone
from memory.services.holding import hold
from memory.services.scoping import lock_all

INDEXED_STATES = ("active", "quarantined")
BATCH = 64  # texts embedded at once; bounds memory
M = 16
EF_CONSTRUCTION = 64
REFUSED: Final = "embedding_refused"  # the job runs that name what a model refused
#: A server that is set up anew may take a text tomorrow that it refuses today; asking at every sweep would cost a few
#: requests a text, every half minute.
PARKED_FOR: Final = timedelta(hours=1)

log = structlog.get_logger(__name__)


def index_name(space: EmbeddingSpace, state: str) -> str:
    """At most 63 characters, PostgreSQL's limit."""
    return f"lesson_embedding_{space.pk.hex}_{state}"


def index_definition(space: EmbeddingSpace, state: str) -> str:
    """What follows its name in CREATE INDEX. Identifiers and literals only: a partial index takes no parameters."""
    return (
        f"ON lesson_embedding USING hnsw ((embedding::halfvec({space.dimension})) halfvec_cosine_ops) "
        f"WITH (m = {M}, ef_construction = {EF_CONSTRUCTION}) WHERE space_id = '{space.pk}' AND state = '{state}'"
    )


def configured_space() -> EmbeddingSpace:
    """The space of the configured provider, made with its preset thresholds if it is new; not necessarily active."""
    p = provider()
    preset = asdict(preset_for(p.model))
    space, _ = EmbeddingSpace.objects.get_or_create(
        model=p.model,
        revision=p.revision,
        dimension=p.dimension,
        defaults={
            **{name: preset[name] for name in SIMILARITIES},
            "gate": preset["support_gate"],
            "is_active": False,
        },
    )
    return space


def build_indexes(space: EmbeddingSpace) -> None:
    """The space's HNSW indexes, built without blocking writers. Must not run in a transaction.

    An index that an interrupted build left invalid is dropped and built again.
    """
    with connection.cursor() as cursor:
        for state in INDEXED_STATES:
            name = index_name(space, state)
            cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
            row = cursor.fetchone()
            if row is not None and row[0]:
                continue
            if row is not None:
                cursor.execute(f"DROP INDEX CONCURRENTLY {name}")
            cursor.execute(f"CREATE INDEX CONCURRENTLY {name} {index_definition(space, state)}")


def activate(space: EmbeddingSpace) -> int:
    """Makes this the space that retrieval searches, and gives tombstones their vectors in it; returns how many.

    Both at once: a rejected value must not come back between the two, and none is rejected or erased meanwhile. The
    space begins another generation: what was kept of it when it was active before, lessons have left since.
    """
    with transaction.atomic():
        lock_all()
        EmbeddingSpace.objects.exclude(pk=space.pk).filter(is_active=True).update(is_active=False)
        EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True, generation=RandomUUID())
        followed = tombstone.follow(space)
    space.is_active = True
    return followed


def open_first_space() -> EmbeddingSpace:
    """The active space, opened if there is none yet. Raises EmbeddingUnavailable if the model was changed."""
    if not EmbeddingSpace.objects.filter(is_active=True).exists():
        space = configured_space()
        build_indexes(space)
        activate(space)
    space = usable_space()
    build_indexes(space)
    return space


def unembedded(space: EmbeddingSpace) -> QuerySet[Lesson]:
    """Lessons without a vector in the space.

    NOT EXISTS: of a NOT IN whose list outgrows `work_mem`, some 400,000 lessons, PostgreSQL goes through the list for
    each lesson.
    """
    vectors = LessonEmbedding.objects.filter(space=space, lesson=OuterRef("pk"))
    return Lesson.objects.filter(~Exists(vectors))


def missing(space: EmbeddingSpace, limit: int) -> list[Lesson]:
    """Lessons without a vector in the space, oldest first; not those that its model refused a while ago."""
    lessons = unembedded(space).exclude(pk__in=parked(space))
    return list(lessons.order_by("pk").only("pk", "text")[:limit])


def embed(lessons: list[Lesson], space: EmbeddingSpace) -> int:
    """Embeds lessons and stores the vectors; one that is there already stays. Returns how many were embedded.

    What the model refuses is parked, and holds up nothing else. Raises EmbeddingUnavailable if the model is away.
    """
    if not lessons:
        return 0
    vectors = embed_each(provider(), [lesson.text for lesson in lessons])  # outside any transaction: it may be slow
    rows = [
        LessonEmbedding(lesson_id=lesson.pk, space=space, embedding=HalfVector(vector))
        for lesson, vector in zip(lessons, vectors, strict=True)
        if vector is not None
    ]
    with transaction.atomic():
        alive = hold([lesson.pk for lesson in lessons])
        LessonEmbedding.objects.bulk_create([row for row in rows if row.lesson_id in alive], ignore_conflicts=True)
    _park([lesson.pk for lesson, vector in zip(lessons, vectors, strict=True) if vector is None], space)
    return len(rows)


def embed_pending(limit: int = 512) -> int:
    """Tries up to `limit` lessons that have no vector in the active space; returns how many were embedded.

    Raises EmbeddingUnavailable.
    """
    space = usable_space()
    tried = done = 0
    while tried < limit and (batch := missing(space, min(BATCH, limit - tried))):
        done += embed(batch, space)
        tried += len(batch)
    if done:
        tombstone.follow(space)  # what was buried before it was embedded
    return done


def embed_one(lesson_id: UUID) -> int:
    """Embeds one new lesson."""
    space = usable_space()
    if LessonEmbedding.objects.filter(lesson_id=lesson_id, space=space).exists():
        return 0
    return embed(list(Lesson.objects.filter(pk=lesson_id).only("pk", "text")), space)


def embed_anew(ids: Sequence[UUID], *, by: str) -> list[UUID]:
    """Asks the model for the vectors of some lessons again; returns whose it gave. The old ones serve until then.

    Raises Invalid for more than BATCH, and EmbeddingUnavailable.
    """
    if len(ids) > BATCH:
        raise Invalid(f"Embed at most {BATCH} lessons at once here; `manage.py reembed` does all.")
    space = usable_space()
    lessons = list(Lesson.objects.filter(pk__in=ids).only("pk", "text", "account_id"))
    vectors = embed_each(provider(), [lesson.text for lesson in lessons])  # outside any transaction: it may be slow
    given = [(lesson, vector) for lesson, vector in zip(lessons, vectors, strict=True) if vector is not None]
    with transaction.atomic():
        alive = hold([lesson.pk for lesson, _ in given])
        given = [(lesson, vector) for lesson, vector in given if lesson.pk in alive]
        for lesson, vector in given:
            row = {"embedding": HalfVector(vector)}
            LessonEmbedding.objects.update_or_create(lesson_id=lesson.pk, space=space, defaults=row)
            acts.note(OperatorAction.LESSON_REEMBEDDED, lesson.pk, account_id=lesson.account_id, actor=by)
    return [lesson.pk for lesson, _ in given]


def parked(space: EmbeddingSpace) -> set[UUID]:
    """Lessons that the space's model refused in the last PARKED_FOR: they are found by their words alone."""
    since = timezone.now() - PARKED_FOR
    runs = JobRun.objects.filter(job=REFUSED, started_at__gt=since, figures__space=str(space.pk))
    return {UUID(pk) for figures in runs.values_list("figures", flat=True) for pk in figures["lessons"]}


def unpark(space: EmbeddingSpace) -> None:
    """Lets everything be tried again at once."""
    JobRun.objects.filter(job=REFUSED, figures__space=str(space.pk)).delete()


def _park(lessons: list[UUID], space: EmbeddingSpace) -> None:
    if lessons:
        log.warning("embedding_refused", space=str(space), lessons=[str(pk) for pk in lessons])
        figures = {"space": str(space.pk), "lessons": [str(pk) for pk in lessons]}
        JobRun.objects.create(job=REFUSED, outcome="refused", finished_at=timezone.now(), figures=figures)
