"""The metrics in words: what a report says about each, and when the paper's is won by publishing nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.summary import Key, Mean

__all__ = ["METRIC_TEXTS", "NOTHING", "MetricText", "nothing_wins"]

NOTHING = "nothing"
"""The method that publishes nothing."""


@dataclass(frozen=True)
class MetricText:
    """A column of the results, as a report shows it. ``nothing`` is what publishing nothing always scores, if so."""

    column: str
    title: str
    about: str
    words: str
    prefix: str
    by_size: bool = True
    nothing: float | None = None

    def sizes(self, sizes: Iterable[str]) -> list[str]:
        """Return for which sizes of query there is something to show; the first stands for all if there is no size."""
        return list(sizes) if self.by_size else list(sizes)[:1]

    def axis(self, size: str) -> str:
        """Return the words for an axis."""
        return f"{self.words},\n{size} queries" if self.by_size else self.words

    def file(self, size: str) -> str:
        """Return the name of a figure's file."""
        return f"{self.prefix}-{size}" if self.by_size else self.prefix


METRIC_TEXTS = (
    MetricText(
        "weighted_error",
        "Weighted error",
        "The sum of |synthetic count - true count| over random rectangles, divided by the sum of true counts. A "
        "missing point and an invented one cost the same, so that publishing nothing scores exactly 1 on any data: "
        "what is above 1 is worse than nothing. If the total is right, half of the error is the share of points "
        "in wrong rectangles.",
        "weighted error",
        "weighted",
        nothing=1.0,
    ),
    MetricText(
        "error",
        "Average relative error, the paper's metric",
        "|synthetic count - true count| / max(true count, 0.1% of all points), averaged over random rectangles. Most "
        "rectangles are nearly empty, and there an invented point counts in full and a missing one hardly: with few "
        "points, publishing nothing wins. It is here for comparison with the paper.",
        "average relative error",
        "error",
    ),
    MetricText(
        "distance",
        "Distance between where points are",
        "The sliced Wasserstein distance: how far, as a share of the domain's diagonal, the synthetic points must be "
        "moved to lie as the true ones do. The number of points does not count in it; without points it is 1.",
        "sliced Wasserstein distance",
        "distance",
        by_size=False,
    ),
)
"""In the order of the report."""


def nothing_wins(experiment: Experiment, summary: dict[Key, Mean]) -> str:
    """Return a warning where publishing nothing scores better by the paper's metric than methods do, or nothing."""
    beaten: dict[str, set[str]] = {}
    for (size, epsilon, t0, method), mean in summary.items():
        nothing = summary.get((size, epsilon, t0, NOTHING))
        if nothing and method != NOTHING and nothing.mean < mean.mean and not experiment.method(method).floor:
            beaten.setdefault(size, set()).add(method)
    if not beaten:
        return ""
    offline = any({"baseline-1", "oracle"} & methods for methods in beaten.values())
    even = ", even one that spends all of ε anew at each tick," if offline else ""
    each = "; ".join(f"{size} queries, {len(methods)} methods" for size, methods in beaten.items())
    return (
        f"By this metric publishing nothing does better than a method{even} in some settings ({each}). There are too "
        "few points for it: go by the weighted error."
    )
