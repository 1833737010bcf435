"""`phdstream evaluate`: a file in, a report out; what is wrong is said; Ctrl-C keeps what is done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely

from phdstream.evaluation import DO_NOT_PUBLISH, Outcome, Trial, example, load_experiment
from phdstream.evaluation.setting import load_setting
from tests.app.commands import phdstream
from tests.evaluation.experiments import write_events

OWN = """
epsilons = [1]
seeds = [1]
[data]
file = "events.parquet"
time = "time"
coordinates = ["lon", "lat"]
every = "1d"
start = 2020-01-01
end = 2020-01-05
[queries]
small = 30
medium = 20
large = 10
"""
BOX = """
[domain]
type = "box"
bounds = [[-1, 1], [0, 1]]
"""


def write(folder: Path, text: str) -> Path:
    write_events(folder / "events.parquet", days=4, per_day=10)
    (folder / "own.toml").write_text(text)
    return folder / "own.toml"


@pytest.mark.slow
def test_on_ones_own_data(tmp_path: Path) -> None:
    asked = write(tmp_path, OWN + BOX)
    done = phdstream("evaluate", asked, "--out", tmp_path / "out", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "7 trials done now, 0 were done before" in done.stdout
    assert DO_NOT_PUBLISH in done.stdout
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Settings to take" in page
    assert "Best at ε = 1, small queries:" in page
    assert len(list((tmp_path / "out" / "trials").iterdir())) == 7


def test_on_ones_own_regions_and_networks_with_deletes(tmp_path: Path) -> None:
    """What the file says about the domain and about deletes is what is compared with."""
    sign = OWN.replace('every = "1d"', 'every = "1d"\nsign = "sign"')
    asked = write(tmp_path, sign + '[domain]\ntype = "region"\npolygons = "square.geojson"\n')
    table = pyarrow.parquet.read_table(tmp_path / "events.parquet")
    table = table.append_column("sign", pa.array([1] * 30 + [-1] * 10))
    table = table.set_column(1, "lon", pa.array(np.tile(table["lon"].to_numpy()[:10], 4)))
    table = table.set_column(2, "lat", pa.array(np.tile(table["lat"].to_numpy()[:10], 4)))
    pyarrow.parquet.write_table(table, tmp_path / "events.parquet")
    for name, shape in {"square": shapely.box(0, 0, 1, 1), "street": shapely.LineString([(0, 0.5), (1, 0.5)])}.items():
        geometry = {"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(shape)}
        (tmp_path / f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [geometry]}))
    region = load_setting(load_experiment(asked)).truth.totals()[2]
    assert region.tolist() == [0, 10, 20, 30, 20]
    network = '[domain]\ntype = "network"\nlines = "street.geojson"\nsnap = 60000\ntree_crs = "EPSG:32631"\n'
    asked.write_text(OWN.replace('every = "1d"', 'every = "1d"\nlifetime = "2d"') + network + 'crs = "EPSG:4326"\n')
    truth = load_setting(load_experiment(asked)).truth
    assert truth.totals()[2].tolist() == [0, 10, 20, 20, 20]
    np.testing.assert_allclose(truth.places[:, 1], 0.5)


def test_an_example_to_start_from() -> None:
    assert phdstream("evaluate", "--example").stdout == example()


def test_the_page_shows_the_example() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    assert f"```toml\n{example()}```" in page


def test_failed_trials_make_the_command_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Outcome(None, 3, 0, {Trial("phdstream", 1.0, 0.2, 2): "its process died"})
    monkeypatch.setattr("phdstream.evaluation.run_experiment", lambda *_: failed)
    done = phdstream("evaluate", write(tmp_path, OWN + BOX))
    assert done.returncode == 1
    assert "phdstream, ε = 1, t0 = 0.2, seed 2 failed: its process died" in done.stderr
    assert "1 trial failed" in done.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r"[data] is missing"),
        (OWN, "[domain] is missing"),
        (OWN + BOX.replace("bounds", "bound"), "[domain] has an unknown key 'bound': did you mean 'bounds'"),
        ("epsilon = [1]\n" + OWN + BOX, "an experiment has an unknown key 'epsilon': did you mean 'epsilons'"),
        (OWN.replace("start = 2020-01-01\n", "") + BOX, "[data] needs 'start'"),
        (OWN.replace("events.parquet", "other.csv") + BOX, "other.csv, which [data] file names"),
        (OWN.replace('"1d"', '"1 day"') + BOX, "is not a length of time"),
        (
            OWN.replace("end = 2020-01-05", 'end = "2020-01-05"') + BOX,
            "[data] end must be a date or time without quotes",
        ),
    ],
)
def test_what_is_wrong_with_the_file(tmp_path: Path, text: str, complaint: str) -> None:
    done = phdstream("evaluate", write(tmp_path, text), "--out", tmp_path / "out")
    assert done.returncode == 1
    assert complaint in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("arguments", "status"), [([], 1), (["none.toml"], 1), (["a.toml", "--preset", "b"], 2)])
def test_bad_commands(arguments: list[str], status: int) -> None:
    done = phdstream("evaluate", *arguments)
    assert done.returncode == status
    assert ("--example prints one to start from" in done.stderr) == (status == 1)


@pytest.mark.slow
def test_ctrl_c_leaves_finished_trials(tmp_path: Path) -> None:
    (tmp_path / "circles.toml").write_text('[data]\ncircles = "moving"\npoints = 5_000\n')
    command = [sys.executable, "-m", "phdstream", "evaluate", str(tmp_path / "circles.toml"), "--workers", "1"]
    process = subprocess.Popen([*command, "--out", str(tmp_path)], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120  # a loaded machine is slow
    while not list(tmp_path.glob("trials/*.parquet")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    error = process.communicate(timeout=20)[1]
    assert process.returncode == 130, error
    assert "Run the same command again" in error
    assert "Traceback" not in error
    files = list(tmp_path.glob("trials/*.parquet"))
    assert files
    assert all(pyarrow.parquet.read_table(path).num_rows for path in files)
    assert not list(tmp_path.glob("trials/.*.tmp"))
