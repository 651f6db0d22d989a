"""What is asked: a labelled set from files, in tables of its own, or what this store knows by itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluation.retrieval.shelf import shelf
from memory.embedding.active import usable_space
from memory.errors import Invalid
from memory.models import EmbeddingSpace, Lesson
from memory.rules.text import EmptyText, digest
from memory.search import Scope
from memory.services import labelled
from memory.services.labelled import Asked, Evidence, rows_of

GLOBAL = Scope(account_id=None, reviewed_only=False)


@dataclass(frozen=True, kw_only=True)
class LabelledSet:
    """Questions, and the space whose thresholds are in force."""

    evidence: Evidence
    intents: tuple[Asked, ...]  # each should get a lesson; which one fits is not known
    space: EmbeddingSpace
    lessons: int  # in service
    called: str  # in words
    is_file: bool  # of files, whose texts a report may quote; a store's own belong to its accounts


def of_store(called: str = "") -> LabelledSet:
    """This store's own evidence. Raises EmbeddingUnavailable."""
    space, n = usable_space(), Lesson.objects.filter(state="active").count()
    return LabelledSet(
        evidence=labelled.of_store(),
        intents=(),
        space=space,
        lessons=n,
        called=called or f"the {n} lessons of this store",
        is_file=False,
    )


@contextmanager
def of_files(
    lessons: Path,
    queries: Path,
    off_domain: Path,
    intents: Path | None,
    *,
    called: str = "",
    tell: Callable[[int], None] = lambda done: None,
) -> Iterator[LabelledSet]:
    """A set of files; its lessons are on a shelf of their own until the block ends.

    Raises Invalid naming file and line, EmbeddingUnavailable without a model.
    """
    texts = _texts(lessons)
    tasks = list(rows_of(queries, "query", "lesson_id"))
    for number, row in tasks:
        if row["lesson_id"] not in texts:
            raise Invalid(f"{queries.name}, line {number}: {lessons.name} has no lesson {row['lesson_id']}.")
    strangers = [row["query"] for _, row in rows_of(off_domain, "query")]
    wishes = [row["query"] for _, row in rows_of(intents, "query")] if intents else []
    with shelf(texts, tell) as made:
        yield LabelledSet(
            evidence=Evidence(
                tasks=tuple(
                    Asked(text=row["query"], scope=GLOBAL, fits=frozenset({made.ids[row["lesson_id"]]}))
                    for _, row in tasks
                ),
                off_domain=tuple(Asked(text=text, scope=GLOBAL) for text in strangers),
            ),
            intents=tuple(Asked(text=text, scope=GLOBAL) for text in wishes),
            space=made.space,
            lessons=len(texts),
            called=called or f"the {len(texts)} lessons of {lessons.name}",
            is_file=True,
        )


def _texts(path: Path) -> dict[str, str]:
    """Lessons by id. Raises Invalid for an id or a text that is there twice, as a store would refuse the second."""
    texts: dict[str, str] = {}
    seen: set[str] = set()
    for number, row in rows_of(path, "id", "text"):
        try:
            value = digest(row["text"])
        except EmptyText:
            raise Invalid(f"{path.name}, line {number}: the text says nothing.") from None
        if row["id"] in texts or value in seen:
            raise Invalid(f"{path.name}, line {number}: the lesson is there already.")
        texts[row["id"]] = row["text"]
        seen.add(value)
    return texts
