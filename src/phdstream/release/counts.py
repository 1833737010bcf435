"""`Counts`: answers to range queries, with intervals for the true count and for the privacy noise alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from phdstream.arrays import Floats
from phdstream.errors import InputError, shown
from phdstream.release.shown import table_html
from phdstream.release.tables import Shapes, table_as

__all__ = ["COLUMNS", "Counts", "check_confidence"]

COLUMNS = ("value", "low", "high", "unbiased", "stderr", "noise_low", "noise_high")
"""The columns of answers, in every table."""

_SHOWN, _FEW = ("value", "low", "high", "stderr"), 3
_STRETCH = 1.0
"""Where an estimate is small beside its error, its upper margin is up to so much longer: points missed in a thin place
are more often many than few. Beside a large estimate errors are even."""


@dataclass(frozen=True, repr=False)
class Counts:
    """Estimated numbers of points in rectangles or polygons.

    - ``value``: the estimate to use; never negative, and rectangles that tile the domain add up to the total;
    - ``low``, ``high``: an interval for the **true count**, which it covers about as often as ``confidence`` says:
      for privacy noise, uneven places inside cells, and points that came since places were last counted together;
    - ``unbiased``: before negative counts were removed; right on average, but may be negative;
    - ``stderr``: the standard deviation of the privacy noise in ``unbiased``;
    - ``noise_low``, ``noise_high``: an interval for what would have been released without noise. It lies within the
      first one, and says which part of that more ε would remove.

    The first interval is computed from the release alone, so it rests on a model of unevenness (see
    `phdstream.release.unevenness`), measured on real streams in ``docs/utility.md``. It is no promise for one place.
    """

    value: Floats
    unbiased: Floats
    stderr: Floats
    low: Floats
    high: Floats
    noise_low: Floats
    noise_high: Floats
    confidence: float
    privacy: str

    def columns(self) -> dict[str, Floats]:
        """Return the answers by the names that they have in every table."""
        return {name: getattr(self, name) for name in COLUMNS}

    def to_table(self, to: str = "arrow", shapes: Shapes | None = None) -> Any:
        """Return the answers as a table, in the order in which they were asked; see `Release.count_in`."""
        return table_as(to, dict(self.columns()), {"privacy": self.privacy, "confidence": self.confidence}, shapes)

    def _repr_html_(self) -> str:
        rows = zip(*(getattr(self, name).tolist() for name in _SHOWN), strict=True)
        return table_html(
            f"{self.value.size} counts",
            [("", *_SHOWN), *((str(i), *(f"{x:,.1f}" for x in row)) for i, row in enumerate(rows))],
            f"low to high holds the true count about {self.confidence:.0%} of the time; noise is of privacy alone. "
            f"{self.privacy}",
        )

    def __repr__(self) -> str:
        some = ", ".join(
            f"{v:,.0f} ({low:,.0f} to {high:,.0f})"
            for v, low, high in zip(self.value[:_FEW], self.low[:_FEW], self.high[:_FEW], strict=True)
        )
        more = f", and {self.value.size - _FEW:,} more" if self.value.size > _FEW else ""
        return f"<Counts of {self.value.size}, {self.confidence:.0%} intervals: {some}{more}; {self.privacy}>"

    @classmethod
    def around(
        cls, value: Floats, unbiased: Floats, noise: Floats, error: Floats, confidence: float, privacy: str
    ) -> Counts:
        """Return counts with their intervals, from estimates and the variances of noise and of the whole error."""
        quantile, stderr = _quantile(confidence), np.sqrt(noise)
        noise_low, noise_high = (np.maximum(unbiased + way * quantile * stderr, 0) for way in (-1, 1))
        noise_low, noise_high = np.minimum(noise_low, value), np.maximum(noise_high, value)
        low, high = _interval(value, np.sqrt(error), quantile)
        low, high = np.minimum(low, noise_low), np.maximum(high, noise_high)
        return cls(value, unbiased, stderr, low, high, noise_low, noise_high, confidence, privacy)

    @classmethod
    def unknown(cls, number: int, confidence: float, privacy: str) -> Counts:
        """Return the answers to a number of queries while nothing is known yet."""
        zero, anything = np.zeros(number), np.full(number, np.inf)
        return cls(zero, zero, anything, zero, anything, zero, anything, confidence, privacy)


def check_confidence(confidence: Any) -> None:
    """Refuse a level of confidence for which there is no interval."""
    if not isinstance(confidence, float | int) or not 0 < confidence < 1 or (1 + confidence) / 2 == 1:
        raise InputError(f"confidence lies strictly between 0 and 1, not {shown(confidence)}.")


def _interval(value: Floats, deviation: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Return the ends of an interval around estimates that are never negative, longer upwards where they are small."""
    margin = quantile * deviation
    both = value + deviation
    small = np.divide(deviation, both, out=np.zeros(both.size), where=both > 0)
    return np.maximum(value - margin, 0), value + margin * (1 + _STRETCH * small)


def _quantile(confidence: float) -> float:
    """Return how many standard deviations to go: enough for one Laplace variable and for a sum of many."""
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    return max(normal, -math.log(1 - confidence) / math.sqrt(2))
