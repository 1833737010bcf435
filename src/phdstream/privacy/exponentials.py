"""Powers of ``exp(-x)`` in whole numbers, with bounds that are proven and not estimated.

A *bound pair* ``(low, high)`` at ``bits`` means ``low <= 2^bits · value <= high``. Everything is integer arithmetic,
rounded down on the low side and up on the high side, so no rounding error is ever unaccounted for.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = ["exp_bounds", "power_bounds"]

_GUARD = 32
Bounds = tuple[int, int]


def exp_bounds(x: Fraction, bits: int) -> Bounds:
    """Return bounds on ``2^bits · exp(-x)`` for a rational ``x >= 0``.

    The argument is halved until it is at most 1/2. There the series ``1 - y + y²/2 - ...`` alternates and its terms
    fall, so what is left out is at most the last term taken in; squaring the bounds undoes the halving.

    >>> low, high = exp_bounds(Fraction(1), 20)
    >>> low <= 2**20 / 2.718281828459045 <= high, high - low
    (True, 1)
    """
    if x >= bits:
        return 0, 1  # exp(-x) < 2^-x
    halvings = int(2 * x).bit_length()
    work = bits + _GUARD + 2 * halvings
    low, high = _series(x / (1 << halvings), work)
    for _ in range(halvings):
        low, high = (low * low) >> work, ((high * high) >> work) + 1
    return low >> (work - bits), (high >> (work - bits)) + 1


def _series(y: Fraction, bits: int) -> Bounds:
    """Return bounds on ``2^bits · exp(-y)`` for y from 0 to 1/2, by the alternating series."""
    one = 1 << bits
    y_low = y.numerator * one // y.denominator
    low, high, term, i = one, one, (one, one), 0
    while term[1] > 1:
        i += 1
        term = term[0] * y_low // (i * one), term[1] * (y_low + 1) // (i * one) + 1
        low, high = (low - term[1], high - term[0]) if i % 2 else (low + term[0], high + term[1])
    return low - term[1], high + term[1]


def power_bounds(x: Fraction, count: int, bits: int) -> list[Bounds]:
    """Return bounds on ``2^bits · exp(-k·x)`` for k = 1, ..., count, each from the one before."""
    first = exp_bounds(x, bits)
    bounds = [first]
    for _ in range(count - 1):
        low, high = bounds[-1]
        bounds.append(((low * first[0]) >> bits, ((high * first[1]) >> bits) + 1))
    return bounds
