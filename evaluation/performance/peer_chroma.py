"""chroma in this process, with SQLite beside it for what it does not have: words, and a record of what was used."""

import re
import sqlite3
import uuid
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import chromadb
import numpy as np
from chromadb.config import Settings

from evaluation.performance.bench import TOP, Bench
from evaluation.performance.peer import ASKED, DEPTH, Batch, Near, Peer

SCHEMA: Final = """
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE VIRTUAL TABLE words USING fts5(id UNINDEXED, text, tokenize = 'porter');
    CREATE TABLE interaction (id TEXT PRIMARY KEY, task TEXT NOT NULL, created_at TEXT DEFAULT CURRENT_TIMESTAMP);
    CREATE TABLE usage (
        id INTEGER PRIMARY KEY, interaction_id TEXT NOT NULL REFERENCES interaction, lesson_id TEXT NOT NULL,
        rank INTEGER NOT NULL, similarity REAL NOT NULL
    );
    CREATE INDEX usage_lesson ON usage (lesson_id); CREATE INDEX usage_interaction ON usage (interaction_id);
"""


class Chroma(Peer):
    name: ClassVar[str] = "chroma"
    effort: ClassVar[int] = 100
    words: ClassVar[str] = "an FTS5 table of SQLite, ranked by its bm25"

    def __init__(self, bench: Bench, folder: Path) -> None:
        super().__init__(bench)
        self._client = chromadb.PersistentClient(str(folder / "chroma"), Settings(anonymized_telemetry=False))
        self._lessons = self._client.create_collection(
            "lessons", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        self._sqlite = sqlite3.connect(folder / "beside.sqlite")
        self._sqlite.executescript(SCHEMA)

    def fill(self, lessons: Iterable[Batch]) -> None:
        for batch in lessons:
            self._lessons.add(
                ids=batch.ids,
                embeddings=batch.vectors,
                documents=batch.texts,
                metadatas=[{"state": state, "account": "shared"} for state in batch.states],
            )
            rows = zip(batch.ids, batch.texts, strict=True)
            self._sqlite.executemany("INSERT INTO words (id, text) VALUES (?, ?)", rows)
        self._sqlite.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._sqlite.commit()

    def try_harder(self, effort: int) -> None:
        self._lessons.modify(configuration={"hnsw": {"ef_search": effort}})

    def nearest(self, i: int) -> list[str]:
        return list(self._ask(i, TOP, ["distances"])["ids"][0])

    def filtered(self, i: int) -> list[str]:
        served = {"$and": [{"state": "active"}, {"account": "shared"}]}
        return list(self._ask(i, TOP, ["distances"], where=served)["ids"][0])

    def candidates(self, i: int) -> list[Near]:
        found = self._ask(i, ASKED, ["distances", "documents", "metadatas", "embeddings"])
        columns = (found[name][0] for name in ("ids", "documents", "metadatas", "embeddings", "distances"))
        near = [
            Near(id=pk, text=text, cosine=1 - distance, vector=vector)
            for pk, text, about, vector, distance in zip(*columns, strict=True)
            if about["state"] == "active"
        ]
        return near[:DEPTH]

    def _ask(self, i: int, limit: int, include: list[str], **more: Any) -> Any:
        return self._lessons.query(query_embeddings=[self.tasks.vectors[i]], n_results=limit, include=include, **more)

    def worded(self, i: int) -> list[str]:
        query = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", self.tasks.texts[i]))
        rows = self._sqlite.execute("SELECT id FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (query, DEPTH))
        return [pk for (pk,) in rows]

    def get(self, i: int, ids: Collection[str]) -> list[Near]:
        if not ids:
            return []
        found: Any = self._lessons.get(ids=list(ids), include=["documents", "metadatas", "embeddings"])
        cosines = np.asarray(found["embeddings"]) @ self.tasks.vectors[i]
        columns = (found["ids"], found["documents"], found["metadatas"], found["embeddings"], cosines)
        return [
            Near(id=pk, text=text, cosine=float(cosine), vector=vector)
            for pk, text, about, vector, cosine in zip(*columns, strict=True)
            if about["state"] == "active"
        ]

    def record(self, task: str, chosen: Sequence[Near]) -> None:
        pk = str(uuid.uuid4())
        rows = [(pk, each.id, rank, each.cosine) for rank, each in enumerate(chosen, start=1)]
        with self._sqlite:  # one transaction
            self._sqlite.execute("INSERT INTO interaction (id, task) VALUES (?, ?)", (pk, task))
            self._sqlite.executemany(
                "INSERT INTO usage (interaction_id, lesson_id, rank, similarity) VALUES (?, ?, ?, ?)", rows
            )

    def close(self) -> None:
        self._sqlite.close()
        self._client.close()
