"""Exact discrete Laplace noise, a whole array at a time.

**Contract.** `discrete_laplace(scale, size)` returns independent integers with exactly

    P(Z = k) = (1 - a)/(1 + a) · a^|k|,    a = exp(-1/s),

s being the exact value of the float ``scale``, provided that the operating system's random bits are independent
and fair. No step uses floating point.

**Proof.**

1. *Z is the difference of two independent geometric variables* G with ``P(G = k) = (1 - a)·a^k``:
   ``P(G1 - G2 = k) = Σ_m (1-a)²·a^(m+|k|)·a^m = (1-a)²/(1-a²)·a^|k|``.
2. *The digits of G are independent.* Write ``G = Σ_{j<J} D_j·256^j + T·256^J`` with digits from 0 to 255. As
   ``a^G = Π_j a^(D_j·256^j) · a^(T·256^J)``, the probability is a product with one factor for each digit: D_j has
   ``P(d) ∝ r^d`` on 0..255 with ``r = a^(256^j)``, and T is geometric with ``r = a^(256^J)``.
3. *T is drawn up to 1024 and then anew*: it is below 1024 with its own probabilities, and 1024 or more with
   probability ``r^1024``; given that, ``T - 1024`` is distributed as T again.
4. *Each draw inverts a distribution function.* With ``C_k = P(outcome < k)`` and U uniform in [0, 1), the number
   of k with ``C_k <= U`` has the distribution asked for. U is known by its first p bits, a word w. Let
   ``B_k = floor(C_k·2^p)``. If ``w > B_k`` then ``U >= (B_k + 1)/2^p > C_k``; if ``w < B_k`` then
   ``U < (w + 1)/2^p <= B_k/2^p <= C_k``. Only if ``w = B_k`` are more bits of U needed, and then they are drawn:
   16 bits decide nearly always, 64 nearly always of the rest, and then 64 more at a time.
5. *The B_k are right.* They are computed from bounds on powers of ``exp(-x)`` (`phdstream.privacy.exponentials`) at a
   precision that is raised until both bounds give the same floor. That ends: x is rational and not 0, so ``exp(-x)``
   is transcendental (Hermite, Lindemann), and so are ``C_k = 1 - r^k`` and ``C_k = (1 - r^k)/(1 - r^256)``, none of
   which can therefore be a fraction at which floors jump. (``C_k < 1``, hence ``B_k <= 2^p - 1``.)

Random bits are read from the operating system for every call and never kept, so that neither a fork nor a saved
state can repeat them. How long a call takes depends on the random bits, but not on the values noise is added to.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Ints
from phdstream.errors import BudgetError
from phdstream.privacy.exponentials import Bounds, exp_bounds, power_bounds

__all__ = ["LARGEST_SCALE", "discrete_laplace"]

LARGEST_SCALE = 2.0**44
"""Beyond it noise might not fit into 64 bits; no count would mean anything either."""
_DIGIT_BITS = 8
_TOP = 1024
_TOP_SCALE = 64
_MOST_TOP = 1 << 15
"""Under it T·256^J stays below 2^62 for all scales, as 256^J is less than 4 times the scale."""
_FIRST, _WORD, _WORK = 16, 64, 192


def discrete_laplace(scale: float, size: int) -> Ints:
    """Return ``size`` independent draws of exact discrete Laplace noise.

    >>> discrete_laplace(0.001, 3)         # P(Z != 0) is below 1e-433
    array([0, 0, 0])
    """
    if not 0 < scale <= LARGEST_SCALE:
        raise BudgetError(f"noise needs a scale that is positive and at most 2^44, not {scale!r}.")
    geometric = _geometric(float(scale), 2 * size)
    return geometric[:size] - geometric[size:]


def _geometric(scale: float, size: int) -> Ints:
    """Return draws of G, assembled from its digits (2)."""
    *digits, top = _digits(scale)
    total = _draw_top(top, size)
    for digit in reversed(digits):
        total = (total << _DIGIT_BITS) | digit.draw(size)
    return total


def _draw_top(top: Digit, size: int) -> Ints:
    """Return draws of T: where one is ``_TOP`` or more, the rest of it is drawn anew (3)."""
    total = top.draw(size)
    going = np.flatnonzero(total == _TOP)
    while going.size:
        more = top.draw(going.size)
        total[going] += more
        going = going[more == _TOP]
        if total.max() >= _MOST_TOP:  # less likely than exp(-500): not even once in the life of the universe
            raise OverflowError("noise does not fit into 64 bits.")
    return total


@lru_cache(maxsize=64)
def _digits(scale: float) -> tuple[Digit, ...]:
    """Return the digits of G from the lowest, the top last: as few as leave it a scale of at most ``_TOP_SCALE``."""
    s, digits, ratio = Fraction(scale), [], 1
    while s > _TOP_SCALE * ratio:
        digits.append(Digit(ratio / s, 1 << _DIGIT_BITS, closed=True))
        ratio <<= _DIGIT_BITS
    return (*digits, Digit(ratio / s, _TOP, closed=False))


@dataclass(frozen=True)
class Digit:
    """One digit of a geometric variable: ``P(d) ∝ r^d`` with ``r = exp(-x)``.

    Closed, its outcomes are 0 to ``count - 1``. Open, they are 0 to ``count``, the last meaning "so many or more".
    """

    x: Fraction
    count: int
    closed: bool

    def draw(self, size: int) -> Ints:
        """Return independent outcomes: 16 bits each, and more where these do not decide (4)."""
        words = _random(np.uint16, size)
        outcome: Ints = self._by_first_bits[words].astype(np.int64)
        undecided = np.flatnonzero(outcome < 0)
        if undecided.size:
            outcome[undecided] = self._by_words(words[undecided])
        return outcome

    def _by_words(self, first: NDArray[np.uint16]) -> Ints:
        """Return the outcomes of words of 64 bits that begin with the given ones."""
        rest = _random(np.uint64, first.size) >> np.uint64(_FIRST)
        words = (first.astype(np.uint64) << np.uint64(_WORD - _FIRST)) | rest
        outcome: Ints = np.searchsorted(self._boundaries, words).astype(np.int64)
        at = np.minimum(outcome, self._boundaries.size - 1)
        for i in np.flatnonzero(self._boundaries[at] == words).tolist():
            outcome[i] = self._by_more_bits(int(words[i]))
        return outcome

    def _by_more_bits(self, word: int) -> int:
        """Return the outcome of one word that 64 bits do not decide: by as many more as it takes."""
        passed, undecided, bits = 0, list(range(1, self._boundaries.size + 1)), _WORD
        while True:
            floors = {k: self.boundary(k, bits) for k in undecided}
            passed += sum(floor < word for floor in floors.values())
            undecided = [k for k, floor in floors.items() if floor == word]
            if not undecided:
                return passed
            word, bits = (word << _WORD) | int(_random(np.uint64, 1)[0]), bits + _WORD

    @cached_property
    def _by_first_bits(self) -> NDArray[np.int16]:
        """The outcome of every word of 16 bits, or -1 where a boundary falls into it."""
        boundaries = self._boundaries >> np.uint64(_WORD - _FIRST)
        words = np.arange(1 << _FIRST, dtype=np.uint64)
        outcome = np.searchsorted(boundaries, words).astype(np.int16)
        outcome[boundaries.astype(np.int64)] = -1
        return outcome

    @cached_property
    def _boundaries(self) -> NDArray[np.uint64]:
        """``floor(C_k · 2^64)`` for all k, from 1."""
        number = self.count - 1 if self.closed else self.count
        powers = power_bounds(self.x, self.count, _WORK)
        pairs = [self._floors(powers[k - 1], powers[-1], _WORD, _WORK) for k in range(1, number + 1)]
        exact = [low if low == high else self.boundary(k, _WORD) for k, (low, high) in enumerate(pairs, 1)]
        return np.array(exact, dtype=np.uint64)

    def boundary(self, k: int, bits: int) -> int:
        """Return ``floor(C_k · 2^bits)``, exactly (5)."""
        work = bits + _WORK - _WORD
        while True:
            of_k, of_all = (exp_bounds(number * self.x, work) for number in (k, self.count))
            low, high = self._floors(of_k, of_all, bits, work)
            if low == high:
                return low
            work *= 2

    def _floors(self, of_k: Bounds, of_all: Bounds, bits: int, work: int) -> Bounds:
        """Return the floors of ``C_k · 2^bits`` for both ends of what is known of ``r^k`` and ``r^count``."""
        one = 1 << work
        least, most = one - of_k[1], one - of_k[0]
        under, over = (one - of_all[1], one - of_all[0]) if self.closed else (one, one)
        return (least << bits) // over, min((most << bits) // under, (1 << bits) - 1)


def _random(kind: Any, size: int) -> NDArray[Any]:
    """Return words of the operating system's randomness; the only place it enters."""
    return np.frombuffer(os.urandom(size * np.dtype(kind).itemsize), dtype=kind)
