"""90% intervals cover true counts on invented streams; the benchmark runs, at a small size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import phdstream as phd
from benchmarks import intervals, intervals_page


def covered(stream: str, method: str, runs: int) -> pd.DataFrame:
    """Return what is measured at points and near them."""
    rng = np.random.default_rng(2)
    rows = [
        row
        for seed in range(runs)
        for release, live in intervals.invented(stream, method, 1.0, seed)
        for row in intervals.measured(release, live, None, rng)
    ]
    table = intervals.scored(pd.DataFrame(rows))
    return table[table["where"] != "anywhere"]


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("stream", ["city", "new places"])
def test_ninety_percent_intervals_cover_ninety_percent(stream: str) -> None:
    """Of true counts, in squares that cut cells, also between fine counts. What noise alone explains covers less."""
    table = covered(stream, "tracking", runs=1)
    by_side = table.groupby("side")[["covered", "noise_covered"]].mean()
    assert by_side.covered.between(0.84, 0.99).all()
    assert 0.87 < table.covered.mean() < 0.98
    assert table.noise_covered.mean() < table.covered.mean() - 0.04


@pytest.mark.statistical
@pytest.mark.slow
def test_those_of_the_papers_method_cover_most() -> None:
    """Much of what it released was counted in large nodes, before they were divided; noise says nothing of that."""
    table = covered("city", "phdstream", runs=1)
    assert table.covered.mean() > 0.8
    assert table.noise_covered.mean() < table.covered.mean() - 0.2


def test_scores() -> None:
    """A count of 100: covered by 80 to 120, missed by 110 to 120; the score punishes the miss twentyfold."""
    row = {"true": [100], "low": [80.0], "high": [120.0], "noise_low": [110.0], "noise_high": [120.0]}
    (scored,) = intervals.scored(pd.DataFrame(row)).to_dict("records")
    assert (scored["covered"], scored["noise_covered"]) == (True, False)
    assert (scored["width"], scored["score"]) == pytest.approx((0.4, 0.4))
    assert (scored["noise_width"], scored["noise_score"]) == pytest.approx((0.1, 2.1))


def test_squares_lie_inside_and_around_points() -> None:
    live = np.array([[0.5, 0.5], [0.001, 0.999]])
    found = intervals.squares(phd.Box([(0, 1), (0, 1)]), live, np.random.default_rng(1))
    assert {side for _, side in found} == {"1/4", "1/16", "1/64", "1/256"}
    for (where, _), each in found.items():
        assert (each >= -1e-12).all()
        assert (each <= 1 + 1e-12).all()
        if where == "at data":
            low, high = each[:, None, :2] - 1e-12, each[:, None, 2:] + 1e-12
            assert np.all(np.any(np.all((low <= live) & (live <= high), axis=2), axis=1))


def test_the_table_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, live = next(intervals.invented("few points", "tracking", 1.0, 1))
    rows = pd.DataFrame(intervals.measured(release, live, None, np.random.default_rng(1)))
    for stream in ("few points", "city"):
        about = {"stream": stream, "method": "tracking", "epsilon": 1.0, "seed": 11}
        rows.assign(**about).to_parquet(tmp_path / f"{stream}.parquet")
    monkeypatch.setattr(intervals, "TABLE", tmp_path / "table.csv")
    intervals.collect(tmp_path)
    assert list(pd.read_csv(tmp_path / "table.csv").stream.unique()) == ["city", "few points"]
    monkeypatch.setattr(intervals, "CHOSEN", {"city": {}})
    said = intervals_page.parts()
    assert "| city, **true counts** |" in said["intervals"]
    assert "for 1/256" in said["interval widths"]
