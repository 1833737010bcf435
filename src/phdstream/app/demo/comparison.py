"""What the demonstration runs: the private stream and two baselines on the same simulated data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from phdstream.arrays import Floats
from phdstream.baselines import OfflineEachTickNotPrivate, OfflineOnChangesNotPrivate, Releaser
from phdstream.domains import Box
from phdstream.evaluation import count_points, random_rectangles, relative_error
from phdstream.evaluation.circles import moving_circles
from phdstream.privacy import Event
from phdstream.release import Release
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.tracking import TrackingStream

__all__ = ["BASELINE_1", "BASELINE_2", "EPSILONS", "OURS", "PAPERS", "POINTS", "TICKS", "Run", "follow"]

EPSILONS = (0.5, 2.0)
TICKS, POINTS = 60, 25_000
OURS, PAPERS, BASELINE_1 = "Tracking", "PHDStream", "Baseline 1 (not private over time)"
BASELINE_2 = "Baseline 2"
_SHOWN = (10, 25, 40, 60)
_MEASURED_EVERY = 5


@dataclass
class Run:
    """One run at one ε: snapshots of true points and releases, and errors over time."""

    epsilon: float
    description: str
    snapshots: list[tuple[Floats, Release]] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    errors: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, tick: int, live: Floats, releases: dict[str, Release], queries: Floats) -> None:
        """Note every method's error on the queries, by the paper's metric."""
        true = count_points(live, queries)
        self.ticks.append(tick)
        for name, release in releases.items():
            self.errors[name].append(relative_error(true, release.count(queries).value, len(live)))


def follow(epsilon: float, index: int, progress: Callable[[int, int | None], None]) -> Run:
    """Run all methods with exact noise over the moving circles, and keep what the page shows."""
    domain = Box([(0, 1), (0, 1)])
    ours = TrackingStream(domain, epsilon, Event())
    methods: dict[str, Releaser] = {
        OURS: ours,
        PAPERS: PHDStream(domain, epsilon, Event()),
        BASELINE_1: OfflineEachTickNotPrivate(domain, epsilon),
        BASELINE_2: OfflineOnChangesNotPrivate(domain, epsilon),
    }
    queries = random_rectangles(np.array([[0, 1], [0, 1]]), 1000, "small", seed=1)
    run = Run(epsilon, ours.describe(), errors={name: [] for name in methods})
    live = np.empty((0, 2))
    for t, tick in enumerate(moving_circles(POINTS, TICKS), start=1):
        live = np.concatenate([live[len(tick.deletes) :], tick.inserts])  # points vanish in the order they appeared
        releases = {name: method.update(tick.inserts, tick.deletes) for name, method in methods.items()}
        if t % _MEASURED_EVERY == 0:
            run.measure(t, live, releases, queries)
        if t in _SHOWN:
            run.snapshots.append((live, releases[OURS]))
        progress(index * TICKS + t, TICKS * len(EPSILONS))
    return run
