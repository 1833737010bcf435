"""Maps of the true data: where it lay in its domain, over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

from phdstream.arrays import Floats
from phdstream.domains import ROOT, Domain
from phdstream.domains.network import Network
from phdstream.domains.region import Region
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.pictures import Picture, picture_of, say_private, subplots
from phdstream.evaluation.setting import Setting, load_setting

__all__ = ["TIMES", "chosen_ticks", "draw_data", "draw_points", "map_panels"]

TIMES = 4
"""How many moments a row of maps shows."""
_EARTH = 90.0


def draw_data(experiment: Experiment) -> Picture:
    """Draw the true points at some moments, over the geometry of their domain."""
    setting = load_setting(experiment)
    start = setting.start_tick(experiment.start_after[0])
    wanted = chosen_ticks(start, setting.truth.ticks)
    live = {m.tick: m.live for m in setting.truth.moments(start, 1) if m.tick in wanted and m.live is not None}
    figure, axes = map_panels(setting, 1, len(live))
    for axis, (tick, points) in zip(axes[0], live.items(), strict=True):
        draw_points(axis, points, "#a4262c")
        axis.set_title(f"tick {tick}: {len(points):,} points", fontsize=10)
    return picture_of(say_private(figure, experiment.label))


def chosen_ticks(start: int, last: int, times: int = TIMES) -> set[int]:
    """Return some ticks after the start, evenly spaced, the last included.

    >>> sorted(chosen_ticks(4, 18, 3))
    [9, 13, 18]
    """
    return {int(tick) for tick in np.linspace(start, last, times + 1).round()[1:]}


def map_panels(setting: Setting, rows: int, columns: int) -> tuple[Any, Any]:
    """Return a figure of maps of the domain, its outline drawn, degrees scaled to equal lengths."""
    west, south, east, north = setting.domain.bounds(np.array([ROOT]))[0]
    degrees = isinstance(setting.domain, Region | Network) and abs(south) <= _EARTH and abs(north) <= _EARTH
    aspect = 1 / np.cos(np.radians((south + north) / 2)) if degrees else 1.0
    tall = aspect * (north - south) / (east - west)
    height = float(np.clip(3.2 * tall, 1.1, 4.5))
    figure, axes = subplots(rows, columns, panel=(min(3.2, height / tall + 0.1), height))
    for axis in axes.flat:
        _outline(axis, setting.domain)
        axis.set(xlim=(west, east), ylim=(south, north), xticks=[], yticks=[], aspect=aspect)
    return figure, axes


def draw_points(axis: Any, points: Floats, colour: str) -> None:
    """Draw points as dots, the smaller the more there are."""
    size = float(np.clip(20_000 / max(1, len(points)), 0.15, 1.0))
    axis.scatter(points[:, 0], points[:, 1], s=size, c=colour, linewidths=0, rasterized=True)


def _outline(axis: Any, domain: Domain) -> None:
    from matplotlib.collections import LineCollection

    if isinstance(domain, Region | Network):
        shape = domain.outline() if isinstance(domain, Region) else domain.boundary()
        parts = shapely.get_parts(shapely.boundary(shape) if isinstance(domain, Region) else shape)
        lines: list[Floats] = [shapely.get_coordinates(line) for line in shapely.get_parts(parts)]
        axis.add_collection(LineCollection(lines, colors="#b5b5b5", linewidths=0.4, rasterized=True, zorder=0))
