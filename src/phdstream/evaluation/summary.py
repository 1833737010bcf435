"""Metrics over all trials in short: means over time, spread over seeds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from phdstream.arrays import Floats, Ints

__all__ = ["Curve", "Mean", "common_ticks", "curves", "means", "recommend"]

Key = tuple[str, float, float, str]
"""Size of query, ε, t0, method."""


@dataclass(frozen=True)
class Mean:
    """A method's metric: the mean over ticks and then seeds, and the standard deviation of the seeds' means."""

    mean: float
    spread: float
    seeds: int

    def __str__(self) -> str:
        digits = 3 if self.mean >= 0.1 else 4
        spread = f" ± {self.spread:.{digits}f}" if self.seeds > 1 else ""
        return f"{self.mean:.{digits}f}{spread}"


@dataclass(frozen=True)
class Curve:
    """A method's metric over time: mean, least and most over seeds."""

    tick: Ints
    mean: Floats
    low: Floats
    high: Floats


def _by_seed(results: pa.Table, metric: str) -> dict[Key, dict[int, list[tuple[int, float]]]]:
    """Return (tick, value of a metric) by seed, for each size, ε, t0 and method."""
    grouped: dict[Key, dict[int, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in results.to_pylist():
        key = (row["size"], row["epsilon"], row["t0"], row["method"])
        grouped[key][row["seed"]].append((row["tick"], row[metric]))
    return grouped


def means(results: pa.Table, metric: str = "weighted_error") -> dict[Key, Mean]:
    """Return the mean of a metric for each size, ε, t0 and method."""
    summary = {}
    for key, seeds in _by_seed(results, metric).items():
        each = [float(np.mean([error for _, error in errors])) for errors in seeds.values()]
        summary[key] = Mean(float(np.mean(each)), float(np.std(each, ddof=1)) if len(each) > 1 else 0.0, len(each))
    return summary


def curves(results: pa.Table, metric: str = "weighted_error") -> dict[Key, Curve]:
    """Return a metric over time for each size, ε, t0 and method; every seed has the same ticks."""
    drawn = {}
    for key, seeds in _by_seed(results, metric).items():
        errors = np.array([[error for _, error in one] for one in seeds.values()])
        tick = np.array([tick for tick, _ in next(iter(seeds.values()))])
        drawn[key] = Curve(tick, errors.mean(axis=0), errors.min(axis=0), errors.max(axis=0))
    return drawn


def common_ticks(results: pa.Table) -> pa.Table:
    """Return the rows from the latest start on, which all trials have: only those compare starts fairly."""
    starts = results.group_by(["method", "epsilon", "t0", "seed"]).aggregate([("tick", "min")])
    return results.filter(pc.greater_equal(results["tick"], pc.max(starts["tick_min"])))


def recommend(results: pa.Table, private: set[str], size: str = "small") -> dict[float, tuple[str, float, Mean]]:
    """Return, for each ε, the private method and t0 with the least weighted error, over the ticks that all starts
    share.
    """
    best: dict[float, tuple[str, float, Mean]] = {}
    for (asked, epsilon, t0, method), mean in means(common_ticks(results)).items():
        better = epsilon not in best or mean.mean < best[epsilon][2].mean
        if asked == size and method in private and better:
            best[epsilon] = (method, t0, mean)
    return best
