"""Scatter plots of true and synthetic points."""

from __future__ import annotations

from pathlib import Path

import pytest

from phdstream.errors import InputError
from phdstream.evaluation import read_experiment, write_scatter
from phdstream.evaluation.scatter import snapshots
from tests.evaluation.experiments import OWN, small, write_events


def test_moments_are_spread_over_time_and_end_with_the_last() -> None:
    kept = snapshots(small(), epsilon=1.0, times=3)
    assert [s.tick for s in kept] == [9, 13, 18]  # 4 to 18 in three steps
    assert len(kept[-1].live) == 600
    assert kept[-1].cells.shape[1] == 4


def test_files(tmp_path: Path) -> None:
    figure = write_scatter(small(epsilons=[0.5, 2.0]), tmp_path)
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "scatter.svg").stat().st_size > 1000


def test_those_of_real_events_say_so(tmp_path: Path) -> None:
    write_events(tmp_path / "events.parquet")
    figure = write_scatter(read_experiment(OWN, tmp_path), tmp_path / "out")
    assert figure.stat().st_mode & 0o077 == 0


def test_only_in_the_plane_and_only_where_one_can_write(tmp_path: Path) -> None:
    write_events(tmp_path / "events.parquet")
    line = {"domain": {"type": "box", "bounds": [[0, 1]]}, "data": OWN["data"] | {"coordinates": ["lon"]}}
    with pytest.raises(InputError, match="two dimensions"):
        write_scatter(read_experiment(OWN | line, tmp_path), tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_scatter(small(), tmp_path / "file")
