"""All trials of an experiment, in parallel over processes; what is finished is kept, whatever happens."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet

from phdstream.evaluation.experiment import Experiment, Trial
from phdstream.evaluation.pictures import check_plotting
from phdstream.evaluation.report import write_report
from phdstream.evaluation.setting import load_setting
from phdstream.evaluation.trials import is_finished, make_folder, run_trial, trial_path, write_table

__all__ = ["Outcome", "run_experiment"]

Work: TypeAlias = Callable[[Experiment, Trial, Path], None]
Waiting: TypeAlias = "queue.SimpleQueue[Trial]"
Results: TypeAlias = "queue.SimpleQueue[tuple[Trial, str | None]]"


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment: where it is, how many trials were done now and before, which failed and why.

    ``label`` says so when the results must not be published.
    """

    report: Path | None
    done: int
    kept: int
    failed: dict[Trial, str]
    label: str = ""


def run_experiment(
    experiment: Experiment,
    out: Path,
    workers: int | None = None,
    progress: Callable[[int, int | None], None] = lambda done, total: None,
    work: Work = run_trial,
) -> Outcome:
    """Run what is not finished yet, then write ``results.parquet`` and ``report.html`` from what is.

    Each trial is written to ``out/trials`` as soon as it is finished. One that fails, or whose process dies, is
    reported at the end, and the others go on.
    """
    check_plotting()
    load_setting(experiment)  # says now what is wrong with data, domain, queries and starts
    folder = make_folder(out / "trials")
    trials = list(experiment.trials())
    missing = [trial for trial in trials if not is_finished(folder, experiment, trial)]
    kept = len(trials) - len(missing)
    progress(kept, len(trials))
    failed = _Lanes(experiment, folder, work).run(missing, workers, lambda done: progress(kept + done, len(trials)))
    finished = [trial for trial in trials if trial not in failed]
    report = _write_results(experiment, out, folder, finished) if finished else None
    return Outcome(report, len(missing) - len(failed), kept, failed, experiment.label)


def _write_results(experiment: Experiment, out: Path, folder: Path, finished: list[Trial]) -> Path:
    tables = [pyarrow.parquet.read_table(trial_path(folder, experiment, trial)) for trial in finished]
    results = pa.concat_tables([table.replace_schema_metadata() for table in tables])
    write_table(out / "results.parquet", results, experiment.private)
    return write_report(out / "report.html", experiment, results)


class _Lanes:
    """Some threads, each with a process of its own, so that when a process dies it is clear which trial killed it."""

    def __init__(self, experiment: Experiment, folder: Path, work: Work) -> None:
        self._experiment, self._folder, self._work = experiment, folder, work
        self._processes: dict[int, int] = {}
        self._stop = threading.Event()

    def run(self, trials: list[Trial], workers: int | None, progress: Callable[[int], None]) -> dict[Trial, str]:
        """Run trials and return those that failed, with the reason."""
        waiting: Waiting = queue.SimpleQueue()
        for trial in trials:
            waiting.put(trial)
        results: Results = queue.SimpleQueue()
        number = min(workers or os.cpu_count() or 1, len(trials))
        failed = {}
        with ThreadPoolExecutor(max(1, number)) as lanes:
            try:
                running = [lanes.submit(self._lane, i, waiting, results) for i in range(number)]
                for done in range(1, len(trials) + 1):
                    trial, reason = results.get()
                    if reason is not None:
                        failed[trial] = reason
                    progress(done)
                for lane in as_completed(running):
                    lane.result()
            except BaseException:  # Ctrl-C: finished trials are on disk, the others are given up at once
                self._give_up()
                raise
        return failed

    def _lane(self, lane: int, waiting: Waiting, results: Results) -> None:
        """Run trials in a process until there are none left; start another process when one dies."""
        over = False
        while not over and not self._stop.is_set():
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_quiet_interrupt) as process:
                try:
                    self._processes[lane] = process.submit(os.getpid).result()
                    over = self._until_death(process, waiting, results)
                except BrokenProcessPool:  # already while starting, so that another one would die too
                    over = _fail_all(waiting, results)
                finally:
                    self._processes.pop(lane, None)

    def _until_death(self, process: ProcessPoolExecutor, waiting: Waiting, results: Results) -> bool:
        """Run trials in a process; return whether it lived until there were none left."""
        while not self._stop.is_set():
            try:
                trial = waiting.get_nowait()
            except queue.Empty:
                return True
            try:
                process.submit(self._work, self._experiment, trial, self._folder).result()
                results.put((trial, None))
            except BrokenProcessPool:
                results.put((trial, "its process died (killed, or out of memory?)"))
                return False
            except Exception as error:
                results.put((trial, f"{type(error).__name__}: {error}"))
        return True

    def _give_up(self) -> None:
        self._stop.set()
        for process in list(self._processes.values()):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)


def _fail_all(waiting: Waiting, results: Results) -> bool:
    with suppress(queue.Empty):
        while True:
            results.put((waiting.get_nowait(), "no process could be started"))
    return True


def _quiet_interrupt() -> None:
    """Let Ctrl-C end a worker without a traceback; the main process says what happened."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
