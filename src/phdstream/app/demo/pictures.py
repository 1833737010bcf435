"""The demonstration's pictures, as PNG."""

from __future__ import annotations

import io
from typing import Any

from phdstream.app.demo.comparison import OURS, Run
from phdstream.arrays import Floats
from phdstream.release import Release

__all__ = ["draw_city", "draw_errors", "draw_snapshots"]

_STYLES = [("#111111", "-", "o"), ("#0b62c4", "-", "D"), ("#6b6b6b", "--", "s"), ("#d1690e", ":", "^")]


def draw_snapshots(run: Run) -> bytes:
    """Draw true points above and synthetic points below, at the times kept, with the partition."""
    figure, axes = _subplots(2, len(run.snapshots), (13, 6.9))
    for column, (live, release) in enumerate(run.snapshots):
        _draw_points(axes[0, column], live, release, "#444444")
        _draw_points(axes[1, column], release.sample(), release, "#0b62c4")
        axes[0, column].set_title(f"tick {release.tick}\n{len(live):,} true points", fontsize=11)
        axes[1, column].set_title(f"{release.total:,.0f} synthetic points, {release.leaves.size:,} cells", fontsize=11)
    axes[0, 0].set_ylabel("true (private)", fontsize=11)
    axes[1, 0].set_ylabel(f"synthetic, ε = {run.epsilon:g}", fontsize=11)
    return _png(figure)


def _draw_points(axis: Any, points: Floats, release: Release, colour: str) -> None:
    from matplotlib.collections import PolyCollection

    x0, y0, x1, y1 = release.domain.bounds(release.leaves).T
    corners = [[(a, b), (c, b), (c, d), (a, d)] for a, b, c, d in zip(x0, y0, x1, y1, strict=True)]
    axis.add_collection(PolyCollection(corners, facecolors="none", edgecolors="#00000060", linewidths=0.35))
    axis.scatter(points[:, 0], points[:, 1], s=0.35, c=colour, linewidths=0, rasterized=True)
    axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[], aspect="equal")


def draw_city(live: Floats, release: Release) -> bytes:
    """Draw true pickups on the left and synthetic points on the right, on the same frame."""
    figure, axes = _subplots(1, 2, (9, 7))
    west, south, east, north = release.domain.bounds(release.domain.first_nodes[:1])[0]
    shown = [("true (PRIVATE)", live, "#8f1313"), ("published: synthetic", release.sample(), "#0b62c4")]
    for axis, (title, points, colour) in zip(axes[0], shown, strict=True):
        axis.scatter(points[:, 0], points[:, 1], s=0.8, c=colour, linewidths=0, rasterized=True)
        axis.set(xlim=(west, east), ylim=(south, north), xticks=[], yticks=[], aspect=1.32)
        axis.set_title(f"{title}, {len(points):,} points", fontsize=11)
    return _png(figure)


def draw_errors(runs: list[Run]) -> bytes:
    """Draw each method's error over time, one panel for each ε."""
    figure, axes = _subplots(1, len(runs), (13, 4.3), sharey=True)
    for axis, run in zip(axes[0], runs, strict=True):
        for (name, errors), (colour, line, marker) in zip(run.errors.items(), _STYLES, strict=True):
            width = 2.4 if name == OURS else 1.5
            axis.plot(run.ticks, errors, label=name, color=colour, linestyle=line, marker=marker, ms=4, lw=width)
        axis.set(title=f"ε = {run.epsilon:g}", xlabel="tick", yscale="log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
        axis.grid(alpha=0.25, which="both")
    axes[0, 0].set_ylabel("average relative error, small queries")
    axes[0, 0].legend(frameon=False, fontsize=9)
    return _png(figure)


def _subplots(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
