"""How good a release is: range queries and their error. Compares with true data, so its output is private."""

from phdstream.evaluation.counting import PointCounter, count_cells, count_points
from phdstream.evaluation.experiment import DO_NOT_PUBLISH, Experiment, Trial
from phdstream.evaluation.experiment_file import example, load_experiment, read_experiment
from phdstream.evaluation.methods import MethodSpec, MethodTable, standard_methods
from phdstream.evaluation.queries import (
    QUERY_AREAS,
    QUERY_NUMBERS,
    domain_queries,
    random_rectangles,
    relative_error,
    weighted_error,
)
from phdstream.evaluation.running import Outcome, run_experiment
from phdstream.evaluation.transport import sliced_distance

__all__ = [
    "DO_NOT_PUBLISH",
    "QUERY_AREAS",
    "QUERY_NUMBERS",
    "Experiment",
    "MethodSpec",
    "MethodTable",
    "Outcome",
    "PointCounter",
    "Trial",
    "count_cells",
    "count_points",
    "domain_queries",
    "example",
    "load_experiment",
    "random_rectangles",
    "read_experiment",
    "relative_error",
    "run_experiment",
    "sliced_distance",
    "standard_methods",
    "weighted_error",
]
