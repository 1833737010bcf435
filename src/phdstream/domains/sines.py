"""Sine and cosine of degrees by additions and multiplications alone.

IEEE arithmetic gives these the same bits on every machine and in every language. A library's sine is not so: NumPy's
differs from one processor to the next in the last bit, and Java's from both. A point on the edge of a cell would then
have one code here and another there, and its delete might miss its insert. So what becomes a code uses these: here on
arrays, and on a cluster in SQL (`phdstream.engines.spark.codes`), step by step the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, pi
from typing import Any

import numpy as np

from phdstream.arrays import Floats

__all__ = ["COSINE", "QUARTER", "RADIAN", "SINE", "polynomial", "sine_and_cosine"]

QUARTER = 90.0
RADIAN = pi / 180
SINE = tuple((-1.0) ** k / factorial(2 * k + 1) for k in range(1, 9))
"""Taylor's series of (sin r - r) / r³ in r²: below π/4 what is left out is less than 1e-17."""
COSINE = tuple((-1.0) ** k / factorial(2 * k) for k in range(2, 10))
"""Taylor's series of (cos r - 1 + r²/2) / r⁴ in r²."""


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """Return the sum of coefficients times powers of x (Horner's rule); x is an array, or a column of SQL.

    >>> polynomial((1.0, 2.0, 3.0), 10.0)
    321.0
    """
    value = coefficients[-1] * x + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        value = value * x + coefficient
    return value


def sine_and_cosine(degrees: Floats) -> tuple[Floats, Floats]:
    """Return sines and cosines of angles up to some millions of degrees, right within two units in the last place.

    What is over the nearest multiple of a right angle is found without rounding for angles up to 180 degrees.

    >>> sine, cosine = sine_and_cosine(np.array([0.0, 30.0, 90.0]))
    >>> sine.round(15).tolist(), abs(cosine[[0, 2]]).tolist()
    ([0.0, 0.5, 1.0], [1.0, 0.0])
    """
    quarters = np.rint(degrees / QUARTER)
    r = (degrees - quarters * QUARTER) * RADIAN
    z = r * r
    sine = r + r * z * polynomial(SINE, z)
    cosine = 1.0 - (0.5 * z - z * z * polynomial(COSINE, z))
    turn = quarters.astype(np.int64) & 3
    odd = (turn & 1).astype(bool)
    return (
        np.where(odd, cosine, sine) * np.where(turn >= 2, -1.0, 1.0),
        np.where(odd, sine, cosine) * np.where((turn == 1) | (turn == 2), -1.0, 1.0),
    )
