"""Filling a store in bulk: lessons and vectors by COPY, what was handed out and came of it by one statement a table."""

import hashlib
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from django.db import connection
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from psycopg import Connection

from evaluation.performance.bulk import bare
from evaluation.performance.corpus import Chunk, Corpus
from memory.models import Account, ApiKey, EmbeddingSpace, Interaction, LessonUsage, Outcome
from memory.models.sql import execute
from memory.rules.signals import REWARDS
from memory.rules.text import identifiers
from memory.search.terms import tsquery
from memory.services.keys import create_key
from memory.services.space import configured_space
from memory.services.standing import SUMS

COHORT: Final = 5  # lessons handed out together
QUARANTINED_EVERY: Final = 20  # one lesson in twenty is quarantined
BEGIN_MS: Final = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1000)  # before any id that is made while measuring
_LESSON, _INTERACTION, _OUTCOME, _USAGE, _ACCOUNT, _VECTOR = range(6)  # kinds of rows, to keep their ids apart


def row_id(kind: int, n: int) -> UUID:
    """The id of row n: a UUIDv7 of a millisecond of its own, so that ids ascend as they do in a real store."""
    return UUID(int=(BEGIN_MS + n) << 80 | (7 << 12 | kind) << 64 | 1 << 63 | n)


def _id(kind: int, n: str) -> str:
    """`row_id` as an SQL expression of an SQL expression."""
    return f"(lpad(to_hex({BEGIN_MS} + {n}), 12, '0') || '700{kind}8' || lpad(to_hex({n}), 15, '0'))::uuid"


def _driver() -> "Connection[tuple[object, ...]]":
    connection.ensure_connection()
    raw: Connection[tuple[object, ...]] = connection.connection
    return raw


def account_of(n: int, accounts: int) -> int:
    """The account of lesson n: three lessons in ten are of the first account, the others spread over the rest."""
    spread = int.from_bytes(hashlib.sha256(str(n).encode()).digest()[:4], "big")
    return 0 if n % 10 < 3 else 1 + spread % (accounts - 1)


def account_id(n: int) -> UUID:
    return row_id(_ACCOUNT, n)


def lessons(corpus: Corpus, size: int, *, accounts: int, vectors: bool, twins: bool = False) -> None:
    """Lessons, with their vectors in the configured space, which is made but not opened: an index is faster at once."""
    space = configured_space()
    Account.objects.bulk_create(
        Account(pk=account_id(i), slug=f"a{i}", name=f"Account {i}", review_policy="auto")
        for i in range(max(1, accounts))
    )
    for plain in corpus.lessons(size):
        chunk = corpus.twinned(plain) if twins else plain
        _copy_lessons(chunk, accounts)
        if vectors:
            _copy_vectors(chunk, space)


def _copy_lessons(chunk: Chunk, accounts: int) -> None:
    columns = (
        "id, account_id, text, text_sha256, origin, state, source_ref, polarity, anchors, reviewed_at, identifiers"
    )
    with _driver().cursor() as cursor, cursor.copy(f"COPY lesson ({columns}) FROM STDIN") as copy:
        for n, text in enumerate(chunk.texts, start=chunk.first):
            account = account_id(account_of(n, accounts)) if accounts else None
            state = "quarantined" if n % QUARANTINED_EVERY == 7 else "active"
            reviewed = "2026-06-01" if n % 4 < 2 else None
            sha256 = hashlib.sha256(text.encode()).hexdigest()
            code = " ".join(tsquery(name) for name in identifiers(text))
            copy.write_row(
                (row_id(_LESSON, n), account, text, sha256, "imported", state, str(n), "{}", "{}", reviewed, code)
            )


def _copy_vectors(chunk: Chunk, space: EmbeddingSpace) -> None:
    driver = _driver()
    register_vector(driver)
    statement = "COPY lesson_embedding (id, lesson_id, space_id, embedding) FROM STDIN (FORMAT BINARY)"
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(["uuid", "uuid", "uuid", "halfvec"])
        for n, vector in enumerate(chunk.vectors, start=chunk.first):
            copy.write_row((row_id(_VECTOR, n), row_id(_LESSON, n), space.pk, HalfVector(vector)))


def usage(size: int, servings: int) -> None:
    """`servings` scored exposures of each of `size` lessons, and the sums that the product keeps of them.

    Interaction i was handed five lessons, a fifth of the store apart; one in five failed, two in five were judged by a
    machine.
    """
    account = Account.objects.get(pk=account_id(0))
    key = create_key(account, name="benchmark", source="caller", scopes=["loop", "read"]).key
    with bare(["interaction", "outcome", "credit", "lesson_usage", "lesson_standing", *SUMS]):
        for statement in _usage_statements(size, size * servings // COHORT, key):
            execute(statement)
        for table, (columns, values, statement) in SUMS.items():
            execute(f"INSERT INTO {table} ({', '.join((*columns, *values))}) {statement}")
    execute("ANALYZE")


def _usage_statements(size: int, interactions: int, key: ApiKey) -> list[str]:
    lesson = _id(_LESSON, f"mod(w.i + j * ({size} / {COHORT}), {size})")
    return [
        f"""
        CREATE TEMPORARY TABLE work AS
        SELECT i, {_id(_INTERACTION, "i")} AS id, {_id(_OUTCOME, "i")} AS outcome, 'Task ' || i AS task,
            mod(i * 37, 101) < 20 AS lost,
            CASE WHEN mod(i * 53, 103) < 40 THEN 'machine' ELSE 'caller' END AS source,
            CASE WHEN mod(i * 53, 103) < 40 THEN 0.7 ELSE 1 END AS weight,
            CASE WHEN mod(i * 37, 101) < 20 THEN 'failed' ELSE 'accepted' END AS signal,
            CASE WHEN mod(i * 37, 101) < 20 THEN -1 ELSE 0.8 END AS reward
        FROM generate_series(0, {interactions - 1}) AS i
        """,
        f"""
        INSERT INTO interaction
            (id, account_id, api_key_id, project_explicit, task, retrieved_context, tier, model, token_source)
        SELECT id, '{key.account_id}', '{key.pk}', false, task, '', '', '', '' FROM work
        """,
        """
        INSERT INTO outcome (id, interaction_id, source, sequence, signal, reward, detail, credited_at)
        SELECT outcome, id, source, 1, signal, reward, '', now() FROM work
        """,
        """
        INSERT INTO credit (interaction_id, outcome_id, source, y, weight, b, task_digest, credit_seq)
        SELECT id, outcome, source, lost::int, weight, 0.2, encode(sha256(task::bytea), 'hex'), i + 1 FROM work
        """,
        f"""
        INSERT INTO lesson_usage
            (id, lesson_id, interaction_id, exposure, rank, similarity, fused_score, probability, credited_outcome_id,
            outcome_signal, reward, outcome_source, outcome_at, expected_loss, weight, credit_seq)
        SELECT {_id(_USAGE, f"(w.i * {COHORT} + j)")}, {lesson}, id, 'served', j + 1, 0.5, 0.03, 1, outcome,
            signal, reward, source, now(), 0.2, weight, i + 1
        FROM work w, generate_series(0, {COHORT - 1}) AS j
        """,
        """
        INSERT INTO lesson_standing (lesson_id, policy, wins, losses, last_win_at, on_trial, evidence, version)
        SELECT lesson_id, 'reference', count(*) FILTER (WHERE reward > 0), count(*) FILTER (WHERE reward < 0), now(),
            false, '{}', 1 FROM lesson_usage GROUP BY lesson_id
        """,
        "DROP TABLE work",
        "ANALYZE credit, outcome, lesson_usage",
    ]


def quarantine_half() -> None:
    """Moves nine more lessons in twenty into quarantine, the way the product does: by the lesson's state."""
    execute("UPDATE lesson SET state = 'quarantined' WHERE state = 'active' AND mod(source_ref::int, 2) = 1")


def handed_out(n: int, size: int) -> UUID:
    """A new interaction that was handed five lessons and lost, with its outcome not credited yet."""
    key = ApiKey.objects.select_related("account").order_by("pk")[0]
    interaction = Interaction.objects.create(
        account=key.account, api_key=key, project_explicit=False, task=f"Task {n}", token_source=""
    )
    LessonUsage.objects.bulk_create(
        LessonUsage(
            lesson_id=row_id(_LESSON, (n + j * (size // COHORT)) % size),
            interaction=interaction,
            exposure="served",
            rank=j + 1,
            fused_score=0.03,
            probability=1,
        )
        for j in range(COHORT)
    )
    Outcome.objects.create(
        interaction=interaction, source="caller", sequence=1, signal="failed", reward=REWARDS["failed"]
    )
    return interaction.pk
