"""Noise that forces a stream's output and computes the exact probability of it; all outputs can be enumerated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from phdstream.arrays import Ints
from phdstream.privacy import SplitRule
from phdstream.privacy.calibration import log_tail
from tests.noises import KnownNoise, log_pmf


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


class Script:
    """A list of choices, replayed from the start by every run; past its end it grows with zeros."""

    def __init__(self, choices: list[int]) -> None:
        self.choices, self.options, self._at = choices, [0] * len(choices), 0

    def __call__(self, options: int) -> int:
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
