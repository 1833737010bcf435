"""What a tick takes of a cluster, as sums of a few parts, fitted to what was measured; and how far off that is.

Each step's processor time is ``fixed + per row + per partition + per node asked``, without parts that the step has not;
bytes likewise. Coefficients are not negative, and fitted to relative errors of the medians over turns.
"""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.spark.measure import CLUSTER, DRIVER, TOPIC

__all__ = ["PARTS", "Row", "Sum", "driver_table", "fitted", "known_users", "predicted", "rows_of", "unseen"]

Setting = dict[str, float]
"""``rows``, ``partitions``, ``nodes``: what is known before a tick is taken."""
PARTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("place", "cpu_s"): ("fixed", "rows"),
    ("hold", "cpu_s"): ("fixed", "rows", "partitions"),
    ("count", "cpu_s"): ("fixed", "rows", "partitions", "nodes"),
    ("hold", "shuffle_bytes"): ("rows", "partitions"),
    ("count", "shuffle_bytes"): ("partitions", "nodes"),
    ("count", "result_bytes"): ("partitions", "nodes"),
}
"""Of what each step's time and bytes are the sum."""


@dataclass(frozen=True)
class Row:
    """Medians of one setting and step over all turns."""

    experiment: str
    engine: str
    users: bool
    step: str
    setting: Setting
    took: dict[str, float]
    turns: int = 1


@cache
def rows_of() -> list[Row]:
    """Return what was measured of ticks and of a topic."""
    turns: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in [*_read(CLUSTER), *_read(TOPIC)]:
        key = ("experiment", "engine", "users", "step", "rows", "partitions", "nodes")
        turns[tuple(row[name] for name in key)].append(row)
    return [_median(key, found) for key, found in turns.items()]


def known_users() -> list[tuple[float, Row, float]]:
    """Return, for numbers of users that were known before a tick, how its hold went, and core seconds more a user."""
    holds = [row for row in rows_of() if row.users and row.step == "hold" and row.engine == "spark"]
    none = min((row for row in holds if row.experiment == "size"), key=lambda row: row.setting["rows"])
    found = [(0.0, none, 0.0)]
    for row in holds:
        if row.experiment.endswith(" users"):
            known = float(row.experiment.split()[0])
            found.append((known, row, (row.took["cpu_s"] - none.took["cpu_s"]) / known))
    return found


def driver_table() -> list[dict[str, str]]:
    """Return what was measured of the driver alone."""
    return _read(DRIVER)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _median(key: tuple[str, ...], found: list[dict[str, str]]) -> Row:
    experiment, engine, users, step, *setting = key
    rows, partitions, nodes = map(float, setting)
    known = {"rows": rows, "partitions": partitions, "nodes": nodes, "fixed": 1.0}
    numbers = [name for name in found[0] if name.endswith(("_s", "_bytes", "_records")) or name == "tasks"]
    took = {name: statistics.median(float(row[name]) for row in found) for name in numbers}
    return Row(experiment, engine, users == "True", step, known, took, len(found))


@dataclass(frozen=True)
class Sum:
    """``of[part]`` for each unit of a part, added up."""

    of: dict[str, float]

    def at(self, setting: Setting) -> float:
        """Return the sum for a setting."""
        return sum(each * setting[part] for part, each in self.of.items())


def _fit(rows: list[Row], what: str, parts: tuple[str, ...]) -> Sum:
    """Fit relative errors by least squares; a part that would be negative is left out."""
    wanted = np.array([row.took[what] for row in rows])
    given = np.array([[row.setting[part] for part in parts] for row in rows]) / wanted[:, None]
    found = np.linalg.lstsq(given, np.ones(len(rows)))[0]
    if (found < 0).any():
        least = parts[int(np.argmin(found))]
        return _fit(rows, what, tuple(part for part in parts if part != least))
    return Sum(dict(zip(parts, found.tolist(), strict=True)))


@cache
def fitted() -> dict[tuple[str, str], Sum]:
    """Return the sums, fitted to all but the size that is to be predicted: without users, on Spark."""
    known = [row for row in rows_of() if row.experiment in ("size", "partitions", "nodes")]
    known = [row for row in known if row.engine == "spark" and not row.users]
    return {(step, what): _fit([row for row in known if row.step == step], what, parts)
            for (step, what), parts in PARTS.items()}  # fmt: skip


def predicted(rows: float, partitions: float, nodes: float) -> dict[tuple[str, str], float]:
    """Return what a tick takes."""
    setting = {"rows": rows, "partitions": partitions, "nodes": nodes, "fixed": 1.0}
    return {key: found.at(setting) for key, found in fitted().items()}


def unseen() -> list[tuple[str, str, float, float]]:
    """Return step, what, predicted and measured, for the size that took no part in the fit."""
    rows = {row.step: row for row in rows_of() if row.experiment == "unseen" and row.engine == "spark"}
    setting = rows["hold"].setting
    wanted = predicted(setting["rows"], setting["partitions"], setting["nodes"])
    found = [(step, what, wanted[step, what], rows[step].took[what]) for step, what in PARTS]
    cpu = [each for each in found if each[1] == "cpu_s"]
    return [*found, ("all three", "cpu_s", sum(each[2] for each in cpu), sum(each[3] for each in cpu))]
