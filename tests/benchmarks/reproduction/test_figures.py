"""Each figure by name: files in both formats, and the numbers behind them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest
from benchmarks.reproduction.activations import activations
from benchmarks.reproduction.figures import FIGURES, write_figure
from benchmarks.reproduction.scatter import snapshots

from phdstream.errors import ConfigError, InputError
from phdstream.evaluation import DO_NOT_PUBLISH, read_experiment
from phdstream.evaluation.setting import load_setting
from tests.evaluation.experiments import OWN, small, write_events


@pytest.mark.parametrize("name", FIGURES)
def test_files(tmp_path: Path, name: str) -> None:
    figure = write_figure(name, small(epsilons=[0.5, 2.0]), tmp_path / "new")
    assert figure.read_bytes().startswith(b"\x89PNG")
    picture = figure.with_suffix(".svg").read_text()
    assert "<svg" in picture
    assert DO_NOT_PUBLISH not in picture


@pytest.mark.parametrize("name", FIGURES)
def test_those_of_real_events_say_so(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    write_events(tmp_path / "events.parquet")
    figure = write_figure(name, read_experiment(OWN, tmp_path), tmp_path / "out")
    assert figure.stat().st_mode & 0o077 == 0
    assert DO_NOT_PUBLISH in figure.with_suffix(".svg").read_text()


def test_unknown_figures_maps_of_a_line_and_folders_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'scatter'"):
        write_figure("scater", small(), tmp_path)
    write_events(tmp_path / "events.parquet")
    line = {"domain": {"type": "box", "bounds": [[0, 1]]}, "data": OWN["data"] | {"coordinates": ["lon"]}}
    with pytest.raises(InputError, match="two dimensions"):
        write_figure("scatter", read_experiment(OWN | line, tmp_path), tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_figure("counts", small(), tmp_path / "file")


def test_moments_are_spread_over_time_and_end_with_the_last() -> None:
    kept = snapshots(small(), epsilon=1.0, times=3)
    assert [s.tick for s in kept] == [9, 13, 18]  # 4 to 18 in three steps
    assert len(kept[-1].live) == 600
    assert kept[-1].cells.shape[1] == 4


def test_activations_of_a_run(tmp_path: Path) -> None:
    """Every tick activates each leaf once, and the leaves cover the domain: the root's tree has at least one a tick."""
    experiment = small()
    times = activations(experiment, 1.0, 1)
    setting = load_setting(experiment)
    ticks = setting.truth.ticks - setting.start_tick(0.2) + 1
    assert times.max() <= ticks
    assert times.sum() >= ticks
    write_figure("activations", experiment, tmp_path)
    rows = pyarrow.parquet.read_table(tmp_path / "activations.parquet").to_pylist()
    assert [row["seed"] for row in rows] == [1, 2]
    assert rows[0]["nodes"] == times.size
    assert rows[0]["rare_of_all"] == pytest.approx((times < 40).mean())
    assert rows[0]["active"] == (times > 0).sum()
