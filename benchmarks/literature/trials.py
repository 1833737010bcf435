"""One trial: a method on a set of points, with an ε and a seed, measured and written. What is finished is kept.

A trial's file is named by all that decides its numbers: the set, what is asked, and a digest of the code of the method
and of the set's generator.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.literature.methods import METHODS, OURS, Publish
from benchmarks.literature.sets import SETS, PointSet
from phdstream.arrays import Floats, Ints
from phdstream.domains import Box
from phdstream.evaluation import count_points, relative_error, weighted_error
from phdstream.evaluation.provenance import code_digest
from phdstream.evaluation.queries import domain_queries
from phdstream.evaluation.trials import write_table

__all__ = ["FULL", "QUICK", "Effort", "Trial", "measure", "run_trial", "trial_path"]

_SEED = 5
"""Of the queries."""


@dataclass(frozen=True)
class Effort:
    """How many queries are asked."""

    name: str
    queries: tuple[tuple[str, int], ...]


FULL = Effort("full", (("small", 1500), ("medium", 800), ("large", 300)))
QUICK = Effort("quick", (("small", 800), ("medium", 400), ("large", 200)))


@dataclass(frozen=True)
class Trial:
    """A method, by name, on a set, by name."""

    set: str
    method: str
    epsilon: float
    seed: int


@dataclass(frozen=True)
class Truth:
    """A set's points, what is asked by size, and the true counts of all that, one size after the other."""

    points: Floats
    queries: dict[str, Floats]
    counts: Ints


@lru_cache(maxsize=1)
def truth_of(points: PointSet, seed: int, effort: Effort, data: Path | None) -> Truth:
    """Return a set and its counts: made once for the trials that share it."""
    queries = domain_queries(Box([(0, 1), (0, 1)]), dict(effort.queries), _SEED)
    made = points.points(seed, data)
    return Truth(made, queries, count_points(made, np.concatenate(list(queries.values()))))


def measure(truth: Truth, publish: Publish, depth: int, epsilon: float, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the errors of all that a method publishes: a row for each variant and size of query."""
    began = time.perf_counter()
    published = publish(truth.points, depth, epsilon, seed)
    seconds = time.perf_counter() - began
    asked = np.concatenate(list(truth.queries.values()))
    for variant, density in published.items():
        found, start = density.count(asked), 0
        for size, rectangles in truth.queries.items():
            part = slice(start, start := start + len(rectangles))
            true, estimated, total = truth.counts[part], found[part], len(truth.points)
            yield {
                "variant": variant, "size": size, "error": relative_error(true, estimated, total),
                "weighted_error": weighted_error(true, estimated), "points": total, "seconds": seconds,
            }  # fmt: skip


@cache
def _code(points: str, method: str) -> str:
    """Return a digest of the code behind a trial's numbers; published methods know no depth."""
    made = SETS[points]
    depth = made.depth if method == OURS else None
    return code_digest(measure, truth_of, METHODS[method].publish, made.points, depth)


@cache
def method_code(method: str) -> str:
    """Return a digest of the code of a method, and of how it is measured: the same on all sets."""
    return code_digest(measure, METHODS[method].publish)


def trial_path(folder: Path, trial: Trial, effort: Effort) -> Path:
    """Return a trial's file: a readable name, and a digest that tells trials of other code or settings apart."""
    parameters = asdict(trial) | asdict(effort) | {"code": _code(trial.set, trial.method)}
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:8]
    name = f"{trial.set}_{trial.method}_epsilon-{trial.epsilon:g}_seed-{trial.seed}_{effort.name}_{digest}.parquet"
    return folder / name.replace(" ", "-").replace(",", "")


def run_trial(folder: Path, trial: Trial, effort: Effort, data: Path | None) -> None:
    """Run a trial and write its file, whole or not at all."""
    points, method = SETS[trial.set], METHODS[trial.method]
    truth = truth_of(points, trial.seed, effort, data)
    rows = measure(truth, method.publish, points.depth, trial.epsilon, trial.seed)
    about = asdict(trial) | {"code": method_code(trial.method)}
    write_table(trial_path(folder, trial, effort), pa.Table.from_pylist([about | row for row in rows]), private=False)
