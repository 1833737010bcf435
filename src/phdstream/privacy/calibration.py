"""Exact calibration of PrivTree's split decisions to a privacy budget.

The split test of a node at biased count ``b`` is ``b + Z > θ`` with Z discrete Laplace of scale λ, and
biased counts never fall below ``θ - δ``. One insert raises the count of every node on one root-to-leaf
path by 1. With F monotone (a child never above its parent) the biased counts on that path fall by at least
δ per level until they reach the floor. Write ``ρ(b)`` for the loss of one split,

    ρ(b) = ln P(b + Z > θ) - ln P(b - 1 + Z > θ),        and ρ = 0 for a node at the floor.

The tail of discrete Laplace is log-concave, so ρ does not increase with b. Let ``b_m >= θ - δ + 1`` be the
lowest count above the floor on the path; the others are at least ``b_m + δ, b_m + 2δ, ...``. Hence the loss
of all splits is at most ``Σ_i ρ(b_m + i·δ)``, which is largest at the smallest possible ``b_m``:

    loss(λ, δ) = Σ_{i >= 0} ρ(θ - δ + 1 + i·δ).

The path's last node is a leaf; in this direction its ratio is at most 1. In the other direction (one
insert fewer) every split has ratio at most 1 and the leaf loses at most ``1/λ``, the first term above. So the
decisions of one tick are ``loss(λ, δ)``-differentially private for one insert, whatever the depth, the
fanout (regular or not), θ and the public part of the score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from phdstream.errors import BudgetError
from phdstream.privacy.budget import check_enough

__all__ = ["SplitRule", "calibrate_split", "log_tail", "path_loss", "split_loss"]

_TOWARD_PRIVACY, _ROUNDING = 1e-9, 1e-15
"""Relative slack left in every float computation of a loss, and how it grows with the noise: the loss of one split is
the difference of two logarithms of order 1, of which it is a part of about 1/λ, so that rounding errors grow as λ."""
_TERMS = 4096


@dataclass(frozen=True)
class SplitRule:
    """The parameters of the split test: noise scale λ, bias δ per level, threshold θ."""

    scale: float
    bias: int
    threshold: int

    @property
    def floor(self) -> int:
        """The least biased count, θ - δ."""
        return self.threshold - self.bias

    @property
    def loss(self) -> float:
        """The exact worst-case privacy loss of one tick's decisions, for one insert."""
        return path_loss(self.scale, self.bias)


def log_tail(k: int, scale: float) -> float:
    """Return ``ln P(Z >= k)`` for Z discrete Laplace of the given scale.

    >>> math.exp(log_tail(1, 1.0) ) + math.exp(log_tail(0, 1.0))   # P(Z >= 1) = P(Z <= -1)
    1.0
    """
    ln_normaliser = math.log1p(math.exp(-1 / scale))
    if k >= 1:
        return -k / scale - ln_normaliser
    return math.log1p(-math.exp((k - 1) / scale - ln_normaliser))


def split_loss(excess: int, scale: float) -> float:
    """Return ρ at ``b = θ + excess``: the loss of one split whose count falls by one.

    >>> split_loss(-3, 2.0) == split_loss(0, 2.0) == 0.5     # 1/λ at or below the threshold
    True
    >>> split_loss(1, 2.0) > split_loss(5, 2.0) > 0
    True
    """
    if excess <= 0:
        return 1 / scale
    return log_tail(1 - excess, scale) - log_tail(2 - excess, scale)


def path_loss(scale: float, bias: int) -> float:
    """Return ``loss(λ, δ)``: the worst-case loss of the splits on one path, of any length.

    Past the last term summed, ρ falls by at least ``exp(-δ/λ)`` a step: the rest is at most a geometric series.
    """
    loss, term = 1 / scale, 0.0
    for i in range(_TERMS):
        term = split_loss(1 + i * bias, scale)
        loss += term
        if term <= loss * 1e-18:
            break
    ratio = math.exp(-bias / scale)
    return loss + term * ratio / (1 - ratio)


@lru_cache(maxsize=256)
def calibrate_split(epsilon: float, fanout: float, threshold: int = 0) -> SplitRule:
    """Return the split test with the least noise whose exact loss is at most ``epsilon``.

    The bias is ``δ = ceil(λ ln β)``, so within ``(δ-1)/ln β < λ <= δ/ln β`` the bias is constant and the
    loss falls as λ grows. The first such interval that can meet the budget holds the smallest λ.

    >>> rule = calibrate_split(0.5, fanout=4)
    >>> round(rule.scale, 3), rule.loss <= 0.5
    (4.328, True)
    """
    if not 0 < epsilon < math.inf:
        raise BudgetError(f"the budget of the split decisions must be a positive number, not {epsilon!r}.")
    check_enough(epsilon)
    slack = max(_TOWARD_PRIVACY, _ROUNDING / epsilon)
    target, log_fanout = epsilon * (1 - slack), math.log(fanout)
    bias = max(1, math.floor(log_fanout / target))  # λ is never below 1/ε
    below = 0  # the search ends between a bias that cannot meet the budget and one that can
    while path_loss(bias / log_fanout, bias) > target:
        below, bias = bias, bias + max(1, bias // 1000)
    while bias - below > 1:
        middle = (below + bias) // 2
        if path_loss(middle / log_fanout, middle) <= target:
            bias = middle
        else:
            below = middle
    low, high = max((bias - 1) / log_fanout, 1e-3), bias / log_fanout
    return SplitRule(_least_scale(low, high, bias, target), bias, threshold)


def _least_scale(low: float, high: float, bias: int, target: float) -> float:
    for _ in range(60):
        middle = (low + high) / 2
        if path_loss(middle, bias) <= target:
            high = middle
        else:
            low = middle
    return high
