"""The benchmarks run, at small sizes, and write what they promise. No time is judged here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.__main__ import growth, main
from benchmarks.measure import Figure, exponent, machine, table
from benchmarks.whole_run import whole_run

import phdstream as phd
from benchmarks import growth as ticks_by_size
from benchmarks import kernels, ticks


@pytest.mark.slow
def test_all_of_it_runs_and_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.json"
    small = ["--events", "10000", "--nodes", "100", "--ticks", "20"]
    main([*small, "--json", str(path)])
    written = json.loads(path.read_text())
    groups = {figure["group"] for figure in written["figures"]}
    assert groups == {
        "events",
        "dimension",
        "noise",
        "tick",
        "release",
        "state",
        "nodes",
        "depth",
        "steady",
        "start-up",
    }
    assert all(figure["ratio"] > 0 for figure in written["figures"])
    assert written["machine"]["cores"] >= 1
    assert "| times the reference |" in capsys.readouterr().out


@pytest.mark.slow
def test_the_run_is_measured_against_polars() -> None:
    seconds, memory = whole_run(rows=20_000, repeats=1)
    assert seconds.amount > 0
    assert 1 < memory.amount < 10_000


def test_another_method_can_be_measured() -> None:
    class Other(phd.PHDStream):
        made = 0

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            Other.made += 1

    figures = ticks.one_tick(Other, leaves=10, points=200, repeats=2)
    assert Other.made >= 2
    assert [f.what for f in figures if f.group == "tick"] == ["simulated noise", "production noise"]


def test_growth_is_fitted() -> None:
    assert exponent([1, 10, 100], [2, 20, 200]) == pytest.approx(1)
    assert exponent([1, 10, 100], [5, 500, 50_000]) == pytest.approx(2)
    figures = [Figure("a", "b", size, size**1.5, "c", 1.0) for size in (10, 100, 1000)]
    assert growth(figures) == {"a, b": pytest.approx(1.5)}
    assert growth(figures[:2]) == {}


@pytest.mark.slow
def test_what_ticks_cost_as_streams_grow_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "growth.json"
    ticks_by_size.main(["--nodes", "2000", "4000", "--points", "20000", "--json", str(path)])
    written, shown = json.loads(path.read_text()), capsys.readouterr().out
    assert len(written["ticks"]) == 8
    ended, place, *between = written["ticks"][:4]
    assert 0 < place["touched"] < ended["touched"] <= ended["remembered"]
    assert [tick["touched"] for tick in between] == [0, 0]
    assert written["sample"]["points"] == pytest.approx(20_000, rel=0.01)
    assert written["sample"]["MB at most"] >= written["sample"]["MB before"] > 1
    assert "ends a block, everywhere: cost grows as nodes^" in shown


def test_a_figure_is_a_ratio_of_the_same_run() -> None:
    figure = Figure("a", "b", 1000, 0.5, "c", 0.25)
    assert figure.ratio == 2
    assert "| a | b | 1,000 | 500 | 2 | c |" in table([figure])
    assert {"processor", "cores", "load", "python", "numpy"} == set(machine())


def test_noise_is_measured_against_opendp() -> None:
    (figure,) = kernels.noise(1000, [4.3])
    assert figure.reference_amount > 0
