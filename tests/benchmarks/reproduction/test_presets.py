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
from benchmarks.reproduction.scatter import paper_start
from benchmarks.reproduction.sources import SOURCES

from phdstream.errors import ConfigError, InputError
from phdstream.evaluation import DO_NOT_PUBLISH, Experiment, Trial, read_experiment
from phdstream.evaluation.setting import load_setting
from phdstream.evaluation.trials import measure_trial
from phdstream.io.sources.clock import parse_duration

SHARED = Path(__file__).parents[4] / "shared" / "data"
CIRCLES = [name for name in PRESETS if name.startswith("circles")]
TAXI = ["taxi-state", "taxi-boroughs", "taxi-streets"]
REAL = [name for name in PRESETS if name not in CIRCLES + TAXI]
TICKS, POINTS = 12, 800


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("reduced", [False, True])
def test_every_preset_is_an_experiment(name: str, reduced: bool) -> None:
    experiment = read_experiment(preset(name, reduced), methods=paper_methods)
    everywhere = {"phdstream", "baseline-1", "baseline-3", "as-published-not-private", "nothing", "uniform"}
    of_all_data = {"phdstream-block", "baseline-2", "baseline-2-authors", "phdstream-published-not-private"}
    own = {
        "sensitivity": {"phdstream-record", "phdstream-half-epsilon"},
        "blocks": {"phdstream-block", "phdstream-block-16"},
        "100": set(),
        "2000": set(),
        "ticks": set(),
    }
    assert everywhere | own.get(name.split("-")[-1], of_all_data) <= set(experiment.methods)
    assert {"tracking", "tracking-insert-only"} & set(experiment.methods)
    assert experiment.private == (not name.startswith("circles"))


def test_unknown_presets() -> None:
    with pytest.raises(ConfigError, match="did you mean 'circles-b'"):
        preset("circle-b")


def test_missing_data_says_what_to_get_and_how_to_name_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="SNAP") as error:
        paper_experiment("gowalla", tmp_path, tmp_path / "out")
    assert "name it loc-gowalla_totalCheckins.txt.gz or" in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert "--data" in str(error.value)


def test_all_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        paper_experiment("taxi-streets", tmp_path, tmp_path / "out")
    assert str(error.value).count("\n- Get ") == 2
    assert "TLC Trip Record Data" in str(error.value)
    assert "osmnx.save_graph_geopackage" in str(error.value)
    (tmp_path / "yellow_taxi_2013-01.parquet").touch()
    with pytest.raises(InputError) as error:
        paper_experiment("taxi-streets", tmp_path, tmp_path / "out")
    assert "TLC" not in str(error.value)


@pytest.mark.parametrize("name", PRESETS)
def test_every_file_of_a_preset_can_be_had(name: str, tmp_path: Path) -> None:
    """Each is a source with a place to get it; under any of its names it is found."""
    spec = preset(name)
    named = [spec["data"].get("file"), spec["domain"].get("lines"), spec["domain"].get("polygons")]
    files = [file for file in named if file and "." in file]
    assert set(files) <= set(SOURCES)
    for file in files:
        for other in (file, *SOURCES[file].others):
            folder = tmp_path / str(abs(hash(other)))
            for wanted in {*files} - {file} | {other}:
                (folder / wanted).parent.mkdir(parents=True, exist_ok=True)
                (folder / wanted).touch()
            experiment = paper_experiment(name, folder, tmp_path / "out")
            assert other in (experiment.data["file"], *experiment.domain.values())


def test_the_starts_are_those_of_the_authors() -> None:
    starts = {name: preset(name)["start_after"] for name in PRESETS}
    assert starts["gowalla"] == [100, 200, 300, 400]
    assert starts["gowalla-30-day"] == [150, 200, 250, 300]
    assert starts["uber-boroughs"] == starts["taxi-streets"] == [1, 2, 5, 10]


def test_scatter_plots_start_where_the_papers_do() -> None:
    named = {name: read_experiment({"name": name} | preset(name), methods=paper_methods) for name in PRESETS}
    starts = {name: paper_start(experiment) for name, experiment in named.items()}
    assert (starts["gowalla"], starts["uber-state"], starts["uber-streets"], starts["circles-b"]) == (100, 2, 2, 0.1)
    assert starts["gowalla-30-day"] == 150  # the paper has no such plot


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


def test_uber_in_the_form_it_came_out(tmp_path: Path) -> None:
    original = tmp_path / "uber-raw-data-apr14.csv"
    rows = [f'"4/{day}/2014 0:{day}:00",40.7,-73.9,"B02512"' for day in range(1, 31)]
    original.write_text("\n".join(['"Date/Time","Lat","Lon","Base"', *rows, '"4/1/2014 5:00:00",0.7,-173.9,"B0"', ""]))
    truth = load_setting(paper_experiment("uber-state", tmp_path, tmp_path / "out")).truth
    assert (truth.ticks, int(truth.ends[-1])) == (120, 30)
    original.write_text("time,lat\n1,2\n")
    with pytest.raises(InputError, match="uber-tlc-foil-response"):
        paper_experiment("uber-state", tmp_path, tmp_path / "out")


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
    assert "circles-b-sensitivity: 10 trials done now, 0 before" in said
    assert "circles-b-sensitivity: 0 trials done now, 10 before" in said
    out = tmp_path / "circles-b-sensitivity"
    page = (out / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 8  # two metrics by size, the distance, the data
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
