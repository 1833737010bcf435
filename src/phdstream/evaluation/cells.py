"""One run of an experiment, measured and written: a cell. Finished cells are files, and files are never recomputed."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from phdstream.arrays import Floats
from phdstream.errors import InputError
from phdstream.evaluation.counting import count_points
from phdstream.evaluation.experiment import Cell, Experiment
from phdstream.evaluation.feed import Moment
from phdstream.evaluation.methods import contender
from phdstream.evaluation.queries import relative_error
from phdstream.evaluation.setting import files_digest, load_setting
from phdstream.privacy import Simulation
from phdstream.release import Release
from phdstream.streams.state import replace_file
from phdstream.version import __version__

__all__ = ["DO_NOT_PUBLISH", "cell_path", "is_finished", "make_folder", "measure_cell", "run_cell", "write_table"]

DO_NOT_PUBLISH = "contains private information: do not publish"
"""Said by everything that was computed from a file of true events."""
_SCHEMA = pa.schema(
    [
        ("data", pa.string()),
        ("method", pa.string()),
        ("epsilon", pa.float64()),
        ("t0", pa.float64()),
        ("seed", pa.int64()),
        ("tick", pa.int64()),
        ("size", pa.string()),
        ("error", pa.float64()),
        ("total", pa.int64()),
        ("synthetic", pa.int64()),
        ("seconds", pa.float64()),
    ]
)


def _parameters(experiment: Experiment, cell: Cell) -> dict[str, Any]:
    """Return everything that decides a cell's numbers."""
    run = {"method": cell.method, "epsilon": cell.epsilon, "t0": cell.t0, "seed": cell.seed}
    return run | {"setting": experiment.setting(), "files": files_digest(experiment), "version": __version__}


def cell_path(folder: Path, experiment: Experiment, cell: Cell) -> Path:
    """Return a cell's file: a readable name, and a digest that tells runs with other settings apart."""
    text = json.dumps(_parameters(experiment, cell), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    name = f"{experiment.name}_{cell.method}_epsilon-{cell.epsilon:g}_t0-{cell.t0:g}_seed-{cell.seed}_{digest}"
    return folder / f"{name.replace('/', '-')}.parquet"


def is_finished(folder: Path, experiment: Experiment, cell: Cell) -> bool:
    """Whether a cell's file is there, whole, and of the same parameters."""
    try:
        known = pyarrow.parquet.read_schema(cell_path(folder, experiment, cell)).metadata or {}
    except (OSError, pa.ArrowInvalid):
        return False
    return bool(json.loads(known.get(b"parameters", b"null")) == _parameters(experiment, cell))


def run_cell(experiment: Experiment, cell: Cell, folder: Path) -> None:
    """Run a cell and write its file, whole or not at all."""
    rows = measure_cell(experiment, cell)
    fixed = {"data": experiment.name, "method": cell.method, "epsilon": cell.epsilon, "t0": cell.t0, "seed": cell.seed}
    table = pa.Table.from_pylist([fixed | row for row in rows], schema=_SCHEMA)
    about = {"parameters": json.dumps(_parameters(experiment, cell))}
    write_table(cell_path(folder, experiment, cell), table.replace_schema_metadata(about), experiment.private)


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


def measure_cell(experiment: Experiment, cell: Cell) -> list[dict[str, Any]]:
    """Run a method over the data and return its errors: a row for each measured tick and size of query.

    Noise is simulated from the seed. ``seconds`` is the time of one tick, on average since the last measurement.
    """
    choice = contender(cell.method)
    setting = load_setting(experiment, choice.fanout)
    method = choice.make(setting.domain, cell.epsilon, Simulation(cell.seed))
    moments = setting.feed.moments(setting.start_tick(cell.t0), experiment.measure_every, choice.memoryless)
    rows: list[dict[str, Any]] = []
    spent: list[float] = []
    for moment in moments:
        began = time.perf_counter()
        release = method.update(moment.inserts, moment.deletes)
        spent.append(time.perf_counter() - began)
        if moment.live is not None:
            rows += _errors(moment, moment.live, release, setting.queries, float(np.mean(spent)))
            spent = []
    return rows


def _errors(
    moment: Moment, live: Floats, release: Release, queries: dict[str, Floats], seconds: float
) -> list[dict[str, Any]]:
    """Return the paper's metric on synthetic points, for each size of query."""
    points, every = release.sample(), np.concatenate(list(queries.values()))
    ends = np.cumsum([len(rectangles) for rectangles in queries.values()])[:-1]
    true, synthetic = (np.split(count_points(data, every), ends) for data in (live, points))
    return [
        {
            "tick": moment.tick,
            "size": size,
            "error": relative_error(true[i], synthetic[i], len(live)),
            "total": len(live),
            "synthetic": len(points),
            "seconds": seconds,
        }
        for i, size in enumerate(queries)
    ]
