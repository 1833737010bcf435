"""Releases drawn with matplotlib: points, cells, how uncertain counts are, what changed. Public; extra ``plot``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import shapely

from phdstream.arrays import Floats
from phdstream.domains import ROOT
from phdstream.domains.resolution import ground_units
from phdstream.errors import InputError, shown
from phdstream.release.maps import cell_shapes, check_planar, check_released

if TYPE_CHECKING:
    from phdstream.release.release import Release

__all__ = ["KINDS", "draw_lines", "draw_release", "draw_ticks", "matplotlib_axes"]

_Scale: TypeAlias = tuple[Any, str, dict[float, str]]
"""What was coloured, what its colours mean, and what stands at their scale."""
KINDS = ("points", "cells", "uncertainty", "changes")
_COME, _GONE, _POINT, _LAND, _EDGE = "#0b62c4", "#d1690e", "#0b62c4", "#eeeeea", "#99999980"
_SQUARES = 32
"""Squares along the shorter side of the map of uncertainty."""
_MOST_ROWS, _MOST_MAPS, _FEW_TICKS = 4, 24, 8
_MANY = 4000
"""Cells from which on their edges would hide them."""


def matplotlib_axes(number: int = 1, columns: int = 1, size: tuple[float, float] = (6.4, 5.6)) -> Any:
    """Return a new figure's axes; ``size`` is that of each."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InputError("plots are drawn with matplotlib: install it with  pip install 'phdstream[plot]'.") from None
    rows = math.ceil(number / columns)
    wide, tall = size
    _, axes = pyplot.subplots(rows, columns, squeeze=False, layout="constrained", figsize=(wide * columns, tall * rows))
    for unused in axes.ravel()[number:]:
        unused.set_axis_off()
    return axes.ravel()[:number]


def draw_release(release: Release, what: str = "points", axes: Any = None) -> Any:
    """Draw a release, and return the axes."""
    _check(release, what)
    axes, release = matplotlib_axes()[0] if axes is None else axes, release.places()
    _bar(_draw(release, what, axes, None), axes)
    return axes


def draw_ticks(releases: Sequence[Release], labels: Sequence[str], what: str) -> Any:
    """Draw some ticks side by side, with one size of points and one scale of colours, and return their axes."""
    if not 1 <= len(releases) <= _MOST_MAPS:
        raise InputError(f"1 to {_MOST_MAPS} ticks can be drawn side by side, not {len(releases)}: take some of them.")
    for release in releases:
        _check(release, what)
    releases = [release.places() for release in releases]
    axes = matplotlib_axes(len(releases), min(len(releases), _MOST_ROWS), (3.4, 3.2))
    measured = {"cells": lambda one: float(_density(one).max()), "points": lambda one: float(one.points.sum())}
    most = max(map(measured[what], releases)) if what in measured else None
    for release, label, one in zip(releases, labels, axes, strict=True):
        scale = _draw(release, what, one, most)
        one.set_title(f"{label}: about {release.total:,.0f}", fontsize=10)
    _bar(scale, axes)
    return axes


def _check(release: Release, what: str) -> None:
    if not isinstance(what, str) or what not in KINDS:
        raise InputError(f"a plot shows {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {shown(what)}.")
    check_planar(release.domain)
    check_released(release)


def _draw(release: Release, what: str, axes: Any, most: float | None) -> _Scale | None:
    """Draw a release; ``most`` is the number of points, or the density, that the scale is for."""
    draw = {"points": _points, "cells": _cells, "uncertainty": _uncertainty, "changes": _changes}[what]
    scale = draw(release, axes, most)
    _frame(release, axes)
    return scale


def _bar(scale: _Scale | None, axes: Any) -> None:
    """Say beside some axes what their colours mean."""
    if scale is None:
        return
    drawn, label, marks = scale
    every = np.atleast_1d(axes)
    bar = every[0].figure.colorbar(drawn, ax=every.tolist(), label=label, shrink=0.8)
    if marks:
        bar.set_ticks(list(marks), labels=list(marks.values()))


def draw_lines(
    times: Sequence[Any], ends: dict[str, Floats], names: Sequence[str], label: str, axes: Any = None
) -> Any:
    """Draw counts over time (ticks by areas) with their intervals, a line for each area, and return the axes."""
    axes = matplotlib_axes(size=(8, 4))[0] if axes is None else axes
    for i, name in enumerate(names):
        (line,) = axes.plot(times, ends["value"][:, i], label=name, lw=1.6)
        axes.fill_between(times, ends["low"][:, i], ends["high"][:, i], color=line.get_color(), alpha=0.2, lw=0)
    axes.set(xlabel=label, ylabel="points, with 95% intervals", ylim=(0, None))
    if len(times) <= _FEW_TICKS:  # mark the ticks themselves; between two days there is nothing
        named = [f"{time:%Y-%m-%d}" for time in times] if label == "day" else None
        axes.set_xticks(list(times), labels=named)
    axes.tick_params(axis="x", rotation=30)
    axes.legend(frameon=False)
    return axes


def _points(release: Release, axes: Any, most: float | None) -> None:
    _land(release, axes)
    points = release.sample()
    axes.scatter(*points.T, s=_dot(most or len(points)), c=_POINT, linewidths=0, alpha=0.6, rasterized=True)
    axes.set_title(f"Tick {release.tick}: {len(points):,} synthetic points", fontsize=11)


def _changes(release: Release, axes: Any, _: float | None) -> None:
    _land(release, axes)
    changes = release.changes()
    for points, colour, label in ((changes.deletes, _GONE, "gone"), (changes.inserts, _COME, "new")):
        size = _dot(len(changes.deletes) + len(changes.inserts))
        axes.scatter(*points.T, s=size, c=colour, linewidths=0, alpha=0.6, label=f"{len(points):,} {label}")
    axes.legend(loc="upper right", markerscale=3, fontsize=9)
    axes.set_title(f"Tick {release.tick}: synthetic points since the tick before", fontsize=11)


def _cells(release: Release, axes: Any, most: float | None) -> _Scale:
    from matplotlib.colors import LogNorm

    density = _density(release)
    most = max(float(density.max()) if most is None else most, 1e-300)
    shapes = cell_shapes(release.domain, release.leaves)
    norm, width = LogNorm(most / 1e4, most, clip=True), 0.2 if shapes.size < _MANY else 0
    drawn = _collection(axes, shapes, density, norm, "Blues", edgecolors=_EDGE, linewidths=width)
    axes.set_title(
        f"Tick {release.tick}: {release.leaves.size:,} cells, about {release.total:,.0f} points", fontsize=11
    )
    return drawn, f"points per {_area_name(release)}", {}


def _density(release: Release) -> Floats:
    """Return the points of each cell by its area (in km² where units are known)."""
    nodes, order = release.leaves, release._leaf_order
    unit = _ground(release)
    area = release.domain.measure(nodes) if unit is None else shapely.area(cell_shapes(release.domain, nodes)) * unit
    density: Floats = release.estimate.count[order] / np.maximum(area, 1e-300)
    return density


def _ground(release: Release) -> float | None:
    """Return the square kilometres of a unit of area in users' coordinates, if that is known and cells have area."""
    units = _units(release)
    lines = shapely.area(release.domain.geometry(np.array([ROOT])))[0] == 0
    return None if units is None or lines else float(units.prod() / 1e6)


def _area_name(release: Release) -> str:
    return "unit of measure" if _ground(release) is None else "km²"


def _uncertainty(release: Release, axes: Any, _: float | None) -> _Scale:
    """Draw half the interval of each square's count, by the count itself; squares with less than a point stay blank."""
    from matplotlib.colors import Normalize

    _land(release, axes)
    squares = _squares(release)
    found = release.count(squares)
    margin = (found.high - found.low) / 2 / np.maximum(found.value, 1)
    there = found.value >= 1
    shapes = shapely.box(*squares[there].T)
    drawn = _collection(axes, shapes, margin[there], Normalize(0, 1, clip=True), "viridis_r", linewidths=0)
    axes.set_title(f"Tick {release.tick}: how uncertain the count of each square is", fontsize=11)
    return (
        drawn,
        "half the 95% interval, by the count",
        {0: "0", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1: "100% or more"},
    )


def _squares(release: Release) -> Floats:
    """Return the squares of a grid over the domain, as rectangles to count."""
    west, south, east, north = release.domain.bounds(np.array([ROOT]))[0]
    wide, tall = _extent(release)
    columns, rows = (int(np.clip(round(_SQUARES * side / min(wide, tall)), 1, 3 * _SQUARES)) for side in (wide, tall))
    x, y = np.linspace(west, east, columns + 1), np.linspace(south, north, rows + 1)
    left, bottom = (side.ravel() for side in np.meshgrid(x[:-1], y[:-1]))
    right, top = (side.ravel() for side in np.meshgrid(x[1:], y[1:]))
    return np.column_stack([left, bottom, right, top])


def _collection(axes: Any, shapes: Any, values: Floats, norm: Any, colours: str, **style: Any) -> Any:
    """Draw polygons, or lines, by their values."""
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import PathPatch

    if not shapely.area(shapes).any():
        parts, owner = shapely.get_parts(shapes, return_index=True)
        drawn: Any = LineCollection([shapely.get_coordinates(part) for part in parts], linewidths=1.2)
    else:
        parts, owner = shapely.get_parts(shapes, return_index=True)
        polygon = shapely.get_type_id(parts) == 3
        parts, owner = parts[polygon], owner[polygon]
        drawn = PatchCollection([PathPatch(_path(part)) for part in parts], **style)
    drawn.set(array=values[owner], norm=norm, cmap=colours)
    axes.add_collection(drawn)
    return drawn


def _path(polygon: Any) -> Any:
    from matplotlib.path import Path

    rings = [polygon.exterior, *polygon.interiors]
    return Path.make_compound_path(*(Path(np.asarray(ring.coords)[:, :2], closed=True) for ring in rings))


def _land(release: Release, axes: Any) -> None:
    """Draw where points can be, if it is more than a rectangle."""
    own = getattr(release.domain, "outline", None) or getattr(release.domain, "boundary", None)
    if own is None:
        return
    from matplotlib.patches import PathPatch

    for part in shapely.get_parts(own()):
        if part.geom_type == "Polygon":
            axes.add_patch(PathPatch(_path(part), facecolor=_LAND, edgecolor="#999999", linewidth=0.6))
        else:
            axes.plot(*shapely.get_coordinates(part).T, color="#cccccc", linewidth=0.6, zorder=0)


def _frame(release: Release, axes: Any) -> None:
    west, south, east, north = release.domain.bounds(np.array([ROOT]))[0]
    units = _units(release)
    axes.set(xlim=(west, east), ylim=(south, north), xlabel=release.domain.names[0], ylabel=release.domain.names[1])
    axes.set_aspect(1.0 if units is None else float(units[1] / units[0]))
    axes.ticklabel_format(useOffset=False)
    axes.locator_params(nbins=4)
    if "not private" in release.privacy.lower():
        axes.text(0.01, 0.01, release.privacy, transform=axes.transAxes, fontsize=7, color="#8f1313")


def _units(release: Release) -> Floats | None:
    low, high = release.domain.bounds(np.array([ROOT]))[0].reshape(2, 2)
    return ground_units(release.domain.crs, release.domain.names, low, high)


def _extent(release: Release) -> Floats:
    low, high = release.domain.bounds(np.array([ROOT]))[0].reshape(2, 2)
    units = _units(release)
    extent: Floats = (high - low) * (1 if units is None else units)
    return extent


def _dot(number: float) -> float:
    """Return how large to draw each of some points."""
    return float(np.clip(20_000 / max(number, 1), 0.4, 8))
