"""Figures as PNG and SVG: error over time, one panel for each ε and t0; counters; what all figures share."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from phdstream.arrays import Floats
from phdstream.errors import InputError
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.methods import METHODS
from phdstream.evaluation.summary import Curve, Key
from phdstream.streams.state import replace_file

__all__ = [
    "Picture",
    "check_plotting",
    "clock_label",
    "draw_counters",
    "draw_errors",
    "picture_of",
    "say_private",
    "subplots",
    "write_files",
    "write_picture",
]

_STYLES = {  # told apart in grey too: by line and marker
    "tracking": ("#111111", "-", "o"),
    "tracking-insert-only": ("#111111", "-", "o"),
    "tracking-window-30": ("#111111", "--", "o"),
    "oracle": ("#9a9a9a", "-.", "s"),
    "phdstream": ("#0b62c4", "-", "o"),
    "phdstream-block": ("#5a9bd8", "--", "v"),
    "phdstream-4": ("#0a7d62", "-.", "D"),
    "baseline-1": ("#6b6b6b", "--", "s"),
    "baseline-2": ("#a4262c", ":", "x"),
    "baseline-3": ("#d1690e", ":", "^"),
    "phdstream-record": ("#7a3e9d", "-.", "P"),
    "phdstream-4-ticks": ("#5a9bd8", ":", ">"),
    "phdstream-published-not-private": ("#7a3e9d", "--", "*"),
}
_OTHERS = ("#7a3e9d", "#0a7d62", "#a4262c", "#d1690e", "#444444")
_COUNTER_STYLES = (("#0b62c4", "-", 1.6), ("#d1690e", "--", 1.5), ("#9a9a9a", ":", 0.8))


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


def draw_errors(experiment: Experiment, size: str, lines: dict[Key, Curve], label: str = "") -> Picture:
    """Draw every method's error over time for one size of query: a row for each t0, a column for each ε."""
    rows, columns = experiment.start_after, experiment.epsilons
    figure, axes = subplots(len(rows), len(columns))
    for i, t0 in enumerate(rows):
        for j, epsilon in enumerate(columns):
            _panel(axes[i, j], experiment, {m: lines.get((size, epsilon, t0, m)) for m in experiment.methods})
            axes[i, j].set_title(f"ε = {epsilon:g}, t0 = {t0:g}", fontsize=11)
        axes[i, 0].set_ylabel(f"average relative error,\n{size} queries")
    for axis in axes[-1]:
        axis.set_xlabel(clock_label(experiment))
    handles, names = axes[0, 0].get_legend_handles_labels()
    across = 3 if axes.shape[1] > 1 else 2  # three do not fit above a single panel
    figure.legend(handles, names, loc="outside upper center", ncols=across, frameon=False, fontsize=9)
    return picture_of(say_private(figure, label))


def draw_counters(curves: dict[tuple[int, str], Floats], label: str) -> Picture:
    """Draw the error of counters over time, one panel for each horizon."""
    horizons = list(dict.fromkeys(horizon for horizon, _ in curves))
    figure, axes = subplots(1, len(horizons), sharey=False)
    for axis, horizon in zip(axes[0], horizons, strict=True):
        named = {name: error for (of, name), error in curves.items() if of == horizon}
        for (name, error), (colour, dash, width) in zip(named.items(), _COUNTER_STYLES, strict=True):
            style = {"color": colour, "linestyle": dash, "lw": width, "zorder": 1 + width}
            axis.plot(range(1, horizon + 1), error, label=name, **style)
        axis.set(title=f"horizon {horizon:,}", xlabel="tick")
        axis.grid(alpha=0.25)
    axes[0, 0].set_ylabel(label)
    axes[0, 0].legend(frameon=False)
    return picture_of(figure)


def clock_label(experiment: Experiment) -> str:
    """Return the label of an axis of time: ticks, and how long one is."""
    return f"tick ({experiment.data['every']})" if "every" in experiment.data else "tick"


def _style(method: str) -> tuple[str, str, str]:
    """Return a method's colour, line and marker; one without its own gets them by its place among the methods."""
    place = list(METHODS).index(method)
    other = (_OTHERS[place % len(_OTHERS)], ("-.", "--", ":")[place % 3], "Pv>D*^<"[place % 7])
    return _STYLES.get(method, other)


def _panel(axis: Any, experiment: Experiment, lines: dict[str, Curve | None]) -> None:
    from matplotlib.ticker import LogLocator

    for method, line in lines.items():
        if line is None:
            continue
        colour, dash, marker = _style(method)
        name = METHODS[method].label
        axis.plot(line.tick, line.mean, label=name, color=colour, linestyle=dash, marker=marker, ms=3.5, lw=1.6)
        if len(experiment.seeds) > 1:
            axis.fill_between(line.tick, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
    axis.set(yscale="log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter("")
    axis.grid(alpha=0.25)


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
