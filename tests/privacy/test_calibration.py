"""The split test's noise is the least whose exact worst-case loss meets the budget (PRIVACY.md, section 3)."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phdstream.errors import BudgetError
from phdstream.privacy import calibrate_split
from phdstream.privacy.calibration import SplitRule, log_tail, path_loss, split_loss
from tests.noises import pmf

pytestmark = pytest.mark.slow

SCALES = [0.02, 0.3, 1.0, 2.164, 4.3, 20.0, 300.0]
epsilons = st.floats(math.log(1e-3), math.log(50)).map(math.exp)
fanouts = st.integers(2, 16)
rules = st.builds(calibrate_split, epsilons, fanouts)


# --- straight from PRIVACY.md ---


def log_probability_of_split(b: Any, scale: Any, threshold: Any) -> Any:
    """Return ``ln P(b + Z > θ)`` for an array of counts b, from ``P(Z >= k)``."""
    k = threshold + 1 - np.asarray(b, dtype=float)
    alpha = math.exp(-1 / scale)
    above = -np.maximum(k, 1) / scale - math.log1p(alpha)
    below = np.log1p(-np.exp((np.minimum(k, 0) - 1) / scale) / (1 + alpha))
    return np.where(k >= 1, above, below)


def rho(b: Any, scale: Any, bias: Any, threshold: Any = 0) -> Any:
    lower = np.maximum(b - 1, threshold - bias)
    here, there = (log_probability_of_split(x, scale, threshold) for x in (b, lower))
    return here - there


def worst_path(scale: Any, bias: Any, threshold: Any = 0, nodes: Any = 120) -> Any:
    """Return the maximum over b0 of Σ_i ρ(b0 + i·δ)."""
    start = np.arange(threshold - bias, threshold + bias + 2)
    return rho(start[:, None] + bias * np.arange(nodes), scale, bias, threshold).sum(axis=1).max()


@pytest.mark.parametrize(
    ("fanout", "epsilon", "scale"),
    [(4, 0.25, 8.656), (4, 0.5, 4.328), (4, 1.0, 2.164), (2, 0.25, 10.099), (2, 0.5, 4.958), (2, 1.0, 2.473)],
)
def test_reference_values(fanout: Any, epsilon: Any, scale: Any) -> None:
    assert round(calibrate_split(epsilon, fanout).scale, 3) == scale


@pytest.mark.parametrize("scale", SCALES)
def test_tail_is_the_sum_of_probabilities(scale: Any) -> None:
    far = int(60 * scale) + 60
    for k in range(-20, 21):
        total = math.fsum(pmf(np.arange(k, far), scale).tolist())
        assert math.exp(log_tail(k, scale)) == pytest.approx(total, rel=1e-12)
        assert log_tail(k, scale) == pytest.approx(log_probability_of_split(1 - k, scale, 0), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("scale", SCALES)
def test_loss_of_a_split_is_largest_at_the_threshold_and_falls_above_it(scale: Any) -> None:
    losses = [split_loss(excess, scale) for excess in range(-5, 60)]
    assert losses[0] == 1 / scale
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(losses))


@pytest.mark.parametrize("scale", SCALES)
def test_loss_of_a_split_is_the_definition(scale: Any) -> None:
    for excess in range(-5, 30):
        assert split_loss(excess, scale) == pytest.approx(rho(excess, scale, bias=100), rel=1e-7, abs=1e-13)


@settings(max_examples=100, deadline=None)
@given(rules)
def test_loss_of_a_rule_is_the_worst_over_all_paths(rule: Any) -> None:
    assert rule.loss == path_loss(rule.scale, rule.bias)
    assert rule.loss == pytest.approx(worst_path(rule.scale, rule.bias), rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.05, 200), st.integers(1, 300))
def test_path_loss_is_the_worst_over_all_paths_whatever_the_bias(scale: Any, bias: Any) -> None:
    nodes = int(40 * scale / bias) + 3  # ρ falls as exp(-b/λ)
    if nodes * bias < 10**5:
        assert path_loss(scale, bias) == pytest.approx(worst_path(scale, bias, nodes=nodes), rel=1e-9)


@settings(deadline=None)
@given(rules, st.integers(-50, 50))
def test_the_threshold_does_not_matter(rule: Any, threshold: Any) -> None:
    expected = worst_path(rule.scale, rule.bias)
    assert worst_path(rule.scale, rule.bias, threshold) == pytest.approx(expected, rel=1e-9)


# --- the budget is met, with the least noise ---


@settings(max_examples=300, deadline=None)
@given(epsilons, fanouts)
@example(1e-3, 2)
@example(50.0, 16)
def test_the_budget_is_met(epsilon: Any, fanout: Any) -> None:
    assert calibrate_split(epsilon, fanout).loss <= epsilon


@settings(max_examples=30, deadline=None)
@given(st.floats(math.log(1e-6), math.log(50)).map(math.exp), fanouts)
def test_the_budget_is_met_in_fifty_digits(epsilon: Any, fanout: Any) -> None:
    rule = calibrate_split(epsilon, fanout)
    with localcontext(prec=50):
        assert fifty_digit_loss(Decimal(rule.scale), rule.bias) <= Decimal(epsilon)


def fifty_digit_loss(scale: Any, bias: Any) -> Any:
    """Return 1/λ (the split just above the floor) plus ρ at 1, 1 + δ, 1 + 2δ, ... above the threshold."""
    alpha = (-1 / scale).exp()
    loss, excess, term = 1 / scale, 1, Decimal(1)
    while term > Decimal("1e-30"):
        tails = (1 - alpha ** (excess - e) / (1 + alpha) for e in (0, 1))
        term = next(tails).ln() - next(tails).ln()
        loss, excess = loss + term, excess + bias
    return loss


@settings(max_examples=200, deadline=None)
@given(epsilons, fanouts)
def test_the_bias_belongs_to_the_scale(epsilon: Any, fanout: Any) -> None:
    rule = calibrate_split(epsilon, fanout)
    assert (rule.bias - 1) / math.log(fanout) <= rule.scale <= rule.bias / math.log(fanout)


@settings(max_examples=200, deadline=None)
@given(epsilons, fanouts)
def test_a_thousandth_less_noise_breaks_the_budget(epsilon: Any, fanout: Any) -> None:
    rule = calibrate_split(epsilon, fanout)
    less = rule.scale * 0.999
    same_bias = math.ceil(less * math.log(fanout)) == rule.bias
    assert not same_bias or worst_path(less, rule.bias) > epsilon


@settings(max_examples=50, deadline=None)
@given(st.floats(math.log(0.05), math.log(50)).map(math.exp), fanouts)
def test_no_smaller_bias_can_meet_the_budget(epsilon: Any, fanout: Any) -> None:
    rule = calibrate_split(epsilon, fanout)
    for bias in range(1, rule.bias):
        most_noise = bias / math.log(fanout)
        assert path_loss(most_noise, bias) > epsilon * (1 - 1e-8)


@settings(max_examples=50, deadline=None)
@given(st.floats(math.log(1e-5), math.log(1e-2)).map(math.exp), fanouts)
def test_the_next_smaller_bias_cannot_meet_a_small_budget(epsilon: Any, fanout: Any) -> None:
    bias = calibrate_split(epsilon, fanout).bias - 1
    assert path_loss(bias / math.log(fanout), bias) > epsilon * (1 - 1e-8)


# --- whole paths, both directions ---


def log_probability_of_leaf(b: Any, scale: Any, threshold: Any = 0) -> Any:
    """Return ``ln P(b + Z <= θ)``: by symmetry of Z, that of ``2θ + 1 - b + Z > θ``."""
    return log_probability_of_split(2 * threshold + 1 - b, scale, threshold)


@pytest.mark.parametrize("scale", SCALES)
def test_a_leaf_that_would_have_split_loses_at_most_one_over_the_scale(scale: Any) -> None:
    counts = np.arange(-100, 101)
    loss = log_probability_of_leaf(counts - 1, scale) - log_probability_of_leaf(counts, scale)
    assert (loss >= 0).all()
    assert (loss <= 1 / scale + 1e-9).all()


def log_probabilities_of_trees(counts: Any, rule: Any) -> Any:
    """Return ln P(the path ends in a leaf at depth i), for each i, and of splitting all the way down."""
    biased = np.maximum(counts - rule.bias * np.arange(len(counts)), rule.floor) - rule.threshold
    splits = np.r_[0, log_probability_of_split(biased, rule.scale, 0).cumsum()]
    return np.r_[splits[:-1] + log_probability_of_leaf(biased, rule.scale), splits[-1]]


@settings(max_examples=300, deadline=None)
@given(
    st.floats(math.log(0.05), math.log(5)).map(math.exp),
    fanouts,
    st.integers(-3, 3),
    st.lists(st.integers(0, 200), min_size=1, max_size=12).map(sorted),
)
def test_one_insert_costs_any_monotone_path_at_most_the_budget(
    epsilon: Any, fanout: Any, threshold: Any, counts: Any
) -> None:
    rule = calibrate_split(epsilon, fanout, threshold)
    counts = np.array(counts[::-1])
    loss = log_probabilities_of_trees(counts + 1, rule) - log_probabilities_of_trees(counts, rule)
    assert loss.max() <= epsilon
    assert loss.min() >= -1 / rule.scale - 1e-9
    assert -loss.min() <= epsilon


@pytest.mark.parametrize(("fanout", "times"), [(2, 6.7), (4, 8.6)])
def test_the_papers_score_leaks_because_it_is_not_monotone(fanout: Any, times: Any) -> None:
    """At depth 20, with children at the threshold like their parents, under the paper's scale."""
    epsilon = 1e-3
    scale = (2 * fanout - 1) / (fanout - 1) / epsilon
    assert round(20 * float(rho(0, scale, bias=10)) / epsilon, 1) == times


# --- the rule as a value ---


def test_threshold_and_floor() -> None:
    rule = calibrate_split(1.0, 4, 7)
    assert (rule.threshold, rule.floor) == (7, 7 - rule.bias)
    assert rule == SplitRule(rule.scale, rule.bias, 7)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf])
def test_a_budget_that_promises_nothing_is_refused(epsilon: Any) -> None:
    with pytest.raises(BudgetError, match="positive number"):
        calibrate_split(epsilon, 4)
