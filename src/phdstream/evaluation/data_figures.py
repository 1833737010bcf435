"""Figures of the true data alone: how much there was over time, and where it lay in its domain. Private."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

from phdstream.arrays import Floats
from phdstream.domains import ROOT, Domain
from phdstream.domains.network import Network
from phdstream.domains.region import Region
from phdstream.evaluation.cells import DO_NOT_PUBLISH
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.figures import Picture, clock_label, picture_of, say_private, subplots
from phdstream.evaluation.setting import Setting, load_setting

__all__ = ["TIMES", "chosen_ticks", "draw_counts", "draw_data", "draw_points", "map_panels"]

TIMES = 4
"""How many moments a row of maps shows."""
_EARTH = 90.0
_PLATE = {"color": "white", "alpha": 0.8, "pad": 0.5}


def draw_counts(experiment: Experiment) -> Picture:
    """Draw, over all ticks, how many points came, how many went and how many are there, with the starts marked."""
    setting = load_setting(experiment)
    come, gone, live = setting.feed.totals()
    figure, axes = subplots(1, 1, panel=(6.4, 3.6))
    axis, ticks = axes[0, 0], np.arange(live.size)
    if gone[-1]:
        axis.plot(ticks, come, color="#0b62c4", linestyle="--", label="inserted so far")
        axis.plot(ticks, gone, color="#d1690e", linestyle=":", lw=2, label="deleted so far")
    axis.plot(ticks, live, color="#1b1f24", lw=1.8, label="there now" if gone[-1] else "inserted so far, all there now")
    for t0 in experiment.start_after:
        _mark_start(axis, setting.start_tick(t0), f"t0 = {t0:g}", marked=t0 == experiment.start_after[0])
    axis.set(ylabel="points", xlabel=clock_label(experiment), ylim=(0, None), xlim=(0, live.size - 1))
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.grid(alpha=0.25)
    axis.legend(frameon=False, loc="upper left")
    return picture_of(say_private(figure, DO_NOT_PUBLISH if experiment.private else ""))


def _mark_start(axis: Any, tick: int, name: str, marked: bool) -> None:
    axis.axvline(tick, color="#8a8a8a", lw=0.9, linestyle="-" if marked else ":")
    axis.text(tick, 0.5, f" {name}", transform=axis.get_xaxis_transform(), rotation=90, fontsize=8, bbox=_PLATE)


def draw_data(experiment: Experiment) -> Picture:
    """Draw the true points at some moments, over the geometry of their domain."""
    setting = load_setting(experiment)
    start = setting.start_tick(experiment.start_after[0])
    wanted = chosen_ticks(start, setting.feed.ticks)
    live = {m.tick: m.live for m in setting.feed.moments(start, 1) if m.tick in wanted and m.live is not None}
    figure, axes = map_panels(setting, 1, len(live))
    for axis, (tick, points) in zip(axes[0], live.items(), strict=True):
        draw_points(axis, points, "#a4262c")
        axis.set_title(f"tick {tick}: {len(points):,} points", fontsize=10)
    return picture_of(say_private(figure, DO_NOT_PUBLISH if experiment.private else ""))


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
