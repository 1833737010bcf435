"""The figures of a report: metrics over time, one panel for each ε and t0; how many points there were. Private."""

from __future__ import annotations

from typing import Any

import numpy as np

from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.pictures import Picture, picture_of, say_private, subplots
from phdstream.evaluation.setting import load_setting
from phdstream.evaluation.summary import Curve, Key

__all__ = ["draw_counts", "draw_metric"]

_OTHERS = ("#7a3e9d", "#0a7d62", "#a4262c", "#d1690e", "#444444")
_PLATE = {"color": "white", "alpha": 0.8, "pad": 0.5}


def draw_metric(
    experiment: Experiment, size: str, lines: dict[Key, Curve], name: str, nothing: float | None
) -> Picture:
    """Draw every method's metric over time: a row for each t0, a column for each ε; a line where publishing nothing
    always is.
    """
    rows, columns = experiment.start_after, experiment.epsilons
    figure, axes = subplots(len(rows), len(columns))
    for i, t0 in enumerate(rows):
        for j, epsilon in enumerate(columns):
            _panel(axes[i, j], experiment, {m: lines.get((size, epsilon, t0, m)) for m in experiment.methods})
            if nothing is not None:
                axes[i, j].axhline(nothing, color="#b8860b", lw=0.9)
            axes[i, j].set_title(f"ε = {epsilon:g}, t0 = {t0:g}", fontsize=11)
        axes[i, 0].set_ylabel(name)
    for axis in axes[-1]:
        axis.set_xlabel(_clock_label(experiment))
    handles, names = axes[0, 0].get_legend_handles_labels()
    across = 3 if axes.shape[1] > 2 else 2  # three do not fit above fewer panels
    figure.legend(handles, names, loc="outside upper center", ncols=across, frameon=False, fontsize=9)
    return picture_of(say_private(figure, experiment.label))


def draw_counts(experiment: Experiment) -> Picture:
    """Draw, over all ticks, how many points came, how many went and how many are there, with the starts marked."""
    setting = load_setting(experiment)
    come, gone, live = setting.truth.totals()
    figure, axes = subplots(1, 1, panel=(6.4, 3.6))
    axis, ticks = axes[0, 0], np.arange(live.size)
    if gone[-1]:
        axis.plot(ticks, come, color="#0b62c4", linestyle="--", label="inserted so far")
        axis.plot(ticks, gone, color="#d1690e", linestyle=":", lw=2, label="deleted so far")
    axis.plot(ticks, live, color="#1b1f24", lw=1.8, label="there now" if gone[-1] else "inserted so far, all there now")
    for t0 in experiment.start_after:
        _mark_start(axis, setting.start_tick(t0), f"t0 = {t0:g}", marked=t0 == experiment.start_after[0])
    axis.set(ylabel="points", xlabel=_clock_label(experiment), ylim=(0, None), xlim=(0, live.size - 1))
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.grid(alpha=0.25)
    axis.legend(frameon=False, loc="upper left")
    return picture_of(say_private(figure, experiment.label))


def _mark_start(axis: Any, tick: int, name: str, marked: bool) -> None:
    axis.axvline(tick, color="#8a8a8a", lw=0.9, linestyle="-" if marked else ":")
    axis.text(tick, 0.5, f" {name}", transform=axis.get_xaxis_transform(), rotation=90, fontsize=8, bbox=_PLATE)


def _clock_label(experiment: Experiment) -> str:
    """Return the label of an axis of time: ticks, and how long one is."""
    return f"tick ({experiment.data['every']})" if "every" in experiment.data else "tick"


def _style(experiment: Experiment, name: str) -> tuple[str, str, str]:
    """Return a method's colour, dashes and marker; one without its own gets them by its place among the methods."""
    place = experiment.methods.index(name)
    other = (_OTHERS[place % len(_OTHERS)], ("-.", "--", ":")[place % 3], "Pv>D*^<"[place % 7])
    return experiment.method(name).style or other


def _panel(axis: Any, experiment: Experiment, lines: dict[str, Curve | None]) -> None:
    from matplotlib.ticker import LogLocator

    for method, line in lines.items():
        if line is None:
            continue
        colour, dash, marker = _style(experiment, method)
        name = experiment.method(method).label
        axis.plot(line.tick, line.mean, label=name, color=colour, linestyle=dash, marker=marker, ms=3.5, lw=1.6)
        if len(experiment.seeds) > 1:
            axis.fill_between(line.tick, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
    axis.set(yscale="log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter("")
    axis.grid(alpha=0.25)
