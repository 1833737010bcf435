"""What a change of tracking does to its error, in minutes; and what each heuristic is worth, one at a time.

    python benchmarks/utility.py quick --save before.json        # then change something, and:
    python benchmarks/utility.py quick --against before.json     # how every stream's error changed
    python benchmarks/utility.py ablate [--save FILE] [NAME ...] # error without each heuristic, relative to with it

Streams are invented (`benchmarks/invented.py`), each run at two ε with two seeds, with the same queries, noise and
points before and after. Errors are the paper's, on synthetic points, at ten moments; the change is that of the
geometric mean, with a standard error over streams, ε and seeds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import phdstream as phd
from benchmarks.invented import INVENTED
from phdstream.arrays import Floats
from phdstream.evaluation.counting import count_points
from phdstream.evaluation.queries import random_rectangles, relative_error
from phdstream.streams.tracking import TrackingParameters

__all__ = ["ABLATIONS", "ablate", "compare", "quick"]

EPSILONS, SEEDS, MOMENTS = (0.5, 2.0), (1, 2), 10
QUERIES = {"small": 1500, "medium": 800, "large": 300}
SQUARE = phd.Box([(0, 1), (0, 1)], depth=22)
Errors = dict[str, list[float]]
"""Errors on small, medium and large queries, by stream, ε and seed."""

ABLATIONS: dict[str, dict[str, Any]] = {
    "budget split grows with few points": {"budget.growth": 1.0},
    "rounds of the start, not one": {"start.rounds": ((1.0, ((6.0, 4), (8.0, 2), (4.5, 0))),)},
    "refinement in the start": {
        "start.rounds": ((0.1, ((8.0, 0),)), (0.3, ((6.0, 0),)), (0.6, ((6.0, 0),))),
    },
    "the start looks deeper": {"start.parts": 1},
    "refinement in blocks": {"fine_counts.stages": ((3.0, 0),)},
    "dropped noise given back": {"fine_counts.return_dropped_noise": False},
    "zones move the splits between fine counts": {"zones.on": False},
    "block length adapts to points and ε": {"block_length.adapts": False},
    "block length knows places": {"block_length.by_places": False},
    "drift": {"drift.on": False},
    "drift: blocks end sooner": {"drift.hurry": 0.0},
    "drift of the open block": {"drift.while_open": False},
    "drift: the past is trusted less": {"drift.distrust": 0.0},
    "exploration": {"exploration.inserts": 0.0, "exploration.deletes": 0.0},
    "filter: uneven splits vary less": {"filter.uneven_vary_less": False},
    "filter: outliers are believed": {"filter.outlier": float("inf")},
    "filter: prior from emptiness": {"filter.prior_from_emptiness": False},
    "empty halves, by their node": {"empty_halves.on": False},
    "empty children, by level and neighbours": {"empty_children.on": False},
    "smoothing": {"smoothing.on": False},
    "smoothing: halving below what was counted": {"smoothing.halvings": 0},
    "smoothing: caution": {"smoothing.caution": 0.0},
}
"""Each heuristic, and the parameters that switch it off."""


def run(stream: str, epsilon: float, seed: int, changes: dict[str, Any]) -> list[float]:
    """Return tracking's mean errors on small, medium and large queries of an invented stream."""
    ticks = INVENTED[stream](seed)
    deletes = any(len(tick.deletes) for tick in ticks)
    method = phd.TrackingStream(
        SQUARE,
        epsilon,
        phd.Event(),
        insert_only=not deletes,
        parameters=TrackingParameters().changed(changes),
        noise=phd.Simulation(seed=100 + seed),
    )
    queries = {size: random_rectangles(np.array([[0, 1], [0, 1]]), n, size, seed=3) for size, n in QUERIES.items()}
    measured = set(np.linspace(len(ticks) // 4, len(ticks) - 1, MOMENTS).astype(int).tolist())
    errors, live = [], np.zeros((0, 2))
    for number, tick in enumerate(ticks):
        release = method.update(tick.inserts, tick.deletes if deletes else None)
        live = np.concatenate([live[len(tick.deletes) :], tick.inserts])  # the oldest go first
        if number in measured:
            errors.append(_errors(live, release.sample(), queries))
    return [float(error) for error in np.mean(errors, axis=0)]


def _errors(live: Floats, points: Floats, queries: dict[str, Floats]) -> list[float]:
    return [
        relative_error(count_points(live, asked), count_points(points, asked), len(live)) for asked in queries.values()
    ]


def measure(changes: dict[str, Any], workers: int = 2) -> Errors:
    """Return all errors with some parameters changed."""
    asked = [(stream, epsilon, seed) for stream in INVENTED for epsilon in EPSILONS for seed in SEEDS]
    with ProcessPoolExecutor(workers) as pool:
        found = pool.map(run, *zip(*asked, strict=True), [changes] * len(asked))
        names = (f"{stream}, ε = {epsilon:g}, seed {seed}" for stream, epsilon, seed in asked)
        return dict(zip(names, found, strict=True))


def quick(save: Path | None, against: Path | None, workers: int = 2) -> None:
    """Measure the code as it is; save that, or say how it differs from what was saved."""
    errors = measure({}, workers)
    if save:
        save.write_text(json.dumps(errors, indent=1, ensure_ascii=False))
    if against:
        before = json.loads(against.read_text())
        print(compare("all", before, errors))
        for stream in INVENTED:
            ours = {name: value for name, value in errors.items() if name.startswith(stream + ",")}
            print(compare(stream, {name: before[name] for name in ours}, ours))
    elif not save:
        for stream in INVENTED:
            logs = np.log([value for name, value in errors.items() if name.startswith(stream + ",")])
            print(f"{stream:15} " + "  ".join(f"{error:.4f}" for error in np.exp(logs.mean(axis=0))))


def compare(label: str, before: Errors, after: Errors) -> str:
    """Return how errors changed, in percent: small, medium, large, and the mean with its standard error.

    >>> compare("all", {"a": [1.0, 1.0, 1.0]}, {"a": [1.02, 1.02, 1.02]})
    'all                                        small  +2.0%  medium  +2.0%  large  +2.0%  mean  +2.0% ± 0.0'
    """
    ratio = np.log([after[name] for name in before]) - np.log([before[name] for name in before])
    by_size, each = 100 * np.expm1(ratio.mean(axis=0)), 100 * ratio.mean(axis=1)
    error = each.std(ddof=1) / np.sqrt(each.size) if each.size > 1 else 0.0
    sizes = "  ".join(f"{size} {change:+5.1f}%" for size, change in zip(QUERIES, by_size, strict=True))
    return f"{label:42} {sizes}  mean {by_size.mean():+5.1f}% ± {error:.1f}"


def ablate(save: Path | None, names: Iterable[str], workers: int = 2) -> None:
    """Print how much the error grows without each heuristic."""
    base, found = measure({}, workers), {}
    for name in names or ABLATIONS:
        found[name] = measure(ABLATIONS[name], workers)
        print("without " + compare(name, base, found[name]), flush=True)
    if save:
        save.write_text(json.dumps({"with all": base} | found, indent=1, ensure_ascii=False))
