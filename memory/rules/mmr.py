"""Maximal marginal relevance: answers that are relevant and not five wordings of one lesson."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


@dataclass(frozen=True, kw_only=True)
class Pick:
    """One candidate at the moment when it was picked."""

    index: int  # position in the input
    value: float  # its marginal relevance then; a cosine times lambda, less the penalty


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Picks in the order in which they were made."""

    chosen: tuple[Pick, ...] = ()  # at most k, best first
    withheld: tuple[Pick, ...] = ()  # picked, but held back by the caller


def mmr(
    similarities: Floats,
    vectors: Floats,
    k: int,
    lambda_: float = 0.5,
    withheld: Callable[[int], bool] | None = None,
) -> Selection:
    """At most `k` of n candidates, each maximising lambda * cos(query, c) - (1 - lambda) * max cos(c, chosen).

    Carbonell and Goldstein, The Use of MMR, Diversity-Based Reranking, SIGIR 1998. `similarities` (n,) are the cosines
    with the query, `vectors` (n, d) the candidates as unit rows. The first choice is the most relevant; equal values
    keep the order of the input; lambda 1 is plain relevance.

    `withheld(i)` is asked once, when candidate i is picked. If it holds, the pick is recorded apart: it fills no place
    and later picks are not compared with it, so the choice is the one that would have been made without it.

    Raises ValueError for shapes that do not fit, values that are not finite, or a lambda outside [0, 1].
    """
    n = len(similarities)
    _check(similarities, vectors, lambda_)
    relevance = lambda_ * similarities.astype(np.float64)
    values = similarities.astype(np.float64)  # until something is chosen, relevance alone decides
    nearest = np.full(n, -np.inf)  # cosine with the nearest chosen candidate
    picked = np.zeros(n, dtype=bool)
    chosen: list[Pick] = []
    held: list[Pick] = []
    for _ in range(n):
        if len(chosen) >= k:
            break
        index = int(np.argmax(values))
        pick = Pick(index=index, value=float(values[index] if chosen else relevance[index]))
        if withheld is not None and withheld(index):
            held.append(pick)
        else:
            chosen.append(pick)
            # One column of cosines for each choice: cheaper than all n * n of them, since k is far below n.
            nearest = np.maximum(nearest, vectors @ vectors[index])
            values = relevance - (1 - lambda_) * nearest
        picked[index] = True
        values[picked] = -np.inf
    return Selection(chosen=tuple(chosen), withheld=tuple(held))


def _check(similarities: Floats, vectors: Floats, lambda_: float) -> None:
    if similarities.ndim != 1 or vectors.ndim != 2 or len(vectors) != len(similarities):
        raise ValueError(f"Similarities {similarities.shape} and vectors {vectors.shape} do not fit: (n,) and (n, d).")
    if not 0 <= lambda_ <= 1:
        raise ValueError(f"lambda is {lambda_}; it must lie between 0 and 1.")
    if not (np.isfinite(similarities).all() and np.isfinite(vectors).all()):
        raise ValueError("Similarities and vectors must be finite numbers.")
