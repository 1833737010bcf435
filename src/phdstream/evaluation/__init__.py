"""How good a release is: range queries and their error. Compares with true data, so its output is private."""

from phdstream.evaluation.queries import QUERY_AREAS, count_points, random_rectangles, relative_error

__all__ = ["QUERY_AREAS", "count_points", "random_rectangles", "relative_error"]
