"""Small experiments, and work that fails, for the tests; importable by worker processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from phdstream.errors import InputError
from phdstream.evaluation import Experiment, Trial, read_experiment
from phdstream.evaluation.trials import run_trial

SMALL: dict[str, Any] = {
    "name": "small",
    "methods": ["phdstream", "baseline-3"],
    "epsilons": [1.0],
    "start_after": [0.2],
    "seeds": [1, 2],
    "measure_every": 5,
    "queries": {"small": 50, "medium": 20, "large": 10},
    "data": {"circles": "moving", "points": 600, "batch": 100},
}


def small(**changes: Any) -> Experiment:
    return read_experiment(SMALL | changes)


def dies_once(experiment: Experiment, trial: Trial, folder: Path) -> None:
    """The process of one trial dies, as when memory runs out."""
    if trial == Trial("baseline-3", 1.0, 0.2, 1):
        os._exit(9)
    run_trial(experiment, trial, folder)


def fails_once(experiment: Experiment, trial: Trial, folder: Path) -> None:
    if trial == Trial("phdstream", 1.0, 0.2, 2):
        raise InputError("a bad day")
    run_trial(experiment, trial, folder)


def write_events(path: Path, days: int = 20, per_day: int = 30) -> Path:
    """Events in the unit square, one day after the other from 2020-01-01 on."""
    rng = np.random.default_rng(1)
    day = np.repeat(np.arange(days), per_day)
    time = np.datetime64("2020-01-01", "ms") + (day * 24 + 12) * np.timedelta64(3_600_000, "ms")
    x, y = rng.random((2, day.size))
    pyarrow.parquet.write_table(pa.table({"time": time, "lon": x, "lat": y}), path)
    return path


OWN: dict[str, Any] = SMALL | {
    "name": "own",
    "start_after": [3],
    "seeds": [1],
    "methods": ["phdstream"],
    "data": {
        "file": "events.parquet",
        "time": "time",
        "coordinates": ["lon", "lat"],
        "every": "1d",
        "start": np.datetime64("2020-01-01").item(),
        "end": np.datetime64("2020-01-21").item(),
    },
    "domain": {"type": "box", "bounds": [[0, 1], [0, 1]]},
}
