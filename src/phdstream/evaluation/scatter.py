"""Scatter plots as in the paper: true points above, synthetic ones below for each ε, over time, with the partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phdstream.arrays import Floats
from phdstream.errors import InputError
from phdstream.evaluation.cells import DO_NOT_PUBLISH
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.figures import Picture, check_plotting, picture_of, subplots
from phdstream.evaluation.methods import contender
from phdstream.evaluation.setting import load_setting
from phdstream.privacy import Simulation
from phdstream.state import replace_file

__all__ = ["Snapshot", "snapshots", "write_scatter"]

_TIMES = 4


@dataclass(frozen=True)
class Snapshot:
    """The points at a tick, true and synthetic, and the bounds of the cells."""

    tick: int
    live: Floats
    synthetic: Floats
    cells: Floats


def snapshots(experiment: Experiment, epsilon: float, times: int = _TIMES) -> list[Snapshot]:
    """Run PHDStream with the first t0 and seed, and return some moments, evenly spaced, the last tick included."""
    setting = load_setting(experiment)
    start = setting.start_tick(experiment.start_after[0])
    wanted = set(np.linspace(start, setting.feed.ticks, times + 1).round().astype(int)[1:].tolist())
    method = contender("phdstream").make(setting.domain, epsilon, Simulation(experiment.seeds[0]))
    kept = []
    for moment in setting.feed.moments(start, 1):
        release = method.update(moment.inserts, moment.deletes)
        if moment.tick in wanted and moment.live is not None:
            cells = setting.domain.bounds(release.leaves)
            kept.append(Snapshot(moment.tick, moment.live, release.sample(), cells))
    return kept


def write_scatter(
    experiment: Experiment, out: Path, progress: Callable[[int, int | None], None] = lambda done, total: None
) -> Path:
    """Write ``scatter.png`` and ``scatter.svg`` for an experiment in the plane, and return the former."""
    check_plotting()
    if load_setting(experiment).domain.dimension != 2:
        raise InputError("scatter plots are of points in the plane: the domain must have two dimensions.")
    runs = {}
    for i, epsilon in enumerate(experiment.epsilons):
        progress(i, len(experiment.epsilons))
        runs[epsilon] = snapshots(experiment, epsilon)
    picture = _draw(runs, DO_NOT_PUBLISH if experiment.private else "")
    mode = 0o600 if experiment.private else 0o644
    try:
        out.mkdir(parents=True, exist_ok=True)
        replace_file(out / "scatter.svg", lambda file: file.write(picture.svg), mode=mode)
        replace_file(out / "scatter.png", lambda file: file.write(picture.png), mode=mode)
    except OSError as error:
        raise InputError(f"results cannot be written to {out} ({error.strerror}): choose another folder.") from None
    return out / "scatter.png"


def _draw(runs: dict[float, list[Snapshot]], label: str) -> Picture:
    """Draw the true points with the first ε's partition, then a row for each ε."""
    first = next(iter(runs.values()))
    figure, axes = subplots(1 + len(runs), len(first), panel=(3.2, 3.2))
    for column, snapshot in enumerate(first):
        _points(axes[0, column], snapshot.live, snapshot.cells, "#444444")
        axes[0, column].set_title(f"tick {snapshot.tick}", fontsize=11)
    axes[0, 0].set_ylabel("true" + " (private)" * bool(label))
    for row, (epsilon, run) in enumerate(runs.items(), start=1):
        axes[row, 0].set_ylabel(f"synthetic, ε = {epsilon:g}")
        for column, snapshot in enumerate(run):
            _points(axes[row, column], snapshot.synthetic, snapshot.cells, "#0b62c4")
    if label:
        figure.supxlabel(label, color="#a4262c", fontsize=9)
    return picture_of(figure)


def _points(axis: Any, points: Floats, cells: Floats, colour: str) -> None:
    from matplotlib.collections import PolyCollection

    corners: Any = cells[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
    outlines = PolyCollection(corners, facecolors="none", edgecolors="#00000060", linewidths=0.3, rasterized=True)
    axis.add_collection(outlines)
    axis.scatter(points[:, 0], points[:, 1], s=0.4, c=colour, linewidths=0, rasterized=True)
    low, high = cells[:, :2].min(axis=0), cells[:, 2:].max(axis=0)
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
