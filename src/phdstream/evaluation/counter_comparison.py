"""The paper's comparison of counters: Simple, Block and Binary Tree on random bits, over a long and a short horizon."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from phdstream.arrays import Floats
from phdstream.counting import BinaryTree, Block, Counter, Simple
from phdstream.errors import InputError
from phdstream.evaluation.cells import write_table
from phdstream.evaluation.figures import check_plotting, draw_counters
from phdstream.privacy import Simulation
from phdstream.state import replace_file

__all__ = ["HORIZONS", "compare_counters", "counter_errors"]

HORIZONS = (4096, 128)
"""The paper's long and short horizon."""
_EPSILON, _RUNS = 0.5, 10


def counter_errors(counter: Counter, horizon: int, runs: int, seed: int) -> Floats:
    """Return the absolute error of the running total of random bits, (runs, horizon).

    >>> counter_errors(Simple(0.5), horizon=4, runs=3, seed=1).shape
    (3, 4)
    """
    bits = np.random.default_rng(seed).integers(0, 2, (runs, horizon))
    noise, state, at = Simulation(seed), counter.start(runs), np.arange(runs)
    outputs = np.zeros((runs, horizon), dtype=np.int64)
    for t in range(horizon):
        state, outputs[:, t] = counter.step(state, bits[:, t], noise, at)
    errors: Floats = np.abs(outputs - bits.cumsum(axis=1)).astype(np.float64)
    return errors


def compare_counters(out: Path, *, runs: int = _RUNS, horizons: tuple[int, ...] = HORIZONS, seed: int = 1) -> Path:
    """Write ``counters.parquet`` (mean absolute error over time) and its figure, PNG and SVG; return the figure."""
    check_plotting()
    curves = {
        (horizon, name): counter_errors(counter, horizon, runs, seed).mean(axis=0)
        for horizon in horizons
        for name, counter in _counters(horizon).items()
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"results cannot be written to {out} ({error.strerror}): choose another folder.") from None
    write_table(out / "counters.parquet", _table(curves, runs), private=False)
    picture = draw_counters(curves, f"mean absolute error of {runs} runs, ε = {_EPSILON:g}")
    replace_file(out / "counters.svg", lambda file: file.write(picture.svg), mode=0o644)
    replace_file(out / "counters.png", lambda file: file.write(picture.png), mode=0o644)
    return out / "counters.png"


def _counters(horizon: int) -> dict[str, Counter]:
    tree = BinaryTree(_EPSILON, horizon=horizon)
    return {"Simple": Simple(_EPSILON), "Block 8": Block(_EPSILON, size=8), "Binary Tree": tree}


def _table(curves: dict[tuple[int, str], Floats], runs: int) -> pa.Table:
    parts = [
        pa.table({"tick": np.arange(1, horizon + 1), "error": error})
        .append_column("horizon", pa.array([horizon] * horizon))
        .append_column("counter", pa.array([name] * horizon))
        for (horizon, name), error in curves.items()
    ]
    return pa.concat_tables(parts).replace_schema_metadata({"epsilon": str(_EPSILON), "runs": str(runs)})
