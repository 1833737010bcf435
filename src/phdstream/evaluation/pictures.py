"""Pictures as PNG and SVG: what all figures share. Needs matplotlib, which is loaded only when something is drawn."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from phdstream.errors import InputError
from phdstream.streams.state import replace_file

__all__ = ["Picture", "check_plotting", "picture_of", "say_private", "subplots", "write_files", "write_picture"]


@dataclass(frozen=True)
class Picture:
    """A figure in both formats."""

    png: bytes
    svg: bytes


def check_plotting() -> None:
    """Say how to install matplotlib if it is not there."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        raise InputError(
            "the report is drawn with matplotlib: install it with  pip install 'phdstream[plot]'."
        ) from None


def subplots(
    rows: int, columns: int, *, sharey: bool = True, panel: tuple[float, float] = (4.4, 3.2)
) -> tuple[Any, Any]:
    """Return a figure and its axes (rows, columns), without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(h_pad=0.08)  # so that a title does not touch the axis above
    figure = Figure(figsize=(max(7.0, panel[0] * columns), 1.1 + panel[1] * rows), layout=layout)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, sharex="row" if sharey else False, sharey=sharey)


def say_private(figure: Any, label: str) -> Any:
    """Return the figure with a label below it, in red, if there is one."""
    if label:
        figure.supxlabel(label, color="#a4262c", fontsize=9)
    return figure


def picture_of(figure: Any) -> Picture:
    """Return a figure in both formats."""
    files = []
    for kind in ("png", "svg"):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=100, metadata={"Date": None} if kind == "svg" else None)
        files.append(buffer.getvalue())
    return Picture(*files)


def write_picture(out: Path, name: str, picture: Picture, private: bool) -> Path:
    """Write a figure in both formats, and return the PNG; one of true events only its owner can read."""
    write_files({out / f"{name}.svg": picture.svg, out / f"{name}.png": picture.png}, private)
    return out / f"{name}.png"


def write_files(files: dict[Path, bytes], private: bool) -> None:
    """Write files whole; what comes from true events only its owner can read."""
    for path, content in files.items():
        replace_file(path, partial(_put, content), mode=0o600 if private else 0o644)


def _put(content: bytes, file: IO[bytes]) -> None:
    file.write(content)
