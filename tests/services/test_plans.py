"""How PostgreSQL answers retrieval and credit, on a store that is large enough for a wrong plan to be chosen."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from evaluation.performance import load
from evaluation.performance.corpus import Corpus, Tasks
from memory.embedding.active import provider
from memory.models import Account, EmbeddingSpace, Lesson
from memory.models.sql import execute, fetch
from memory.search import EmbeddedQuery, Scope, find
from memory.search.lexical import lexical
from memory.search.semantic import EF_SEARCH, semantic
from memory.search.support import SAMPLE, samples
from memory.search.terms import query_terms, statistics
from memory.services.credit import credit
from memory.services.space import INDEXED_STATES, build_indexes, index_name, open_first_space

LESSONS = 4_000
GLOBAL = Scope(account_id=None, reviewed_only=False)
GATED = Scope(account_id=None, reviewed_only=True)

pytestmark = pytest.mark.django_db


@dataclass(frozen=True, kw_only=True)
class Store:
    """Half of the lessons are in service, half are quarantined; each was handed out and scored five times."""

    space: EmbeddingSpace
    tasks: Tasks

    def query(self, i: int) -> EmbeddedQuery:
        return EmbeddedQuery(text=self.tasks.texts[i], space=self.space, vector=self.tasks.vectors[i])


@pytest.fixture(autouse=True)
def index_scans(db: None) -> Iterator[None]:
    """On, as in a store; the other tests search exactly."""
    execute("SET enable_indexscan = on")
    yield
    execute("SET enable_indexscan = off")


@pytest.fixture(scope="module")
def store(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Store]:
    """Committed once for all tests of this module, and removed after them with what PostgreSQL learned of it."""
    corpus = Corpus(provider())
    with django_db_blocker.unblock():
        space = open_first_space()
        for state in INDEXED_STATES:
            execute(f"DROP INDEX {index_name(space, state)}")  # made at once below, which is faster than row by row
        load.lessons(corpus, LESSONS, accounts=0, vectors=True)
        load.usage(LESSONS, servings=5)
        load.quarantine_half()
        build_indexes(space)
        execute("VACUUM (ANALYZE)")
        _forget()
    yield Store(space=space, tasks=corpus.tasks(20))
    with django_db_blocker.unblock():
        call_command("flush", interactive=False, verbosity=0)
        for column in ("search", "identifiers"):
            fetch("SELECT pg_clear_attribute_stats('public', 'lesson', %s, false)", [column])
        _forget()


def _forget() -> None:
    """What this process remembers of the store."""
    statistics.forget()
    samples.forget()


@dataclass(frozen=True, kw_only=True)
class Run:
    """One statement that was run, and how PostgreSQL would run it again."""

    sql: str
    params: Any
    plan: str


def explained(act: Callable[[], object], options: str = "COSTS OFF") -> list[Run]:
    """Runs `act` and explains each statement of it that has a plan."""
    seen: list[tuple[str, Any]] = []

    def note(execute_: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        seen.append((sql, params))
        return execute_(sql, params, many, context)

    with connection.execute_wrapper(note):
        act()
    planned = [(sql, params) for sql, params in seen if not re.match(r"(SAVEPOINT|RELEASE|ROLLBACK)", sql)]
    return [
        Run(sql=sql, params=params, plan="\n".join(row[0] for row in fetch(f"EXPLAIN ({options}) {sql}", params)))
        for sql, params in planned
    ]


def only(runs: list[Run], word: str) -> Run:
    """The one statement that has a word in it."""
    (run,) = (run for run in runs if word in run.sql)
    return run


def nearest(store: Store, scope: Scope) -> Run:
    return only(explained(lambda: semantic(store.space, store.tasks.vectors[0], scope, 40)), "hits AS MATERIALIZED")


@pytest.mark.parametrize("scope", [GLOBAL, GATED], ids=["global", "gated"])
def test_both_states_are_searched_through_the_vector_index_of_the_space(store: Store, scope: Scope):
    plan = nearest(store, scope).plan
    for state in ("active", "quarantined"):
        assert f"Index Scan using {index_name(store.space, state)} on lesson_embedding" in plan
    assert "Seq Scan" not in plan


def test_a_gated_account_filters_while_the_index_is_scanned_and_gets_enough(store: Store):
    assert nearest(store, GATED).plan.count("Filter: ((account_id IS NULL) AND reviewed)") == len(EF_SEARCH)
    hits = semantic(store.space, store.tasks.vectors[0], GATED, 40)
    assert sum(hit.state == "active" for hit in hits) == 40
    assert not Lesson.objects.filter(pk__in=[hit.lesson_id for hit in hits], reviewed_at=None).exists()


def test_the_space_is_a_literal_because_a_parameter_would_hide_the_partial_index(store: Store):
    run = nearest(store, GLOBAL)
    assert f"space_id = '{store.space.pk}'" in run.sql
    assert store.space.pk not in run.params


def test_each_state_is_searched_with_its_own_effort(store: Store):
    assert nearest(store, GLOBAL).plan.count("One-Time Filter") == len(EF_SEARCH)
    for state, effort in EF_SEARCH.items():
        semantic(store.space, store.tasks.vectors[0], GLOBAL, 5, (state,))
        assert fetch("SELECT current_setting('hnsw.ef_search'), current_setting('hnsw.iterative_scan')") == [
            (str(effort), "relaxed_order")
        ]


def test_a_quarantined_lesson_is_found_only_where_it_is_among_the_nearest_of_all(store: Store):
    hits = semantic(store.space, store.tasks.vectors[0], GLOBAL, 40)
    assert sum(hit.state == "active" for hit in hits) == 40
    assert [hit.cosine for hit in hits] == sorted((hit.cosine for hit in hits), reverse=True)
    assert not [hit for hit in hits[40:] if hit.state == "quarantined"]


def _give(account: Account, count: int) -> None:
    """Makes some lessons in service an account's own."""
    some = Lesson.objects.filter(state="active").order_by("pk").values_list("pk", flat=True)[:count]
    Lesson.objects.filter(pk__in=list(some)).update(account=account)


def test_a_small_account_is_searched_exactly_over_the_btree_index(store: Store, account: Account):
    _give(account, 30)
    plan = nearest(store, Scope(account_id=account.pk, reviewed_only=False)).plan
    assert "lesson_embedding_scope" in plan
    assert index_name(store.space, "active") not in plan
    assert "Seq Scan" not in plan


def test_an_account_beyond_the_limit_is_ordered_by_what_the_vector_index_holds(
    store: Store, account: Account, settings: Any
):
    _give(account, 5)
    scope = Scope(account_id=account.pk, reviewed_only=False)
    assert f"embedding::halfvec({store.space.dimension})" not in nearest(store, scope).sql
    settings.SONDER_EXACT_SEARCH_LIMIT = 0
    assert f"embedding::halfvec({store.space.dimension})" in nearest(store, scope).sql


def words(text: str) -> Run:
    terms = query_terms(text)
    return only(explained(lambda: lexical(terms, GLOBAL, 40), "ANALYZE, COSTS OFF, TIMING OFF"), "scored AS")


def test_words_and_code_are_found_through_their_gin_indexes(store: Store):
    names = Lesson.objects.filter(text__endswith="().").order_by("pk").values_list("text", flat=True)
    plan = words(f"{store.tasks.texts[0]} {names[0].split()[-1]}").plan
    assert "Bitmap Index Scan on lesson_search_gin" in plan
    assert "Bitmap Index Scan on lesson_identifiers_gin" in plan
    assert "Seq Scan" not in plan


def read(run: Run) -> int:
    """Lessons that were read from the table."""
    match = re.search(r"Bitmap Heap Scan on lesson \(actual rows=(\d+)", run.plan)
    assert match, run.plan
    return int(match[1])


def test_the_budget_bounds_how_many_lessons_a_query_reads(store: Store, settings: Any):
    frequent = " ".join(lexeme for lexeme, _ in _frequent(12))
    unbounded = read(words(frequent))
    settings.SONDER_LEXICAL_BUDGET = 100
    rare = " ".join(store.tasks.texts)
    assert unbounded > 100
    assert 0 < read(words(rare)) <= 100


def test_of_lessons_with_a_frequent_word_only_those_with_two_words_are_read(store: Store, settings: Any):
    settings.SONDER_LEXICAL_BUDGET = 400
    (one, few), (other, many) = _frequent(2)
    both = Lesson.objects.filter(search=f"'{one}'").filter(search=f"'{other}'").count()
    assert read(words(f"{one} {other}")) == both
    assert 0 < both < min(few, many)


def _frequent(count: int) -> list[tuple[str, int]]:
    """The most frequent words and how many lessons have each."""
    return fetch("SELECT word, ndoc FROM ts_stat('SELECT search FROM lesson') ORDER BY ndoc DESC LIMIT %s", [count])


def test_one_word_that_more_lessons_have_than_the_budget_allows_reads_none(store: Store, settings: Any):
    settings.SONDER_LEXICAL_BUDGET = 100
    ((word, having),) = _frequent(1)
    assert having > 100
    terms = query_terms(word)
    assert explained(lambda: lexical(terms, GLOBAL, 40)) == []


def sampled(store: Store, scope: Scope) -> str:
    """How the lessons are read that tell whether a task is of the store's kind."""
    samples.forget()
    return only(explained(lambda: samples.get(store.space, scope)), "uuid_hash_extended").plan


def test_the_sample_of_a_store_reads_a_few_of_its_pages(store: Store):
    plan = sampled(store, GLOBAL)
    assert "Sample Scan on lesson_embedding" in plan
    assert "Sampling: system" in plan
    assert len(samples.get(store.space, GLOBAL)) == SAMPLE


def test_the_sample_of_an_account_is_found_through_its_index(store: Store, account: Account):
    _give(account, 30)
    scope = Scope(account_id=account.pk, reviewed_only=False)
    plan = sampled(store, scope)
    assert "lesson_embedding_scope" in plan
    assert "Seq Scan" not in plan
    assert len(samples.get(store.space, scope)) == 30


LARGE = (
    "lesson", "lesson_embedding", "lesson_usage", "lesson_standing", "interaction", "outcome", "credit", "task_sum",
    "lesson_sum", "lesson_source_sum", "lesson_task_sum", "lesson_pair_sum",
)  # fmt: skip


def scanned(runs: list[Run], *but: str) -> list[str]:
    """The statements that read a large table from end to end."""
    tables = "|".join(name for name in LARGE if name not in but)
    return [run.sql for run in runs if re.search(rf"Seq Scan on ({tables})\b", run.plan)]


def test_no_statement_of_a_retrieval_reads_a_table_from_end_to_end(store: Store):
    find(store.query(0), GLOBAL, 5, timezone.now())  # reads the words' frequencies and the sample, once for all
    runs = explained(lambda: find(store.query(1), GLOBAL, 5, timezone.now()))
    assert len(runs) == 6  # words of the query, by meaning, by words, details, vectors to compare, contradictions
    # With few lessons, a hash table of all standings is as cheap as looking up seventy.
    assert scanned(runs, "lesson_standing") == []


@pytest.mark.parametrize("policy", ["trial", "reference"])
def test_no_statement_of_a_credit_reads_a_table_from_end_to_end(store: Store, settings: Any, policy: str):
    settings.SONDER_TRUST_POLICY = policy
    interaction = load.handed_out(0, LESSONS)
    runs = explained(lambda: credit(interaction))
    touched = {name for name in LARGE for run in runs if re.search(rf"\b{name}\b", run.plan)}
    assert touched >= {"lesson_usage", "credit", "lesson_source_sum", "lesson_standing"}
    assert scanned(runs) == []
