"""The sampler: production noise against its exact distribution, tails included; fresh, independent, of no seed.

Every test is an exact binomial test, at a failure probability that is shared out among all of them beforehand.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from unittest.mock import patch

import numpy as np

from phdstream.arrays import Ints
from phdstream.audit.binomial import log_tail_at_least, surprise
from phdstream.audit.finding import Effort, Finding, Progress
from phdstream.domains import Box
from phdstream.errors import InputError
from phdstream.priors import Prior
from phdstream.privacy import Event, ExactNoise, Simulation, scale_for
from phdstream.privacy.laplace import discrete_laplace
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.tracking import TrackingStream

__all__ = ["SamplerCheck", "least_excess"]

FAILURE = 1e-6
_SCALES = (0.3, 1.0, 3.7, 20.0, 130.0, 5e4)
_QUANTILES = (0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4)
_BATCH, _BATCHES = 250_000, 12


class SamplerCheck:
    """Draws noise as a stream does, and compares it."""

    name = "sampler"
    shows = "Production noise is exactly discrete Laplace, tails included; every call draws anew, each part for itself."

    def __init__(self, epsilons: tuple[float, ...] = ()) -> None:
        self._scales = (*_SCALES, *(scale_for(epsilon) for epsilon in epsilons))

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Test every scale."""
        finding = Finding(self.name, self.shows, failure_probability=FAILURE)
        batches = effort.number(_BATCHES)
        number = batches * _BATCH
        tests = len(self._scales) * (4 * len(_QUANTILES) + 6)
        for done, scale in enumerate(self._scales):
            progress(done, len(self._scales))
            _marginals(finding, scale, batches, FAILURE / tests)
            _independence(finding, scale, FAILURE / tests)
            finding.trials += 1
        _freshness(finding)
        finding.samples = number * len(self._scales)
        finding.excess_found = least_excess(number, FAILURE / tests)
        finding.ended = f"all {len(self._scales)} scales were drawn {number:,} times, and {number:,} times in parts"
        progress(len(self._scales), len(self._scales))
        return finding


def _tail(k: int, scale: float) -> float:
    """Return P(Z >= k) for k of at least 1."""
    return math.exp(-k / scale) / (1 + math.exp(-1 / scale))


def _marks(scale: float) -> list[int]:
    """Return where tails are compared: about where they have the probabilities of ``_QUANTILES``."""
    return sorted({max(1, math.ceil(-scale * math.log(q * (1 + math.exp(-1 / scale))))) for q in _QUANTILES})


def _marginals(finding: Finding, scale: float, batches: int, failure: float) -> None:
    """Compare tails on both sides, of whole draws and of parts of divisible noise."""
    number, marks, seen = batches * _BATCH, _marks(scale), Counter[tuple[str, str, int]]()
    zeros, one = np.zeros(_BATCH, np.int64), np.ones(_BATCH, np.int64)
    for _ in range(batches):
        parts = ExactNoise().divisible(scale, one, at=one)
        drawn = {
            "noise": ExactNoise().add(zeros, scale, at=zeros),
            "a part of noise": parts.add(zeros, np.arange(_BATCH), one, at=one),
        }
        for what, sample in drawn.items():
            for k in marks:
                seen[what, "above", k] += int((sample >= k).sum())
                seen[what, "below", k] += int((sample <= -k).sum())
    for (what, side, k), count in seen.items():
        if surprise(count, number, _tail(k, scale)) < failure:
            finding.violated(f"{what} of scale {scale:.4g} is {k} or more {side} 0 too often or too seldom")


def _independence(finding: Finding, scale: float, failure: float) -> None:
    """Pairs that should be independent have signs that agree half of the time."""
    number = 20_000
    once, again = discrete_laplace(scale, number), discrete_laplace(scale, number)
    for what, (a, b) in {
        "two calls": (once, again),
        "neighbours of one call": (once[:-1], once[1:]),
        "both halves of a call": (once[: number // 2], once[number // 2 :]),
    }.items():
        there = (a != 0) & (b != 0)
        agree = int((np.sign(a[there]) == np.sign(b[there])).sum())
        if surprise(agree, int(there.sum()), 0.5) < failure:
            finding.violated(f"noise of scale {scale:.4g}: {what} are not independent")


def _freshness(finding: Finding) -> None:
    """Noise comes from the operating system at every call: with its bits held still, so is noise; else never."""
    with patch.object(os, "urandom", _pattern):
        held = [_some().tolist() for _ in range(2)]
    if held[0] != held[1]:
        finding.violated("noise depends on something else than the operating system's randomness")
    source, zeros = ExactNoise(), np.zeros(200, np.int64)
    for first, second in ((ExactNoise(), ExactNoise()), (source, source)):
        if np.array_equal(first.add(zeros, 50.0, at=zeros), second.add(zeros, 50.0, at=zeros)):
            finding.violated("two calls gave the same noise")
    for method in (PHDStream, TrackingStream):
        streams = [method(Box([(0, 1)], depth=2), 0.1, Event()) for _ in range(6)]
        if not all(isinstance(stream.noise, ExactNoise) for stream in streams):
            finding.violated(f"{method.__name__} does not use production noise unless told otherwise")
        if len({stream.update(np.full((5000, 1), 0.5)).total for stream in streams}) == 1:  # by chance: below 1e-7
            finding.violated(f"{method.__name__}: streams with the same events release the same")
    if _takes_a_simulated_prior():
        finding.violated("a stream with production noise starts from a release that was only simulated")
    with patch.object(os, "urandom", side_effect=_pattern) as read:
        _some()
    if sum(call.args[0] for call in read.call_args_list) < 2 * 200:
        finding.violated("fewer random bits were read than noise has")


def _takes_a_simulated_prior() -> bool:
    line = Box([(0, 1)], depth=2)
    release = TrackingStream(line, 1.0, Event(), noise=Simulation(seed=1)).update(np.full((500, 1), 0.5))
    try:
        TrackingStream(line, 1.0, Event(), prior=Prior.from_release(release))
    except InputError:
        return False
    return True


def _pattern(size: int) -> bytes:
    return (b"\x91\x3c\x5e\x07\xd8\xa2\x6b\xf4\x19" * (size // 9 + 1))[:size]


def _some() -> Ints:
    return ExactNoise().add(np.zeros(200, np.int64), 50.0, at=np.zeros(200, np.int64))


def least_excess(number: int, failure: float) -> float:
    """Return the least relative excess of ε, from noise of too small a scale, that is seen with 95% power.

    By the tail test that sees it best: its threshold is found exactly, and the power at the threshold.

    >>> 0.005 < least_excess(400_000, 1e-8) < 0.05
    True
    """
    scale = 20.0
    thresholds = {k: _threshold(number, _tail(k, scale), failure) for k in _marks(scale)}
    low, high = 0.0, 4.0
    for _ in range(20):
        middle = (low + high) / 2
        wrong = scale / (1 + middle)
        missed = min(math.exp(log_tail_at_least(most + 1, number, _tail(k, wrong))) for k, most in thresholds.items())
        low, high = (low, middle) if missed <= 0.05 else (middle, high)
    return high


def _threshold(number: int, p: float, failure: float) -> int:
    """Return the largest count that would be found too small."""
    low, high = -1, int(number * p)
    while high - low > 1:
        middle = (low + high) // 2
        small = surprise(middle, number, p) < failure
        low, high = (middle, high) if small else (low, middle)
    return low
