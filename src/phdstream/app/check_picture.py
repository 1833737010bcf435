"""A private picture of the points on the domain: are they where they should be?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import shapely

from phdstream.domains import ROOT, Domain
from phdstream.errors import InputError
from phdstream.release.maps import cell_shapes
from phdstream.streams.durable.folders import replace_file

__all__ = ["draw_points"]

_INSIDE, _OUTSIDE, _LAND = "#1f6f8b", "#d1495b", "#eeeeea"
_FAR = 3.0
"""Points farther away than so many times the domain's size are not shown: they would make it a dot."""


def draw_points(domain: Domain, sample: dict[bool, list[Any]], path: Path) -> Path | None:
    """Draw some of the points inside and outside a domain in the plane; None if it is of another kind.

    The file can be read by its owner only.
    """
    if domain.dimension != 2 or not any(len(part) for parts in sample.values() for part in parts):
        return None
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a picture needs matplotlib: pip install 'phdstream[plot]', or say --no-picture.") from None
    figure = Figure(figsize=(8, 7), layout="constrained")
    axes = figure.add_subplot()
    box = _draw_domain(axes, domain)
    for which, colour, label in ((True, _INSIDE, "inside"), (False, _OUTSIDE, "outside: not counted")):
        points = np.concatenate(sample[which]) if sample[which] else np.zeros((0, 2))
        near = _near(points, box)
        far = len(points) - int(near.sum())
        note = f"{label}{' (some too far away to show)' if far and not which else ''}"
        axes.scatter(points[near, 0], points[near, 1], s=3, c=colour, alpha=0.5, linewidths=0, label=note)
    axes.set(xlabel=domain.names[0], ylabel=domain.names[1], title="PRIVATE: true points, for the operator only")
    axes.legend(loc="upper right", markerscale=4)
    axes.set_aspect("auto")
    try:
        replace_file(path, lambda file: figure.savefig(file, format="png", dpi=130))
    except OSError as error:
        raise InputError(f"the picture {path} cannot be written: {error.strerror or type(error).__name__}.") from None
    return path


def _near(points: Any, box: tuple[float, float, float, float]) -> Any:
    west, south, east, north = box
    size = np.array([east - west, north - south])
    low, high = np.array([west, south]) - _FAR * size, np.array([east, north]) + _FAR * size
    with np.errstate(invalid="ignore"):
        return np.all((points >= low) & (points <= high), axis=1)


def _draw_domain(axes: Any, domain: Domain) -> tuple[float, float, float, float]:
    """Draw where points can be, and return its bounds."""
    (shape,) = cell_shapes(domain, np.array([ROOT]))
    for part in shapely.get_parts(shape):
        if part.geom_type == "Polygon":
            axes.fill(*np.asarray(part.exterior.coords)[:, :2].T, facecolor=_LAND, edgecolor="#999999", linewidth=0.8)
        else:
            axes.plot(*np.asarray(part.coords)[:, :2].T, color="#bbbbbb", linewidth=0.6)
    west, south, east, north = shapely.bounds(shape)
    return float(west), float(south), float(east), float(north)
