"""The paper's comparison of counters: Simple, Block and Binary Tree on random bits, over long and short horizons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from phdstream.arrays import Floats
from phdstream.evaluation.pictures import Picture, check_plotting, picture_of, subplots, write_picture
from phdstream.evaluation.provenance import code_digest
from phdstream.evaluation.trials import make_folder, write_table
from phdstream.privacy import Simulation
from phdstream.streams.paper.counters import BinaryTree, Block, Counter, Simple

__all__ = ["HORIZONS", "compare_counters", "counter_code", "counter_errors", "errors_by_horizon"]

HORIZONS = (4096, 128)
"""The paper's long and short horizon."""
_MORE_HORIZONS = (8, 16, 30, 64, 100, 128, 256, 512, 1024, 4096)
_STYLES = (("#0b62c4", "-", 1.6), ("#d1690e", "--", 1.5), ("#9a9a9a", ":", 0.8))
_EPSILON, _RUNS, _MORE_RUNS, _SEEDS = 0.5, 10, 200, 5


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


def compare_counters(
    out: Path,
    *,
    runs: int = _RUNS,
    horizons: tuple[int, ...] = HORIZONS,
    more: tuple[int, ...] = _MORE_HORIZONS,
    seed: int = 1,
) -> Path:
    """Write the comparison and return its figure, ``counters.png`` (beside it the SVG).

    ``counters.parquet`` has the mean absolute error over time, as the figure; ``counters-by-horizon.parquet`` that of
    the second half of each of ``more`` horizons, and its spread.
    """
    check_plotting()
    curves = {
        (horizon, name): counter_errors(counter, horizon, runs, seed).mean(axis=0)
        for horizon in horizons
        for name, counter in _counters(horizon).items()
    }
    make_folder(out)
    write_table(out / "counters.parquet", _table(curves, runs), private=False)
    by_horizon = errors_by_horizon(more)
    by_horizon = by_horizon.append_column("code", pa.array([counter_code()] * by_horizon.num_rows))
    write_table(out / "counters-by-horizon.parquet", by_horizon, private=False)
    picture = _draw(curves, f"mean absolute error of {runs} runs, ε = {_EPSILON:g}")
    return write_picture(out, "counters", picture, private=False)


def counter_code() -> str:
    """Return which code makes the errors by horizon, as for a trial; there is no domain."""
    return f"counters:{code_digest(errors_by_horizon, _MORE_HORIZONS)}"


def errors_by_horizon(horizons: tuple[int, ...], runs: int = _MORE_RUNS, seeds: int = _SEEDS) -> pa.Table:
    """Return the mean error in the second half of runs of each length, and its deviation over seeds.

    The Binary Tree is told the horizon; the others do not need it. Half a run, because the error of a Binary Tree (and
    of a Block) depends on the tick: at T = 128 it is small, and just before large.
    """
    rows = []
    for horizon in horizons:
        for name, counter in _counters(horizon).items():
            means = [
                counter_errors(counter, horizon, runs, seed)[:, horizon // 2 :].mean() for seed in range(1, seeds + 1)
            ]
            measured = {"mean": float(np.mean(means)), "spread": float(np.std(means, ddof=1)), "seeds": seeds}
            by_seed = " ".join(f"{mean:.4g}" for mean in means)
            rows.append({"horizon": horizon, "counter": name} | measured | {"each": by_seed})
    return pa.Table.from_pylist(rows)


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


def _draw(curves: dict[tuple[int, str], Floats], label: str) -> Picture:
    """Draw the error of counters over time, one panel for each horizon."""
    horizons = list(dict.fromkeys(horizon for horizon, _ in curves))
    figure, axes = subplots(1, len(horizons), sharey=False)
    for axis, horizon in zip(axes[0], horizons, strict=True):
        named = {name: error for (of, name), error in curves.items() if of == horizon}
        for (name, error), (colour, dash, width) in zip(named.items(), _STYLES, strict=True):
            style = {"color": colour, "linestyle": dash, "lw": width, "zorder": 1 + width}
            axis.plot(range(1, horizon + 1), error, label=name, **style)
        axis.set(title=f"horizon {horizon:,}", xlabel="tick")
        axis.grid(alpha=0.25)
    axes[0, 0].set_ylabel(label)
    axes[0, 0].legend(frameon=False)
    return picture_of(figure)
