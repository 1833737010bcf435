"""`phdstream audit --mutate`: does the audit see planted bugs? Each has a process and a copy of the code."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from phdstream.app.audit.command import checks_of, run_checks
from phdstream.audit.finding import Effort, Progress
from phdstream.audit.mutants import Mutant, planted, run_with

__all__ = ["Outcome", "killed", "mutate"]

_PATIENCE = 900.0
"""Seconds after which a mutant's process is ended: three times what the audit takes by default."""


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: which check saw it, if one did, after how many seconds, and what it said."""

    mutant: Mutant
    by: str
    seconds: float
    said: str

    @property
    def caught(self) -> bool:
        """Whether it was seen."""
        return bool(self.by)

    @property
    def line(self) -> str:
        """The outcome in a line."""
        how = f"killed by {self.by} in {self.seconds:.0f} s" if self.caught else "SURVIVED"
        expected = "" if self.by == self.mutant.check or not self.caught else f" (expected: {self.mutant.check})"
        return f"{self.mutant.name}: {how}{expected}"


def mutate(
    mutants: tuple[Mutant, ...], effort: Effort, progress: Progress, done: Callable[[Outcome], None]
) -> list[Outcome]:
    """Let the audit look at each mutant, the check that is to see it first, until one does."""
    outcomes = []
    for number, mutant in enumerate(mutants):
        progress(number, len(mutants))
        outcomes.append(killed(mutant, effort))
        done(outcomes[-1])
    progress(len(mutants), len(mutants))
    return outcomes


def killed(mutant: Mutant, effort: Effort) -> Outcome:
    """Return what the audit makes of a mutant."""
    started = time.monotonic()
    with planted(mutant) as folder:
        command = ["-m", "phdstream.app.audit.mutating", mutant.check, str(effort.scale), str(effort.seed)]
        status, output = run_with(folder, command, _PATIENCE * max(effort.scale, 1))
    seconds = time.monotonic() - started
    if status is None:
        return Outcome(mutant, "", seconds, "the audit did not come to an end in time")
    try:
        found = json.loads(output)
    except ValueError:
        return Outcome(mutant, "", seconds, f"the process ended with status {status} before any check did")
    broken = [one for one in found if one["status"] == "violated"]
    if not broken:
        return Outcome(mutant, "", seconds, "")
    return Outcome(mutant, broken[0]["check"], seconds, broken[0]["violations"][0])


def _main(first: str, scale: str, seed: str) -> None:
    """Run all checks in this process, which holds a planted bug, until one sees it; print what they found."""
    checks = sorted(checks_of(), key=lambda check: check.name != first)
    findings = run_checks(checks, Effort(float(scale), int(seed), stop_early=True))
    sys.stdout.write(json.dumps([finding.to_dict() for finding in findings]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
