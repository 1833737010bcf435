"""The sampler of production noise is exact: its tables against a second way to compute them, its decisions one by one,
its draws against OpenDP's.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from phdstream.audit.binomial import surprise
from phdstream.errors import BudgetError
from phdstream.privacy import laplace, noise_variance
from phdstream.privacy.exponentials import exp_bounds, power_bounds
from phdstream.privacy.laplace import LARGEST_SCALE, Digit, _digits, discrete_laplace

FALSE_ALARM = 1e-6
SCALES = [1e-300, 0.01, 0.3, 1.0, 4.3, 63.9, 65.0, 1234.5, 1e6, LARGEST_SCALE]
every_scale = pytest.mark.parametrize("scale", SCALES)
positive = st.fractions(min_value=Fraction(1, 10**12), max_value=200, max_denominator=10**15)


def exp_minus(x: Fraction) -> Decimal:
    """``exp(-x)`` to 150 digits, by the decimal module, which rounds correctly."""
    with localcontext() as context:
        context.prec = 150
        return (-Decimal(x.numerator) / Decimal(x.denominator)).exp()


def cumulative(digit: Digit, k: int) -> Decimal:
    """``P(outcome < k)`` to over 100 digits."""
    with localcontext() as context:
        context.prec = 150
        below = 1 - exp_minus(k * digit.x)
        return below / (1 - exp_minus(digit.count * digit.x)) if digit.closed else below


def last_boundary(digit: Digit) -> int:
    return digit.count - 1 if digit.closed else digit.count


# --- bounds and tables ---


@settings(deadline=None)
@given(positive, st.integers(8, 300))
def test_bounds_enclose_the_exponential_closely(x: Any, bits: Any) -> None:
    low, high = exp_bounds(x, bits)
    with localcontext() as context:
        context.prec = 150
        assert low <= exp_minus(x) * 2**bits <= high
    assert 0 <= high - low <= 2


@settings(deadline=None, max_examples=30)
@given(positive, st.integers(1, 40), st.sampled_from([16, 64, 192]))
def test_bounds_enclose_every_power(x: Any, count: Any, bits: Any) -> None:
    with localcontext() as context:
        context.prec = 150
        for k, (low, high) in enumerate(power_bounds(x, count, bits), 1):
            assert low <= exp_minus(k * x) * 2**bits <= high
            assert high - low <= 4 * k


@every_scale
def test_every_boundary_is_the_floor_of_the_distribution_function(scale: Any) -> None:
    for digit in _digits(scale):
        assert digit._boundaries.size == last_boundary(digit)
        for k in {1, 2, 3, 7, 50, 100, 254, 255, last_boundary(digit)} & set(range(1, last_boundary(digit) + 1)):
            with localcontext() as context:
                context.prec = 150
                exact = min(int(cumulative(digit, k) * 2**64), 2**64 - 1)
            assert int(digit._boundaries[k - 1]) == exact == digit.boundary(k, 64)


@pytest.mark.parametrize("bits", [3, 16, 64, 128, 200])
def test_a_boundary_at_more_bits_begins_as_at_fewer(bits: Any) -> None:
    digit = Digit(Fraction(3, 7), 8, closed=True)
    for k in range(1, 8):
        with localcontext() as context:
            context.prec = 150
            assert digit.boundary(k, bits) == int(cumulative(digit, k) * 2**bits) == digit.boundary(k, bits + 9) >> 9


@every_scale
def test_the_digits_make_up_the_geometric_distribution(scale: Any) -> None:
    """The product of the digits' exact probabilities is ``(1 - a)·a^g`` for every g that is looked at."""
    digits = _digits(scale)
    x = 1 / Fraction(scale)
    for g in {0, 1, 2, 255, 256, 257, int(scale), int(3 * scale)}:
        parts = [(g >> 8 * j) & 255 for j in range(len(digits) - 1)] + [g >> 8 * (len(digits) - 1)]
        with localcontext() as context:
            context.prec = 150
            each = [cumulative(d, k + 1) - cumulative(d, k) for d, k in zip(digits, parts, strict=True)]
            whole = (1 - exp_minus(x)) * exp_minus(g * x)
            assert abs(math.prod(each) - whole) <= whole * Decimal(10) ** -80 + Decimal(10) ** -140


# --- decisions ---


def forced(monkeypatch: Any, *draws: Any) -> Any:
    """Let the sampler read the given words instead of random ones; return how many are left."""
    left = [list(words) for words in draws]

    def read(kind: Any, size: Any) -> Any:
        words = left.pop(0)
        assert len(words) == size
        return np.array(words, dtype=kind)

    monkeypatch.setattr(laplace, "_random", read)
    return left


def outcome_by_definition(digit: Digit, word: int, bits: int) -> int:
    """How many boundaries lie below the middle of a word's cell; for words whose cell holds none."""
    with localcontext() as context:
        context.prec = 150
        u = (Decimal(word) + Decimal("0.5")) / Decimal(2) ** bits
        return sum(cumulative(digit, k) <= u for k in range(1, last_boundary(digit) + 1))


@pytest.mark.parametrize("scale", [0.3, 4.3, 65.0])
def test_all_first_words_are_decided_rightly_or_not_at_all(scale: Any) -> None:
    """All 2^16 of them: the mass decided for each outcome lies inside its exact share, next to both its edges."""
    for digit in _digits(scale):
        edges = [
            Decimal(0),
            *(cumulative(digit, k) * 2**16 for k in range(1, last_boundary(digit) + 1)),
            Decimal(2**16),
        ]
        table = digit._by_first_bits
        for outcome in range(len(edges) - 1):
            words = np.flatnonzero(table == outcome)
            first, past = math.ceil(edges[outcome]), math.floor(edges[outcome + 1])
            assert words.tolist() == list(range(first, past))
        undecided = {math.floor(edge) for edge in edges[1:-1]}
        assert set(np.flatnonzero(table < 0).tolist()) == {min(word, 2**16 - 1) for word in undecided}


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.3, 4.3, 65.0])
@pytest.mark.parametrize("offset", [-1, 1])
def test_words_beside_a_boundary_are_decided_by_64_bits(monkeypatch: Any, scale: Any, offset: Any) -> None:
    for digit in _digits(scale):
        for k in (1, 2, 5, 9):
            word = int(digit._boundaries[k - 1]) + offset
            left = forced(monkeypatch, [word >> 48], [(word & (2**48 - 1)) << 16])
            assert digit.draw(1).tolist() == [outcome_by_definition(digit, word, 64)] == [k - (offset < 0)]
            assert not left


@pytest.mark.parametrize("digit", [Digit(Fraction(3, 7), 8, True), Digit(Fraction(3, 7), 8, False)])
@pytest.mark.parametrize("more", [1, 2, 3])
@pytest.mark.parametrize("offset", [-1, 1])
def test_a_word_on_a_boundary_is_decided_by_more_bits(monkeypatch: Any, digit: Any, more: Any, offset: Any) -> None:
    """Words that follow the boundary for 64, 128 and 192 bits, and then leave it by one, up or down."""
    bits = 64 * (more + 1)
    word = digit.boundary(3, bits) + offset
    pieces = [(word >> (bits - 64 * (i + 1))) & (2**64 - 1) for i in range(more + 1)]
    left = forced(monkeypatch, [pieces[0] >> 48], [(pieces[0] & (2**48 - 1)) << 16], *([piece] for piece in pieces[1:]))
    assert digit.draw(1).tolist() == [2 if offset < 0 else 3]
    assert not left


def test_outcomes_too_rare_for_64_bits_are_told_apart_by_more(monkeypatch: Any) -> None:
    """At a tiny scale all boundaries share their first 64 bits: P(G >= 1) is about exp(-100)."""
    (digit,) = _digits(0.01)
    ones = 2**64 - 1
    below_all = digit.boundary(1, 192) - 1
    pieces = [(below_all >> shift) & ones for shift in (128, 64, 0)]
    assert pieces[0] == ones
    left = forced(monkeypatch, [2**16 - 1], [ones << 16 & ones], *([piece] for piece in pieces[1:]))
    assert digit.draw(1).tolist() == [0]
    assert not left
    between = (digit.boundary(1, 512) + digit.boundary(2, 512)) // 2
    pieces = [(between >> shift) & ones for shift in range(448, -1, -64)]
    forced(monkeypatch, [2**16 - 1], [ones << 16 & ones], *([piece] for piece in pieces[1:]))
    assert digit.draw(1).tolist() == [1]


def test_the_top_goes_on_where_it_ends(monkeypatch: Any) -> None:
    drawn = iter([[3, 1024, 1024], [1024, 5], [7]])

    class Top:
        def draw(self, size: Any) -> Any:
            outcomes = np.array(next(drawn))
            assert outcomes.size == size
            return outcomes

    assert laplace._draw_top(cast(Any, Top()), 3).tolist() == [3, 2055, 1029]


def test_noise_that_does_not_fit_is_refused_not_wrapped() -> None:
    class Top:
        def draw(self, size: Any) -> Any:
            return np.full(size, 1024)

    with pytest.raises(OverflowError, match="64 bits"):
        laplace._draw_top(cast(Any, Top()), 2)
    *digits, _ = _digits(LARGEST_SCALE)
    assert (laplace._MOST_TOP + 2048) << 8 * len(digits) < 2**62


@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf, LARGEST_SCALE * 1.01])
def test_a_scale_that_cannot_be_is_refused(scale: Any) -> None:
    with pytest.raises(BudgetError, match="scale"):
        discrete_laplace(scale, 1)


# --- draws ---


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.3, 4.3, 65.0, 300.0])
def test_draws_agree_with_opendp(scale: Any) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * 40_000))
    ours = discrete_laplace(scale, 40_000)
    cuts = np.unique(np.quantile(theirs, np.linspace(0.01, 0.99, 40)).astype(np.int64))
    table = [np.bincount(np.searchsorted(cuts, sample), minlength=cuts.size + 1) for sample in (ours, theirs)]
    filled = np.sum(table, axis=0) > 0
    assert stats.chi2_contingency(np.array(table)[:, filled]).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.7, 20.0, 65.0, 5e3, 1e6, 1e12])
def test_draws_follow_the_distribution_at_every_scale(scale: Any) -> None:
    sample = discrete_laplace(scale, 200_000)
    cuts = np.unique(np.round(scale * np.linspace(-6, 6, 61)).astype(np.int64))
    tail = np.exp(-np.abs(cuts) / scale) / (1 + math.exp(-1 / scale))  # P(Z >= |k|)
    below = np.where(cuts <= 0, tail * math.exp(-1 / scale), 1 - tail)  # P(Z < k)
    expected = np.diff(np.r_[0, below, 1]) * sample.size
    observed = np.bincount(np.searchsorted(cuts, sample, side="right"), minlength=cuts.size + 1)
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM
    assert sample.var() / float(noise_variance(scale)) == pytest.approx(1, abs=0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [300.0, 1e6])
def test_low_digits_of_large_noise_are_filled_evenly(scale: Any) -> None:
    last = discrete_laplace(scale, 100_000) & 15
    assert stats.chisquare(np.bincount(last, minlength=16)).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1.0, 65.0])
def test_draws_of_one_call_are_independent(scale: float) -> None:
    """Signs of draws that stand beside each other, or in both halves, agree half of the time."""
    sample = discrete_laplace(scale, 100_000)
    for one, other in ((sample[:-1], sample[1:]), (sample[:50_000], sample[50_000:])):
        there = (one != 0) & (other != 0)
        agree = int((np.sign(one[there]) == np.sign(other[there])).sum())
        assert surprise(agree, int(there.sum()), 0.5) > FALSE_ALARM


def test_every_call_reads_fresh_bits_from_the_operating_system(monkeypatch: Any) -> None:
    asked: list[int] = []

    def zeros(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr(os, "urandom", zeros)
    discrete_laplace(4.3, 10)
    discrete_laplace(4.3, 10)
    assert asked[0] == 40
    assert asked == asked[: len(asked) // 2] * 2


def test_a_fork_does_not_repeat_its_parents_noise() -> None:
    script = """if True:
        import os
        from phdstream.privacy.laplace import discrete_laplace
        discrete_laplace(50.0, 8)
        child = os.fork()
        print(discrete_laplace(50.0, 40).tolist(), flush=True)
        child and os.waitpid(child, 0)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert lines[0] != lines[1]
