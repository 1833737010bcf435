"""One figure of an experiment, by name: what ``python -m benchmarks.reproduction figure`` draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.reproduction.activations import write_activations
from benchmarks.reproduction.maps import draw_data
from benchmarks.reproduction.scatter import draw_scatter
from phdstream.errors import ConfigError, InputError, did_you_mean
from phdstream.evaluation import Experiment
from phdstream.evaluation.figures import draw_counts
from phdstream.evaluation.pictures import Picture, check_plotting, write_picture
from phdstream.evaluation.setting import load_setting
from phdstream.evaluation.trials import make_folder

__all__ = ["FIGURES", "write_figure"]

FIGURES: dict[str, Callable[[Experiment, Path], Picture]] = {
    "counts": lambda experiment, out: draw_counts(experiment),
    "data": lambda experiment, out: draw_data(experiment),
    "scatter": lambda experiment, out: draw_scatter(experiment),
    "activations": write_activations,
}
"""Points over time; the data over its geometry; true and synthetic points; how often counters were activated."""
_MAPS = ("data", "scatter")


def write_figure(name: str, experiment: Experiment, out: Path) -> Path:
    """Draw a figure, write it as PNG and SVG, and return the PNG."""
    if name not in FIGURES:
        raise ConfigError(f"unknown figure {name!r}: {did_you_mean(name, FIGURES)}")
    check_plotting()
    if load_setting(experiment).domain.dimension != 2 and name in _MAPS:
        raise InputError("maps are of points in the plane: the domain must have two dimensions.")
    picture = FIGURES[name](experiment, make_folder(out))
    return write_picture(out, name, picture, experiment.private)
