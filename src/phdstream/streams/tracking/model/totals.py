"""How many points there are; with a window, tick by tick, so that noise goes with what expires. All public.

With a window nothing is counted when records expire. The released number of their tick is taken off the total, and
its noise goes with it; what that changes of the splits is in `expiry`.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Floats

__all__ = ["Totals"]


class Totals:
    """The number of points counted in each of the last ``window`` ticks, or of all ticks as one, and its variance.

    >>> totals = Totals(window=2)
    >>> totals.settle([3.0, 1.0], amount=8.0, variance=4.0)
    >>> totals.pass_tick()
    >>> totals.value, totals.variance
    (2.0, 1.0)
    """

    def __init__(self, window: int | None) -> None:
        self._expires = window is not None
        self._amount, self._variance = np.zeros(window or 1), np.zeros(window or 1)

    def pass_tick(self) -> None:
        """Let a tick pass: what was counted a window ago is gone."""
        if self._expires:
            self._amount, self._variance = (np.append(column[1:], 0.0) for column in (self._amount, self._variance))

    def settle(self, by_tick: list[float], amount: float, variance: float) -> None:
        """Add what the last ticks brought together, divided in proportion to what was said of each."""
        weight = np.maximum(np.array(by_tick[-self._amount.size :] if self._expires else [1.0]), 0.0)
        weight = weight / weight.sum() if weight.sum() > 0 else np.full(weight.size, 1 / weight.size)
        self._amount[-weight.size :] += weight * amount
        self._variance[-weight.size :] += weight * variance
        if not self._expires:
            self._amount = np.maximum(self._amount, 0.0)

    @property
    def value(self) -> float:
        """The number of points, never negative."""
        return max(float(self._amount.sum()), 0.0)

    @property
    def variance(self) -> float:
        """The variance of the noise in it."""
        return float(self._variance.sum())

    def to_array(self) -> Floats:
        """Return the totals as a plain array."""
        return np.array([self._amount, self._variance])

    def restore(self, array: Floats) -> None:
        """Take back what `to_array` described."""
        self._amount, self._variance = array[0].copy(), array[1].copy()
