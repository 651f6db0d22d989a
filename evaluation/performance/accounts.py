"""Lessons that belong to accounts: one large account, searched through the index, and thousands of small ones."""

from typing import Final

import numpy as np
from django.db import transaction

from evaluation.performance.bench import TOP, Bench
from evaluation.performance.finding import Finding, compared
from evaluation.performance.load import account_id
from evaluation.performance.semantic import RAW, RECALL, exact, raw_top
from evaluation.performance.timing import ROUNDS, Side, in_turns, mean
from memory.models.sql import fetch
from memory.search import Scope
from memory.search.semantic import semantic

ACCOUNTS: Final = 5_000


def measure(bench: Bench) -> list[Finding]:
    """Speed and recall for the large account (three lessons in ten are its) and for one small account after another."""
    large = [Scope(account_id=account_id(0), reviewed_only=False)] * ROUNDS
    others = fetch(
        "SELECT account_id FROM lesson_embedding WHERE state = 'active' AND account_id <> %s "
        "GROUP BY account_id ORDER BY account_id LIMIT %s",
        [account_id(0), ROUNDS],
    )
    small = [Scope(account_id=others[i % len(others)][0], reviewed_only=False) for i in range(ROUNDS)]
    return [
        *_account(bench, "large", f"the large account among {ACCOUNTS:,}", large, at_most=None),
        *_account(bench, "small", f"small accounts among {ACCOUNTS:,}", small, at_most=1.3 if bench.judged else None),
    ]


def _account(bench: Bench, key: str, whose: str, scopes: list[Scope], at_most: float | None) -> list[Finding]:
    vectors = bench.tasks.vectors
    with transaction.atomic():
        taken = in_turns(
            {
                "raw": raw_top(bench),
                "ours": Side(act=lambda i: semantic(bench.space, vectors[i], scopes[i], TOP, ("active",))),
            }
        )
        shares = []
        truths = {scope: exact(bench, f"account_id = '{scope.account_id}'") for scope in set(scopes)}
        for vector, scope in zip(vectors, scopes, strict=False):
            best = truths[scope].top(vector)
            hits = semantic(bench.space, vector, scope, TOP, ("active",))
            shares.append(len(best & {hit.lesson_id for hit in hits}) / len(best))
    return [
        compared(
            bench.lessons,
            f"meaning.speed_of_{key}",
            f"semantic top 20, {whose}",
            ours=taken["ours"],
            floor=taken["raw"],
            against=RAW,
            at_most=at_most,
        ),
        Finding(
            key=f"meaning.recall_of_{key}",
            lessons=bench.lessons,
            what=f"recall@20, {whose}",
            result=mean(np.array(shares)),
            unit="share",
            bar=RECALL,
        ),
    ]
