"""Lessons that share the query's words, with work bounded at any store size.

The score is BM25's with k1 = 0: the sum of the inverse document frequencies of the query's words that the lesson has.
A lesson is one sentence, so a word's frequency in it and the sentence's length tell nothing: on the real lessons,
normalising by length costs recall.
"""

from memory import conf
from memory.models.sql import fetch
from memory.search.terms import Term, tsquery, within_budget
from memory.search.types import LexicalHit, Scope


def lexical(terms: list[Term], scope: Scope, limit: int) -> list[LexicalHit]:
    """The best lessons of each state by summed idf, at most `limit` of each, best first.

    Candidates come from the rarest terms whose lessons fit the budget; all terms count in the score. A query of
    nothing but very common words has no candidates: words that every lesson has tell none from another.
    """
    budget = conf.current().lexical_budget
    chosen = within_budget(terms, budget)
    if not chosen:
        return []
    account = "account_id IS NULL" if scope.account_id is None else "account_id = %(account)s"
    reviewed = "AND reviewed_at IS NOT NULL" if scope.reviewed_only else ""
    matches, score, values = _expressions(chosen, terms)
    statement = f"""
        WITH candidates AS MATERIALIZED (
            SELECT id, state, search, identifiers FROM lesson
            WHERE ({matches}) AND state IN ('active', 'quarantined') AND {account} {reviewed}
            LIMIT %(budget)s
        ), scored AS (
            SELECT id, state, {score} AS score FROM candidates
        ), placed AS (
            SELECT id, state, score, row_number() OVER (PARTITION BY state ORDER BY score DESC, id) AS place FROM scored
        )
        SELECT id, state, score FROM placed WHERE place <= %(limit)s ORDER BY score DESC, id
    """
    rows = fetch(statement, {**values, "account": scope.account_id, "budget": 2 * budget, "limit": limit})
    return [LexicalHit(lesson_id=i, state=state, score=value) for i, state, value in rows]


def _expressions(chosen: list[Term], terms: list[Term]) -> tuple[str, str, dict[str, object]]:
    """SQL for "has one of the chosen terms" and for the sum of idf of the terms it has, with their parameters."""
    values: dict[str, object] = {}
    matches = []
    for column in ("search", "identifiers"):
        words = [tsquery(term.lexeme) for term in chosen if term.column == column]
        if words:
            values[f"any_{column}"] = " | ".join(words)
            matches.append(f"{column} @@ %(any_{column})s::tsquery")
    score = []
    for i, term in enumerate(terms):
        values[f"term{i}"], values[f"idf{i}"] = tsquery(term.lexeme), term.idf
        score.append(f"%(idf{i})s * ({term.column} @@ %(term{i})s::tsquery)::int")
    return " OR ".join(matches), " + ".join(score), values
