"""One criterion for every claim: better, worse or no difference, from paired seeds, corrected for how many are asked.

Two errors are compared seed by seed, by the logarithm of their ratio, so that better and worse are alike. Over several
settings (ε, t0) the logarithms are averaged within each seed. Student's t over seeds gives an interval and a p-value;
the p-values of all comparisons of the page are corrected (Holm 1979) in two families, those of data sets, by which
claims are judged, and those of single settings, which say where a claim fails. A difference is called one if its
corrected p-value is below 0.05; what is not is called "no difference", in whichever direction it points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

__all__ = ["ALPHA", "Comparison", "Judged", "Outcome", "holm", "judge"]

ALPHA = 0.05


class Outcome(StrEnum):
    """What a comparison comes to."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "no difference"


@dataclass(frozen=True)
class Comparison:
    """Logarithms of error ratios: a row for each setting, a column for each seed. Below 0 is better.

    ``claim`` and ``where`` say what is compared, and on which data or in which setting.
    """

    claim: str
    where: str
    settings: tuple[str, ...]
    logs: tuple[tuple[float, ...], ...]

    @property
    def by_seed(self) -> list[float]:
        """The average over settings, for each seed."""
        return [float(value) for value in np.mean(np.array(self.logs), axis=0)]

    def parts(self) -> list[Comparison]:
        """Return the comparison in each setting by itself."""
        return [
            Comparison(self.claim, self.where, (setting,), (logs,))
            for setting, logs in zip(self.settings, self.logs, strict=True)
        ]


@dataclass(frozen=True)
class Judged:
    """A comparison with its ratio, the 95% interval of that, its p-value, corrected, and what it comes to."""

    comparison: Comparison
    ratio: float
    low: float
    high: float
    p: float
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.ratio:.2f} ({self.low:.2f} to {self.high:.2f})"


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, by Holm's method.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    raw = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(raw), 1)
    return [float(value) for value in corrected]


def judge(comparisons: Iterable[Comparison]) -> dict[Comparison, Judged]:
    """Return what each comparison, and each of its settings by itself, comes to: two families, each corrected."""
    wholes = dict.fromkeys(comparisons)
    singles = dict.fromkeys(part for one in wholes for part in one.parts() if part not in wholes)
    return _judge_family(list(wholes)) | _judge_family(list(singles))


def _judge_family(asked: list[Comparison]) -> dict[Comparison, Judged]:
    """Return what comparisons come to that are corrected together."""
    measured = [_measure(one.by_seed) for one in asked]
    corrected = holm([p for *_, p in measured])
    return {
        one: Judged(one, float(np.exp(mean)), float(np.exp(low)), float(np.exp(high)), p, _outcome(mean, p))
        for one, (mean, low, high, _), p in zip(asked, measured, corrected, strict=True)
    }


def _outcome(mean: float, p: float) -> Outcome:
    if p >= ALPHA:
        return Outcome.SAME
    return Outcome.BETTER if mean < 0 else Outcome.WORSE


def _measure(by_seed: list[float]) -> tuple[float, float, float, float]:
    """Return the mean, both ends of its 95% interval, and the p-value of a mean of 0."""
    mean, number = float(np.mean(by_seed)), len(by_seed)
    if number < 2:
        return mean, -np.inf, np.inf, 1.0
    error = float(np.std(by_seed, ddof=1)) / np.sqrt(number)
    if error == 0:  # the same in every seed: no noise in it, as between a method and itself
        return mean, mean, mean, float(mean == 0)
    margin = float(stats.t.ppf(1 - ALPHA / 2, number - 1)) * error
    p = 2 * float(stats.t.sf(abs(mean) / error, number - 1))
    return mean, mean - margin, mean + margin, p
