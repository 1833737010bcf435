"""One suite that every counter must pass: private, unbiased, pure, honest about its noise, literal."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phdstream.errors import InputError, PhdstreamError
from phdstream.privacy import Simulation, noise_variance
from phdstream.streams.paper.counters import (
    BinaryTree,
    Block,
    ByLevel,
    Counter,
    CounterBank,
    Hybrid,
    Simple,
    counter_from_dict,
    make_counter,
)
from phdstream.streams.paper.counters.counter import total_deviation
from tests.noises import FrozenNoise, ImpulseNoise, KnownNoise, LossMeter, RecordingNoise, ScriptedNoise, pmf

EPSILON = 0.7
COUNTERS = {
    "simple": Simple(EPSILON),
    "block of 8": Block(EPSILON),
    "block of 1": Block(EPSILON, size=1),
    "block of 3": Block(EPSILON, size=3),
    **{f"tree over {T}": BinaryTree(EPSILON, horizon=T) for T in (1, 2, 3, 5, 8, 13, 128)},
    "hybrid": Hybrid(EPSILON),
}
every_counter = pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
MIXED: dict[str, Any] = {
    "two kinds by level": ByLevel(EPSILON, (Block(EPSILON, size=3), Simple(EPSILON)), (1, 2)),
    "four kinds by level": ByLevel(
        EPSILON, (Hybrid(EPSILON), Block(EPSILON), BinaryTree(EPSILON, horizon=5), Simple(EPSILON)), (1, 2, 3, 4)
    ),
}
also_by_level = pytest.mark.parametrize("counter", (COUNTERS | MIXED).values(), ids=COUNTERS | MIXED)
a_few = settings(max_examples=30, deadline=None)


def one(number: Any) -> Any:
    return np.array([number], dtype=np.int64)


def run_alone(counter: Any, values: Any, noise: Any, label: Any = 0) -> Any:
    """Return the outputs of a single counter that takes the values one by one."""
    state, outputs = counter.start(1), []
    for value in values:
        state, output = counter.step(state, one(value), noise, one(label))
        outputs.append(int(output[0]))
    return outputs


def run_in_step(counter: Any, inputs: Any, noise: Any) -> Any:
    """Return the outputs (steps, counters) of counters that all take a value (a row of inputs) at every step."""
    state, labels = counter.start(inputs.shape[1]), np.arange(inputs.shape[1])
    outputs = np.empty_like(inputs)
    for t, values in enumerate(inputs):
        state, outputs[t] = counter.step(state, values, noise, labels)
    return outputs


# --- (a) privacy: every item, every length ---


def losses_of_items(counter: Any, steps: Any) -> Any:
    """Return, after each step, the largest Σ |value|/scale over items: item i is a 1 that counter i gets at step i."""
    state, labels, meter = counter.start(steps), np.arange(steps), LossMeter(steps)
    largest = []
    for item in range(steps):
        state, _ = counter.step(state, (labels == item).astype(np.int64), meter, labels)
        largest.append(meter.loss.max())
    return np.array(largest)


@pytest.mark.slow
@every_counter
def test_no_item_ever_loses_more_than_epsilon_and_privacy_loss_is_exact(counter: Any) -> None:
    measured = losses_of_items(counter, 1025)
    assert measured.max() <= EPSILON * (1 + 1e-12)
    claimed = [counter.privacy_loss(t) for t in range(1026)]
    assert claimed[0] == 0
    np.testing.assert_allclose(claimed[1:], measured, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "horizons",
    [range(1, 151), range(151, 226), range(226, 301), [511, 512, 513, 1023, 1024, 1025]],
    ids=["up to 150", "up to 225", "up to 300", "near powers of two"],
)
def test_a_tree_loses_no_more_than_epsilon_at_its_own_horizon(horizons: Any) -> None:
    for horizon in horizons:
        counter = BinaryTree(EPSILON, horizon=horizon)
        measured = losses_of_items(counter, horizon)
        assert measured[-1] <= EPSILON * (1 + 1e-12)
        assert measured[-1] == pytest.approx(EPSILON, rel=1e-12)  # all of the budget is used
        assert [counter.privacy_loss(t) for t in (1, horizon)] == pytest.approx(measured[[0, -1]].tolist(), rel=1e-12)


@pytest.mark.parametrize(("horizon", "sums"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (1024, 11), (1023, 10)])
def test_the_scale_of_a_tree_counts_the_sums_of_an_item(horizon: Any, sums: Any) -> None:
    counter = BinaryTree(0.5, horizon=horizon)
    assert counter.scales(1).tolist() == [sums / 0.5]
    noise = RecordingNoise()
    run_alone(counter, [0] * horizon, noise)
    assert {draw.scale for draw in noise.draws} == {sums / 0.5}


@every_counter
def test_every_step_draws_fresh_noise_once(counter: Any) -> None:
    noise = RecordingNoise()
    run_in_step(counter, np.zeros((50, 3), dtype=np.int64), noise)
    assert len(noise.draws) == 50
    assert all(draw.at.tolist() == [0, 1, 2] for draw in noise.draws)


@also_by_level
@a_few
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.integers(0, 2**32))
def test_only_private_columns_hold_private_sums(counter: Any, values: Any, seed: Any) -> None:
    released = np.random.default_rng(seed).integers(-50, 50, len(values)).tolist()
    states = []
    for stream in (values, [0] * len(values)):
        state, noise = counter.start(1), ScriptedNoise(released)
        for value in stream:
            state, _ = counter.step(state, one(value), noise, one(0))
        states.append(state)
    public = [column for column in range(states[0].shape[1]) if column not in counter.private_columns]
    assert (states[0][:, public] == states[1][:, public]).all()


# --- (b) unbiased under any activation, (c) banks, (d) purity ---

ROWS = 5
activations = st.lists(
    st.dictionaries(st.integers(0, ROWS - 1), st.integers(-(10**6), 10**6), max_size=ROWS), max_size=40
)


def bank_of(counter: Any, rows: Any = ROWS) -> Any:
    bank = CounterBank(counter)
    bank.extend(rows)
    return bank


def activate(bank: Any, chosen: Any, noise: Any) -> Any:
    rows, values = np.array(list(chosen), dtype=np.int64), np.array(list(chosen.values()), dtype=np.int64)
    return bank.step(rows, values, noise, at=rows)


@also_by_level
@a_few
@given(activations)
def test_without_noise_the_output_is_the_exact_sum_under_any_activation(counter: Any, ticks: Any) -> None:
    bank, exact, steps = bank_of(counter), np.zeros(ROWS, dtype=np.int64), np.zeros(ROWS, dtype=np.int64)
    for chosen in ticks:
        outputs = activate(bank, chosen, KnownNoise())
        for row, value in chosen.items():
            exact[row] += value
            steps[row] += 1
        assert outputs.tolist() == [exact[row] for row in chosen]
        assert counter.output(bank.state).tolist() == exact.tolist()
        assert counter.steps(bank.state).tolist() == steps.tolist()


@also_by_level
def test_without_noise_long_streams_stay_exact(counter: Any) -> None:
    values = np.random.default_rng(1).integers(-100, 100, (1100, 2))
    assert (run_in_step(counter, values, KnownNoise()) == values.cumsum(axis=0)).all()


@pytest.mark.slow
@also_by_level
@a_few
@given(activations, st.integers(0, 2**32))
def test_a_bank_is_as_many_independent_counters(counter: Any, ticks: Any, seed: Any) -> None:
    bank, noise = bank_of(counter), FrozenNoise(seed)
    outputs: dict[int, list[int]] = {row: [] for row in range(ROWS)}
    for chosen in ticks:
        for row, output in zip(chosen, activate(bank, chosen, noise).tolist(), strict=True):
            outputs[row].append(output)
    for row in range(ROWS):
        values = [chosen[row] for chosen in ticks if row in chosen]
        assert outputs[row] == run_alone(counter, values, FrozenNoise(seed), label=row)


@also_by_level
def test_a_step_changes_nothing_it_was_given_and_can_be_repeated(counter: Any) -> None:
    state = counter.start(4)
    for t in range(30):
        values, labels = np.array([t, -t, 7, 0]), np.arange(4)
        given_ = [array.copy() for array in (state, values, labels)]
        first, again = (counter.step(state, values, FrozenNoise(t), labels) for _ in range(2))
        assert all((a == b).all() for a, b in zip(given_, (state, values, labels), strict=True))
        assert all((a == b).all() for a, b in zip(first, again, strict=True))
        assert not np.shares_memory(first[0], state)
        state = first[0]
        assert (counter.output(state) == first[1]).all()


@also_by_level
def test_a_step_of_no_counters_is_nothing(counter: Any) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    state, output = counter.step(counter.start(0), nothing, KnownNoise(), nothing)
    assert state.shape[0] == output.size == 0
    bank = bank_of(counter)
    assert bank.step(nothing, nothing, KnownNoise(), nothing).size == 0
    assert counter.steps(bank.state).tolist() == [0] * ROWS


@also_by_level
def test_a_fresh_counter_has_counted_nothing(counter: Any) -> None:
    state = counter.start(3)
    assert counter.output(state).tolist() == counter.steps(state).tolist() == [0, 0, 0]
    assert counter.scales(0).size == 0


@every_counter
def test_a_bank_grows_and_forgets(counter: Any) -> None:
    bank = bank_of(counter, rows=3)
    for value in (10, 20, 30):
        activate(bank, {0: value, 2: -value}, KnownNoise())
    bank.extend(4)
    assert counter.output(bank.state).tolist() == [60, 0, -60, 0, 0, 0, 0]
    bank.keep(np.array([2, 5, 0]))
    bank.extend(2)
    assert counter.output(bank.state).tolist() == [-60, 0, 60, 0, 0]
    assert activate(bank, {0: 1, 2: 1, 4: 1}, KnownNoise()).tolist() == [-59, 61, 1]
    assert counter.steps(bank.state).tolist() == [4, 0, 4, 0, 1]


@also_by_level
def test_a_bank_goes_on_from_a_saved_state(counter: Any) -> None:
    whole, noise, same_noise = bank_of(counter), FrozenNoise(1), FrozenNoise(1)
    parts = bank_of(counter)
    for t in range(40):
        chosen = {row: t + row for row in range(ROWS) if (t + row) % (row + 1) == 0}
        if t == 17:
            parts = CounterBank(counter, parts.state.copy())
        assert activate(whole, chosen, noise).tolist() == activate(parts, chosen, same_noise).tolist()


# --- (e) the noise that is in the output ---

LONGEST = 40


def noise_in_outputs(counter: Any, steps: Any = LONGEST) -> Any:
    """Return the coefficient of each noise term (columns) in the output after 0, 1, ... values, and its scale."""
    noise = ImpulseNoise(steps)
    coefficients = run_in_step(counter, np.zeros((steps, steps), dtype=np.int64), noise)
    return np.r_[np.zeros((1, steps), dtype=np.int64), coefficients], noise.scale


@every_counter
def test_scales_are_those_of_the_noise_in_the_output(counter: Any) -> None:
    coefficients, scale = noise_in_outputs(counter)
    assert set(np.unique(coefficients)) <= {0, 1}
    for steps, row in enumerate(coefficients):
        assert sorted(counter.scales(steps)) == sorted(scale[row == 1])


@every_counter
def test_variance_is_that_of_the_noise_terms_in_only_one_of_two_outputs(counter: Any) -> None:
    coefficients, scale = noise_in_outputs(counter)
    first, last = (index.ravel() for index in np.meshgrid(range(LONGEST + 1), range(LONGEST + 1), indexing="ij"))
    first, last = first[first <= last], last[first <= last]
    expected = (coefficients[last] - coefficients[first]) ** 2 @ noise_variance(scale)
    np.testing.assert_allclose(counter.variance(first, last), expected, rtol=1e-12)


@every_counter
def test_variance_since_the_start_is_that_of_all_noise_terms(counter: Any) -> None:
    for steps in (0, 1, 7, 100, 1000):
        expected = noise_variance(counter.scales(steps)).sum() if steps else 0
        assert counter.variance(one(0), one(steps))[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.statistical
@every_counter
def test_the_measured_error_has_the_claimed_variance(counter: Any) -> None:
    runs = 4000
    errors = run_in_step(counter, np.zeros((20, runs), dtype=np.int64), Simulation(seed=8))
    for first, last in ((0, 1), (0, 11), (0, 20), (5, 6), (7, 16)):
        before = errors[first - 1] if first else 0
        measured = np.square(errors[last - 1] - before).mean()
        claimed = counter.variance(one(first), one(last))[0]
        assert measured == pytest.approx(claimed, rel=6 * math.sqrt(5 / runs))  # the kurtosis of Laplace is 6


# --- (f) accuracy ---


@pytest.mark.statistical
@every_counter
def test_the_error_stays_within_the_accuracy_as_often_as_promised(counter: Any) -> None:
    runs = 3000
    errors = np.abs(run_in_step(counter, np.zeros((33, runs), dtype=np.int64), Simulation(seed=21)))
    for steps in (1, 2, 7, 8, 33):
        for failure in (0.5, 0.1, 0.01):
            outside = (errors[steps - 1] > counter.accuracy(steps, failure)).mean()
            assert outside <= failure + 5 * math.sqrt(failure / runs)


@every_counter
def test_accuracy_is_finer_for_a_larger_risk(counter: Any) -> None:
    for steps in (1, 8, 33, 500):
        bounds = [counter.accuracy(steps, failure) for failure in (1e-12, 1e-6, 0.01, 0.1, 0.5, 0.99)]
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[2] > 0
    assert counter.accuracy(0, 0.1) == 0


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.3, 50.0])
@pytest.mark.parametrize("failure", [0.9, 0.5, 0.05, 1e-6, 1e-9])
def test_accuracy_is_the_least_bound_on_the_exact_tails_of_few_noise_terms(scale: Any, failure: Any) -> None:
    k = np.arange(-int(60 * scale) - 60, int(60 * scale) + 61)
    single, other = pmf(k, scale), pmf(k, scale / 3)
    cases = {(scale,): single, (scale, scale): np.convolve(single, single, "same")}
    cases[scale, scale / 3] = np.convolve(single, other, "same")
    for scales, probability in cases.items():
        bound = total_deviation(np.array(scales), failure)
        assert probability[np.abs(k) > bound].sum() <= failure
        if failure >= 1e-6 and bound > 0:
            assert probability[np.abs(k) > bound - 1].sum() > failure - 1e-8
        assert bound <= 3 * scale * math.log(4 / failure)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e3, 1e4, 5e4, 1e6])
@pytest.mark.parametrize("failure", [0.5, 0.01, 1e-4, 1e-6, 1e-9])
def test_accuracy_holds_for_one_noise_term_of_a_large_scale(scale: Any, failure: Any) -> None:
    bound = math.floor(total_deviation(np.array([scale]), failure))
    beyond = 2 * math.exp(-(bound + 1) / scale) / (1 + math.exp(-1 / scale))
    assert beyond <= failure


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "terms"), [(1e3, 100), (24102.5641025641, 50), (1e4, 300)])
def test_accuracy_of_many_large_noise_terms_is_beyond_the_normal_quantile(scale: Any, terms: Any) -> None:
    """Laplace sums have heavier tails than the normal distribution, whose one-in-a-million quantile is 4.89."""
    bound = total_deviation(np.full(terms, scale), 1e-6)
    assert bound > 4.89 * math.sqrt(terms * noise_variance(scale))


@every_counter
@pytest.mark.parametrize("failure", [0, 1, -0.1, 1.5, math.nan])
def test_a_failure_probability_lies_between_zero_and_one(counter: Any, failure: Any) -> None:
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        counter.accuracy(3, failure)


@pytest.mark.parametrize("kind", [Simple, Block, BinaryTree, Hybrid])
def test_accuracy_and_variance_at_the_largest_budget(kind: Any) -> None:
    counter = kind(1e4)
    assert 0 <= counter.accuracy(10, 0.05) < 1
    assert 0 <= counter.variance(one(0), one(10))[0] < 1e-6


# --- (g) the paper's pseudocode, to the letter ---


def laplace_from(noise: Any) -> Any:
    """Return the paper's ``Lap``: the next draw of that scale for label 0."""
    return lambda scale: int(noise.add(one(0), scale, one(0))[0])


def paper_simple(values: Any, epsilon: Any, lap: Any) -> Any:
    g = [0]
    for f in values:
        g.append(g[-1] + f + lap(1 / epsilon))
    return g[1:]


def paper_block(values: Any, epsilon: Any, size: Any, lap: Any) -> Any:
    alpha = beta = beta_last_block = 0
    outputs = []
    for t, f in enumerate(values, start=1):
        beta += f
        if t % size == 0:
            alpha, beta = 0, beta + lap(2 / epsilon)
            beta_last_block = beta
        else:
            alpha += f + lap(2 / epsilon)
        outputs.append(beta_last_block + alpha)
    return outputs


def paper_binary_tree(values: Any, epsilon: Any, horizon: Any, lap: Any) -> Any:
    """Algorithm "Binary Tree counter" with ``floor(log2 T) + 1`` in place of ``log2 T``."""
    scale = (math.floor(math.log2(horizon)) + 1) / epsilon
    alpha, noisy, outputs = [0] * 64, [0] * 64, []
    for t, f in enumerate(values, start=1):
        bits = [(t >> i) & 1 for i in range(64)]
        j = min(i for i in range(64) if bits[i] != 0)
        alpha[j] = sum(alpha[:j]) + f
        noisy[j] = alpha[j] + lap(scale)
        alpha[:j] = noisy[:j] = [0] * j
        outputs.append(sum(noisy[i] for i in range(64) if bits[i] == 1))
    return outputs


def restarting_binary_tree(values: Any, epsilon: Any, horizon: Any, lap: Any) -> Any:
    """Trees over T, 2T, 4T, ... values, each on top of the last output of the one before."""
    outputs, done = [], 0
    while values:
        outputs += [done + output for output in paper_binary_tree(values[:horizon], epsilon, horizon, lap)]
        values, horizon, done = values[horizon:], 2 * horizon, outputs[-1]
    return outputs


streams = st.lists(st.integers(-1000, 1000), max_size=80)
seeds = st.integers(0, 2**32)
powers_of_two = st.sampled_from([0.25, 0.5, 1.0, 2.0])  # then a scale is the same float however it is computed


@settings(deadline=None)
@given(streams, powers_of_two, seeds)
def test_simple_is_the_papers(values: Any, epsilon: Any, seed: Any) -> None:
    expected = paper_simple(values, epsilon, laplace_from(FrozenNoise(seed)))
    assert run_alone(Simple(epsilon), values, FrozenNoise(seed)) == expected


@settings(deadline=None)
@given(streams, powers_of_two, st.integers(1, 12), seeds)
def test_block_is_the_papers(values: Any, epsilon: Any, size: Any, seed: Any) -> None:
    expected = paper_block(values, epsilon, size, laplace_from(FrozenNoise(seed)))
    assert run_alone(Block(epsilon, size=size), values, FrozenNoise(seed)) == expected


@settings(deadline=None)
@given(streams, powers_of_two, st.integers(0, 60), seeds)
def test_binary_tree_is_the_papers_with_the_corrected_scale(values: Any, epsilon: Any, spare: Any, seed: Any) -> None:
    horizon = max(1, len(values) + spare)
    expected = paper_binary_tree(values, epsilon, horizon, laplace_from(FrozenNoise(seed)))
    assert run_alone(BinaryTree(epsilon, horizon=horizon), values, FrozenNoise(seed)) == expected


@settings(deadline=None)
@given(streams, powers_of_two, st.integers(1, 20), seeds)
def test_binary_tree_restarts_with_twice_the_horizon(values: Any, epsilon: Any, horizon: Any, seed: Any) -> None:
    expected = restarting_binary_tree(values, epsilon, horizon, laplace_from(FrozenNoise(seed)))
    assert run_alone(BinaryTree(epsilon, horizon=horizon), values, FrozenNoise(seed)) == expected
    if horizon == 1:
        assert run_alone(Hybrid(epsilon), values, FrozenNoise(seed)) == expected


# --- (h) parameters ---

KINDS = [Simple, Block, BinaryTree, Hybrid]


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, True, "1", None])
def test_a_budget_that_promises_nothing_is_refused(epsilon: Any) -> None:
    for kind in KINDS:
        with pytest.raises(PhdstreamError, match="epsilon"):
            kind(epsilon)


@pytest.mark.parametrize("bad", [0, -1, 2.0, True, "8", None])
def test_sizes_and_horizons_are_whole_numbers(bad: Any) -> None:
    with pytest.raises(InputError, match="size must be a whole number of at least 1"):
        Block(1.0, size=bad)
    for kind in (BinaryTree, Hybrid):
        with pytest.raises(InputError, match="horizon must be a whole number of at least 1"):
            kind(1.0, horizon=bad)


@pytest.mark.parametrize(("kind", "name"), [(Block, "size"), (BinaryTree, "horizon")])
def test_numpy_integers_are_whole_numbers(kind: Any, name: Any) -> None:
    counter, plain = kind(1.0, **{name: np.int64(5)}), kind(1.0, **{name: 5})
    assert json.loads(json.dumps(counter.to_dict())) == plain.to_dict()
    assert run_alone(counter, range(20), FrozenNoise(1)) == run_alone(plain, range(20), FrozenNoise(1))


@pytest.mark.parametrize("horizon", [10**6, 2**30, 10**13, 2**45, 2**62])
def test_a_horizon_of_any_size_is_right_or_refused(horizon: Any) -> None:
    try:
        counter = BinaryTree(1.0, horizon=horizon)
    except InputError:
        return
    scale = float(horizon.bit_length())
    assert counter.scales(5).tolist() == [scale, scale]
    assert counter.privacy_loss(5) == pytest.approx(3 / scale)
    assert counter.variance(one(4), one(5))[0] == pytest.approx(noise_variance(scale))
    assert run_alone(counter, [1, 2, 3], KnownNoise()) == [1, 3, 6]


@every_counter
def test_plain_data_gives_the_same_counter_back(counter: Any) -> None:
    assert counter_from_dict(json.loads(json.dumps(counter.to_dict()))) == counter


@pytest.mark.parametrize(
    ("name", "kind"), [("simple", Simple), ("block", Block), ("binary", BinaryTree), ("hybrid", Hybrid)]
)
def test_counters_by_name(name: Any, kind: Any) -> None:
    assert make_counter(name, 0.5) == kind(0.5)
    assert make_counter(kind, 0.5) == kind(0.5)
    assert isinstance(make_counter(name, 0.5), Counter)


def test_an_unknown_counter_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'simple'"):
        make_counter("simpel", 0.5)
    with pytest.raises(InputError, match="unknown counter"):
        counter_from_dict({"type": "Triple", "epsilon": 1.0})
