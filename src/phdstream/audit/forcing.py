"""Noise that is handed its answers, by a script or by a wild mind; and how likely these were, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from phdstream.arrays import Ints
from phdstream.privacy import DivisibleNoise, SplitRule
from phdstream.privacy.calibration import log_tail

__all__ = [
    "ForcedNoise",
    "ForcedSums",
    "KnownNoise",
    "Script",
    "WildNoise",
    "all_outputs",
    "log_pmf",
    "random_choices",
]


def log_pmf(k: int, scale: float) -> float:
    """Return ``ln P(Z = k)`` for Z discrete Laplace: ``(1 - a)/(1 + a)·a^|k|`` with ``a = exp(-1/scale)``."""
    return math.log(math.tanh(1 / (2 * scale))) - abs(k) / scale


class KnownNoise:
    """No noise at all. The others build on it."""

    private = True
    unproved = "an audit's own"

    def __init__(self) -> None:
        self._keys = 0

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return the values as they are."""
        return np.array(values)

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return parts that `add` gives: so many for each of the nodes."""
        return DivisibleNoise(self.add(np.zeros(int(parts.sum()), np.int64), scale, at=np.repeat(at, parts)))

    def key(self) -> int:
        """Return 1, 2, 3, ..."""
        self._keys += 1
        return self._keys

    def to_dict(self) -> dict[str, Any]:
        """Name the kind of noise; it cannot be resumed."""
        return {"type": type(self).__name__}


class WildNoise(KnownNoise):
    """Answers that production noise would hardly ever give; the promise must hold for them too."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = np.random.default_rng(seed)
        self._near = self._rng.choice([3, 40, 1000])

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return answers that have nothing to do with the values: far below, about zero, far above."""
        kind = self._rng.integers(4, size=values.size)
        far = self._rng.choice([-300, 30, 300, 100_000], p=[0.3, 0.3, 0.3, 0.1], size=values.size)
        near = self._rng.integers(-self._near, self._near + 1, size=values.size)
        above = 2000 if self._rng.random() < 0.3 else 0  # all at once: so that trees grow deep
        return np.where(kind == 0, far, near).astype(np.int64) + above


class ForcedNoise(KnownNoise):
    """Takes every split decision and every noisy sum from a script, and adds up the exact log-probability of each.

    Two neighbouring streams run with the same script give the same output, so the difference of their log-probabilities
    is the privacy loss of that output. ``choose(options)`` is asked for each decision; sums are chosen from ``sums``.
    """

    def __init__(self, rule: SplitRule, choose: Callable[[int], int], sums: tuple[int, ...]) -> None:
        super().__init__()
        self.rule, self.choose, self.sums = rule, choose, sums
        self.log_probability = 0.0
        self.calls: list[tuple[float, Ints, Ints]] = []

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return what the script says."""
        self.calls.append((scale, np.array(at), np.array(values)))
        force = self._split if scale == self.rule.scale else self._sum
        return np.array([force(int(value), scale) for value in values], dtype=np.int64)

    def _split(self, value: int, scale: float) -> int:
        """Split or do not: ``P(value + Z > θ)`` or its complement, ``P(Z >= value - θ)`` by symmetry."""
        threshold = self.rule.threshold
        if self.choose(2):
            self.log_probability += log_tail(threshold + 1 - value, scale)
            return threshold + 1
        self.log_probability += log_tail(value - threshold, scale)
        return threshold

    def _sum(self, value: int, scale: float) -> int:
        chosen = self.sums[self.choose(len(self.sums))]
        self.log_probability += log_pmf(chosen - value, scale)
        return chosen


class ForcedSums(KnownNoise):
    """Takes every noisy count from a script, keeps every call, and adds up the exact log-probability."""

    def __init__(self, choose: Callable[[int], int], sums: tuple[int, ...]) -> None:
        super().__init__()
        self.choose, self.sums, self.log_probability = choose, sums, 0.0
        self.calls: list[tuple[float, Ints, Ints]] = []
        self.open_counts: list[_ForcedParts] = []
        self.stages: list[tuple[Ints, Ints]] = []

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return what the script says."""
        chosen = self.chosen(values.size)
        self.calls.append((scale, np.array(at), np.array(values)))
        self.log_probability += sum(log_pmf(int(k), scale) for k in chosen - values)
        return chosen

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return parts of which the script says what is released."""
        return _ForcedParts(self, scale, parts, at)

    def chosen(self, size: int) -> Ints:
        """Return the script's next numbers."""
        return np.array([self.sums[self.choose(len(self.sums))] for _ in range(size)], dtype=np.int64)


class _ForcedParts(DivisibleNoise):
    """Takes what is released from the script, whatever the data.

    A released value is the sum of numbers chosen for the parts a node has, so all stages agree with each other. The
    part of a final node is then the number minus the true count, and a dropped part the number itself: what
    the last stage costs is all that depends on the data (`privacy.divisible_noise` says why; its test adds it up).
    """

    def __init__(self, noise: ForcedSums, scale: float, parts: Ints, at: Ints) -> None:
        self.noise, self.scale, self.chosen = noise, scale, noise.chosen(int(parts.sum()))
        self.call = len(noise.calls)
        noise.calls.append((scale, at, parts))
        noise.open_counts.append(self)
        self.parts, self.loss = parts, 0.0

    def add(self, values: Ints, first: Ints, parts: Ints, at: Ints) -> Ints:
        self.parts = parts
        self.noise.stages.append((np.array(at), np.array(parts)))
        self.noise.calls[self.call] = (self.scale, np.array(at), np.array(values))
        ends = np.concatenate([[0], np.cumsum(self.chosen)])
        noisy: Ints = ends[first + parts] - ends[first]
        self.noise.log_probability -= self.loss
        self.loss = sum(log_pmf(int(k), self.scale) for k in noisy - values)
        self.noise.log_probability += self.loss
        return noisy


class Script:
    """A list of choices, replayed from the start by every run; past its end it grows with zeros."""

    def __init__(self, choices: list[int]) -> None:
        self.choices, self.options, self._at = choices, [0] * len(choices), 0

    def __call__(self, options: int) -> int:
        """Return the next choice out of so many."""
        if self._at == len(self.choices):
            self.choices.append(0)
            self.options.append(options)
        self.options[self._at] = options
        self._at += 1
        return self.choices[self._at - 1]


def all_outputs(run: Callable[[Callable[[int], int]], object]) -> Iterator[list[int]]:
    """Yield the choices of every possible run: depth first, the last choice moving fastest."""
    choices: list[int] = []
    while True:
        script = Script(choices)
        run(script)
        yield list(script.choices)
        choices, options = script.choices, script.options
        while choices and choices[-1] == options[-1] - 1:
            choices.pop()
            options.pop()
        if not choices:
            return
        choices[-1] += 1


def random_choices(seed: int) -> Callable[[int], int]:
    """Return choices that belong to the seed and to nothing else."""
    rng = np.random.default_rng(seed)
    return lambda options: int(rng.integers(options))
