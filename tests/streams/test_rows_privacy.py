"""Streams of rows keep the promise: one row costs its budget and no more, wherever it is and whatever its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.audit.forcing import ForcedNoise, ForcedSums, random_choices
from tests.streams.tracking.test_privacy import TOLERANCE, finished
from tests.thorough import cases

pytestmark = pytest.mark.slow
KINDS = ["mail", "people", "freight"]
FLIGHTS = phd.Product(
    phd.Box([(0, 1), (0, 1)], depth=5), phd.Category("kind", KINDS), phd.TimeOfDay("hour", 5), phd.Bins("w", [0, 1, 9])
)
FEW = phd.Product(phd.Box([(0, 1)], depth=1), phd.Category("kind", KINDS))
Row = tuple[Any, ...]


def random_rows(rng: np.random.Generator, most: int) -> list[Row]:
    """Rows of which some are outside: their kind, hour or weight is in no list."""
    number = int(rng.integers(most))
    x, y = rng.beta(1, 4, (2, number)).tolist()
    kind = rng.choice([*KINDS, "none such"], number, p=[0.5, 0.3, 0.1, 0.1]).tolist()
    return list(zip(x, y, kind, rng.uniform(-1, 25, number).tolist(), rng.uniform(0, 10, number).tolist(), strict=True))


def neighbours(seed: int, sign: int, row: Row, make: Any) -> list[Any]:
    """What two streams ask, forced to the same outputs, of which the second has one row more."""
    found = []
    for with_row in (False, True):
        rng = np.random.default_rng(seed)
        when = int(rng.integers(7))
        stream, noise = make()
        for tick in range(7):
            come, gone = random_rows(rng, 80), random_rows(rng, 20)
            if with_row and tick == when:
                (come if sign > 0 else gone).append(row)
            stream.update(come, gone)
        found.append((stream, noise))
    return found


def spent(first: Any, second: Any) -> float:
    """What the calls differ in, as ε; what is asked about must not differ."""
    assert len(first.calls) == len(second.calls)
    total = 0.0
    for (scale, at, values), (scale_2, at_2, values_2) in zip(first.calls, second.calls, strict=True):
        assert scale == scale_2
        np.testing.assert_array_equal(at, at_2)
        difference = np.abs(values - values_2).sum()
        assert difference <= 1
        total += difference / scale
    return total


ROWS = st.tuples(
    st.sampled_from([0.1, 0.9, 2.0]), st.just(0.3), st.sampled_from([*KINDS, "none such", None]),
    st.sampled_from([0.0, 13.0, 23.99, 24.0]), st.sampled_from([0.5, 9.0]),
)  # fmt: skip


def is_inside(row: Row) -> bool:
    return bool(FLIGHTS.encode(FLIGHTS.points([row]))[1].all())


@settings(max_examples=cases(12, 80), deadline=None)
@given(seed=st.integers(0, 100_000), sign=st.sampled_from([1, -1]), row=ROWS)
def test_a_row_costs_its_budget_and_one_outside_nothing(seed: int, sign: int, row: Row) -> None:
    def make() -> tuple[Any, Any]:
        stream = phd.TrackingStream(FLIGHTS, 1.0, phd.Event())
        noise = stream.noise = ForcedSums(random_choices(seed), (-20, 0, 30, 300))
        return stream, noise

    (stream, first), (_, second) = neighbours(seed, sign, row, make)
    loss = spent(finished(first), finished(second))
    assert loss <= (stream.budget.count + 1e-12 if is_inside(row) else 0.0)


@settings(max_examples=cases(12, 80), deadline=None)
@given(seed=st.integers(0, 100_000), sign=st.sampled_from([1, -1]), row=ROWS)
def test_the_papers_counters_too(seed: int, sign: int, row: Row) -> None:
    def make() -> tuple[Any, Any]:
        stream = phd.PHDStream(FLIGHTS, 1.0, phd.Event())
        noise = stream.noise = ForcedNoise(stream.rule, random_choices(seed), sums=(-4, 0, 3, 30))
        return stream, noise

    (stream, first), (_, second) = neighbours(seed, sign, row, make)
    counts = [[call for call in noise.calls if call[0] != stream.rule.scale] for noise in (first, second)]
    for (_, at, values), (_, at_2, values_2) in zip(first.calls, second.calls, strict=True):
        np.testing.assert_array_equal(at, at_2)
        assert np.abs(values - values_2).sum() <= (1 if is_inside(row) else 0)
    loss = sum(np.abs(a[2] - b[2]).sum() / a[0] for a, b in zip(*counts, strict=True))
    assert loss <= stream.budget.count + 1e-12


def test_the_exact_loss_of_whole_outputs() -> None:
    """The log-probability of releases with and without a row: it differs by all of ε, and by no more."""
    base: list[tuple[int, Row, int]] = [(0, (0.1, "mail"), 1), (1, (0.6, "people"), 1), (1, (0.1, "mail"), -1)]
    extra = [(tick, (x, kind), sign) for tick in range(3) for x in (0.1, 0.6) for kind in KINDS for sign in (1, -1)]

    def probability(events: list[tuple[int, Row, int]], seed: int) -> float:
        choices = np.random.default_rng(seed)
        stream = phd.TrackingStream(FEW, 1.0, phd.Event())
        noise = stream.noise = ForcedSums(lambda options: int(choices.integers(options)), (-3, 40))
        for tick in range(3):
            come = [row for when, row, sign in events if when == tick and sign > 0]
            gone = [row for when, row, sign in events if when == tick and sign < 0]
            stream.update(come, gone)
        return finished(noise).log_probability

    losses = []
    for seed in range(cases(3, 30)):
        alone = probability(base, seed)
        losses += [abs(alone - probability([*base, event], seed)) for event in extra]
    assert max(losses) <= 1.0 + TOLERANCE
    assert max(losses) > 0.9
