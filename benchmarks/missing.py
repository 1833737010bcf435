"""Trials that are not there yet, run in processes of their own: what is finished is never run again."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

from phdstream.app.progress import one_bar

__all__ = ["run_missing"]

T = TypeVar("T")


def run_missing(run: Callable[..., None], wanted: dict[T, tuple[Path, tuple[Any, ...]]], workers: int) -> dict[T, str]:
    """Call ``run`` for each trial whose file is missing; return what failed, and why.

    ``wanted`` names each trial's file, and what ``run`` is called with.
    """
    missing = {trial: given for trial, (path, given) in wanted.items() if not path.exists()}
    failed, kept = {}, len(wanted) - len(missing)
    context = multiprocessing.get_context("spawn")
    with one_bar("trials") as progress, ProcessPoolExecutor(workers, context) as pool:
        progress(kept, len(wanted))
        running = {pool.submit(run, *given): trial for trial, given in missing.items()}
        for done, future in enumerate(as_completed(running), start=1):
            if error := future.exception():
                failed[running[future]] = f"{type(error).__name__}: {error}"
            progress(kept + done, len(wanted))
    print(f"{len(missing) - len(failed)} trials done now, {kept} before, {len(failed)} failed", flush=True)
    return failed
