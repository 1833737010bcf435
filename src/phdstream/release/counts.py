"""`Counts`: answers to range queries, with intervals for the privacy noise in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from phdstream.arrays import Floats
from phdstream.errors import InputError, shown

__all__ = ["Counts", "check_confidence"]


@dataclass(frozen=True)
class Counts:
    """Estimated numbers of points in rectangles.

    - ``value``: the estimate to use; never negative, and rectangles that tile the domain add up to the total;
    - ``unbiased``: before negative counts were removed; right on average, but may be negative;
    - ``stderr``: the standard deviation of the privacy noise in ``unbiased``;
    - ``low``, ``high``: an interval for what would have been released without noise.

    **What the interval covers:** the privacy noise. **What it does not cover:** that points need not lie
    evenly inside a cell of the release, which matters for rectangles smaller than or cutting through cells.
    """

    value: Floats
    unbiased: Floats
    stderr: Floats
    low: Floats
    high: Floats
    confidence: float
    privacy: str

    @classmethod
    def around(cls, value: Floats, unbiased: Floats, variance: Floats, confidence: float, privacy: str) -> Counts:
        """Return counts with their intervals, from estimates and the variance of the noise."""
        stderr = np.sqrt(variance)
        margin = _quantile(confidence) * stderr
        low, high = np.maximum(unbiased - margin, 0), np.maximum(unbiased + margin, 0)
        return cls(value, unbiased, stderr, np.minimum(low, value), np.maximum(high, value), confidence, privacy)

    @classmethod
    def unknown(cls, number: int, confidence: float, privacy: str) -> Counts:
        """Return the answers to a number of queries while nothing is known yet."""
        zero, anything = np.zeros(number), np.full(number, np.inf)
        return cls(zero, zero, anything, zero, anything, confidence, privacy)


def check_confidence(confidence: Any) -> None:
    """Refuse a level of confidence for which there is no interval."""
    if not isinstance(confidence, float | int) or not 0 < confidence < 1 or (1 + confidence) / 2 == 1:
        raise InputError(f"confidence lies strictly between 0 and 1, not {shown(confidence)}.")


def _quantile(confidence: float) -> float:
    """Return how many standard deviations to go: enough for one Laplace variable and for a sum of many."""
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    return max(normal, -math.log(1 - confidence) / math.sqrt(2))
