"""What the driver holds and does of a stream whose events are elsewhere: nodes, memory, processor time, questions.

An engine in which counts cost next to nothing stands for the cluster, so that all that is measured is the driver's.
"""

from __future__ import annotations

import resource
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import phdstream as phd
from phdstream.arrays import Ints
from phdstream.domains.prefixes import code_range
from phdstream.io.sinks.writers import write_points
from phdstream.streams.engine import ExactCounts, HeldEvents, LocalEngine, close_engine, open_engine

__all__ = ["driver_rows"]

BOX = phd.Box([(0, 1), (0, 1)], depth=36)
TICKS = 3


class Asked:
    """Sorted codes, and how many nodes were asked for."""

    def __init__(self) -> None:
        self.engine = LocalEngine("asked")
        self.questions: list[int] = []
        self._parts: dict[str, Ints] = {}
        setattr(self.engine, "counts", self._counts)  # noqa: B010  an engine of one's own is not let in

    def hold(self, part: str, codes: Ints) -> HeldEvents:
        """Take over some events."""
        self._parts[part] = np.sort(codes)
        return HeldEvents(self.engine.name, (part,))

    def _counts(self, parts: Sequence[str], total_bits: int) -> ExactCounts:
        return _Sorted(self.questions, [self._parts[part] for part in parts], total_bits)


class _Sorted:
    def __init__(self, questions: list[int], parts: list[Ints], bits: int) -> None:
        self._questions, self._parts, self._bits = questions, parts, bits

    def within(self, nodes: Ints, bits: int | None = None) -> Ints:
        """Return how many events lie in each node."""
        first, past = code_range(nodes, self._bits, bits)
        self._questions.append(nodes.size)
        found: Ints = np.zeros(nodes.size, np.int64)
        for codes in self._parts:
            found += np.searchsorted(codes, past) - np.searchsorted(codes, first)
        return found


def driver_rows(points: Sequence[int]) -> list[dict[str, Any]]:
    """Return, for some numbers of points a tick, what the last of three ticks took of the driver."""
    return [_driver_row(number) for number in points]


def _driver_row(points: int) -> dict[str, Any]:
    asked, rng = Asked(), np.random.default_rng(3)
    open_engine(asked.engine)
    towns = rng.random((40, 2))
    stream = phd.TrackingStream(BOX, 1.0, phd.Event(), window=TICKS)
    for tick in range(TICKS):
        places = np.clip(towns[rng.integers(40, size=points)] + 0.03 * rng.standard_normal((points, 2)), 0, 1)
        events = asked.hold(str(tick), BOX.encode(places)[0])
        del places
        asked.questions.clear()
        tracemalloc.start()
        cpu, clock = _cpu(), time.perf_counter()
        release = stream.update(events)
        took = {"cpu_s": round(_cpu() - cpu, 3), "wall_s": round(time.perf_counter() - clock, 3)}
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    close_engine(asked.engine)
    found = {"rows": points, "nodes": stream.nodes, "cells": release.leaves.size, "peak_bytes": peak}
    return found | {"questions": len(asked.questions), "asked": sum(asked.questions)} | took | _published(release)


def _published(release: phd.Release) -> dict[str, Any]:
    """Write the release's points, as a folder of releases has them."""
    with tempfile.TemporaryDirectory() as folder:
        path, cpu = Path(folder) / "points.parquet", _cpu()
        write_points(release, path)
        return {"publish_cpu_s": round(_cpu() - cpu, 3), "publish_bytes": path.stat().st_size, "points": release.total}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
