"""Every preset at a reduced size: circles always, real files where they are at hand, taxis also in TLC's own form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from phdstream.evaluation import PRESETS, Experiment, Outcome, preset, read_experiment, run_experiment
from phdstream.evaluation.cells import DO_NOT_PUBLISH
from phdstream.evaluation.setting import load_setting

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"
CIRCLES = [name for name in PRESETS if name.startswith("circles")]
TAXI = ["taxi-state", "taxi-streets"]
REAL = [name for name in PRESETS if name not in CIRCLES + TAXI]


def run(name: str, base: Path, out: Path) -> tuple[Experiment, Outcome]:
    experiment = read_experiment({"name": name} | preset(name, reduced=True), base)
    outcome = run_experiment(experiment, out, workers=1)
    assert not outcome.failed
    table = pyarrow.parquet.read_table(out / "results.parquet")
    assert set(table["method"].to_pylist()) == set(experiment.methods)
    assert set(table["size"].to_pylist()) == {"small", "medium", "large"}
    assert np.isfinite(table["error"].to_numpy()).all()
    return experiment, outcome


@pytest.mark.parametrize("name", CIRCLES)
def test_circles(tmp_path: Path, name: str) -> None:
    _, outcome = run(name, Path(), tmp_path)
    assert outcome.report is not None
    page = outcome.report.read_text()
    assert page.count("data:image/png;base64,") == 4
    figures = [tmp_path / f"{name}.{kind}" for name in ("error-small", "counts") for kind in ("png", "svg")]
    assert all(path.stat().st_size > 1000 for path in figures)
    assert "simulated circles" in page
    assert "1 seed of noise" in page
    assert ("<th>Baseline 1 (not private over time)</th>" in page) == (not name.endswith(("sensitivity", "blocks")))
    assert "(1.00×)" in page
    assert "do not publish" not in page


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real files are not at hand")
@pytest.mark.parametrize("name", REAL)
def test_real_files(tmp_path: Path, name: str) -> None:
    experiment, outcome = run(name, SHARED, tmp_path)
    assert load_setting(experiment).feed.totals()[0][-1] == 2000
    assert outcome.report is not None
    assert DO_NOT_PUBLISH in outcome.report.read_text()


def write_trips(path: Path, trips: int = 400) -> None:
    """Trips of January 2013 in lower Manhattan, with the columns of TLC's edition with coordinates."""
    rng = np.random.default_rng(1)
    pickup = np.datetime64("2013-01-01", "us") + np.sort(rng.integers(0, 31 * 86_400, trips)) * np.timedelta64(1, "s")
    x, y = -73.99 + 0.01 * rng.random(trips), 40.73 + 0.01 * rng.random(trips)
    columns = {"vendor_id": ["VTS"] * trips, "pickup_datetime": pickup, "dropoff_datetime": pickup}
    columns |= {"pickup_longitude": x, "pickup_latitude": y, "dropoff_longitude": x, "dropoff_latitude": y}
    pyarrow.parquet.write_table(pa.table(columns), path)


def test_taxis_in_the_form_tlc_publishes_them(tmp_path: Path) -> None:
    write_trips(tmp_path / "yellow_tripdata_2013-01.parquet")
    experiment, _ = run("taxi-state", tmp_path, tmp_path / "out")
    feed = load_setting(experiment).feed
    assert (feed.ticks, int(feed.ends[-1])) == (124, 400)  # 31 days of four ticks
