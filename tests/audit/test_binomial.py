"""Exact binomial tests, against SciPy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from phdstream.audit.binomial import clopper_pearson, log_tail_at_least, log_tail_at_most, surprise


@given(st.integers(1, 5000), st.floats(1e-6, 1 - 1e-6), st.floats(0, 1))
def test_tails_are_scipys(n: int, p: float, share: float) -> None:
    k = round(share * n)
    theirs = stats.binom.logsf(k - 1, n, p), stats.binom.logcdf(k, n, p)
    for ours, other in zip((log_tail_at_least(k, n, p), log_tail_at_most(k, n, p)), theirs, strict=True):
        if other > -600:
            assert ours == pytest.approx(other, rel=1e-6, abs=1e-8)


@given(st.integers(1, 3000), st.floats(0, 1), st.sampled_from([0.025, 1e-6]))
def test_limits_are_those_of_clopper_and_pearson(n: int, share: float, failure: float) -> None:
    k = round(share * n)
    low, high = clopper_pearson(k, n, failure)
    assert low == pytest.approx(0.0 if k == 0 else stats.beta.ppf(failure, k, n - k + 1), rel=1e-6, abs=1e-12)
    assert high == pytest.approx(1.0 if k == n else stats.beta.ppf(1 - failure, k + 1, n - k), rel=1e-6)


def test_a_count_at_its_mean_is_no_surprise_and_one_far_off_is() -> None:
    assert surprise(500, 1000, 0.5) == 1.0
    assert surprise(650, 1000, 0.5) < 1e-18
    assert surprise(0, 10, 0.5) == pytest.approx(2 / 1024)
    assert math.isclose(surprise(3, 10, 0.5), surprise(7, 10, 0.5))
