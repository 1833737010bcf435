"""All noisy numbers that a stream draws, and how likely another stream is to draw the same: the best of all attacks.

An attacker who wants to know whether the target is in the data can do no better than the likelihood ratio of everything
that was seen (Neyman and Pearson). A stream publishes functions of its noisy counts; this attacker is given the noisy
counts themselves, those of every stage, which is at least as much.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.privacy import DivisibleNoise, Noise, Simulation
from phdstream.privacy.calibration import log_tail

__all__ = ["Count", "Transcript", "log_likelihood"]


@dataclass
class Count:
    """One call of noise: what was asked, what came out, and what the exact numbers were."""

    tick: int
    scale: float
    at: Ints
    exact: Ints
    noisy: Ints


@dataclass
class Transcript:
    """Noise that keeps every call (``seed``), or gives again what another transcript has and keeps the exact numbers.

    Of divisible noise the last stage is kept, where each node has one part: given these, earlier stages do not depend
    on the data (`phdstream.privacy.divisible_noise`).
    """

    noise: Noise
    again: Transcript | None = None
    tick: int = 0
    counts: list[Count] = field(default_factory=list)
    stages: list[Ints] = field(default_factory=list)
    private = True

    @classmethod
    def seeded(cls, seed: int) -> Transcript:
        """Return noise that can be repeated: `Simulation` has the distribution of the exact noise."""
        return cls(Simulation(seed))

    def repeated(self) -> Transcript:
        """Return noise that gives what this one gave, whatever the data."""
        return Transcript(self.noise, self)

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return noisy values, and keep them."""
        noisy = self.noise.add(values, scale, at) if self.again is None else self._same(scale, at)
        self.counts.append(Count(self.tick, scale, np.array(at), np.array(values), noisy))
        return noisy

    def _same(self, scale: float, at: Ints) -> Ints:
        assert self.again is not None
        before = self.again.counts[len(self.counts)]
        assert before.scale == scale
        assert np.array_equal(before.at, at), "what is counted depends on data"
        return before.noisy

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return noise in parts whose stages are kept."""
        none = np.zeros(0, np.int64)
        self.counts.append(Count(self.tick, scale, none, none, none))
        drawn = self.noise.add(np.zeros(int(parts.sum()), np.int64), scale, none) if self.again is None else none
        return _Parts(drawn, self, self.counts[-1])

    def key(self) -> int:
        """Return a public number."""
        return 1

    def to_dict(self) -> dict[str, Any]:
        """Return nothing to go on with: transcripts are not saved."""
        return {"type": "transcript"}


class _Parts(DivisibleNoise):
    """Divisible noise whose last stage stands in a transcript."""

    def __init__(self, drawn: Ints, transcript: Transcript, count: Count) -> None:
        super().__init__(drawn)
        self._transcript, self._count = transcript, count

    def add(self, values: Ints, first: Ints, parts: Ints, at: Ints) -> Ints:
        stages, again = self._transcript.stages, self._transcript.again
        noisy = super().add(values, first, parts, at) if again is None else again.stages[len(stages)]
        stages.append(noisy)
        self._count.at, self._count.exact, self._count.noisy = np.array(at), np.array(values), noisy
        return noisy


def log_likelihood(transcript: Transcript, ticks: int, splits: float | None = None, threshold: int = 0) -> Floats:
    """Return, tick by tick, the log-probability of all that came out; of split tests (scale ``splits``) a bit each."""
    by_tick = np.zeros(ticks)
    for count in transcript.counts:
        if count.scale == splits:
            told = [
                _log_test(int(b), int(z), count.scale, threshold) for b, z in zip(count.exact, count.noisy, strict=True)
            ]
            by_tick[count.tick] += sum(told)
        else:
            by_tick[count.tick] -= np.abs(count.noisy - count.exact).sum() / count.scale
    return by_tick


def _log_test(biased: int, noisy: int, scale: float, threshold: int) -> float:
    over = noisy > threshold
    return log_tail(threshold + 1 - biased, scale) if over else log_tail(biased - threshold, scale)
