"""How good a release is: range queries and their error. Compares with true data, so its output is private."""

from phdstream.evaluation.counter_comparison import compare_counters
from phdstream.evaluation.counting import PointCounter, count_cells, count_points
from phdstream.evaluation.experiment import Cell, Experiment, load_experiment, read_experiment
from phdstream.evaluation.methods import METHODS
from phdstream.evaluation.one_figure import FIGURES, write_figure
from phdstream.evaluation.presets import PRESETS, preset
from phdstream.evaluation.queries import (
    QUERY_AREAS,
    QUERY_NUMBERS,
    domain_queries,
    paper_queries,
    random_rectangles,
    relative_error,
)
from phdstream.evaluation.running import Outcome, run_experiment

__all__ = [
    "FIGURES",
    "METHODS",
    "PRESETS",
    "QUERY_AREAS",
    "QUERY_NUMBERS",
    "Cell",
    "Experiment",
    "Outcome",
    "PointCounter",
    "compare_counters",
    "count_cells",
    "count_points",
    "domain_queries",
    "load_experiment",
    "paper_queries",
    "preset",
    "random_rectangles",
    "read_experiment",
    "relative_error",
    "run_experiment",
    "write_figure",
]
