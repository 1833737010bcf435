"""What a tick costs, for any method with ``update(inserts, deletes)``: by nodes, depth and ticks; answers; state."""

from __future__ import annotations

import copy
import os
import resource
import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import phdstream as phd
from benchmarks.kernels import SQUARE
from benchmarks.measure import Figure, best, stopwatch


class MakeStream(Protocol):
    """A class of streams."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return a new stream."""

    def load(self, path: Path) -> Any:
        """Return a saved one."""


_UNIT = "np.sort of 1e6 codes"


def circle(rng: np.random.Generator, number: int) -> np.ndarray:
    """Return points on a ring, as in the paper's example."""
    angle, radius = 2 * np.pi * rng.random(number), 0.2 + 0.02 * rng.random(number)
    return np.column_stack([0.5 + radius * np.cos(angle), 0.5 + radius * np.sin(angle)])


def unit_of_time() -> float:
    """Return the time of a sort that every machine knows."""
    codes = np.random.default_rng(1).integers(1 << 20, size=10**6)
    return best(lambda: np.sort(codes))


def grown(method: MakeStream, noise: Any, leaves: int, points: int) -> tuple[Any, np.random.Generator]:
    """Return a stream that has taken ticks until it has that many leaves."""
    rng = np.random.default_rng(1)
    stream = method(SQUARE, 1.0, phd.Event(), insert_only=True, noise=noise)
    while stream.update(circle(rng, points)).leaves.size < leaves:
        pass
    return stream, rng


def one_tick(method: MakeStream, leaves: int = 2500, points: int = 5000, repeats: int = 15) -> list[Figure]:
    """Take the tick of the target: 5,000 points with about 2,500 leaves; and what is asked of its release."""
    unit, figures = unit_of_time(), []
    for name, noise in (("simulated noise", phd.Simulation(seed=1)), ("production noise", None)):
        stream, rng = grown(method, noise, leaves, points)
        events = circle(rng, points)
        times: list[float] = []
        for _ in range(repeats):
            again = copy.deepcopy(stream)
            with stopwatch(times):
                release = again.update(events)
        figures.append(Figure("tick", name, points, min(times), _UNIT, unit))
    return figures + answers(release) + state(again, method)


def answers(release: Any, queries: int = 16_000) -> list[Figure]:
    """Sample, list changes and answer queries, against sorting or copying what comes out."""
    from phdstream.evaluation.counting import count_cells

    points = release.sample()
    copying = best(points.copy, 20)
    corners = np.sort(np.random.default_rng(2).random((queries, 2, 2)), axis=1)
    rectangles = corners.reshape(queries, 4)
    sorting = best(lambda: np.sort(rectangles, axis=0))
    timed = {
        "sample": (len(points), best(release.sample), "copy of the points", copying),
        "changes": (len(points), best(release.changes), "copy of the points", copying),
        "count, with errors": (queries, best(lambda: release.count(rectangles), 3), "np.sort of them", sorting),
        "evaluation's count": (queries, best(lambda: count_cells(release, rectangles)), "np.sort of them", sorting),
    }
    return [Figure("release", what, *figures) for what, figures in timed.items()]


def state(stream: Any, method: MakeStream) -> list[Figure]:
    """Save and load, against writing and reading as many bytes."""
    from phdstream.streams.state import replace_file

    with tempfile.TemporaryDirectory() as folder:
        path, plain = Path(folder) / "state.npz", Path(folder) / "plain"
        saving = best(lambda: stream.save(path))
        content = path.read_bytes()
        writing = best(lambda: replace_file(plain, lambda file: file.write(content)))
        loading, reading = best(lambda: method.load(path)), best(plain.read_bytes)
    return [
        Figure("state", "save", len(content), saving, "write and sync of as many bytes", writing),
        Figure("state", "load", len(content), loading, "read of as many bytes", reading),
    ]


def by_nodes(method: MakeStream, sizes: list[int]) -> list[Figure]:
    """Take a tick whose tree has about so many nodes: points spread evenly, one tick, little noise."""
    figures = []
    for size in sizes:
        points = np.random.default_rng(1).random((4 * size, 2))
        box = phd.Box([(0, 1), (0, 1)], depth=26)
        times: list[float] = []
        nodes = 0
        for _ in range(3):
            stream = method(box, 40.0, phd.Event(), insert_only=True, noise=phd.Simulation(seed=1), max_nodes=10**7)
            with stopwatch(times):
                nodes = stream.update(points).estimate.node.size
        figures.append(_against_sort("nodes", "tick", nodes, min(times)))
    return figures


def by_depth(method: MakeStream, depths: list[int], points: int = 5000) -> list[Figure]:
    """Take a tick whose tree reaches a given depth: all points in one place."""
    unit, figures = unit_of_time(), []
    for depth in depths:
        box = phd.Box([(0, 1), (0, 1)], depth=depth)
        times: list[float] = []
        for _ in range(5):
            stream = method(box, 1.0, phd.Event(), insert_only=True, noise=phd.Simulation(seed=1))
            with stopwatch(times):
                stream.update(np.full((points, 2), 0.3))
        figures.append(Figure("depth", "tick", depth, min(times), _UNIT, unit))
    return figures


def _against_sort(group: str, what: str, size: int, seconds: float) -> Figure:
    codes = np.random.default_rng(1).integers(1 << 40, size=size)
    return Figure(group, what, size, seconds, "np.sort of as many codes", best(lambda: np.sort(codes)))


def memory_in_use() -> float:
    """Return the megabytes this process holds now (its peak, where the system does not tell)."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def steady(method: MakeStream, ticks: int = 10_000, points: int = 200) -> list[Figure]:
    """Run a steady stream, every point deleted ten ticks later: the last tenth of ticks against the second tenth."""
    rng = np.random.default_rng(1)
    alive: list[np.ndarray] = []
    times: list[float] = []
    stream = method(SQUARE, 1.0, phd.Event(), noise=phd.Simulation(seed=1), max_nodes=50_000)
    memory, tenth = {}, max(1, ticks // 10)
    for tick in range(ticks):
        alive.append(circle(rng, points))
        gone = alive.pop(0) if len(alive) > 10 else None
        with stopwatch(times):
            stream.update(alive[-1], gone)
        if tick in (2 * tenth, ticks - 1):
            memory[tick] = memory_in_use()
    early, late = (float(np.median(part)) for part in (times[tenth : 2 * tenth], times[-tenth:]))
    grew, before = memory[ticks - 1], memory[2 * tenth]
    return [
        Figure("steady", "median tick of the last tenth", ticks, late, "of the second tenth", early),
        Figure("steady", "memory in the end", ticks, grew, "after two tenths", before, "MB"),
    ]
