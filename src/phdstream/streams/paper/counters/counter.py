"""Private counters: running totals of an integer stream, released at every step.

A counter is a pure streaming algorithm: `start` gives the state of n fresh counters, `step` takes states and new values
and gives new states and outputs. A state is one row of integers, so a bank of counters is one array and any subset of
its rows can be stepped at once.

**Privacy.** Every output is made of *noisy sums*: sums of past values plus fresh, independent discrete
Laplace noise. The guarantee of a counter with budget ε is: for every item, the sum over the noisy sums that
contain it of 1/scale is at most ε. Each noisy sum is its own Laplace mechanism, so by adaptive composition
this holds even when later values are chosen in view of earlier outputs (as they are here: the tree that
activates a counter depends on what was released). Columns listed in ``private_columns`` hold exact sums: a
state with any is private data at rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.errors import BudgetError, InputError, check_whole, shown
from phdstream.privacy import Noise, noise_variance, scale_for

__all__ = ["Block", "Counter", "Simple", "total_deviation"]


@dataclass(frozen=True)
class Counter(ABC):
    """A counter algorithm with privacy budget ``epsilon`` for one item of size 1."""

    epsilon: float
    width: ClassVar[int]
    private_columns: ClassVar[tuple[int, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, int | float):
            raise BudgetError(f"epsilon must be a number, not {shown(self.epsilon)}.")
        scale_for(self.epsilon)  # refuses a budget that is not positive and finite

    def start(self, counters: int) -> Ints:
        """Return the state of that many counters that have seen nothing."""
        return np.zeros((counters, self.width), dtype=np.int64)

    @abstractmethod
    def step(self, state: Ints, values: Ints, noise: Noise, at: Ints) -> tuple[Ints, Ints]:
        """Return the states after one more value each, and the running totals; ``at`` names the counters."""

    @abstractmethod
    def output(self, state: Ints) -> Ints:
        """Return the last released running totals (0 before the first step)."""

    @abstractmethod
    def steps(self, state: Ints) -> Ints:
        """Return how many values each counter has taken."""

    @abstractmethod
    def scales(self, steps: int) -> Floats:
        """Return the scale of every noise term in the output after ``steps`` values."""

    @abstractmethod
    def variance(self, first: Ints, last: Ints) -> Floats:
        """Return the variance of the output after ``last`` values minus that after ``first`` values."""

    def variance_at(self, nodes: Ints, first: Ints, last: Ints) -> Floats:
        """Return the same for the counters of some nodes: here, whatever the node."""
        return self.variance(first, last)

    @abstractmethod
    def privacy_loss(self, steps: int) -> float:
        """Return the exact loss for one item of size 1 somewhere in the first ``steps`` values: at most ε."""

    def accuracy(self, steps: int, failure: float) -> float:
        """Return α with ``P(|output - true total| <= α) >= 1 - failure`` after ``steps`` values."""
        return total_deviation(self.scales(steps), failure)

    def to_dict(self) -> dict[str, Any]:
        """Return the counter as plain data."""
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in asdict(self).items()}
        return {"type": type(self).__name__, **plain}

    def __str__(self) -> str:
        return type(self).__name__


@dataclass(frozen=True)
class Simple(Counter):
    """Adds noise of scale 1/ε to every value (Chan et al. 2011, Simple II): error grows as √t.

    An item is in one noisy sum, of scale 1/ε. The state holds no exact sum. Columns: steps, output.

    >>> from phdstream.privacy import Simulation
    >>> counter = Simple(epsilon=1.0)
    >>> state, output = counter.step(counter.start(1), np.array([10]), Simulation(seed=1), np.array([0]))
    >>> counter.steps(state), bool(output == counter.output(state))
    (array([1]), True)
    """

    width: ClassVar[int] = 2

    def step(self, state: Ints, values: Ints, noise: Noise, at: Ints) -> tuple[Ints, Ints]:
        """See `Counter.step`."""
        output = state[:, 1] + noise.add(values, scale_for(self.epsilon), at)
        return np.column_stack([state[:, 0] + 1, output]), output

    def output(self, state: Ints) -> Ints:
        """See `Counter.output`."""
        return state[:, 1]

    def steps(self, state: Ints) -> Ints:
        """See `Counter.steps`."""
        return state[:, 0]

    def scales(self, steps: int) -> Floats:
        """See `Counter.scales`."""
        return np.full(steps, scale_for(self.epsilon))

    def variance(self, first: Ints, last: Ints) -> Floats:
        """See `Counter.variance`: one noise term for each value in between."""
        variance: Floats = (last - first) * noise_variance(scale_for(self.epsilon))
        return variance

    def privacy_loss(self, steps: int) -> float:
        """See `Counter.privacy_loss`."""
        return 1 / scale_for(self.epsilon) if steps else 0.0


@dataclass(frozen=True)
class Block(Counter):
    """Two levels of sums (Chan et al. 2011, Two-Level): error grows as t^(1/4) for blocks of size √t.

    Inside a block each value is released with noise of scale 2/ε; the last value of a block is replaced by
    the whole block's sum with noise of scale 2/ε, and the inner noise is forgotten. An item is in at most one
    inner and one block sum. Columns: steps, total at the last block, noisy sum inside the block, exact sum
    inside the block (private).
    """

    size: int = 8
    width: ClassVar[int] = 4
    private_columns: ClassVar[tuple[int, ...]] = (3,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("size", self.size)
        object.__setattr__(self, "size", int(self.size))

    def step(self, state: Ints, values: Ints, noise: Noise, at: Ints) -> tuple[Ints, Ints]:
        """See `Counter.step`."""
        steps, blocks, inner, exact = state[:, 0] + 1, state[:, 1], state[:, 2], state[:, 3] + values
        closes = steps % self.size == 0
        noisy = noise.add(np.where(closes, exact, values), scale_for(self.epsilon, sums=2), at)
        blocks = np.where(closes, blocks + noisy, blocks)
        inner = np.where(closes, 0, inner + noisy)
        return np.column_stack([steps, blocks, inner, np.where(closes, 0, exact)]), blocks + inner

    def output(self, state: Ints) -> Ints:
        """See `Counter.output`."""
        return state[:, 1] + state[:, 2]

    def steps(self, state: Ints) -> Ints:
        """See `Counter.steps`."""
        return state[:, 0]

    def scales(self, steps: int) -> Floats:
        """See `Counter.scales`."""
        return np.full(steps // self.size + steps % self.size, scale_for(self.epsilon, sums=2))

    def variance(self, first: Ints, last: Ints) -> Floats:
        """See `Counter.variance`: inner terms are shared only within one block, block terms always."""
        same_block = first // self.size == last // self.size
        inner = np.where(same_block, last - first, first % self.size + last % self.size)
        terms = last // self.size - first // self.size + inner
        variance: Floats = terms * noise_variance(scale_for(self.epsilon, sums=2))
        return variance

    def privacy_loss(self, steps: int) -> float:
        """See `Counter.privacy_loss`: only a block that closes adds a second sum, and not for its last item."""
        sums = 0 if steps == 0 else 2 if 1 < self.size <= steps else 1
        return sums / scale_for(self.epsilon, sums=2)


def total_deviation(scales: Floats, failure: float) -> float:
    """Return α with ``P(|Σ Z_i| > α) <= failure`` for independent discrete Laplace Z_i of the given scales.

    The least whole α, from the exact distribution of the sum (its characteristic function is known, and inverted by
    FFT); where that would be too fine or too large to compute, Chernoff's bound.

    >>> total_deviation(np.array([1.0]), 0.05)         # P(|Z| > 2) is 0.073, P(|Z| > 3) is 0.027
    3.0
    """
    if not 0 < failure < 1:
        raise InputError(f"a failure probability lies strictly between 0 and 1, not {shown(failure)}.")
    if scales.size == 0:
        return 0.0
    length = 1 << int(np.ceil(np.log2(2 * _chernoff(scales, 1e-12) + 2)))
    if failure < 1e-6 or length > 1 << 22:
        return _chernoff(scales, failure)
    tails = 1 - np.cumsum(_distribution_of_absolute_sum(scales, length))
    return float(np.argmax(tails <= failure - 1e-9))


def _distribution_of_absolute_sum(scales: Floats, length: int) -> Floats:
    """Return ``P(|Σ Z_i| = k)`` for k = 0, 1, ..., from ``E exp(isZ) = 1/(1 + 4a·sin²(s/2)/(1-a)²)``."""
    frequency = 2 * np.pi * np.arange(length // 2 + 1) / length
    log_product = np.zeros(frequency.size)
    for scale, times in zip(*np.unique(scales, return_counts=True), strict=True):
        log_product -= times * np.log1p(2 * noise_variance(scale) * np.sin(frequency / 2) ** 2)
    mass: Floats = np.fft.irfft(np.exp(log_product), length)[: length // 2]
    return np.concatenate([mass[:1], 2 * mass[1:]])


def _chernoff(scales: Floats, failure: float) -> float:
    """Return a bound from the moment generating function ``(1-a)²/((1-a·e^s)(1-a·e^-s))``, the best over s."""
    distinct, times = np.unique(scales, return_counts=True)
    rate = 1 / distinct[:, None]
    s = np.linspace(0.001, 0.999, 999) * rate.min()
    log_moment = 2 * np.log(-np.expm1(-rate)) - np.log(-np.expm1(s - rate)) - np.log(-np.expm1(-s - rate))
    return float(((np.log(2 / failure) + times @ log_moment) / s).min())
