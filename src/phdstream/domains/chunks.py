"""Work on long arrays in pieces that fit a processor's cache, on all processors at once.

NumPy lets go of Python's lock while it computes, so threads are enough. Each row is computed as it would be alone:
neither the cutting nor the number of threads can be seen in the result.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["in_chunks", "in_order"]

_ROWS = 1 << 14
_WORTH_THREADS = 1 << 17


def in_chunks(work: Callable[[slice], None], rows: int) -> None:
    """Call ``work`` on consecutive slices that cover ``rows`` rows; from several threads if they are many."""
    if rows < _WORTH_THREADS:
        in_order(work, 0, rows)
        return
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cuts = [rows * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for part in [pool.submit(in_order, work, *cuts[i : i + 2]) for i in range(threads)]:
            part.result()


def in_order(work: Callable[[slice], None], start: int, end: int) -> None:
    """Call ``work`` on consecutive slices from one row to another: for work that keeps what it finds."""
    for at in range(start, end, _ROWS):
        work(slice(at, min(at + _ROWS, end)))
