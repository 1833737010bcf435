"""What tracking costs as it grows: ``python -m benchmarks.growth``; some minutes, on one core.

Streams that remember more and more nodes take four kinds of ticks, each on a copy: one that ends a block with events
wherever there are points, one that ends a block with events in one place only, and two in between, with ten events and
with a hundredth of all points. Then a release of many points gives its synthetic points, in a process of its own.

Noise is simulated: the cost is the model's (for that of noise see `benchmarks.kernels`). ε is 10, so that there are
more nodes than points. Times are of the processor, not of the clock, the least of several; ``np.sort`` of a million
codes beside them says how fast the machine is.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import phdstream as phd
from benchmarks.measure import exponent, machine

SQUARE = phd.Box([(0, 1), (0, 1)], depth=30)
HILLS = np.random.default_rng(7).random((60, 2))
_SAMPLE = """
import json, resource, sys, time
import phdstream as phd

def peak():
    for line in open("/proc/self/status"):  # ru_maxrss would count the parent's
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

release = phd.TrackingStream.load(sys.argv[1]).release
before, start = peak(), time.process_time()
points = release.sample()
print(json.dumps([len(points), len(release.leaves), time.process_time() - start, before, peak()]))
"""


@dataclass(frozen=True)
class Tick:
    """What one kind of tick costs: processor time, and how many nodes are remembered, changed, and published."""

    kind: str
    milliseconds: float
    remembered: int
    published: int
    touched: int

    def per(self, nodes: int) -> str:
        """Return the microseconds for each of some nodes."""
        return f"{self.milliseconds * 1e3 / nodes:.2f}" if nodes else ""


def points(rng: np.random.Generator, number: int) -> np.ndarray:
    """Return points half on hills, half anywhere."""
    hills = HILLS[rng.integers(0, len(HILLS), number // 2)] + rng.normal(0, 0.02, (number // 2, 2))
    return np.clip(np.concatenate([hills, rng.random((number - number // 2, 2))]), 0, 1)


def ticks(nodes: int, repeats: int = 5) -> Iterator[Tick]:
    """Grow a stream to about so many nodes; take each kind of tick."""
    rng, number = np.random.default_rng(1), nodes // 4
    noise = phd.Simulation(seed=1)
    stream = phd.TrackingStream(SQUARE, 10.0, phd.Event(), insert_only=True, noise=noise, max_nodes=10**8)
    stream.update(points(rng, number))
    stream.update(points(rng, number * 6 // 10))
    total = number * 16 // 10
    for part in (20, 10, 5, 3):  # the fewest that end a block
        place = np.clip(HILLS[0] + rng.normal(0, 0.01, (total // part, 2)), 0, 1)
        if tick(stream, "", place, 1).touched:
            break
    events = {
        "ends a block, everywhere": points(rng, total * 6 // 10),
        "ends a block, in one place": place,
        "in between, 10 events": points(rng, 10),
        "in between, 1 in 100": points(rng, total // 100),
    }
    for kind, come in events.items():
        yield tick(stream, kind, come, repeats)


def tick(stream: Any, kind: str, events: np.ndarray, repeats: int) -> Tick:
    """Take a tick on copies of a stream; putting the cells of the release before in order is part of it."""
    before, times = splits(stream), []
    for _ in range(repeats):
        after = copy.deepcopy(stream)
        start = time.process_time()
        release = after.update(events)
        times.append(time.process_time() - start)
    node, contrast = splits(after)
    at = np.minimum(np.searchsorted(before[0], node), before[0].size - 1)
    same = (before[0][at] == node) & (before[1][at] == contrast)
    return Tick(kind, min(times) * 1e3, node.size, release.leaves.size, int((~same).sum()))


def splits(stream: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes that a stream remembers, and how they divide."""
    arrays = stream.to_state()[1]
    return arrays["splits.node"], arrays["splits.contrast"]


def sample(number: int) -> dict[str, float]:
    """Return what the synthetic points of a release of so many take: seconds, and megabytes with all that is there."""
    rng = np.random.default_rng(1)
    city = phd.Box([(0, 60_000), (0, 50_000)], resolution=10)
    stream = phd.TrackingStream(city, 1.0, phd.Event(), insert_only=True, noise=phd.Simulation(seed=1))
    stream.update(points(rng, number) * (60_000, 50_000))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        stream.save(path)
        done = subprocess.run([sys.executable, "-c", _SAMPLE, str(path)], capture_output=True, text=True, check=True)
    names = ("points", "cells", "seconds", "MB before", "MB at most")
    return dict(zip(names, json.loads(done.stdout), strict=True))


def sort_time() -> float:
    """Return the milliseconds that sorting a million codes takes."""
    codes = np.random.default_rng(1).integers(1 << 40, size=10**6)

    def once() -> float:
        start = time.process_time()
        np.sort(codes)
        return time.process_time() - start

    return min(once() for _ in range(7)) * 1e3


def table(rows: list[Tick]) -> str:
    """Return the ticks as a Markdown table."""
    lines = [
        "| tick | ms | remembered | published | touched | µs a node touched | a node remembered | a cell published |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        sizes = (row.touched, row.remembered, row.published)
        costs = " | ".join(row.per(size) for size in sizes)
        counts = f"{row.remembered:,} | {row.published:,} | {row.touched:,}"
        lines.append(f"| {row.kind} | {row.milliseconds:.3g} | {counts} | {costs} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None, show: Callable[[str], None] = print) -> None:
    """Measure, print tables, write JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.growth", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10**4, 10**5, 10**6], help="to be remembered, about")
    parser.add_argument("--points", type=int, default=2 * 10**7, help="to be sampled; 0: none")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    sorting, rows = sort_time(), [row for nodes in asked.nodes for row in ticks(nodes)]
    show(f"{machine()}\nnp.sort of 1e6 codes: {sorting:.1f} ms\n{table(rows)}")
    kinds: dict[str, list[Tick]] = {}
    for row in rows:
        kinds.setdefault(row.kind, []).append(row)
    for kind, found in kinds.items():
        if len(found) > 1:
            grows = exponent([row.remembered for row in found], [row.milliseconds for row in found])
            show(f"{kind}: cost grows as nodes^{grows:.2f}")
    sampled = sample(asked.points) if asked.points else {}
    show(f"sample: {sampled}")
    if asked.json:
        found_all = {"machine": machine(), "sort": sorting, "ticks": [asdict(row) for row in rows], "sample": sampled}
        asked.json.write_text(json.dumps(found_all, indent=1) + "\n")


if __name__ == "__main__":
    main()
