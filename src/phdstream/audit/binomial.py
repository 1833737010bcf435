"""Exact binomial tests, in plain arithmetic: tails by summing their terms, limits by bisection. SciPy is not needed."""

from __future__ import annotations

import math

__all__ = ["clopper_pearson", "log_tail_at_least", "log_tail_at_most", "surprise"]


def _log_term(k: int, n: int, p: float) -> float:
    choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return choose + (k * math.log(p) if k else 0.0) + ((n - k) * math.log1p(-p) if n - k else 0.0)


def log_tail_at_least(k: int, n: int, p: float) -> float:
    """Return ``ln P(X >= k)`` for X binomial.

    >>> round(math.exp(log_tail_at_least(9, 10, 0.5)) * 1024)
    11
    """
    if k <= 0:
        return 0.0
    if not 0 < p < 1 or k > n:
        return 0.0 if p >= 1 and k <= n else -math.inf
    if k <= n * p:  # the long side: the rest of the short one
        below = math.exp(log_tail_at_least(n - k + 1, n, 1 - p))
        return math.log1p(-below) if below < 1 else -math.inf
    first = _log_term(k, n, p)
    ratio, term, total, odds = 0.0, 1.0, 1.0, p / (1 - p)
    for i in range(k, n):
        ratio = (n - i) / (i + 1) * odds
        term *= ratio
        total += term
        if term < total * 1e-17:
            break
    return first + math.log(total)


def log_tail_at_most(k: int, n: int, p: float) -> float:
    """Return ``ln P(X <= k)`` for X binomial."""
    return log_tail_at_least(n - k, n, 1 - p)


def surprise(k: int, n: int, p: float) -> float:
    """Return the two-sided probability of a count as far from its mean as this one: twice the smaller tail.

    >>> round(surprise(50, 100, 0.5), 3), surprise(100, 100, 0.5) < 1e-25
    (1.0, True)
    """
    return min(1.0, 2 * math.exp(min(log_tail_at_least(k, n, p), log_tail_at_most(k, n, p))))


def clopper_pearson(k: int, n: int, failure: float) -> tuple[float, float]:
    """Return limits of a probability of which k of n were seen: each side fails with probability ``failure`` at most.

    >>> [round(limit, 4) for limit in clopper_pearson(5, 10, 0.025)]
    [0.1871, 0.8129]
    """
    target = math.log(failure)
    low = 0.0 if k == 0 else _bisect(lambda p: log_tail_at_least(k, n, p) > target)[0]
    high = 1.0 if k == n else _bisect(lambda p: log_tail_at_most(k, n, p) <= target)[1]
    return low, high


def _bisect(passed: object) -> tuple[float, float]:
    """Return where a condition begins to hold, from both sides."""
    assert callable(passed)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if passed(middle):
            high = middle
        else:
            low = middle
    return low, high
