"""Selective counting: what is selected is counted, the rest stays, and one item costs both budgets."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from phdstream.errors import InputError
from phdstream.privacy import Simulation
from phdstream.streams.paper.counters import BinaryTree, Block, Hybrid, Simple
from phdstream.streams.paper.selective_counting import NoisyMax, Selection, SelectiveCounting
from tests.noises import KnownNoise, RecordingNoise, ScriptedNoise

pytestmark = pytest.mark.slow


class Dictated:
    """A selector that picks what the input says: pairs (labels, counts)."""

    epsilon = 0.25

    def __call__(self, value: Any, history: Any, noise: Any) -> Any:
        return value[0]


def dictated(counter: Any = None, noise: Any = None) -> Any:
    return SelectiveCounting(
        counter or Simple(0.5), Dictated(), lambda value, labels: value[1], noise=noise or KnownNoise()
    )


def count_of(value: Any, labels: Any) -> Any:
    return value[list(labels)]


# --- what is counted ---


def test_budgets_add_up() -> None:
    assert dictated(Simple(0.5)).epsilon == 0.75
    assert dictated(Block(1.0)).epsilon == 1.25


def test_labels_stay_separate_and_only_the_selected_move() -> None:
    counting = dictated()
    assert counting.step((["a", "b"], [1, 10])).totals == (1, 10)
    assert counting.step((["b"], [100])).totals == (110,)
    assert counting.step((["c", "a"], [1000, 5])).totals == (1000, 6)
    assert counting.step((["b", "a", "c"], [0, 0, 0])).totals == (110, 6, 1000)
    ((counter, bank),) = counting.banks.items()
    assert counter.steps(bank.state).tolist() == [3, 3, 2]


def test_any_hashable_is_a_label() -> None:
    counting = dictated()
    counting.step(([(1, 2), None, "x", 7], [1, 2, 3, 4]))
    assert counting.step((["x", (1, 2)], [0, 0])).totals == (3, 1)


@pytest.mark.parametrize("counter", [Simple(1.0), Block(1.0, size=3), BinaryTree(1.0, horizon=2), Hybrid(1.0)])
def test_totals_are_exact_without_noise_under_any_selection(counter: Any) -> None:
    counting, truth, rng = dictated(counter), dict.fromkeys(range(6), 0), np.random.default_rng(1)
    for _ in range(60):
        labels = rng.permutation(6)[: rng.integers(0, 7)].tolist()
        counts = rng.integers(-9, 10, len(labels)).tolist()
        for label, count in zip(labels, counts, strict=True):
            truth[label] += count
        assert counting.step((labels, counts)) == Selection(tuple(labels), tuple(truth[label] for label in labels))


def test_a_set_of_counters_of_several_kinds_counts_exactly_without_noise() -> None:
    kinds = [Simple(0.5), Block(0.5, size=3), BinaryTree(0.25, horizon=2), Block(0.5, size=3), Simple(0.5), Hybrid(0.5)]
    counting, truth, rng = dictated(kinds), dict.fromkeys(range(6), 0), np.random.default_rng(1)
    assert counting.epsilon == 0.75
    for _ in range(60):
        labels = rng.permutation(6)[: rng.integers(0, 7)].tolist()
        counts = rng.integers(-9, 10, len(labels)).tolist()
        for label, count in zip(labels, counts, strict=True):
            truth[label] += count
        assert counting.step((labels, counts)) == Selection(tuple(labels), tuple(truth[label] for label in labels))


def test_each_label_has_the_noise_of_its_own_kind() -> None:
    noise = RecordingNoise()
    counting = dictated({"busy": Block(0.5, size=3), "quiet": Simple(0.5)}, noise)
    counting.step((["quiet", "busy"], [1, 2]))
    assert [(draw.values.tolist(), draw.scale) for draw in noise.draws] == [([1], 2.0), ([2], 4.0)]


@pytest.mark.parametrize("counters", [[], {}, "simple", ["simple"], {"a": None}])
def test_what_is_no_set_of_counters_is_refused(counters: Any) -> None:
    with pytest.raises(InputError, match="counter for each label"):
        SelectiveCounting(counters, Dictated(), lambda value, labels: value[1], noise=KnownNoise())


def test_a_label_without_a_counter_is_refused_and_nothing_is_counted() -> None:
    counting = dictated([Simple(0.5), Block(0.5)])
    with pytest.raises(InputError, match="no counter"):
        counting.step(([1, 2], [5, 5]))
    assert counting.step(([1], [0])).totals == (0,)


def test_nothing_selected_nothing_drawn() -> None:
    noise = RecordingNoise()
    counting = dictated(noise=noise)
    assert counting.step(([], [])) == Selection((), ())
    assert sum(draw.values.size for draw in noise.draws) == 0


def test_history_is_all_public_output_in_order() -> None:
    seen = []

    class Watching(Dictated):
        def __call__(self, value: Any, history: Any, noise: Any) -> Any:
            seen.append(list(history))
            return value[0]

    counting = SelectiveCounting(Simple(0.5), Watching(), lambda value, labels: value[1], noise=KnownNoise())
    outputs = [counting.step(([label], [1])) for label in "aba"]
    assert outputs == [Selection(("a",), (1,)), Selection(("b",), (1,)), Selection(("a",), (2,))]
    assert counting.history == outputs
    assert seen == [[], outputs[:1], outputs[:2]]


def test_totals_are_plain_integers() -> None:
    assert all(type(total) is int for total in dictated().step((["a", "b"], np.array([1, 2]))).totals)


# --- what is refused ---


def test_a_label_selected_twice_is_refused_and_nothing_is_counted() -> None:
    counting = dictated()
    counting.step((["a"], [1]))
    with pytest.raises(InputError, match="twice"):
        counting.step((["b", "a", "b"], [1, 1, 1]))
    assert len(counting.history) == 1
    assert counting.step((["a"], [0])).totals == (1,)


@pytest.mark.parametrize("counts", [[5], 5, [5, 6, 7], [[5, 6]], [[5], [6]]])
def test_another_number_of_counts_than_labels_is_refused(counts: Any) -> None:
    """One count for two labels would be broadcast: one draw of noise shared by two counters."""
    with pytest.raises(InputError):
        dictated(noise=Simulation(seed=1)).step((["a", "b"], counts))


def test_fractions_are_refused() -> None:
    """Rounded down, two fractions that move by 1/2 each are counts that move by 1 each."""
    with pytest.raises(InputError):
        dictated().step((["a", "b"], [0.5, 1.5]))
    with pytest.raises(InputError):
        NoisyMax(1.0, "ab", lambda value, labels: value)(np.array([0.5, 1.5]), [], KnownNoise())


# --- noisy maximum ---


@pytest.mark.parametrize("noise", [KnownNoise(), Simulation(seed=1)])
def test_noisy_max_picks_the_largest_first_when_noise_is_negligible(noise: Any) -> None:
    busiest = NoisyMax(epsilon=100.0, labels="abcde", measure=lambda value, labels: value, pick=3)
    assert busiest(np.array([5, 90, -3, 70, 20]), [], noise) == ["b", "d", "e"]


def test_noisy_max_asks_for_noise_of_its_budget_on_every_count() -> None:
    noise = RecordingNoise()
    NoisyMax(epsilon=0.5, labels=range(3), measure=count_of)(np.array([1, 2, 3]), [], noise)
    assert [(draw.values.tolist(), draw.scale) for draw in noise.draws] == [([1, 2, 3], 2.0)]


def test_noisy_max_decides_by_the_noisy_counts() -> None:
    busiest = NoisyMax(epsilon=1.0, labels="abc", measure=lambda value, labels: value)
    assert busiest(np.array([100, 0, 0]), [], ScriptedNoise([0, 0, 1])) == ["c"]


# --- the theorem, by enumeration ---


def outcome(counter: Any, stream: Any, script: Any) -> Any:
    """Return what is released when every noisy number is as scripted, and the log-probability of that."""
    noise = ScriptedNoise(script)
    busiest = NoisyMax(epsilon=0.5, labels=range(2), measure=count_of)
    counting = SelectiveCounting(counter, busiest, count_of, noise=noise)
    released = tuple(counting.step(np.array(value)) for value in stream)
    return released, noise.log_probability


def losses(counter: Any, stream: Any, neighbour: Any, window: Any) -> Any:
    """Return the log-ratio of probabilities of every outcome, noisy counts of the selector included.

    A step draws three noisy numbers: the selector's two and the selected counter's one.
    """
    for script in itertools.product(window, repeat=3 * len(stream)):
        here, there = (outcome(counter, s, script) for s in (stream, neighbour))
        assert here[0] == there[0]
        yield here[0], here[1] - there[1], here[1], there[1]


NEIGHBOURS = {
    "first step": ([(2, 0), (0, 0)], [(1, 0), (0, 0)]),
    "last step": ([(0, 0), (1, 3)], [(0, 0), (1, 4)]),
}
COUNTERS = [Simple(0.7), Block(0.7, size=2), BinaryTree(0.7, horizon=2), Hybrid(0.7)]
SETS = [[Simple(0.7), Block(0.7, size=2)], [BinaryTree(0.7, horizon=2), Simple(0.3)], [Block(0.2), Hybrid(0.7)]]


@pytest.mark.parametrize("neighbours", NEIGHBOURS.values(), ids=NEIGHBOURS)
@pytest.mark.parametrize("counters", SETS, ids=repr)
def test_in_a_set_of_several_kinds_an_item_costs_the_selector_and_its_own_counter(
    counters: Any, neighbours: Any
) -> None:
    """The paper's theorem with a counter of its own for each label, by enumeration."""
    stream, neighbour = neighbours
    ratios = [abs(loss) for _, loss, _, _ in losses(counters, stream, neighbour, window=(-1, 1, 3))]
    (changed,) = {int(label) for label in np.argwhere(np.subtract(*neighbours))[:, 1]}
    assert max(ratios) <= 0.5 + counters[changed].epsilon + 1e-12
    assert max(ratios) > 0.5 + 0.4 * counters[changed].epsilon


@pytest.mark.parametrize("neighbours", NEIGHBOURS.values(), ids=NEIGHBOURS)
@pytest.mark.parametrize("counter", COUNTERS, ids=repr)
def test_one_item_changes_no_outcome_by_more_than_both_budgets(counter: Any, neighbours: Any) -> None:
    stream, neighbour = neighbours
    ratios = [abs(loss) for _, loss, _, _ in losses(counter, stream, neighbour, window=(-1, 1, 3))]
    assert max(ratios) <= 0.5 + counter.epsilon + 1e-12


@pytest.mark.parametrize("counter", COUNTERS, ids=repr)
def test_an_item_of_the_first_step_may_cost_exactly_both_budgets(counter: Any) -> None:
    stream, neighbour = [(1, 0), (0, 0), (0, 0)], [(0, 0), (0, 0), (0, 0)]
    ratios = [abs(loss) for _, loss, _, _ in losses(counter, stream, neighbour, window=(-1, 2))]
    assert max(ratios) == pytest.approx(0.5 + counter.privacy_loss(3), rel=1e-12)
    assert max(ratios) <= 0.5 + counter.epsilon + 1e-12


@pytest.mark.parametrize("counter", COUNTERS, ids=repr)
def test_selection_and_totals_alone_stay_within_both_budgets(counter: Any) -> None:
    """Summed over the selector's unreleased noise (a window of it), so only what is published is left."""
    here: dict[Hashable, float] = {}
    there: dict[Hashable, float] = {}
    stream, neighbour = NEIGHBOURS["first step"]
    for released, _, log_here, log_there in losses(counter, stream, neighbour, window=(-1, 1, 3)):
        here[released] = here.get(released, 0) + np.exp(log_here)
        there[released] = there.get(released, 0) + np.exp(log_there)
    ratios = [abs(np.log(here[released] / there[released])) for released in here]
    assert len(here) > 20
    assert max(ratios) <= 0.5 + counter.epsilon + 1e-12
