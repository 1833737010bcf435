"""One trial of an experiment, measured and written. Finished trials are files, and files are never recomputed."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from phdstream.arrays import Floats, Ints
from phdstream.baselines.releaser import Skips
from phdstream.domains import ROOT, Domain
from phdstream.errors import InputError
from phdstream.evaluation.counting import count_points
from phdstream.evaluation.experiment import DO_NOT_PUBLISH, Experiment, Trial
from phdstream.evaluation.methods import MethodSpec
from phdstream.evaluation.provenance import code_digest
from phdstream.evaluation.queries import relative_error, weighted_error
from phdstream.evaluation.setting import Setting, load_setting
from phdstream.evaluation.transport import sliced_distance
from phdstream.evaluation.true_stream import TrueStream
from phdstream.privacy import Simulation
from phdstream.release import Release
from phdstream.streams.state import replace_file

__all__ = [
    "METRICS",
    "is_finished",
    "make_folder",
    "measure_trial",
    "method_code",
    "run_trial",
    "trial_code",
    "trial_path",
    "write_table",
]

METRICS = ("error", "weighted_error", "distance")
"""What is measured: the paper's relative error, the weighted error, and how far points lie apart."""
_SCHEMA = pa.schema(
    [
        ("data", pa.string()),
        ("method", pa.string()),
        ("epsilon", pa.float64()),
        ("t0", pa.float64()),
        ("seed", pa.int64()),
        ("code", pa.string()),
        ("tick", pa.int64()),
        ("size", pa.string()),
        *((metric, pa.float64()) for metric in METRICS),
        ("total", pa.int64()),
        ("synthetic", pa.int64()),
        ("seconds", pa.float64()),
    ]
)


def _parameters(experiment: Experiment, trial: Trial) -> dict[str, Any]:
    """Return everything that decides a trial's numbers."""
    setting = load_setting(experiment)
    shared = {"setting": experiment.setting(), "content": setting.digest, "start": setting.start_tick(trial.t0)}
    return asdict(trial) | shared | {"code": trial_code(experiment, trial.method)}


def trial_code(experiment: Experiment, method: str) -> str:
    """Return which code makes a method's numbers: the kind of domain, and a digest of the code behind both."""
    return method_code(experiment.method(method), type(load_setting(experiment).domain))


@cache
def method_code(spec: MethodSpec, kind: type[Domain]) -> str:
    """Return the same for a method on a kind of domain."""
    options = {"fanout": spec.fanout, "memoryless": spec.memoryless}
    digest = code_digest(spec.make, measure_trial, Setting, TrueStream, kind, options)
    return f"{kind.__name__.lower()}:{digest}"


def trial_path(folder: Path, experiment: Experiment, trial: Trial) -> Path:
    """Return a trial's file: a readable name, and a digest that tells trials with other settings apart."""
    text = json.dumps(_parameters(experiment, trial), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    name = f"{experiment.name}_{trial.method}_epsilon-{trial.epsilon:g}_t0-{trial.t0:g}_seed-{trial.seed}_{digest}"
    return folder / f"{name.replace('/', '-')}.parquet"


def is_finished(folder: Path, experiment: Experiment, trial: Trial) -> bool:
    """Whether a trial's file is there, whole, and of the same parameters."""
    try:
        known = pyarrow.parquet.read_schema(trial_path(folder, experiment, trial)).metadata or {}
    except (OSError, pa.ArrowInvalid):
        return False
    return bool(json.loads(known.get(b"parameters", b"null")) == _parameters(experiment, trial))


def run_trial(experiment: Experiment, trial: Trial, folder: Path) -> None:
    """Run a trial and write its file, whole or not at all."""
    rows = measure_trial(experiment, trial)
    fixed = {"data": experiment.name, "code": trial_code(experiment, trial.method)} | asdict(trial)
    table = pa.Table.from_pylist([fixed | row for row in rows], schema=_SCHEMA)
    about = {"parameters": json.dumps(_parameters(experiment, trial))}
    write_table(trial_path(folder, experiment, trial), table.replace_schema_metadata(about), experiment.private)


def make_folder(path: Path) -> Path:
    """Make a folder for results, or say that it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"results cannot be written to {path} ({error.strerror}): choose another folder.") from None
    return path


def write_table(path: Path, table: pa.Table, private: bool) -> None:
    """Write a table at once; one from true events says so, and only its owner can read it."""
    if private:
        table = table.replace_schema_metadata((table.schema.metadata or {}) | {b"label": DO_NOT_PUBLISH.encode()})
    mode = 0o600 if private else 0o644
    replace_file(path, lambda file: pyarrow.parquet.write_table(table, file), mode=mode)


def measure_trial(experiment: Experiment, trial: Trial) -> list[dict[str, Any]]:
    """Run a method over the data and return its errors: a row for each measured tick and size of query.

    Noise is simulated from the seed. ``seconds`` is the time of one tick, on average since the last measurement.
    """
    spec = experiment.method(trial.method)
    setting = load_setting(experiment, spec.fanout)
    method = spec.make(setting.domain, trial.epsilon, Simulation(trial.seed))
    start, every = setting.start_tick(trial.t0), experiment.measure_every
    moments = setting.truth.moments(start, every, spec.memoryless, setting.codes)
    rows: list[dict[str, Any]] = []
    spent: list[float] = []
    for moment in moments:
        if moment.live is None and isinstance(method, Skips):
            method.skip(moment.inserts, moment.deletes)
            continue
        began = time.perf_counter()
        release = method.update(moment.inserts, moment.deletes)
        spent.append(time.perf_counter() - began)
        if moment.live is not None:
            each = {"tick": moment.tick, "seconds": float(np.mean(spent))}
            true = setting.true_counts(moment.tick, moment.live)
            rows += [each | row for row in _errors(moment.live, true, release, setting.queries)]
            spent = []
    return rows


def _errors(live: Floats, counts: Ints, release: Release, queries: dict[str, Floats]) -> list[dict[str, Any]]:
    """Return all metrics on synthetic points, for each size of query; the distance is the same for all sizes.

    ``counts`` are how many of the true, live points lie in each query.
    """
    points, every = release.sample(), np.concatenate(list(queries.values()))
    ends = np.cumsum([len(rectangles) for rectangles in queries.values()])[:-1]
    true, synthetic = (np.split(each, ends) for each in (counts, count_points(points, every)))
    bounds = release.domain.bounds(np.array([ROOT])).reshape(2, -1).T
    shared = {"total": len(live), "synthetic": len(points), "distance": sliced_distance(live, points, bounds)}
    return [
        shared
        | {
            "size": size,
            "error": relative_error(true[i], synthetic[i], len(live)),
            "weighted_error": weighted_error(true[i], synthetic[i]),
        }
        for i, size in enumerate(queries)
    ]
