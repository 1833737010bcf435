"""Runs cases in worker processes that are watched: one that dies or hangs is a failure, not the end of the run."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.cases import KINDS, Outcome

__all__ = ["Summary", "all_cases", "run_all"]

_HUNG = 20.0
"""Seconds after which a process that says nothing is ended."""
_STARTING = 60.0
_ROOT = Path(__file__).parents[1]


@dataclass
class Summary:
    """How many cases of each kind there were and what became of them; and the failures by name."""

    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, outcome: Outcome) -> None:
        """Count a case."""
        empty = {"cases": 0, "accepted": 0, "refused": 0, "failed": 0}
        counts = self.kinds.setdefault(name.split(":")[0], empty)
        counts["cases"] += 1
        counts[outcome.what] += 1
        if outcome.what == "failed":
            self.failures[name] = outcome.why

    def to_dict(self, seed: int) -> dict[str, Any]:
        """Return the figures as plain data."""
        total = sum(counts["cases"] for counts in self.kinds.values())
        kinds = {kind: self.kinds[kind] for kind in KINDS if kind in self.kinds}
        return {"seed": seed, "cases": total, "kinds": kinds, "failures": sorted(self.failures)}


def all_cases(cases: int, seed: int, only: list[str] | None = None) -> Iterator[str]:
    """Yield the names of so many cases, the kinds mixed in proportion."""
    kinds = {kind: part for kind, part in KINDS.items() if not only or kind in only}
    whole, given = sum(kinds.values()), dict.fromkeys(kinds, 0)
    for done in range(1, cases + 1):
        kind = max(kinds, key=lambda kind: done * kinds[kind] / whole - given[kind])
        yield f"{kind}:{seed + given[kind]}"
        given[kind] += 1


def run_all(
    names: Iterator[str], processes: int = 2, seconds: float = 1e9, tell: Callable[[str, Outcome], None] | None = None
) -> Summary:
    """Run cases until there are no more, or the time is over."""
    summary, lock, end = Summary(), threading.Lock(), time.monotonic() + seconds

    def work() -> None:
        worker = _Worker()
        try:
            while time.monotonic() < end:
                with lock:
                    name = next(names, None)
                if name is None:
                    return
                outcome = worker.run(name)
                if outcome.why.startswith("slow"):  # perhaps other work slowed it down
                    outcome = worker.run(name)
                with lock:
                    summary.add(name, outcome)
                    if tell:
                        tell(name, outcome)
        finally:
            worker.stop()

    threads = [threading.Thread(target=work) for _ in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return summary


class _Worker:
    """One worker process, started anew after it died, hung or grew."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")

    def run(self, name: str) -> Outcome:
        """Return what became of a case."""
        patience = _HUNG
        if self._process is None:
            environment = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": self._folder.name}
            command = [sys.executable, "-m", "fuzz.worker"]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen(command, cwd=_ROOT, env=environment, **pipes)
            patience = _STARTING
        process = self._process
        assert process.stdin is not None
        try:
            process.stdin.write(name.encode() + b"\n")
            process.stdin.flush()
            line = self._line(process, patience)
        except (OSError, TimeoutError) as error:
            line, why = b"", "hung" if isinstance(error, TimeoutError) else "died"
        else:
            why = "died"
        if not line:
            self._end()
            return Outcome("failed", f"the process {why} ({process.returncode})")
        outcome = Outcome(**json.loads(line))
        if outcome.why.startswith("memory"):
            self._end()  # what it grew by would hide the next growth
        return outcome

    @staticmethod
    def _line(process: subprocess.Popen[bytes], patience: float) -> bytes:
        """Return the answer; nothing if the process is gone."""
        assert process.stdout is not None
        channel, content = process.stdout.fileno(), b""
        while not content.endswith(b"\n"):
            if not select.select([channel], [], [], patience)[0]:
                raise TimeoutError
            more = os.read(channel, 1 << 16)
            if not more:
                return b""
            content += more
        return content

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def stop(self) -> None:
        """End the process, and remove what it left."""
        if self._process is not None and self._process.stdin is not None:
            try:
                self._process.communicate(timeout=10)  # closes its input, upon which it ends
            except subprocess.TimeoutExpired:
                self._end()
        self._folder.cleanup()
