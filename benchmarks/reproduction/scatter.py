"""Scatter plots as in the paper: true points above, synthetic ones below for each ε, over time, with the partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.reproduction.maps import TIMES, chosen_ticks, draw_points, map_panels
from phdstream.arrays import Floats
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.methods import phdstream_with
from phdstream.evaluation.pictures import Picture, picture_of, say_private
from phdstream.evaluation.setting import Setting, load_setting
from phdstream.privacy import Simulation

__all__ = ["Snapshot", "draw_scatter", "paper_start", "snapshots"]

_PAPER_STARTS = {"gowalla": 100.0, "uber": 2.0, "taxi": 2.0, "circles": 0.1}
"""t0 in the captions of the paper's scatter plots, by the first word of the data's name."""


@dataclass(frozen=True)
class Snapshot:
    """The points at a tick, true and synthetic, and the bounds of the cells."""

    tick: int
    live: Floats
    synthetic: Floats
    cells: Floats


def paper_start(experiment: Experiment) -> float:
    """Return the t0 of the paper's scatter plot of this data; the experiment's first one if it does not have it."""
    wanted = _PAPER_STARTS.get(experiment.name.split("-")[0])
    return wanted if wanted in experiment.start_after else experiment.start_after[0]


def snapshots(experiment: Experiment, epsilon: float, times: int = TIMES) -> list[Snapshot]:
    """Run PHDStream with the paper's t0 and the first seed; return moments, evenly spaced, the last tick included."""
    setting = load_setting(experiment)
    start = setting.start_tick(paper_start(experiment))
    wanted = chosen_ticks(start, setting.truth.ticks, times)
    method = phdstream_with()(setting.domain, epsilon, Simulation(experiment.seeds[0]))
    kept = []
    for moment in setting.truth.moments(start, 1, codes=setting.codes):
        release = method.update(moment.inserts, moment.deletes)
        if moment.tick in wanted and moment.live is not None:
            cells = setting.domain.bounds(release.leaves)
            kept.append(Snapshot(moment.tick, moment.live, release.sample(), cells))
    return kept


def draw_scatter(experiment: Experiment) -> Picture:
    """Draw the true points with the first ε's partition, then a row of synthetic ones for each ε."""
    runs = {epsilon: snapshots(experiment, epsilon) for epsilon in experiment.epsilons}
    return _draw(load_setting(experiment), runs, experiment.label)


def _draw(setting: Setting, runs: dict[float, list[Snapshot]], label: str) -> Picture:
    first = next(iter(runs.values()))
    figure, axes = map_panels(setting, 1 + len(runs), len(first))
    for column, snapshot in enumerate(first):
        _points(axes[0, column], snapshot.live, snapshot.cells, "#444444")
        axes[0, column].set_title(f"tick {snapshot.tick}", fontsize=11)
    axes[0, 0].set_ylabel("true" + " (private)" * bool(label))
    for row, (epsilon, run) in enumerate(runs.items(), start=1):
        axes[row, 0].set_ylabel(f"synthetic, ε = {epsilon:g}")
        for column, snapshot in enumerate(run):
            _points(axes[row, column], snapshot.synthetic, snapshot.cells, "#0b62c4")
    return picture_of(say_private(figure, label))


def _points(axis: Any, points: Floats, cells: Floats, colour: str) -> None:
    from matplotlib.collections import PolyCollection

    corners: Any = cells[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
    outlines = PolyCollection(corners, facecolors="none", edgecolors="#00000060", linewidths=0.3, rasterized=True)
    axis.add_collection(outlines)
    draw_points(axis, points, colour)
