"""Noise in equal parts: the probability of every output, added up by brute force, and what it costs."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest

import phdstream as phd
import phdstream.streams.tracking.staging as staging
from phdstream.privacy import SharedNoise, Simulation, noise_variance
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.shares import Shares
from phdstream.streams.tracking.staging import Expected, Plan, count_in_stages
from tests.noises import Ints, KnownNoise, log_pmf

LINE = Halves(phd.Box([(0, 1)], depth=2))
EPSILON = 3.0
REACH = 3
"""Parts of noise are drawn from -REACH to REACH; beyond it lie less than two in a hundred thousand."""
Output = tuple[int, ...]


class ScriptedParts(KnownNoise):
    """Hands out the parts it was given, and keeps their log-probability."""

    def __init__(self, parts: tuple[int, ...]) -> None:
        super().__init__()
        self.parts, self.log_probability = parts, 0.0

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return the values plus the parts."""
        assert not values.any()  # the noise is drawn before anything is counted
        drawn = np.array(self.parts[: values.size], dtype=np.int64)
        self.log_probability += sum(log_pmf(int(part), scale) for part in drawn)
        return values + drawn


class TwiceTheSame(SharedNoise):
    """A mistake: the second half of a node gets the same part as the first."""

    def add(self, values: Ints, first: Ints, held: Ints, at: Ints) -> Ints:
        """Return noisy counts, all with the noise of the first parts."""
        return super().add(values, np.zeros_like(first), held, at)


class OnePartOnly(SharedNoise):
    """A mistake: nodes that may still be divided are looked at with one part of their noise only."""

    def add(self, values: Ints, first: Ints, held: Ints, at: Ints) -> Ints:
        """Return noisy counts, each with one part."""
        return super().add(values, first, np.ones_like(held), at)


def looks(codes: list[int], parts: tuple[int, ...], plan: Plan) -> tuple[Output, float]:
    """Return everything that is released with these parts of noise, and the log-probability of the parts."""
    released: list[int] = []
    noise = ScriptedParts(parts)

    class Watched(SHARED[0]):  # type: ignore[misc, name-defined]
        def add(self, values: Ints, first: Ints, held: Ints, at: Ints) -> Ints:
            noisy: Ints = super().add(values, first, held, at)
            released.extend([*at.tolist(), *noisy.tolist()])
            return noisy

    def count(nodes: Ints) -> Ints:
        first, past = LINE.code_range(nodes)
        return np.array([sum(a <= code < b for code in codes) for a, b in zip(first, past, strict=True)])

    original, staging.SharedNoise = staging.SharedNoise, Watched  # type: ignore[attr-defined, misc]
    try:
        expected = Expected(np.array([1]), np.array([[4.0], [1.0]]), (Shares.none(), Shares.none()))
        count_in_stages(LINE, count, noise, EPSILON, expected, plan)
    finally:
        staging.SharedNoise = original  # type: ignore[attr-defined, misc]
    return tuple(released), noise.log_probability


SHARED: list[type[SharedNoise]] = [SharedNoise]


def probabilities(codes: list[int], plan: Plan, reach: int) -> dict[Output, float]:
    """Return the probability of every output, by drawing all parts within reach."""
    found: dict[Output, float] = defaultdict(float)
    for parts in itertools.product(range(-reach, reach + 1), repeat=4):
        output, log_probability = looks(codes, parts, plan)
        found[output] += float(np.exp(log_probability))
    return found


def largest_loss(codes: list[int], others: list[int], plan: Plan) -> float:
    """Return the largest log-ratio of the probabilities of one output, for all that are not next to impossible.

    The neighbour's parts reach one further: a part takes up the difference of 1.
    """
    here, there = probabilities(codes, plan, REACH - 1), probabilities(others, plan, REACH)
    assert sum(here.values()) > 0.98
    return max(float(np.log(p / there[output])) if output in there else np.inf for output, p in here.items())


PLANS: list[Plan] = [((100.0, 2), (6.0, 0)), ((100.0, 2), (6.0, 1), (3.0, 0))]


@pytest.mark.parametrize("appears", [True, False], ids=["more", "less"])
@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("plan", PLANS, ids=["two stages", "three stages"])
def test_any_number_of_looks_costs_epsilon_once(plan: Plan, place: int, appears: bool) -> None:
    without, with_event = [0, 1, 1], [0, 1, 1, place]
    loss = largest_loss(without, with_event, plan) if appears else largest_loss(with_event, without, plan)
    assert loss <= EPSILON + 1e-3  # the neighbour's parts, cut off later, add a little
    assert loss > EPSILON - 0.01  # and all of it is spent


def test_some_outputs_are_divided_and_some_are_not() -> None:
    lengths = {len(output) for output in probabilities([0, 1, 1], PLANS[1], 1)}
    assert len(lengths) > 2


@pytest.mark.parametrize("mistake", [TwiceTheSame, OnePartOnly])
def test_mistakes_would_be_seen(mistake: type[SharedNoise], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SHARED", [mistake])
    assert largest_loss([0, 1, 1], [0, 1, 1, 2], PLANS[0]) > EPSILON + 0.5


def uneven(nodes: Ints) -> Ints:
    """Count 400 events in the first eighth of the line and 100 in the rest."""
    first, past = DEEP.code_range(nodes)
    upto_first, upto_past = (
        np.minimum(at, 32) * 400 // 32 + np.maximum(at - 32, 0) * 100 // 224 for at in (first, past)
    )
    return upto_past - upto_first


DEEP = Halves(phd.Box([(0, 1)], depth=8))
PLAN: Plan = ((20.0, 3), (10.0, 1), (5.0, 0))


def counted(seed: int, plan: Plan = PLAN, at_most: int | None = None) -> tuple[Ints, np.ndarray]:
    expected = Expected(np.array([1]), np.array([[500.0], [1.0]]), (Shares.none(), Shares.none()))
    found = count_in_stages(DEEP, uneven, Simulation(seed), 1.0, expected, plan, at_most)
    return found.node, found.value


def test_the_final_nodes_tile_the_line_and_are_finer_where_more_is() -> None:
    node, _ = counted(seed=1)
    first, past = (np.sort(ends) for ends in DEEP.code_range(node))
    np.testing.assert_array_equal(first[1:], past[:-1])
    assert (first[0], past[-1]) == (0, 256)
    dense = DEEP.code_range(node)[0] < 32
    assert DEEP.bits(node[dense]).min() > DEEP.bits(node[~dense]).min()


@pytest.mark.parametrize("limit", [1, 5, 33, 40])
def test_no_more_nodes_than_allowed(limit: int) -> None:
    assert counted(seed=1, at_most=limit)[0].size <= limit


def test_the_sum_is_unbiased() -> None:
    """Though nodes whose noise is large are divided more often, and keep it."""
    sums = [counted(seed)[1].sum() for seed in range(400)]
    assert abs(np.mean(sums) - 500) < 4 * np.std(sums) / np.sqrt(len(sums))


def test_what_is_not_divided_is_left_with_one_part_of_noise() -> None:
    errors = []
    for seed in range(100):
        node, value = counted(seed, ((20.0, 3), (1e9, 0)))
        error = value - uneven(node)
        errors.extend(error - error.mean())  # what was given back is the same for all
    assert np.var(errors) == pytest.approx(noise_variance(1.0), rel=0.1)


def test_no_more_parts_are_drawn_than_memory_allows() -> None:
    drawn = []

    class Counting(KnownNoise):
        def add(self, values: Ints, scale: float, at: Ints) -> Ints:
            drawn.append(values.size)
            return values

    expected = Expected(np.array([1]), np.array([[500.0], [1.0]]), (Shares.none(), Shares.none()))
    for limit in (1, 10, 33, 100):
        count_in_stages(DEEP, uneven, Counting(), 1.0, expected, ((20.0, 6), (5.0, 0)), limit)
        assert drawn[-1] <= 4 * limit
    assert drawn[-1] > 100


def test_what_holds_much_is_divided_as_often_as_it_may_be() -> None:
    """One place holds everything: from stage to stage it is found more closely, four halvings in all."""
    expected = Expected(np.array([1]), np.array([[500.0], [1.0]]), (Shares.none(), Shares.none()))

    def one_place(nodes: Ints) -> Ints:
        first, past = DEEP.code_range(nodes)
        return np.where((first <= 77) & (past > 77), 500, 0)

    found = count_in_stages(DEEP, one_place, Simulation(1), 1.0, expected, ((200.0, 4), (100.0, 2), (10.0, 0)))
    first, past = DEEP.code_range(found.node)
    here = (first <= 77) & (past > 77)
    assert DEEP.bits(found.node[here]).tolist() == [2 + 4]
    assert found.value[here][0] == pytest.approx(500, abs=20)
