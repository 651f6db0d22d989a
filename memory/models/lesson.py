"""Lessons, the embedding spaces they live in, and where each came from."""

from typing import Any

import pgtrigger
from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import Func, Q, Value
from pgvector.django import HalfVectorField

from memory.models.base import (
    ACTOR,
    SHA256,
    Recorded,
    SealedTrigger,
    between,
    matches,
    not_empty,
    one_of,
    refuse,
)
from memory.models.scope import Account
from memory.models.vocabulary import LessonState, Origin

SIMILARITIES = (
    "min_similarity",
    "uncorroborated_min_similarity",
    "duplicate_similarity",
    "prune_similarity",
    "tombstone_similarity",
    "contradiction_similarity",
)


# What a process keeps of the lessons and tasks that it has read holds for the generation it was read in, and is read
# again in the next. The triggers move it as the last act of the transaction that it tells of: whoever sees the change
# sees it moved, its lock is held for a commit alone, and a transaction moves it once however many lessons it takes.
NEXT_GENERATION = """
    IF current_setting('sonder.generation', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        UPDATE embedding_space SET generation = gen_random_uuid() WHERE is_active;
        PERFORM set_config('sonder.generation', pg_current_xact_id()::text, true);
    END IF;
    RETURN NULL;
"""


# PostgreSQL's parser keeps `first/last`, `key:value` and `read-only` as one token, which no query would match.
JOINERS = "/.:@-+=~&?"


class SplitWords(Func):
    """The text with a space wherever PostgreSQL's parser would join two words into one token."""

    function = "translate"
    output_field = models.TextField()

    def __init__(self, text: Any) -> None:
        super().__init__(text, Value(JOINERS), Value(" " * len(JOINERS)))


class EmbeddingSpace(Recorded):
    """One model in one revision and dimension: vectors of different spaces are never compared.

    The thresholds were calibrated for this space and mean nothing in another.
    """

    model = models.CharField(max_length=200)
    revision = models.CharField(max_length=100)
    dimension = models.IntegerField()
    min_similarity = models.FloatField()
    uncorroborated_min_similarity = models.FloatField()
    duplicate_similarity = models.FloatField()
    prune_similarity = models.FloatField()
    tombstone_similarity = models.FloatField()
    contradiction_similarity = models.FloatField()
    gate = models.JSONField(null=True, blank=True)
    calibrated_at = models.DateTimeField(null=True, blank=True)
    is_active = models.BooleanField()
    generation = models.UUIDField(
        db_default=RandomUUID(),
        editable=False,
        help_text="Another one whenever a lesson has left service or something was erased.",
    )

    class Meta:
        db_table = "embedding_space"
        constraints = [
            models.UniqueConstraint(fields=["model", "revision", "dimension"], name="embedding_space_identity_unique"),
            between("embedding_space", "dimension", 1, 4000),
            *(between("embedding_space", name, -1, 1) for name in SIMILARITIES),
            models.UniqueConstraint(
                fields=["is_active"], name="embedding_space_one_active", condition=Q(is_active=True)
            ),
        ]

        triggers = [
            # Vectors are checked against their space when they are written, so the space must stay what it was.
            SealedTrigger(
                name="embedding_space_identity_fixed",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.AnyChange("model", "revision", "dimension"),
                func=refuse("embedding_space_identity_fixed", "a space keeps its model, revision and dimension"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.revision} ({self.dimension})"


class ImportRun(Recorded):
    """A file that lessons came from: the source record of every imported lesson."""

    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    actor = models.CharField(max_length=80)
    figures = models.JSONField(default=dict)

    class Meta:
        db_table = "import_run"
        constraints = [
            matches("import_run", "sha256", SHA256, "a SHA-256 digest"),
            matches("import_run", "actor", ACTOR, "an actor"),
        ]

    def __str__(self) -> str:
        return self.name


class Lesson(Recorded):
    """One sentence of procedural knowledge."""

    account = models.ForeignKey(Account, models.PROTECT, null=True, blank=True)
    text = models.TextField()
    text_sha256 = models.CharField(max_length=64)
    origin = models.CharField(max_length=10, choices=Origin.choices)
    state = models.CharField(max_length=12, choices=LessonState.choices)
    source_interaction = models.UUIDField(null=True, blank=True, db_index=True)
    source_import = models.ForeignKey(ImportRun, models.PROTECT, null=True, blank=True)
    source_ref = models.CharField(max_length=200, blank=True, help_text="The lesson's own id in the file.")
    supersedes = models.UUIDField(null=True, blank=True)
    also_supersedes = models.UUIDField(
        null=True, blank=True, help_text="The other lesson that it replaced, where a person made one of two."
    )
    polarity = models.JSONField(default=dict)
    anchors = models.JSONField(default=dict)
    reviewed_at = models.DateTimeField(null=True, blank=True)
    reviewed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, db_index=False)
    search = models.GeneratedField(
        expression=SearchVector(SplitWords("text"), config="english"), output_field=SearchVectorField(), db_persist=True
    )
    identifiers = SearchVectorField(editable=False)

    class Meta:
        db_table = "lesson"
        constraints = [
            not_empty("lesson", "text"),
            matches("lesson", "text_sha256", SHA256, "a SHA-256 digest"),
            one_of("lesson", "origin", Origin.values),
            one_of("lesson", "state", LessonState.values),
            models.UniqueConstraint(
                fields=["account", "text_sha256"], name="lesson_account_text_unique", nulls_distinct=False
            ),
        ]
        indexes = [
            GinIndex(fields=["search"], name="lesson_search_gin"),
            GinIndex(fields=["identifiers"], name="lesson_identifiers_gin"),
            models.Index(fields=["state", "-id"], name="lesson_state_newest"),
        ]
        triggers = [
            # Retrieval filters on the embedding row alone, so the row must always say what the lesson says.
            SealedTrigger(
                name="lesson_copies_to_embedding",
                when=pgtrigger.After,
                operation=pgtrigger.UpdateOf("state", "account_id", "reviewed_at"),
                func="""
                    UPDATE lesson_embedding SET state = NEW.state, account_id = NEW.account_id,
                        reviewed = NEW.reviewed_at IS NOT NULL
                    WHERE lesson_id = NEW.id;
                    RETURN NULL;
                """,
            ),
            SealedTrigger(
                name="lesson_left_service",
                when=pgtrigger.After,
                operation=pgtrigger.UpdateOf("state"),
                condition=pgtrigger.Q(old__state="active") & ~pgtrigger.Q(new__state="active"),
                timing=pgtrigger.Deferred,
                func=NEXT_GENERATION,
            ),
            SealedTrigger(
                name="lesson_gone",
                when=pgtrigger.After,
                operation=pgtrigger.Delete,
                timing=pgtrigger.Deferred,
                func=NEXT_GENERATION,
            ),
        ]

    def __str__(self) -> str:
        return self.text[:80]


class LessonEmbedding(Recorded):
    """A lesson's vector in one space, with the lesson's scope and state beside it for the index to filter on."""

    lesson = models.ForeignKey(Lesson, models.CASCADE, db_index=False)
    space = models.ForeignKey(EmbeddingSpace, models.PROTECT, db_index=False)
    embedding = HalfVectorField()
    account = models.ForeignKey(Account, models.PROTECT, null=True, editable=False, db_index=False)
    state = models.CharField(max_length=12, editable=False)
    reviewed = models.BooleanField(editable=False)

    class Meta:
        db_table = "lesson_embedding"
        constraints = [
            models.UniqueConstraint(fields=["lesson", "space"], name="lesson_embedding_lesson_space_unique"),
        ]
        # The HNSW indexes, one for each space and state, are made CONCURRENTLY when the space is opened.
        indexes = [models.Index(fields=["space", "account", "state"], name="lesson_embedding_scope")]
        triggers = [
            SealedTrigger(
                name="lesson_embedding_fits",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update,
                declare=[("wanted", "integer")],
                func=f"""
                    SELECT dimension INTO wanted FROM embedding_space WHERE id = NEW.space_id;
                    IF wanted IS DISTINCT FROM vector_dims(NEW.embedding) THEN
                        {refuse("lesson_embedding_dimension", "the vector has another dimension than its space")}
                    END IF;
                    -- FOR SHARE: a change of state waits for this row, or this row sees the change.
                    SELECT state, account_id, reviewed_at IS NOT NULL INTO NEW.state, NEW.account_id, NEW.reviewed
                    FROM lesson WHERE id = NEW.lesson_id FOR SHARE;
                    RETURN NEW;
                """,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lesson} in {self.space}"
