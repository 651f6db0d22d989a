"""Fusing rankings, and a small push for lessons whose use went well."""

import math
from collections.abc import Sequence


def reciprocal_rank_fusion(*ranks: int | None, k: int = 60, weights: Sequence[float] | None = None) -> float:
    """The fused score of one candidate: the sum of weight / (k + rank) over the rankings that hold it.

    Cormack, Clarke and Buettcher, Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning Methods,
    SIGIR 2009; their k is 60. A rank counts from 1, None means that the ranking does not hold the candidate. Without
    `weights` every ranking counts 1. The score lies between 0 and sum(weights) / (k + 1).

    Raises ValueError for a rank below 1, a negative k or weight, or a number of weights that does not fit the ranks.
    """
    if k < 0 or (weights is not None and any(weight < 0 for weight in weights)):
        raise ValueError("k and every weight must be 0 or more.")
    shares = [1.0] * len(ranks) if weights is None else weights
    if len(shares) != len(ranks):
        raise ValueError(f"{len(ranks)} rankings came with {len(shares)} weights; give one weight for each.")
    parts = []
    for rank, share in zip(ranks, shares, strict=True):
        if rank is not None:
            if rank < 1:
                raise ValueError("A rank counts from 1.")
            parts.append(share / (k + rank))
    return math.fsum(parts)


def usage_boost(*, mean_reward: float, n: int) -> float:
    """What past outcomes add to a fused score: 0.01 * mean_reward * n / (n + 10), always within [-0.01, 0.01].

    `mean_reward` (-1 to 1) is the mean over the `n` credited uses of the strongest evidence class that has any. The
    factor n / (n + 10) shrinks a mean that few uses support. 0.01 is about the distance between the first and the
    fortieth place of one ranking, so evidence reorders near neighbours and never beats relevance.

    Raises ValueError for a mean outside [-1, 1] or a negative count.
    """
    if not -1 <= mean_reward <= 1:
        raise ValueError(f"The mean reward {mean_reward} is outside [-1, 1].")
    if n < 0:
        raise ValueError(f"The number of uses {n} is negative.")
    return 0.01 * mean_reward * n / (n + 10)
