"""The scale of noise for a budget, and the variance that comes of it: arithmetic on public numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from phdstream.arrays import Floats
from phdstream.errors import BudgetError, shown

__all__ = ["noise_variance", "scale_for"]


@lru_cache(maxsize=1024, typed=True)
def scale_for(epsilon: float, sums: int = 1) -> float:
    """Return the least float that is at least ``sums / epsilon``: the scale when one item is in that many sums.

    The division is checked in exact arithmetic and rounded toward privacy.

    >>> scale_for(0.5), scale_for(0.1) >= 10, scale_for(1.0, sums=3)
    (2.0, True, 3.0)
    """
    number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
    if not number or not 0 < epsilon < math.inf or math.isinf(scale := sums / epsilon):
        raise BudgetError(f"epsilon must be a positive, finite number (and not next to 0), not {shown(epsilon)}.")
    while Fraction(scale) * Fraction(epsilon) < sums:
        scale = math.nextafter(scale, math.inf)
    return scale


def noise_variance(scale: float | Floats) -> Any:
    """Return the variance of discrete Laplace noise, ``2a/(1-a)²`` with ``a = exp(-1/scale)``.

    >>> round(float(noise_variance(10.0)), 2)
    199.83
    """
    rate = 1 / np.asarray(scale, dtype=np.float64)
    return 2 * np.exp(-rate) / np.expm1(-rate) ** 2
