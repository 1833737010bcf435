"""The pictures of the custodian's report, as PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from phdstream.errors import InputError
from phdstream.release import Release
from phdstream.release.plots import draw_lines, draw_release

__all__ = ["lines_png", "maps_png"]


def maps_png(release: Release) -> bytes:
    """Draw where points are, and beside it how uncertain their counts are."""
    figure, axes = _figure(2, (12, 5.2))
    draw_release(release, "points", axes[0])
    draw_release(release, "uncertainty", axes[1])
    return _png(figure)


def lines_png(times: Sequence[Any], ends: dict[str, Any], names: Sequence[str], label: str) -> bytes:
    """Draw counts over time with their intervals."""
    figure, axes = _figure(1, (10, 3.6))
    draw_lines(times, ends, names, label, axes[0])
    return _png(figure)


def _figure(columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("the private report draws with matplotlib: pip install 'phdstream[plot]'.") from None
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
