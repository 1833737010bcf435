"""Divisible noise: the probability of every output, added up by brute force, and what it costs."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.arrays import Ints
from phdstream.domains.binary_tree import BinaryTree
from phdstream.privacy import Budget, DivisibleNoise
from phdstream.streams.private_codes import PrivateCodes, TickEvents
from phdstream.streams.tracking.mechanism import Mechanism
from phdstream.streams.tracking.model.refinement import ExpectedCounts, Refinement
from phdstream.streams.tracking.model.split_tree import UNIFORM
from phdstream.streams.tracking.parameters import FineCounts, Stages
from tests.noises import KnownNoise, log_pmf

pytestmark = pytest.mark.slow

LINE = BinaryTree(phd.Box([(0, 1)], depth=2))
EPSILON = 4.0
REACH = 2
"""Parts of noise are drawn from -REACH to REACH; beyond it lie less than two in a hundred thousand."""
Codes = tuple[int, ...]
Output = tuple[int, ...]


class TwiceTheSame(DivisibleNoise):
    """A mistake: the second half of a node gets the same part as the first."""

    def add(self, values: Ints, first: Ints, parts: Ints, at: Ints) -> Ints:
        """Return noisy counts, all with the noise of the first parts."""
        return super().add(values, np.zeros_like(first), parts, at)


class OnePartOnly(DivisibleNoise):
    """A mistake: nodes that may still be divided are looked at with one part of their noise only."""

    def add(self, values: Ints, first: Ints, parts: Ints, at: Ints) -> Ints:
        """Return noisy counts, each with one part."""
        return super().add(values, first, np.ones_like(parts), at)


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
        assert len(drawn) == parts.sum()
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
    assert sum(here.values()) > 0.98
    return max(float(np.log(p / there[output])) if output in there else np.inf for output, p in here.items())


STAGES: list[Stages] = [((100.0, 2), (8.0, 0)), ((100.0, 2), (8.0, 1), (4.0, 0))]
BASE: Codes = (0, 1, 1)


@pytest.mark.parametrize("appears", [True, False], ids=["more", "less"])
@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("stages", STAGES, ids=["two stages", "three stages"])
def test_any_number_of_looks_costs_epsilon_once(stages: Stages, place: int, appears: bool) -> None:
    with_event = (*BASE, place)
    loss = largest_loss(BASE, with_event, stages) if appears else largest_loss(with_event, BASE, stages)
    assert loss <= EPSILON + 1e-3  # the neighbour's parts, cut off later, add a little
    assert loss > EPSILON - 0.01  # and all of it is spent


def test_some_outputs_are_divided_and_some_are_not() -> None:
    lengths = {len(output) for output in probabilities(BASE, STAGES[1])[0]}
    assert len(lengths) > 2


@pytest.mark.parametrize("mistake", [TwiceTheSame, OnePartOnly])
def test_mistakes_would_be_seen(mistake: type[DivisibleNoise]) -> None:
    assert largest_loss(BASE, (*BASE, 2), STAGES[0], mistake) > EPSILON + 0.5


def test_what_a_node_is_counted_with_is_the_sum_of_its_parts() -> None:
    parts = np.random.default_rng(1).integers(-9, 9, 12)
    noise = DivisibleNoise(parts)
    first, number, values = np.array([0, 4, 11, 3]), np.array([4, 1, 1, 6]), np.array([5, 6, 7, 0])
    noisy = noise.add(values, first, number, at=np.arange(4))
    assert noisy.tolist() == [int(v + parts[a : a + n].sum()) for v, a, n in zip(values, first, number, strict=True)]
    assert noise.add(values, first, number, at=np.arange(4)).tolist() == noisy.tolist()  # looking again costs nothing
