"""Progress bars on standard error. They show files and ticks, which are public, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["one_bar", "ticks_bar"]

Move = Callable[[int, int | None], None]


@contextmanager
def one_bar(what: str) -> Iterator[Move]:
    """Show a bar and give a function to move it: ``progress(done, total)``."""
    with ticks_bar(what) as (move,):
        yield move


@contextmanager
def ticks_bar(*what: str) -> Iterator[tuple[Move, ...]]:
    """Show a bar for each of several stages, once it begins, and give the functions to move them."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console, terminal = Console(stderr=True), sys.stderr.isatty()  # notebooks force colour where nothing can be redrawn
    with Progress(*columns, console=console, transient=True, disable=not terminal) as bar:
        yield tuple(_mover(bar, stage) for stage in what)


def _mover(bar: Any, stage: str) -> Move:
    task = bar.add_task(stage, total=None, visible=False)
    return lambda done, total: bar.update(task, completed=done, total=total, visible=True)
