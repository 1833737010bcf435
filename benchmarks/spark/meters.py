"""What a step of work took: processor time of all processes it used, tasks, and bytes by Spark's own metrics.

Processor time is that of this process and all that came of it: Python, the driver's JVM, master, workers, executors and
their Pythons. Unlike time on the clock it hardly depends on what else the machine does.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["METRICS", "Meter", "Tree", "log_settings"]

_TICK = os.sysconf("SC_CLK_TCK")
METRICS = ("tasks", "shuffle_bytes", "shuffle_records", "remote_bytes", "result_bytes", "read_bytes", "written_bytes")
"""What Spark's event log says of each step; ``remote_bytes`` were read from another executor's shuffle."""


@dataclass(frozen=True)
class _Process:
    parent: int
    own: int
    of_children: int
    """Of those that have ended, and that it has waited for."""


class Tree:
    """A process and all that came of it, and their processor time."""

    def __init__(self, root: int | None = None) -> None:
        self._root, self._lost = root or os.getpid(), 0
        self._before: dict[int, _Process] = {}

    def cpu(self) -> float:
        """Return the processor seconds up to now, also of processes that have ended."""
        now = self._now()
        gone: dict[int, int] = defaultdict(int)
        for pid, process in self._before.items():
            if pid not in now:
                gone[process.parent] += process.own + process.of_children
        for parent, spent in gone.items():  # a parent that did not wait for them does not know what they spent
            if parent in now and parent in self._before:
                told = now[parent].of_children - self._before[parent].of_children
                self._lost += max(0, spent - told)
        self._before = now
        return (self._lost + sum(process.own + process.of_children for process in now.values())) / _TICK

    def _now(self) -> dict[int, _Process]:
        there: dict[int, _Process] = {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = entry.read_text().rpartition(")")[2].split()
                times = [int(field) for field in fields[11:15]]
                there[int(entry.parent.name)] = _Process(int(fields[1]), sum(times[:2]), sum(times[2:]))
        children = defaultdict(list)
        for pid, process in there.items():
            children[process.parent].append(pid)
        found, left = {}, [self._root]
        while left:
            pid = left.pop()
            if pid in there:
                found[pid] = there[pid]
            left += children[pid]
        return found


def log_settings(folder: Path) -> dict[str, str]:
    """Return the settings of a session that writes its metrics to a folder."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


class Meter:
    """Steps of work, what they were, and what they took. ``without`` is a process that does not count, or 0."""

    def __init__(self, session: Any = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.session, self.without, self._tree = session, 0, Tree()

    def _cpu(self) -> float:
        return self._tree.cpu() - (Tree(self.without).cpu() if self.without else 0)

    @contextmanager
    def step(self, **about: Any) -> Iterator[None]:
        """Measure the body of a ``with``."""
        if self.session is not None:
            self.session.sparkContext.setJobDescription(f"step {len(self.rows)}")
        cpu, clock = self._cpu(), time.perf_counter()
        yield
        took = {"cpu_s": round(self._cpu() - cpu, 3), "wall_s": round(time.perf_counter() - clock, 3)}
        self.rows.append(about | took | dict.fromkeys(METRICS, 0))
        if self.session is not None:
            self.session.sparkContext.setJobDescription(None)

    def add_metrics(self, folder: Path) -> None:
        """Add what the event log of a session that has ended says of its steps."""
        (log,) = folder.iterdir()
        stages: dict[int, int] = {}
        for line in log.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerStageSubmitted":
                name = event["Properties"].get("spark.job.description", "")
                if name.startswith("step "):
                    stages[event["Stage Info"]["Stage ID"]] = int(name.removeprefix("step "))
            elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
                self._add(self.rows[stages[event["Stage ID"]]], event.get("Task Metrics") or {})

    @staticmethod
    def _add(row: dict[str, Any], metrics: dict[str, Any]) -> None:
        if not metrics:
            return
        written, read = metrics["Shuffle Write Metrics"], metrics["Shuffle Read Metrics"]
        row["tasks"] += 1
        row["shuffle_bytes"] += written["Shuffle Bytes Written"]
        row["shuffle_records"] += written["Shuffle Records Written"]
        row["remote_bytes"] += read["Remote Bytes Read"]
        row["result_bytes"] += metrics["Result Size"]
        row["read_bytes"] += metrics["Input Metrics"]["Bytes Read"]
        row["written_bytes"] += metrics["Output Metrics"]["Bytes Written"]
