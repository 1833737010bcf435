"""Timing against a reference of the same run, the machine's description, a table and JSON."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

__all__ = ["Figure", "best", "exponent", "machine", "table", "write_json"]


@dataclass(frozen=True)
class Figure:
    """One measurement: seconds (or MB) for ``size`` things, against a reference measured beside it."""

    group: str
    what: str
    size: int
    amount: float
    reference: str
    reference_amount: float
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """How many times as much as the reference."""
        return self.amount / self.reference_amount

    @property
    def shown(self) -> float:
        """The amount in ms or MB."""
        return self.amount * 1e3 if self.unit == "s" else self.amount


def best(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the least time of several: what the machine can do when nobody else is using it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


@contextmanager
def stopwatch(into: list[float]) -> Iterator[None]:
    """Append how long a block took."""
    start = time.perf_counter()
    yield
    into.append(time.perf_counter() - start)


def exponent(sizes: list[float], seconds: list[float]) -> float:
    """Return b of the best fit ``seconds = a · size^b``."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def machine() -> dict[str, str | int]:
    """Describe the machine, and how busy it was: ratios carry over to others, seconds do not."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        name = next(
            (line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")),
            name,
        )
    return {
        "processor": name,
        "cores": os.cpu_count() or 1,
        "load": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def table(figures: list[Figure]) -> str:
    """Return the figures as a Markdown table."""
    lines = ["| group | what | size | ms, MB | times the reference | reference |", "|---|---|---|---|---|---|"]
    lines += [f"| {f.group} | {f.what} | {f.size:,} | {f.shown:.3g} | {f.ratio:.3g} | {f.reference} |" for f in figures]
    return "\n".join(lines)


def write_json(path: Path, figures: list[Figure], growth: dict[str, float]) -> None:
    """Write everything measured."""
    rows = [asdict(figure) | {"ratio": figure.ratio} for figure in figures]
    path.write_text(json.dumps({"machine": machine(), "figures": rows, "growth": growth}, indent=1) + "\n")
