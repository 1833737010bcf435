"""Whole experiments: resumed, repeated, interrupted, failing; the numbers against a hand computation; the report."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely
from typer.testing import CliRunner

import phdstream as phd
from phdstream.app.cli import app
from phdstream.errors import InputError
from phdstream.evaluation import Cell, Outcome, read_experiment, run_experiment
from phdstream.evaluation.cells import DO_NOT_PUBLISH, cell_path, is_finished, measure_cell
from phdstream.evaluation.setting import load_setting
from phdstream.evaluation.summary import curves, means, recommend
from tests.evaluation.experiments import OWN, dies_once, fails_once, small, write_events


def numbers(out: Path) -> pa.Table:
    return pyarrow.parquet.read_table(out / "results.parquet").drop_columns(["seconds"])


def times(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}


def test_resume_computes_only_what_is_missing_and_workers_change_nothing(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    first = run_experiment(small(), tmp_path / "one", 1, lambda done, total: seen.append((done, total)))
    assert (first.done, first.kept, first.failed) == (4, 0, {})
    assert seen == [(i, 4) for i in range(5)]
    before, whole = times(tmp_path / "one"), numbers(tmp_path / "one")
    lost = cell_path(tmp_path / "one" / "cells", small(), Cell("phdstream", 1.0, 0.2, 2))
    lost.write_bytes(lost.read_bytes()[:100])  # not a whole file: as good as none
    again = run_experiment(small(), tmp_path / "one", 1)
    assert (again.done, again.kept) == (1, 3)
    after = times(tmp_path / "one")
    assert [name for name in before if after[name] != before[name]] == [lost.name]
    assert numbers(tmp_path / "one").equals(whole)
    run_experiment(small(), tmp_path / "two", 2)
    assert numbers(tmp_path / "two").equals(whole)


@pytest.mark.parametrize(
    ("work", "cell", "reason"),
    [
        (dies_once, Cell("baseline-3", 1.0, 0.2, 1), "its process died"),
        (fails_once, Cell("phdstream", 1.0, 0.2, 2), "InputError: a bad day"),
    ],
)
def test_a_failing_run_is_reported_and_the_others_finish(tmp_path: Path, work: Any, cell: Cell, reason: str) -> None:
    outcome = run_experiment(small(), tmp_path, 1, work=work)
    assert list(outcome.failed) == [cell]
    assert reason in outcome.failed[cell]
    assert outcome.done == 3
    assert outcome.report is not None
    assert "3 of 4 runs finished" in outcome.report.read_text()
    assert sum(is_finished(tmp_path / "cells", small(), other) for other in small().cells()) == 3


def test_other_settings_are_other_cells(tmp_path: Path) -> None:
    cell = Cell("phdstream", 1.0, 0.2, 1)
    paths = {cell_path(tmp_path, small(**change), cell) for change in ({}, {"measure_every": 6}, {"name": "b"})}
    assert len(paths) == 3


def test_errors_by_hand() -> None:
    """Straight from the definition: the stream run here, the points counted here, one by one."""
    experiment = small()
    setting = load_setting(experiment)
    stream = phd.PHDStream(setting.domain, 1.0, phd.Event(), noise=phd.Simulation(7))
    by_hand = []
    for moment in setting.feed.moments(setting.start_tick(0.2), experiment.measure_every):
        release = stream.update(moment.inserts, moment.deletes)
        if moment.live is not None:
            each = []
            for west, south, east, north in setting.queries["small"]:
                box = phd.Box([(west, east), (south, north)])
                true, made = (int(box.encode(p)[1].sum()) for p in (moment.live, release.sample()))
                each.append(abs(made - true) / max(true, 0.001 * len(moment.live)))
            by_hand.append(np.mean(each))
    rows = measure_cell(experiment, Cell("phdstream", 1.0, 0.2, 7))
    np.testing.assert_allclose([row["error"] for row in rows if row["size"] == "small"], by_hand)


def test_fanout_4_has_the_same_finest_cells() -> None:
    two, four = load_setting(small()).domain, load_setting(small(), fanout=4).domain
    assert (two.fanout, four.fanout, two.total_bits, four.total_bits) == (2, 4, 20, 20)


def test_the_summary() -> None:
    errors = {("a", 1): (1.0, 3.0), ("a", 2): (3.0, 5.0), ("b", 1): (1.0, 1.0), ("b", 2): (1.0, 1.0)}
    table = pa.Table.from_pylist(
        [
            {"size": "small", "epsilon": 1.0, "t0": 1.0, "method": method, "seed": seed, "tick": tick, "error": error}
            for (method, seed), both in errors.items()
            for tick, error in enumerate(both, start=1)
        ]
    )
    mean = means(table)["small", 1.0, 1.0, "a"]
    assert (mean.mean, mean.seeds) == (3.0, 2)
    assert mean.spread == pytest.approx(np.std([2, 4], ddof=1))
    curve = curves(table)["small", 1.0, 1.0, "a"]
    assert (curve.mean.tolist(), curve.low.tolist(), curve.high.tolist()) == ([2, 4], [1, 3], [3, 5])
    assert recommend(table, {"a"})[1.0][0] == "a"
    assert recommend(table, {"a", "b"})[1.0][0] == "b"


def test_real_files_are_labelled_private(tmp_path: Path) -> None:
    write_events(tmp_path / "events.parquet")
    outcome = run_experiment(read_experiment(OWN, tmp_path), tmp_path / "out", 1)
    assert outcome.label == DO_NOT_PUBLISH
    assert outcome.report is not None
    assert DO_NOT_PUBLISH in outcome.report.read_text()
    assert outcome.report.stat().st_mode & 0o077 == 0
    for path in [tmp_path / "out" / "results.parquet", *(tmp_path / "out" / "cells").iterdir()]:
        assert pyarrow.parquet.read_schema(path).metadata[b"label"] == DO_NOT_PUBLISH.encode()
        assert path.stat().st_mode & 0o077 == 0
    write_events(tmp_path / "events.parquet", per_day=31)  # other data, same name: other runs
    assert run_experiment(read_experiment(OWN, tmp_path), tmp_path / "out", 1).kept == 0


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"phdstream\[plot\]"):
        run_experiment(small(), tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        run_experiment(small(), tmp_path / "file")


def phdstream(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phdstream", "evaluate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_on_ones_own_data_from_the_command_line(tmp_path: Path) -> None:
    events = write_events(tmp_path / "events.parquet", days=4, per_day=10)
    asked = ["--start", "2020-01-01", "--end", "2020-01-05", "--bounds", "-1,0,1,1", "--epsilons", "1"]
    done = phdstream("--data", events, *asked, "--out", tmp_path / "out", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "21 runs done now, 0 were done before" in done.stdout
    assert DO_NOT_PUBLISH in done.stdout
    assert "Settings to take" in (tmp_path / "out" / "report.html").read_text()


def test_on_ones_own_regions_and_networks_with_deletes(tmp_path: Path) -> None:
    events = write_events(tmp_path / "events.parquet", days=4, per_day=10)
    table = pyarrow.parquet.read_table(events)
    pyarrow.parquet.write_table(table.append_column("sign", pa.array([1] * 30 + [-1] * 10)), events)
    when = ["--start", "2020-01-01", "--end", "2020-01-05", "--epsilons", "1", "--data", events, "--figure", "counts"]
    shapes = {"square": shapely.box(0, 0, 1, 1), "street": shapely.LineString([(0, 0.5), (1, 0.5)])}
    for name, shape in shapes.items():
        geometry = {"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(shape)}
        (tmp_path / f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [geometry]}))
    on_lines = ["--domain", tmp_path / "street.geojson", "--snap", "50000", "--tree-crs", "EPSG:32631"]
    asked: list[list[str | Path]] = [
        ["--domain", tmp_path / "square.geojson", "--sign", "sign"],
        [*on_lines, "--crs", "EPSG:4326", "--lifetime", "2d"],
        ["--domain", "land", "--bounds", "0,0,1,1"],
        [],
        ["--domain", tmp_path / "none.geojson"],
    ]
    region, network, both, neither, missing = (phdstream(*when, *a, "--out", tmp_path / "out") for a in asked)
    for done in (region, network):
        assert done.returncode == 0, done.stderr
        assert DO_NOT_PUBLISH in done.stdout
    assert "one of them" in both.stderr
    assert "one of them" in neither.stderr
    assert "there is no file" in missing.stderr


def test_failed_runs_make_the_command_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Outcome(None, 3, 0, {Cell("phdstream", 1.0, 0.2, 2): "its process died"})
    monkeypatch.setattr("phdstream.evaluation.run_experiment", lambda *_: failed)
    done = CliRunner().invoke(app, ["evaluate", "--preset", "circles-a", "--reduced"])
    assert done.exit_code == 1
    assert "phdstream, ε = 1, t0 = 0.2, seed 2 failed: its process died" in done.output
    assert "1 run failed" in done.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name one thing"),
        (["--preset", "circle-a"], "did you mean 'circles-a'"),
        (["none.toml"], "there is no experiment file"),
        (["none.toml", "--reduced"], "goes with --preset"),
        (["--data", "a.csv"], "--data needs --start"),
    ],
)
def test_bad_commands(arguments: list[str], complaint: str) -> None:
    done = phdstream(*arguments)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_leaves_finished_cells(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "phdstream", "evaluate", "--preset", "circles-b", "--workers", "1"]
    process = subprocess.Popen([*command, "--out", str(tmp_path)], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120  # a loaded machine is slow
    while not list(tmp_path.glob("cells/*.parquet")) and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    error = process.communicate(timeout=20)[1]
    assert process.returncode == 130
    assert "Run the same command again" in error
    assert "Traceback" not in error
    files = list(tmp_path.glob("cells/*.parquet"))
    assert files
    assert all(pyarrow.parquet.read_table(path).num_rows for path in files)
    assert not list(tmp_path.glob("cells/.*.tmp"))


def test_cells_are_ordered_seed_by_seed() -> None:
    cells = list(small().cells())
    assert [cell.seed for cell in cells] == [1, 1, 2, 2]
    assert dataclasses.astuple(cells[0]) == ("phdstream", 1.0, 0.2, 1)
    assert str(cells[0]) == "phdstream, ε = 1, t0 = 0.2, seed 1"
