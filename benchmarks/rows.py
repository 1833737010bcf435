"""A day of events as a Parquet file: short stays in a few towns, every insert deleted a quarter of an hour later.

python benchmarks/rows.py FILE [ROWS]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNKS = 96
SECOND = 1_000_000
DAY_US = 86_400 * SECOND
START = np.datetime64("2024-05-31", "us").astype(np.int64)
SCHEMA = pa.schema([("time", pa.timestamp("us")), ("x", pa.float64()), ("y", pa.float64()), ("sign", pa.int8())])


def write_rows(path: Path, rows: int, seed: int = 1) -> None:
    """Write about ``rows`` rows in order of time, a quarter of an hour at a time."""
    rng = np.random.default_rng(seed)
    towns, half = rng.random((40, 2)), rows // CHUNKS // 2
    before = _stays(rng, towns, half)
    with pq.ParquetWriter(path, SCHEMA) as file:
        for chunk in range(CHUNKS):
            now = _stays(rng, towns, half)
            file.write_table(_shuffled(rng, chunk, now, before if chunk else before[:0]))
            before = now


def _stays(rng: np.random.Generator, towns: np.ndarray, number: int) -> np.ndarray:
    town = towns[rng.integers(len(towns), size=number)]
    return np.clip(town + 0.03 * rng.standard_normal((number, 2)), 0, 1)


def _shuffled(rng: np.random.Generator, chunk: int, come: np.ndarray, gone: np.ndarray) -> pa.Table:
    """Return a table of inserts and deletes in random order, at even times within the chunk."""
    points = np.concatenate([come, gone])
    order = rng.permutation(len(points))
    sign = np.where(order < len(come), 1, -1).astype(np.int8)
    length = DAY_US // CHUNKS
    time = START + chunk * length + np.arange(len(points)) * length // max(1, len(points))
    columns = [pa.array(time).cast(SCHEMA[0].type), points[order, 0], points[order, 1], sign]
    return pa.table(columns, schema=SCHEMA)


if __name__ == "__main__":
    write_rows(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000_000)
