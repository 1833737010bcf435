"""Work on long arrays in pieces that fit a processor's cache, on all processors at once.

NumPy lets go of Python's lock while it computes, so threads are enough. They are kept from call to call: starting them
takes as long as encoding some thousand points, and pyproj sets itself up anew in each. Each row is computed as it would
be alone: neither the cutting nor the number of threads can be seen in the result.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

__all__ = ["in_chunks", "in_order"]

_ROWS = 1 << 14
_WORTH_THREADS = 1 << 17
_here = threading.local()
"""``_here.in_pool`` is set in threads of the pool: what they do is not divided again, or all might wait for all."""


def in_chunks(work: Callable[[slice], None], rows: int, cost: int = 1) -> None:
    """Call ``work`` on consecutive slices that cover ``rows`` rows; from several threads if they are many.

    ``cost`` is about how many times as long as a point of a `Box` each row takes.
    """
    threads = _processors()
    if rows * cost < _WORTH_THREADS or threads == 1 or getattr(_here, "in_pool", False):
        in_order(work, 0, rows)
        return
    cuts = [rows * i // threads for i in range(threads + 1)]
    parts = [_pool(threads).submit(in_order, work, *cuts[i : i + 2]) for i in range(threads)]
    wait(parts)  # also if one fails: the others write to the same arrays
    for part in parts:
        part.result()


def in_order(work: Callable[[slice], None], start: int, end: int) -> None:
    """Call ``work`` on consecutive slices from one row to another: for work that keeps what it finds."""
    for at in range(start, end, _ROWS):
        work(slice(at, min(at + _ROWS, end)))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "phdstream", initializer=lambda: setattr(_here, "in_pool", True))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of its parent's threads
