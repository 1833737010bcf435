"""Tree-shaped counters: `BinaryTree` for a known horizon, `Hybrid` for any length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.errors import check_whole
from phdstream.privacy import Noise, noise_variance, scale_for
from phdstream.streams.paper.counters.counter import Counter

__all__ = ["BinaryTree", "Hybrid"]

_STEPS, _EPOCH, _DONE, _SUMS = 0, 1, 2, 3
_MAX_EPOCHS = 40
_MAX_HORIZON = 1 << 22
"""With both, steps stay below 2^62: no counter will ever see that many."""


@dataclass(frozen=True)
class BinaryTree(Counter):
    """Dyadic partial sums (Dwork et al. 2010; Chan et al. 2011): error grows as (ln T)^(3/2).

    Within a horizon of T values an item is in at most ``floor(log2 T) + 1`` dyadic sums, so each gets noise of scale
    ``(floor(log2 T) + 1)/ε``. (The paper's ``log2(T)/ε`` is too small: at T = 1 it adds no noise.)

    A counter that reaches its horizon goes on privately: its total is kept and a new tree over twice the horizon
    starts. Trees hold disjoint items, so each has the whole ε.

    Columns: steps, epoch (how often the horizon was doubled), total of finished trees, then for each level the
    exact sum (private) and the noisy sum. Levels are added as epochs need them.

    >>> BinaryTree(epsilon=1.0, horizon=7).scales(1), BinaryTree(epsilon=1.0, horizon=1).scales(1)
    (array([3.]), array([1.]))
    """

    horizon: int = 128
    width: ClassVar[int] = _SUMS
    private_columns: ClassVar[tuple[int, ...]] = tuple(range(_SUMS, _SUMS + 2 * 63, 2))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("horizon", self.horizon, most=_MAX_HORIZON)
        object.__setattr__(self, "horizon", int(self.horizon))

    def start(self, counters: int) -> Ints:
        """Return the state of that many counters that have seen nothing."""
        return np.zeros((counters, _SUMS + 2 * self._levels(0)), dtype=np.int64)

    def _levels(self, epoch: int) -> int:
        return (self.horizon << epoch).bit_length()  # floor(log2 T) + 1

    def _before(self, epoch: Ints) -> Ints:
        """Return how many values came before an epoch: horizon · (2^epoch - 1)."""
        return self.horizon * ((np.int64(1) << epoch) - 1)

    def _epoch(self, steps: Ints) -> Ints:
        """Return the epoch of a counter that has taken that many values (a full tree is already closed)."""
        starts = self._before(np.arange(_MAX_EPOCHS))
        return np.searchsorted(starts, steps, side="right").astype(np.int64) - 1

    def step(self, state: Ints, values: Ints, noise: Noise, at: Ints) -> tuple[Ints, Ints]:
        """See `Counter.step`."""
        state = self._with_levels(state.copy())
        epoch = state[:, _EPOCH]
        state[:, _STEPS] += 1
        t = state[:, _STEPS] - self._before(epoch)
        exact, noisy = state[:, _SUMS::2], state[:, _SUMS + 1 :: 2]
        rows, j = np.arange(t.size), _trailing_zeros(t)
        below = np.arange(exact.shape[1]) < j[:, None]
        sums = np.where(below, exact, 0).sum(axis=1) + values
        released = self._add_noise(sums, epoch, noise, at)
        exact[below] = noisy[below] = 0
        exact[rows, j], noisy[rows, j] = sums, released
        output = state[:, _DONE] + noisy.sum(axis=1)
        self._close_full_trees(state, t == self.horizon << epoch, output)
        return state, output

    def _with_levels(self, state: Ints) -> Ints:
        needed = _SUMS + 2 * (self._levels(int(state[:, _EPOCH].max())) if state.size else 0)
        missing = max(0, needed - state.shape[1])
        return np.pad(state, ((0, 0), (0, missing)))

    def _add_noise(self, sums: Ints, epoch: Ints, noise: Noise, at: Ints) -> Ints:
        released = np.empty_like(sums)
        for e in np.unique(epoch).tolist():
            of_epoch = epoch == e
            scale = scale_for(self.epsilon, sums=self._levels(e))
            released[of_epoch] = noise.add(sums[of_epoch], scale, at[of_epoch])
        return released

    def _close_full_trees(self, state: Ints, full: np.typing.NDArray[np.bool_], output: Ints) -> None:
        state[full, _DONE] = output[full]
        state[full, _EPOCH] += 1
        state[full, _SUMS:] = 0

    def output(self, state: Ints) -> Ints:
        """See `Counter.output`."""
        output: Ints = state[:, _DONE] + state[:, _SUMS + 1 :: 2].sum(axis=1)
        return output

    def steps(self, state: Ints) -> Ints:
        """See `Counter.steps`."""
        return state[:, _STEPS]

    def scales(self, steps: int) -> Floats:
        """See `Counter.scales`: one term for each one bit of every finished horizon and of the steps since."""
        epoch = int(self._epoch(np.array([steps]))[0])
        trees = [(self.horizon << e, e) for e in range(epoch)]
        trees.append((steps - int(self._before(np.array(epoch))), epoch))
        terms = [[scale_for(self.epsilon, self._levels(e))] * t.bit_count() for t, e in trees]
        return np.array([scale for tree in terms for scale in tree])

    def variance(self, first: Ints, last: Ints) -> Floats:
        """See `Counter.variance`: the noisy sums of one total that are not also in the other."""
        e0, e1 = self._epoch(first), self._epoch(last)
        t0, t1 = first - self._before(e0), last - self._before(e1)
        finished = np.r_[0.0, np.cumsum(np.bitwise_count(self.horizon) * self._term(np.arange(_MAX_EPOCHS)))]
        across = self._within(t0, self.horizon << e0, e0) + self._within(np.zeros_like(t1), t1, e1)
        between = finished[e1] - finished[np.minimum(e0 + 1, e1)]
        return np.where(e0 == e1, self._within(t0, t1, e0), across + between)

    def _within(self, t0: Ints, t1: Ints, epoch: Ints) -> Floats:
        """Return the variance of the difference of two totals of one tree: they share the leading equal bits."""
        differ = _up_to_highest_bit(t0 ^ t1)
        terms = np.bitwise_count(t0 & differ) + np.bitwise_count(t1 & differ)
        variance: Floats = terms * self._term(epoch)
        return variance

    def _term(self, epoch: Ints) -> Floats:
        """Return the variance of one noisy sum of an epoch."""
        return _term_variances(self.epsilon, self.horizon)[epoch]

    def privacy_loss(self, steps: int) -> float:
        """See `Counter.privacy_loss`: in a tree over t values so far, some item is in floor(log2 t) + 1 sums."""
        epoch = int(self._epoch(np.array([max(steps - 1, 0)]))[0])
        lengths = [(self.horizon << e, e) for e in range(epoch)]
        lengths.append((steps - int(self._before(np.array(epoch))), epoch))
        return max(t.bit_length() / scale_for(self.epsilon, self._levels(e)) for t, e in lengths)


@dataclass(frozen=True)
class Hybrid(BinaryTree):
    """A counter for streams of any length: binary trees over 1, 2, 4, 8, ... values, one after the other.

    Chan et al.'s hybrid mechanism, except that they halve ε between the totals of finished stretches and the
    tree inside the current one; here the finished tree's own last output is its total, so nothing is halved.

    >>> Hybrid(epsilon=1.0).scales(3)      # one value under scale 1, then a full tree over two under scale 2
    array([1., 2.])
    """

    horizon: int = 1


@lru_cache(maxsize=256)
def _term_variances(epsilon: float, horizon: int) -> Floats:
    levels = [(horizon << epoch).bit_length() for epoch in range(_MAX_EPOCHS)]
    return np.array([noise_variance(scale_for(epsilon, number)) for number in levels])


def _trailing_zeros(t: Ints) -> Ints:
    lowest = t & -t
    zeros: Ints = np.bitwise_count(lowest - 1).astype(np.int64)
    return zeros


def _up_to_highest_bit(x: Ints) -> Ints:
    """Return a mask of all bits up to the highest one of x (0 for 0)."""
    for shift in (1, 2, 4, 8, 16, 32):
        x = x | (x >> shift)
    return x
