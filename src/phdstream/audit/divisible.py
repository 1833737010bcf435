"""Divisible noise: the probability of every output, added up by brute force, and what it costs."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from phdstream.arrays import Ints
from phdstream.audit.finding import Violation
from phdstream.audit.forcing import KnownNoise, log_pmf
from phdstream.domains import Box
from phdstream.domains.binary_tree import BinaryTree
from phdstream.privacy import Budget, DivisibleNoise
from phdstream.streams.private_codes import PrivateCodes, TickEvents
from phdstream.streams.tracking.mechanism import Mechanism
from phdstream.streams.tracking.model.refinement import ExpectedCounts, Refinement
from phdstream.streams.tracking.model.split_tree import UNIFORM
from phdstream.streams.tracking.parameters import FineCounts, Stages

__all__ = ["BASE", "EPSILON", "STAGES", "largest_loss", "probabilities"]

LINE = BinaryTree(Box([(0, 1)], depth=2))
EPSILON = 4.0
REACH = 2
"""Parts of noise are drawn from -REACH to REACH; beyond it lie less than two in a hundred thousand."""
Codes = tuple[int, ...]
Output = tuple[int, ...]


class Watched(DivisibleNoise):
    """Divisible noise, right or wrong, of which everything that it gives is written down."""

    def __init__(self, noise: DivisibleNoise, released: list[int]) -> None:
        self._noise, self._released = noise, released

    def add(self, values: Ints, first: Ints, parts: Ints, at: Ints) -> Ints:
        """Return what the noise gives."""
        noisy = self._noise.add(values, first, parts, at)
        self._released.extend([*at.tolist(), *noisy.tolist()])
        return noisy


class ScriptedParts(KnownNoise):
    """Hands out the parts it was given, and keeps their log-probability and all that is released with them."""

    def __init__(self, parts: tuple[int, ...], kind: type[DivisibleNoise]) -> None:
        super().__init__()
        self.parts, self.kind, self.log_probability = parts, kind, 0.0
        self.released: list[int] = []

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return the parts of the script."""
        drawn = self.parts[: int(parts.sum())]
        if len(drawn) != parts.sum():
            raise Violation("more parts of noise were asked for than there are")
        self.log_probability += sum(log_pmf(part, scale) for part in drawn)
        return Watched(self.kind(np.array(drawn, dtype=np.int64)), self.released)


def looks(codes: Codes, parts: tuple[int, ...], stages: Stages, kind: type[DivisibleNoise]) -> tuple[Output, float]:
    """Return everything that is released with these parts of noise, and the log-probability of the parts."""
    noise = ScriptedParts(parts, kind)
    mechanism = Mechanism(Budget(EPSILON, 0.0, EPSILON), LINE.total_bits, noise)
    inserts = PrivateCodes(LINE.total_bits, Fraction(EPSILON), np.array(codes, dtype=np.int64))
    mechanism.take_start([TickEvents(inserts, PrivateCodes(LINE.total_bits, Fraction(EPSILON)))])
    expected = ExpectedCounts(LINE, np.array([1]), np.array([[4.0], [1.0]]), (UNIFORM, UNIFORM))
    mechanism.count_start(Refinement(FineCounts(), expected, stages, EPSILON, None), EPSILON)
    return tuple(noise.released), noise.log_probability


Found = dict[Output, float]


@cache
def probabilities(codes: Codes, stages: Stages, kind: type[DivisibleNoise] = DivisibleNoise) -> tuple[Found, Found]:
    """Return the probability of every output, by drawing all parts within reach, and within one less."""
    near: Found = defaultdict(float)
    far: Found = defaultdict(float)
    for parts in itertools.product(range(-REACH, REACH + 1), repeat=4):
        output, log_probability = looks(codes, parts, stages, kind)
        far[output] += float(np.exp(log_probability))
        if max(map(abs, parts)) < REACH:
            near[output] += float(np.exp(log_probability))
    return near, far


def largest_loss(codes: Codes, others: Codes, stages: Stages, kind: type[DivisibleNoise] = DivisibleNoise) -> float:
    """Return the largest log-ratio of the probabilities of one output, for all that are not next to impossible.

    The neighbour's parts reach one further: a part takes up the difference of 1.
    """
    found: Any = probabilities  # mypy takes a class with slots for unhashable
    here, there = found(codes, stages, kind)[0], found(others, stages, kind)[1]
    if not sum(here.values()) > 0.98:
        raise Violation("the outputs that were looked at are not nearly all")
    return max(float(np.log(p / there[output])) if output in there else np.inf for output, p in here.items())


STAGES: list[Stages] = [((100.0, 2), (8.0, 0)), ((100.0, 2), (8.0, 1), (4.0, 0))]
BASE: Codes = (0, 1, 1)
