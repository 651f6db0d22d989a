"""Lessons that share the query's words, with work bounded at any store size.

The score is BM25's with k1 = 0: the sum of the inverse document frequencies of the query's words that the lesson has.
A lesson is one sentence, so a word's frequency in it tells nothing, and normalising by the sentence's length costs
recall on the real lessons. Of equal sums the shorter sentence comes first: more of it is about the query.
"""

from memory import conf
from memory.models.sql import fetch
from memory.search.terms import Term, tsquery, within_budget
from memory.search.types import LexicalHit, Scope

# Shares of `lexical_budget`, which is what reading one lesson costs; the index reads a document's number for a tenth.
ALONE = 10  # a tenth of the budget goes to lessons that have one rare word
TOGETHER = 10  # lessons that share two words are found among ten times the budget


def lexical(terms: list[Term], scope: Scope, limit: int) -> list[LexicalHit]:
    """The best lessons in service by summed idf, at most `limit`, and the quarantined among as many best of all.

    Candidates have one of the rarest terms, or any two that are not too frequent; all terms count in the score. The
    index itself finds the two, so that of the many lessons with a common word only those are read that can rank. Words
    that a large part of the lessons have tell none from another: a query of nothing else has no candidates.
    """
    budget = conf.current().lexical_budget
    matches, score, values = _expressions(terms, budget)
    if not matches:
        return []
    account = "account_id IS NULL" if scope.account_id is None else "account_id = %(account)s"
    reviewed = "AND reviewed_at IS NOT NULL" if scope.reviewed_only else ""
    statement = f"""
        WITH scored AS MATERIALIZED (
            SELECT id, state, {score} AS score, length(search) AS words FROM lesson
            WHERE ({" OR ".join(matches)}) AND state IN ('active', 'quarantined') AND {account} {reviewed}
            LIMIT %(budget)s
        ), placed AS (
            SELECT *, row_number() OVER best AS place, count(*) FILTER (WHERE state = 'active') OVER best AS in_service
            FROM scored WINDOW best AS (ORDER BY score DESC, words, id)
        )
        SELECT id, state, score FROM placed
        WHERE CASE state WHEN 'active' THEN in_service ELSE place END <= %(limit)s ORDER BY place
    """
    rows = fetch(statement, {**values, "account": scope.account_id, "budget": budget, "limit": limit})
    return [LexicalHit(lesson_id=i, state=state, score=value) for i, state, value in rows]


def _expressions(terms: list[Term], budget: int) -> tuple[list[str], str, dict[str, object]]:
    """SQL for what makes a lesson a candidate and for the sum of idf of the terms it has, with their parameters."""
    # One word is all that there is to go by: it may cost everything.
    alone = within_budget(terms, budget // ALONE if len(terms) > 1 else budget)
    together = within_budget(terms, budget * TOGETHER)[len(alone) :]
    queries = {
        column: [
            *(tsquery(term.lexeme) for term in alone if term.column == column),
            *two_of([tsquery(term.lexeme) for term in together if term.column == column]),
        ]
        for column in ("search", "identifiers")
    }
    values: dict[str, object] = {f"any_{column}": " | ".join(parts) for column, parts in queries.items()}
    # In a subquery, where the planner does not look them up among ten thousand words: that takes it 0.2 ms.
    matches = [f"{column} @@ (SELECT %(any_{column})s::tsquery)" for column, parts in queries.items() if parts]
    score = []
    for i, term in enumerate(terms):
        values[f"term{i}"], values[f"idf{i}"] = tsquery(term.lexeme), term.idf
        # A plain number would be `numeric`, whose arithmetic takes ten times as long.
        score.append(f"CASE WHEN {term.column} @@ %(term{i})s::tsquery THEN %(idf{i})s::float8 ELSE 0 END")
    return matches, " + ".join(score), values


def two_of(words: list[str]) -> list[str]:
    """Alternatives of a tsquery that together say "at least two of these": in one half, the other, or one in each."""
    if len(words) < 2:
        return []
    left, right = words[: len(words) // 2], words[len(words) // 2 :]
    return [f"({' | '.join(left)}) & ({' | '.join(right)})", *two_of(left), *two_of(right)]
