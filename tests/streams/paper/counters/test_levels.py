"""Different counters on different levels: each node has one kind for ever, and all of them the same budget."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import phdstream as phd
from phdstream.counters import BinaryTree, Block, ByLevel, Counter, Hybrid, Simple, by_level
from phdstream.errors import BudgetError, InputError, PhdstreamError, StateError
from phdstream.privacy import noise_variance
from phdstream.streams.paper.counters import counter_from_dict, make_counter
from tests.noises import KnownNoise, LossMeter, RecordingNoise

EPSILON = 0.7
SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)
KINDS: tuple[Counter, ...] = (Hybrid(EPSILON), Block(EPSILON), BinaryTree(EPSILON, horizon=5), Simple(EPSILON))
MIXED = ByLevel(EPSILON, KINDS, (1, 2, 4, 8))
RULE = by_level({0: "block", 3: partial(BinaryTree, horizon=4), 5: "simple"})


def stream(**options: Any) -> phd.PHDStream:
    return phd.PHDStream(SQUARE, 1.0, phd.Event(), counter=RULE, noise=phd.Simulation(1), **options)


def crowd(number: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).beta(1, 4, (number, 2))


@pytest.mark.parametrize("node", [1, 3, 5, 100])
def test_every_item_at_every_node_loses_at_most_epsilon(node: int) -> None:
    """As the suite of single kinds: item i is a 1 that counter i gets at step i; here all are counters of one node."""
    steps = 300
    meter, state, items = LossMeter(steps), MIXED.start(steps), np.arange(steps)
    kind = KINDS[int(MIXED.kind_of(np.array([node]))[0])]
    alone, own = LossMeter(steps), kind.start(steps)
    for item in range(steps):
        values = (items == item).astype(np.int64)
        state, _ = MIXED.step(state, values, cast(Any, _At(meter, items)), np.full(steps, node))
        own, _ = kind.step(own, values, alone, items)
    assert meter.loss.max() <= EPSILON * (1 + 1e-12)
    np.testing.assert_array_equal(meter.loss, alone.loss)
    assert MIXED.privacy_loss(steps) >= kind.privacy_loss(steps)


class _At:
    """Noise that is told of other labels, so that counters of one node are told apart."""

    def __init__(self, noise: Any, labels: np.ndarray) -> None:
        self._noise, self._labels = noise, labels

    def add(self, values: np.ndarray, scale: float, at: np.ndarray) -> Any:
        assert at.size == self._labels.size or scale  # trees ask epoch by epoch
        return self._noise.add(values, scale, self._labels[: values.size])


def test_a_counter_that_would_change_its_kind_is_refused() -> None:
    """A tree's exact sum would become part of a block's noisy sum: the item would be in one noisy sum too many."""
    state, _ = MIXED.step(MIXED.start(2), np.array([5, 5]), KnownNoise(), np.array([4, 8]))
    with pytest.raises(StateError, match="change its kind"):
        MIXED.step(state, np.array([0, 0]), KnownNoise(), np.array([8, 8]))
    again, output = MIXED.step(state, np.array([1, 1]), KnownNoise(), np.array([7, 9]))  # other nodes, the same kinds
    assert output.tolist() == [6, 6]
    assert again[:, 0].tolist() == [3, 4]


def test_the_variance_of_a_node_is_that_of_its_kind() -> None:
    nodes, steps = np.array([1, 2, 5, 9]), np.array([3, 9, 7, 4])
    expected = [kind.variance(np.zeros(1, np.int64), steps[[i]])[0] for i, kind in enumerate(KINDS)]
    np.testing.assert_allclose(MIXED.variance_at(nodes, np.zeros(4, np.int64), steps), expected)
    assert (MIXED.variance(np.zeros(4, np.int64), steps) >= expected).all()
    assert float(noise_variance(MIXED.scales(9)).sum()) == MIXED.variance(np.zeros(1, np.int64), np.array([9]))[0]


def test_each_level_has_the_noise_of_its_kind() -> None:
    noise = RecordingNoise()
    mixed = phd.PHDStream(SQUARE, 1.0, phd.Event(), counter=RULE, noise=noise)
    mixed.update(crowd(3000, 1))
    scales = {0: 4.0, 3: 6.0, 5: 2.0}  # with 1/2 for counting: 2/ε, 3/ε, 1/ε
    counted = [draw for draw in noise.draws if draw.scale != mixed.rule.scale]
    assert {draw.scale for draw in counted} >= {2.0, 6.0}
    for draw in counted:
        levels = SQUARE.levels(draw.at)
        assert {scales[max(first for first in scales if first <= level)] for level in levels.tolist()} == {draw.scale}


def test_it_follows_a_stream_without_noise() -> None:
    mixed = phd.PHDStream(SQUARE, 1.0, phd.Event(), counter=RULE, noise=KnownNoise())
    for t in range(12):
        release = mixed.update(crowd(200, t), crowd(200, t)[:50])
        assert release.leaf_unbiased.sum() == pytest.approx(150 * (t + 1))
    assert "Block and BinaryTree and Simple (by level)" in mixed.describe()
    assert "exact partial sums" in mixed.describe()


def test_a_saved_stream_goes_on_to_the_bit(tmp_path: Path) -> None:
    whole, first = stream(), stream()
    for t in range(9):
        if t == 4:
            first.save(tmp_path / "state")
            first = phd.PHDStream.load(tmp_path / "state")
        here, there = (each.update(crowd(300, t), crowd(300, t)[:100]) for each in (whole, first))
        np.testing.assert_array_equal(here.leaves, there.leaves)
        np.testing.assert_array_equal(here.leaf_unbiased, there.leaf_unbiased)
        np.testing.assert_array_equal(here.leaf_variance, there.leaf_variance)
    assert first.counter == whole.counter


def test_it_is_plain_data_and_back() -> None:
    counter = make_counter(RULE, 0.5, SQUARE.first_nodes)
    assert counter_from_dict(json.loads(json.dumps(counter.to_dict()))) == counter
    assert counter.private_columns[0] == 4  # a block's fourth and a tree's fourth column, behind the kind


def test_one_kind_by_level_is_that_kind() -> None:
    plain = phd.PHDStream(SQUARE, 1.0, phd.Event(), counter="block", noise=phd.Simulation(1))
    alone = phd.PHDStream(SQUARE, 1.0, phd.Event(), counter=by_level({0: "block"}), noise=phd.Simulation(1))
    for t in range(6):
        first, second = (each.update(crowd(300, t)) for each in (plain, alone))
        np.testing.assert_array_equal(first.leaf_unbiased, second.leaf_unbiased)
        np.testing.assert_array_equal(first.leaf_variance, second.leaf_variance)


@pytest.mark.parametrize("choices", [{}, {1: "simple"}, {0: "simple", -1: "block"}, {0: "simple", 1.5: "block"}, 0])
def test_rules_that_say_nothing_are_refused(choices: Any) -> None:
    with pytest.raises(InputError, match="0 among them"):
        by_level(choices)


@pytest.mark.parametrize("rule", [{0: "simple", 9: "block"}, {0: "simpel"}, {0: 3}, {0: RULE}, {0: MIXED}])
def test_rules_that_do_not_fit_are_refused(rule: Any) -> None:
    with pytest.raises(PhdstreamError):
        phd.PHDStream(SQUARE, 1.0, phd.Event(), counter=by_level(rule))


def test_more_budget_than_was_given_is_refused() -> None:
    with pytest.raises(BudgetError, match="more budget"):
        phd.PHDStream(SQUARE, 1.0, phd.Event(), counter=by_level({0: "simple", 2: lambda epsilon: Block(2 * epsilon)}))
    with pytest.raises(InputError, match="first node of each kind"):
        ByLevel(1.0, (Simple(1.0), Block(1.0)), (1, 1))
    with pytest.raises(InputError, match="at least one"):
        ByLevel(1.0, (), ())
