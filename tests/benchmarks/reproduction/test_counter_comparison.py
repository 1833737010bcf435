"""The comparison of counters: the paper's statements about it hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet
from benchmarks.reproduction.counter_comparison import compare_counters, counter_errors

from phdstream.streams.paper.counters import BinaryTree, Block, Simple


def test_files(tmp_path: Path) -> None:
    figure = compare_counters(tmp_path, runs=2, horizons=(64, 16), more=(8, 16))
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "counters.svg").stat().st_size > 1000
    table = pyarrow.parquet.read_table(tmp_path / "counters.parquet")
    assert table.num_rows == 3 * (64 + 16)
    assert set(table["counter"].to_pylist()) == {"Simple", "Block 8", "Binary Tree"}
    by_horizon = pyarrow.parquet.read_table(tmp_path / "counters-by-horizon.parquet").to_pylist()
    assert [(row["horizon"], row["seeds"]) for row in by_horizon] == [(8, 5)] * 3 + [(16, 5)] * 3


def test_errors_are_of_the_size_that_the_noise_gives() -> None:
    errors = counter_errors(Simple(0.5), 200, runs=400, seed=1)
    expected = np.sqrt(2 / np.pi * Simple(0.5).variance(np.array([0]), np.array([200])))
    np.testing.assert_allclose(errors[:, -1].mean(), expected, rtol=0.2)


def test_what_the_paper_says_of_counters() -> None:
    """Avoid Binary Tree below 100 ticks; Block is better than Simple above 30; over a long time Simple is worst."""
    short = [Simple(0.5), Block(0.5), BinaryTree(0.5, horizon=128)]
    simple, block, tree = (counter_errors(counter, 128, runs=200, seed=2).mean(axis=0) for counter in short)
    assert tree[:100].mean() > max(simple[:100].mean(), block[:100].mean())
    assert block[30:].mean() < simple[30:].mean()
    long = [Simple(0.5), Block(0.5), BinaryTree(0.5, horizon=2048)]
    simple, block, tree = (counter_errors(counter, 2048, runs=40, seed=2).mean(axis=0) for counter in long)
    assert simple[1024:].mean() > max(block[1024:].mean(), tree[1024:].mean())
