"""True and synthetic points side by side, as small PNG files. For public data: true points are private otherwise."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import shapely

import phdstream as phd
from phdstream.arrays import Floats

__all__ = ["Panel", "draw_maps"]

_COLOURS = ("#444444", "#0b62c4")
_SHADES = 24
_WIDTH, _DPI = 3.5, 110


class Panel(NamedTuple):
    """A window of the map: west, south, east, north."""

    title: str
    window: tuple[float, float, float, float]


def draw_maps(path: Path, domain: phd.Domain, kinds: dict[str, Floats], panels: list[Panel]) -> int:
    """Draw a row of windows, each with one map for each kind of points; return the size of the file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tall = [
        _stretch(panel) * (panel.window[3] - panel.window[1]) / (panel.window[2] - panel.window[0]) for panel in panels
    ]
    figure = Figure(figsize=(_WIDTH * len(kinds), sum(tall) * _WIDTH + 0.3 * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), len(kinds), squeeze=False, height_ratios=tall)
    for row, panel in zip(axes, panels, strict=True):
        for axis, (kind, points), colour in zip(row, kinds.items(), _COLOURS, strict=True):
            _draw(axis, panel, points, colour)
            _outline(axis, domain, panel)
            axis.set_title(f"{panel.title}: {kind}", fontsize=9)
    return _write(figure, path)


def _stretch(panel: Panel) -> float:
    return float(1 / np.cos(np.radians((panel.window[1] + panel.window[3]) / 2)))


def _draw(axis: Any, panel: Panel, points: Floats, colour: str) -> None:
    """Draw each pixel the darker the more points it holds: one can be seen, and thousands do not blot out."""
    from matplotlib.colors import LinearSegmentedColormap

    west, south, east, north = panel.window
    columns = round(_WIDTH * _DPI)
    rows = round(columns * _stretch(panel) * (north - south) / (east - west))
    counts, _, _ = np.histogram2d(points[:, 1], points[:, 0], (rows, columns), ((south, north), (west, east)))
    shade = np.where(counts > 0, 0.25 + 0.75 * np.minimum(np.log1p(counts) / np.log1p(max(counts.max(), 30) / 4), 1), 0)
    map_ = LinearSegmentedColormap.from_list("", ["white", colour])
    axis.imshow(
        shade, extent=(west, east, south, north), origin="lower", cmap=map_, vmin=0, vmax=1, interpolation="none"
    )
    axis.set(xlim=(west, east), ylim=(south, north), xticks=[], yticks=[], aspect=_stretch(panel))


def _outline(axis: Any, domain: phd.Domain, panel: Panel) -> None:
    from matplotlib.collections import LineCollection

    if not isinstance(domain, phd.Region):
        return
    edge = shapely.clip_by_rect(shapely.boundary(domain.outline()), *panel.window)
    lines: Any = [shapely.get_coordinates(line) for line in shapely.get_parts(edge)]
    axis.add_collection(LineCollection(lines, colors="#d08770", linewidths=0.5))


def _write(figure: Any, path: Path) -> int:
    """Write a figure as PNG with a palette."""
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=_DPI)
    Image.open(drawn).convert("RGB").quantize(_SHADES).save(path, optimize=True)
    return path.stat().st_size
