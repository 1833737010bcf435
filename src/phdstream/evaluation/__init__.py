"""How good a release is: range queries and their error. Compares with true data, so its output is private."""

from phdstream.evaluation.counting import PointCounter, count_cells, count_points
from phdstream.evaluation.queries import (
    QUERY_AREAS,
    QUERY_NUMBERS,
    paper_queries,
    random_rectangles,
    relative_error,
)

__all__ = [
    "QUERY_AREAS",
    "QUERY_NUMBERS",
    "PointCounter",
    "count_cells",
    "count_points",
    "paper_queries",
    "random_rectangles",
    "relative_error",
]
