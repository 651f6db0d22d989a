"""LangGraph's PostgresStore on the same server, with an index of PostgreSQL beside it for words."""

import re
import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar, Final

import psycopg
from django.db import connection
from langgraph.store.base import GetOp, PutOp
from langgraph.store.postgres import PostgresStore
from psycopg.rows import dict_row

from evaluation.performance.bench import TOP, Bench
from evaluation.performance.bulk import memory_mb
from evaluation.performance.peer import ASKED, DEPTH, Batch, Near, Peer

LESSONS: Final = ("lessons", "shared")
INDEX: Final = "store_vectors_embedding_idx"
TEXT: Final = "to_tsvector('english', value->>'text')"
WORDS: Final = f"""
    SELECT key FROM store, to_tsquery('english', %s) AS query
    WHERE prefix = '{".".join(LESSONS)}' AND {TEXT} @@ query ORDER BY ts_rank_cd({TEXT}, query) DESC LIMIT {DEPTH}
"""


class LangGraph(Peer):
    name: ClassVar[str] = "LangGraph"
    effort: ClassVar[int] = 40
    words: ClassVar[str] = "a GIN index of PostgreSQL, ranked by ts_rank_cd"

    def __init__(self, bench: Bench, database: str) -> None:
        """`database` is empty, and may be filled."""
        super().__init__(bench)
        known = connection.get_connection_params()
        where = {name: known[name] for name in ("host", "port", "user", "password") if name in known}
        self._connection = psycopg.connect(
            **where, dbname=database, autocommit=True, prepare_threshold=0, row_factory=dict_row
        )
        self._vectors = dict(zip(self.tasks.texts, self.tasks.vectors.tolist(), strict=True))
        self._store = PostgresStore(
            self._connection,
            index={"dims": bench.space.dimension, "embed": self._embed, "fields": ["text"]},
        )
        self._store.setup()

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors are known: nothing is computed."""
        return [self._vectors[text] for text in texts]

    def fill(self, lessons: Iterable[Batch]) -> None:
        run = self._connection.execute
        (made,) = run(f"SELECT pg_get_indexdef('{INDEX}'::regclass) AS definition").fetchall()
        run(f"DROP INDEX {INDEX}")  # at once afterwards it takes a fraction of the time
        for batch in lessons:
            self._vectors |= zip(batch.texts, batch.vectors.tolist(), strict=True)
            rows = zip(batch.ids, batch.texts, batch.states, strict=True)
            self._store.batch([PutOp(LESSONS, pk, {"text": text, "state": state}) for pk, text, state in rows])
            for text in batch.texts:
                del self._vectors[text]
        run(f"SET maintenance_work_mem = '{memory_mb()}MB'")
        run(made["definition"])
        run(f"CREATE INDEX ON store USING gin ({TEXT})")
        run("RESET maintenance_work_mem")
        run("VACUUM (ANALYZE)")

    def try_harder(self, effort: int) -> None:
        self._connection.execute(f"SET hnsw.ef_search = {effort}")

    def nearest(self, i: int) -> list[str]:
        return [item.key for item in self._ask(i, TOP)]

    def filtered(self, i: int) -> list[str]:
        return [item.key for item in self._ask(i, TOP, filter={"state": "active"})]

    def candidates(self, i: int) -> list[Near]:
        served = (item for item in self._ask(i, ASKED) if item.value["state"] == "active")
        return [Near(id=item.key, text=item.value["text"], cosine=item.score, vector=None) for item in served][:DEPTH]

    def _ask(self, i: int, limit: int, **more: Any) -> Any:
        return self._store.search(LESSONS, query=self.tasks.texts[i], limit=limit, **more)

    def worded(self, i: int) -> list[str]:
        query = " | ".join(re.findall(r"\w+", self.tasks.texts[i]))
        return [row["key"] for row in self._connection.execute(WORDS, [query])]

    def get(self, i: int, ids: Collection[str]) -> list[Near]:
        """Without a cosine, since the store gives no vectors back: words alone must do for the gate."""
        items: list[Any] = self._store.batch([GetOp(LESSONS, pk) for pk in ids])
        return [
            Near(id=item.key, text=item.value["text"], cosine=self.min_similarity, vector=None)
            for item in items
            if item.value["state"] == "active"
        ]

    def record(self, task: str, chosen: Sequence[Near]) -> None:
        pk = str(uuid.uuid4())
        rows = [
            PutOp(("usage", each.id), f"{pk}-{rank}", {"interaction": pk, "rank": rank, "cosine": each.cosine}, False)
            for rank, each in enumerate(chosen, start=1)
        ]
        self._store.batch([PutOp(("interactions",), pk, {"task": task}, False), *rows])

    def close(self) -> None:
        self._connection.close()
