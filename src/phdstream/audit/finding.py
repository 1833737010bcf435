"""What a check found, and how hard it looked: the rows of the report."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from phdstream.errors import PhdstreamError

__all__ = ["Check", "Effort", "Finding", "Progress", "Violation", "unfit"]

Progress = Callable[[int, int | None], None]
TOLERANCE = 1e-9
"""By how much a loss that is added up in floating point may pass what it is compared with."""


class Violation(PhdstreamError, AssertionError):  # noqa: N818  # what was found, not what went wrong
    """Something that must not happen was seen. The message says what, and quotes no private value."""


@dataclass(frozen=True)
class Effort:
    """How long a check may look, and which random cases it draws.

    ``scale`` is 1 by default, and 12 for a thorough audit: an hour for minutes. With ``stop_early`` a check ends at the
    first violation.
    """

    scale: float = 1.0
    seed: int = 0
    stop_early: bool = False

    def seconds(self, usual: float) -> float:
        """Return how many seconds a check that usually takes so many may take."""
        return usual * self.scale

    def number(self, usual: int, least: int = 1) -> int:
        """Return how many cases to try where it is usually so many."""
        return max(least, round(usual * self.scale))

    def seeds(self, finding: Finding, usual_seconds: float, most: int, progress: Progress) -> Iterator[int]:
        """Yield seeds until the time is up or so many were tried; writes down in the finding how it ended."""
        started, limit, number = time.monotonic(), self.seconds(usual_seconds), self.number(most)
        for i in range(number):
            progress(i, number)
            if self.stop_early and finding.status == "violated":
                finding.ended = f"stopped at the first violation, after {i} of {number} cases"
                return
            if i and time.monotonic() - started > limit:
                finding.ended = f"time was up ({limit:.0f} s) after {i} of {number} cases"
                return
            finding.trials += 1
            finding.seeds = (self.seed, self.seed + i)
            yield self.seed + i
        progress(number, number)
        finding.ended = f"all {number} cases were tried"


@dataclass
class Finding:
    """What one check found.

    ``status`` is "held" (nothing was found), "violated", or "left out". ``trials`` are random cases, ``samples`` what
    was looked at in them. With probability at most ``failure_probability`` a check of sampled noise calls a sound
    product unsound (0 if nothing in it is left to chance). ``excess_found`` is the least excess of ε that the check
    would have found with 95% power: 0 if it computes losses exactly. None where the question makes no sense.
    """

    check: str
    shows: str
    status: str = "held"
    trials: int = 0
    samples: int = 0
    failure_probability: float = 0.0
    ended: str = ""
    seeds: tuple[int, int] | None = None
    excess_found: float | None = None
    epsilon: float | None = None
    largest_loss: float | None = None
    lower_bound: float | None = None
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def violated(self, what: str) -> None:
        """Take down a violation; the first few are kept."""
        self.status = "violated"
        if len(self.violations) < 5 and what not in self.violations:
            self.violations.append(what)

    def saw_loss(self, loss: float, limit: float, where: str) -> None:
        """Take down an exact loss, as a part of what it may be at most."""
        if limit:
            self.largest_loss = max(self.largest_loss or 0.0, loss / limit)
        self.samples += 1
        if not loss <= limit + TOLERANCE:
            much = "without bound" if math.isinf(loss) else f"{loss:.6g}"
            self.violated(f"{where}: the loss is {much}, and may be {limit:.6g} at most")

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return asdict(self) | {"seeds": list(self.seeds) if self.seeds else None}


class Check(Protocol):
    """One way to try to break the promise."""

    name: str
    shows: str

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Look, and say what was found; a `Violation` may be raised instead of being written down."""
        ...


def unfit(check: Check, why: str) -> Finding:
    """Return what a check says that cannot be made here."""
    return Finding(check.name, check.shows, status="left out", ended=why)
