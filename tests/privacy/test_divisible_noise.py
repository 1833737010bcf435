"""Divisible noise: the probability of every output, added up by brute force, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from phdstream.arrays import Ints
from phdstream.audit.divisible import BASE, EPSILON, STAGES, largest_loss, probabilities
from phdstream.privacy import DivisibleNoise
from phdstream.streams.tracking.parameters import Stages

pytestmark = pytest.mark.slow


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
