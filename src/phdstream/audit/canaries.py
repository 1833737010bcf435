"""Black box: canaries in streams, and how many of them can be guessed from what is released.

Each of many events is in the stream or not, by the toss of a coin; everybody knows all the others. Of an ε-private
release no attacker guesses right more often than a coin that shows it with probability ``e^ε/(1 + e^ε)``, whatever the
canaries have to do with each other; so the number of right guesses bounds ε from below, exactly (Steinke, Nasr and
Jagielski 2023: many canaries in one run). It sees the public interface only, so it finds large faults wherever they
are, and small ones nowhere: the report says how large one has to be.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from phdstream.audit.binomial import clopper_pearson
from phdstream.audit.finding import Effort, Finding, Progress
from phdstream.domains import Box
from phdstream.privacy import Event
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.stream import Stream
from phdstream.streams.tracking import TrackingStream

__all__ = ["CanaryCheck", "lower_bound"]

FAILURE = 1e-6
_EPSILON = 1.0
_PLANTED = (1.5, 2.0, 3.0, 5.0)
"""By how much ε is exceeded where the power is measured: streams whose noise is so many times too small."""
_DEPTH, _KNOWN = 6, 40
"""Cells, and events in each that everybody knows: enough for cells to be counted for themselves."""
_METHODS: tuple[Any, ...] = (PHDStream, TrackingStream)


class _Guesses(NamedTuple):
    """How many canaries were guessed, and how many rightly."""

    right: int
    of: int


class CanaryCheck:
    """Both methods; then the same with too little noise, to say what would have been found."""

    name = "black box"
    shows = "From releases alone, canaries cannot be guessed more often than ε allows."

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Guess canaries."""
        finding = Finding(self.name, self.shows, failure_probability=FAILURE, epsilon=_EPSILON, lower_bound=0.0)
        finding.seeds = (effort.seed, effort.seed)
        stages, power = len(_METHODS) * (1 + len(_PLANTED)), []
        for done, method in enumerate(_METHODS):
            at = done * (1 + len(_PLANTED))
            progress(at, stages)
            seen = _guessed(method, _EPSILON, effort.seconds(10.0), effort.seed)
            bound = lower_bound(seen.right, seen.of, FAILURE / len(_METHODS))
            finding.lower_bound = max(finding.lower_bound or 0.0, bound)
            finding.samples += seen.of
            finding.trials += 1
            if bound > _EPSILON:
                finding.violated(f"{method.__name__}: an attacker reaches ε = {bound:.3g} of the promised {_EPSILON:g}")
            power.append(_found_from(method, seen.of, effort.seconds(2.0), effort.seed))
            progress(at + 1 + len(_PLANTED), stages)
        finding.excess_found = max(power) - 1 if all(map(math.isfinite, power)) else None
        finding.ended = f"{finding.samples:,} canaries were guessed"
        finding.notes += [_said(method.__name__, factor) for method, factor in zip(_METHODS, power, strict=True)]
        return finding


def _said(method: str, factor: float) -> str:
    if math.isinf(factor):
        return f"{method}: not even an ε that is {_PLANTED[-1]:g} times too large would have been found with 95% power"
    return f"{method}: of those tried, the least excess found with 95% power is an ε that is {factor:g} times too large"


def _guessed(method: Any, epsilon: float, seconds: float, seed: int) -> _Guesses:
    """Run streams until the time is up, and guess the canaries of each. Coins are of the seed; noise has none."""
    rng, right, of = np.random.default_rng((seed, 9)), 0, 0
    centres = (np.arange(1 << _DEPTH) + 0.5) / (1 << _DEPTH)
    until = time.monotonic() + seconds
    while not of or time.monotonic() < until:
        there = rng.random(centres.size) < 0.5
        stream: Stream = method(Box([(0, 1)], depth=_DEPTH), epsilon, Event(), insert_only=True)
        release = stream.update(np.concatenate([np.repeat(centres, _KNOWN), centres[there]])[:, None])
        cells = release.cells()
        finest = cells["level"].to_numpy() == _DEPTH
        which = cells["node"].to_numpy()[finest] - centres.size
        guess = cells["unbiased"].to_numpy()[finest] - _KNOWN > 0.5
        right += int((guess == there[which]).sum())
        of += which.size
    return _Guesses(right, of)


def lower_bound(right: int, of: int, failure: float) -> float:
    """Return what ε must be at least if so many of some guesses were right, but for a probability of ``failure``.

    >>> round(lower_bound(7_311, 10_000, 1e-6), 2)     # e/(1 + e) is 0.7311
    0.89
    """
    low = clopper_pearson(right, of, failure)[0] if right else 0.0
    return max(0.0, math.log(low / (1 - low))) if 0 < low < 1 else 0.0


def _found_from(method: Any, of: int, seconds: float, seed: int) -> float:
    """Return the least factor by which ε may be exceeded and is found with 95% power; infinity if none is."""
    rng = np.random.default_rng((seed, 7))
    for factor in _PLANTED:
        seen = _guessed(method, _EPSILON * factor, seconds, seed)
        drawn = rng.binomial(of, seen.right / max(seen.of, 1), size=200).tolist()
        if np.mean([lower_bound(right, of, FAILURE / len(_METHODS)) > _EPSILON for right in drawn]) >= 0.95:
            return factor
    return math.inf
