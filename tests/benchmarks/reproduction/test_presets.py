"""Every preset at a reduced size: circles always, real files where they are at hand, originals as published."""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from benchmarks.reproduction.__main__ import main
from benchmarks.reproduction.methods import paper_methods
from benchmarks.reproduction.presets import PRESETS, paper_experiment, preset

from phdstream.errors import ConfigError, InputError
from phdstream.evaluation import DO_NOT_PUBLISH, Experiment, Trial, read_experiment
from phdstream.evaluation.setting import load_setting
from phdstream.evaluation.trials import measure_trial
from phdstream.io.sources.clock import parse_duration

SHARED = Path(__file__).parents[4] / "shared" / "data"
CIRCLES = [name for name in PRESETS if name.startswith("circles")]
TAXI = ["taxi-state", "taxi-streets"]
REAL = [name for name in PRESETS if name not in CIRCLES + TAXI]
TICKS, POINTS = 12, 800


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("reduced", [False, True])
def test_every_preset_is_an_experiment(name: str, reduced: bool) -> None:
    experiment = read_experiment(preset(name, reduced), methods=paper_methods)
    own = {"sensitivity": {"phdstream-record"}, "blocks": {"phdstream-block", "phdstream-block-16"}}
    compared = own.get(name.split("-")[-1], {"baseline-1", "baseline-3"})
    assert compared | {"phdstream"} <= set(experiment.methods)
    assert experiment.private == (not name.startswith("circles"))


def test_unknown_presets() -> None:
    with pytest.raises(ConfigError, match="did you mean 'circles-b'"):
        preset("circle-b")


def test_missing_data_says_what_to_get_and_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="SNAP") as error:
        paper_experiment("gowalla", tmp_path, tmp_path / "out")
    assert "loc-gowalla_totalCheckins.txt.gz" in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert "--data" in str(error.value)
    (tmp_path / "uber_apr2014_full.parquet").touch()
    with pytest.raises(InputError, match="lines names"):
        load_setting(paper_experiment("uber-streets", tmp_path, tmp_path / "out"))


def assert_finite(experiment: Experiment) -> None:
    """Every method's errors are numbers, for all sizes of queries."""
    for method in experiment.methods:
        rows = measure_trial(experiment, Trial(method, 1.0, experiment.start_after[0], 1))
        assert {row["size"] for row in rows} == {"small", "medium", "large"}
        assert np.isfinite([row["error"] for row in rows]).all()


@pytest.mark.parametrize("name", CIRCLES)
def test_circles(tmp_path: Path, name: str) -> None:
    assert_finite(paper_experiment(name, tmp_path, tmp_path, reduced=True))


def begun(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a preset on few of its real events that ends some ticks after its start."""
    data = spec["data"]
    ticks = spec["start_after"][0] + TICKS
    return spec | {"data": data | {"points": POINTS, "end": data["start"] + ticks * parse_duration(data["every"])}}


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the real files are not at hand")
@pytest.mark.parametrize("name", REAL)
def test_real_files(name: str) -> None:
    experiment = read_experiment(begun(preset(name, reduced=True)), SHARED, paper_methods)
    assert load_setting(experiment).truth.totals()[0][-1] == POINTS
    assert_finite(experiment)


def write_trips(path: Path, trips: int = 400) -> None:
    """Trips of January 2013 in lower Manhattan, with the columns of TLC's edition with coordinates."""
    rng = np.random.default_rng(1)
    pickup = np.datetime64("2013-01-01", "us") + np.sort(rng.integers(0, 31 * 86_400, trips)) * np.timedelta64(1, "s")
    x, y = -73.99 + 0.01 * rng.random(trips), 40.73 + 0.01 * rng.random(trips)
    columns = {"vendor_id": ["VTS"] * trips, "pickup_datetime": pickup, "dropoff_datetime": pickup}
    columns |= {"pickup_longitude": x, "pickup_latitude": y, "dropoff_longitude": x, "dropoff_latitude": y}
    pyarrow.parquet.write_table(pa.table(columns), path)


def test_taxis_in_the_form_tlc_publishes_them(tmp_path: Path) -> None:
    original = tmp_path / "yellow_tripdata_2013-01.parquet"
    write_trips(original)
    whole = original.read_bytes()
    experiment = paper_experiment("taxi-state", tmp_path, tmp_path, reduced=True)
    truth = load_setting(experiment).truth
    assert (truth.ticks, int(truth.ends[-1])) == (124, 400)  # 31 days of four ticks
    assert original.read_bytes() == whole
    assert Path(experiment.data["file"]).stat().st_mode & 0o077 == 0


def test_check_ins_in_the_form_snap_publishes_them(tmp_path: Path) -> None:
    """They are turned into Parquet once, and again when the file is another one."""
    original = tmp_path / "loc-gowalla_totalCheckins.txt.gz"
    days = [datetime(2009, 2, 4, 12) + timedelta(days=day) for day in range(150)]
    original.write_bytes(gzip.compress("".join(f"1\t{day.isoformat()}Z\t48.9\t2.3\t7\n" for day in days).encode()))
    first = Path(paper_experiment("gowalla", tmp_path, tmp_path / "out").data["file"])
    changed = first.stat().st_mtime_ns
    again = paper_experiment("gowalla", tmp_path, tmp_path / "out")
    assert load_setting(again).truth.totals()[0][-1] == 150
    assert first.stat().st_mtime_ns == changed
    original.touch()
    paper_experiment("gowalla", tmp_path, tmp_path / "out")
    assert first.stat().st_mtime_ns > changed


@pytest.mark.slow
def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Methods that only the benchmarks know are found by worker processes."""
    asked = ["circles-b-sensitivity", "--reduced", "--out", str(tmp_path)]
    assert main(["run", *asked, "--workers", "1"]) == 0
    assert main(["run", *asked]) == 0
    said = capsys.readouterr().out
    assert "circles-b-sensitivity: 2 trials done now, 0 before" in said
    assert "circles-b-sensitivity: 0 trials done now, 2 before" in said
    out = tmp_path / "circles-b-sensitivity"
    page = (out / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 4
    figures = [out / f"{name}.{kind}" for name in ("error-small", "counts") for kind in ("png", "svg")]
    assert all(path.stat().st_size > 1000 for path in figures)
    assert "simulated circles" in page
    assert "1 seed of noise" in page
    assert "<th>PHDStream, per record (sensitivity 2)</th>" in page
    assert "(1.00×)" in page
    assert DO_NOT_PUBLISH not in page
    assert main(["figure", "counts", *asked]) == 0
    assert capsys.readouterr().out.strip() == str(out / "counts.png")


def test_what_is_missing_is_said_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "gowalla", "--data", str(tmp_path), "--out", str(tmp_path)]) == 1
    assert "Get Gowalla's check-ins" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "gowala"])
