"""Noise has exactly the distribution it claims; scales are rounded toward privacy."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

import phdstream as phd
from phdstream.errors import BudgetError, InputError, PhdstreamError
from phdstream.privacy import ExactNoise, Simulation, noise_from_dict, noise_variance, scale_for
from tests.noises import FrozenNoise, log_pmf, pmf

FALSE_ALARM = 1e-6
SCALES = [0.3, 1.0, 4.3, 20.0]
SAMPLES = 60_000
SOURCES = {"exact": ExactNoise, "simulation": lambda: Simulation(seed=11), "frozen": lambda: FrozenNoise(seed=11)}
every_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


def draw(noise: Any, scale: Any, size: Any = SAMPLES) -> Any:
    return noise.add(np.zeros(size, dtype=np.int64), scale, np.arange(size))


# --- distribution ---


def binned(sample: Any, scale: Any) -> Any:
    """Return observed and expected numbers for each k that is expected at least 20 times, and for both tails."""
    far = 0
    while SAMPLES * pmf(np.array(far + 1), scale) >= 20:
        far += 1
    middle = np.arange(-far, far + 1)
    expected = SAMPLES * pmf(middle, scale)
    observed = np.array([(sample == k).sum() for k in middle])
    tails = (SAMPLES - expected.sum()) / 2
    return np.r_[(sample < -far).sum(), observed, (sample > far).sum()], np.r_[tails, expected, tails]


@pytest.mark.statistical
@every_source
@pytest.mark.parametrize("scale", SCALES)
def test_frequencies_are_those_of_discrete_laplace(source: Any, scale: Any) -> None:
    sample = draw(source(), scale)
    observed, expected = binned(sample, scale)
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM
    for k in {1, math.ceil(2 * scale), math.ceil(4 * scale)}:
        for tail in ((sample >= k).sum(), (sample <= -k).sum()):
            probability = math.exp(-k / scale) / (1 + math.exp(-1 / scale))
            assert stats.binomtest(int(tail), SAMPLES, probability).pvalue > FALSE_ALARM
    spread = math.sqrt(float(noise_variance(scale)))
    assert abs(sample.mean()) < 5 * spread / math.sqrt(SAMPLES)
    assert np.abs(sample).max() < scale * (math.log(SAMPLES) + 16)


@pytest.mark.statistical
@every_source
def test_consecutive_draws_are_independent(source: Any) -> None:
    sample = draw(source(), 4.3)
    size_and_sign = np.abs(sample), np.sign(sample), sample
    for x in size_and_sign:
        assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 5 / math.sqrt(SAMPLES)


@pytest.mark.statistical
@every_source
def test_two_calls_are_independent(source: Any) -> None:
    noise = source()
    first, second = draw(noise, 2.0, 20_000), draw(noise, 2.0, 20_000)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / math.sqrt(20_000)


@every_source
def test_noise_is_added_to_the_values(source: Any) -> None:
    values = np.array([10**12, -(10**12), 5], dtype=np.int64)
    noisy = source().add(values, 0.01, np.arange(3))  # P(Z != 0) is below 1e-43
    assert noisy.dtype == np.int64
    assert noisy.tolist() == [10**12, -(10**12), 5]


@every_source
def test_values_are_not_changed(source: Any) -> None:
    values = np.arange(100)
    source().add(values, 5.0, values)
    assert values.tolist() == list(range(100))


@every_source
def test_no_values_no_noise(source: Any) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    noisy = source().add(nothing, 1.0, nothing)
    assert noisy.shape == (0,)
    assert noisy.dtype == np.int64


@every_source
def test_large_scales_work(source: Any) -> None:
    sample = draw(source(), 1e6, 200)
    assert 1e5 < np.abs(sample).mean() < 1e7


@every_source
def test_keys_are_62_bits_and_fresh(source: Any) -> None:
    noise = source()
    keys = [noise.key() for _ in range(50)]
    assert len(set(keys)) == 50
    assert all(isinstance(key, int) and 0 <= key < 2**62 for key in keys)
    assert max(keys) > 2**58


# --- what is private, and what can be resumed ---


def test_only_exact_noise_is_private() -> None:
    assert ExactNoise().private
    assert not Simulation(seed=1).private
    assert "not private" in repr(Simulation(seed=1))


def test_exact_noise_differs_from_run_to_run() -> None:
    assert draw(ExactNoise(), 20.0, 100).tolist() != draw(ExactNoise(), 20.0, 100).tolist()


def test_a_simulation_is_reproducible() -> None:
    first, again, other = Simulation(seed=3), Simulation(seed=3), Simulation(seed=4)
    assert draw(first, 20.0, 100).tolist() == draw(again, 20.0, 100).tolist() != draw(other, 20.0, 100).tolist()
    assert first.key() == again.key()


@given(st.lists(st.sampled_from(["key", 0.3, 1.0, 20.0]), max_size=8))
def test_a_simulation_resumes_where_it_was(history: Any) -> None:
    noise = Simulation(seed=5)
    for what in history:
        noise.key() if what == "key" else draw(noise, what, 7)
    resumed = noise_from_dict(json.loads(json.dumps(noise.to_dict())))
    assert isinstance(resumed, Simulation)
    for _ in range(2):
        assert draw(noise, 4.3, 20).tolist() == draw(resumed, 4.3, 20).tolist()
        assert noise.key() == resumed.key()


def test_exact_noise_has_no_state() -> None:
    assert ExactNoise().to_dict() == {"type": "exact"}
    assert isinstance(noise_from_dict({"type": "exact"}), ExactNoise)


def test_an_unknown_kind_of_noise_is_not_taken_for_a_simulation() -> None:
    position = Simulation(seed=1).to_dict()
    with pytest.raises(PhdstreamError):
        noise_from_dict(position | {"type": "gaussian"})


@pytest.mark.parametrize("seed", [-1, 1.0, True, "1", None])
def test_a_bad_seed_is_refused(seed: Any) -> None:
    with pytest.raises(InputError, match="whole number of at least 0"):
        Simulation(seed=seed)


# --- scales and variances ---


@given(st.one_of(st.floats(1e-9, 1e6), st.floats(0.01, 3)), st.integers(1, 64))
@example(0.3, 1)
@example(0.7, 5)
def test_the_scale_is_the_least_float_that_is_enough(epsilon: Any, sums: Any) -> None:
    scale = scale_for(epsilon, sums)
    assert Fraction(scale) * Fraction(epsilon) >= sums
    assert Fraction(math.nextafter(scale, 0)) * Fraction(epsilon) < sums


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e-310])
def test_no_scale_for_a_budget_that_promises_nothing(epsilon: Any) -> None:
    with pytest.raises(BudgetError):
        scale_for(epsilon)


@pytest.mark.parametrize("scale", [0.05, *SCALES, 300.0])
def test_variance_is_the_sum_over_all_integers(scale: Any) -> None:
    k = np.arange(1, int(80 * scale) + 80)
    assert float(noise_variance(scale)) == pytest.approx(2 * math.fsum(k**2 * pmf(k, scale)), rel=1e-12)


def test_variance_of_many_scales_at_once() -> None:
    assert noise_variance(np.array(SCALES)).tolist() == [float(noise_variance(s)) for s in SCALES]


@pytest.mark.parametrize("epsilon", [500.0, 1e4])
def test_variance_at_the_largest_budgets_is_nothing(epsilon: Any) -> None:
    assert 0 <= float(noise_variance(scale_for(epsilon))) < 1e-200


# --- the noise of other tests ---


def test_frozen_noise_belongs_to_the_label_whatever_else_is_drawn() -> None:
    alone, among = FrozenNoise(2), FrozenNoise(2)
    expected = [alone.add(np.array([0]), 9.0, np.array([7]))[0] for _ in range(2)]
    first = among.add(np.zeros(3, np.int64), 9.0, np.array([4, 7, 9]))[1]
    among.add(np.zeros(1, np.int64), 8.0, np.array([7]))
    assert expected == [first, among.add(np.zeros(2, np.int64), 9.0, np.array([7, 4]))[0]]


def test_log_probabilities_are_those_of_the_frequencies() -> None:
    for scale in SCALES:
        assert [log_pmf(k, scale) for k in (-3, 0, 5)] == pytest.approx(np.log(pmf(np.array([-3, 0, 5]), scale)))


@pytest.mark.parametrize("method", [phd.PHDStream, phd.TrackingStream])
def test_a_stream_has_exact_noise_unless_told_otherwise(method: Any) -> None:
    assert isinstance(method(phd.Box([(0, 1)]), 1.0, phd.Event()).noise, ExactNoise)
