"""One figure of an experiment, by name: what ``phdstream evaluate --figure`` draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from phdstream.errors import ConfigError, InputError, did_you_mean
from phdstream.evaluation.activations import write_activations
from phdstream.evaluation.cells import make_folder
from phdstream.evaluation.data_figures import draw_counts, draw_data
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.figures import Picture, check_plotting, write_picture
from phdstream.evaluation.scatter import draw_scatter
from phdstream.evaluation.setting import load_setting

__all__ = ["FIGURES", "write_figure"]

Progress = Callable[[int, int | None], None]

FIGURES: dict[str, Callable[[Experiment, Path, Progress], Picture]] = {
    "counts": lambda experiment, out, progress: draw_counts(experiment),
    "data": lambda experiment, out, progress: draw_data(experiment),
    "scatter": lambda experiment, out, progress: draw_scatter(experiment, progress),
    "activations": write_activations,
}
"""Points over time; the data over its geometry; true and synthetic points; how often counters were activated."""
_MAPS = ("data", "scatter")


def write_figure(name: str, experiment: Experiment, out: Path, progress: Progress = lambda done, total: None) -> Path:
    """Draw a figure, write it as PNG and SVG, and return the PNG."""
    if name not in FIGURES:
        raise ConfigError(f"unknown figure {name!r}: {did_you_mean(name, FIGURES)}")
    check_plotting()
    if load_setting(experiment).domain.dimension != 2 and name in _MAPS:
        raise InputError("maps are of points in the plane: the domain must have two dimensions.")
    picture = FIGURES[name](experiment, make_folder(out), progress)
    return write_picture(out, name, picture, experiment.private)
