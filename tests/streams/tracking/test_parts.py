"""The parts of tracking, each for itself: the buffer, least squares on a tree, the filter, zones and surprise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.streams.tracking import buffer as buffer_module
from phdstream.streams.tracking.adapting import elsewhere, enough, tuning
from phdstream.streams.tracking.buffer import Buffer
from phdstream.streams.tracking.choosing import cut, expect, parts_of, patience, spending
from phdstream.streams.tracking.emptiness import Emptiness
from phdstream.streams.tracking.filtering import Tuning, drift_seen, follow
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.measuring import Layer, Measured, best_estimates
from phdstream.streams.tracking.shares import Shares, descend, masses
from phdstream.streams.tracking.staging import count_in_stages

LINE = Halves(phd.Box([(0, 1)], depth=6))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), many=st.sampled_from([5, 50, 10_000]), ticks=st.integers(1, 6))
def test_a_buffer_counts_every_event_once_however_it_keeps_them(seed: int, many: int, ticks: int) -> None:
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffer_module, "_MANY", many)
        buffer, every = Buffer(LINE), np.zeros(0, np.int64)
        for tick in range(ticks):
            codes = rng.integers(64, size=int(rng.integers(40)))
            every = np.concatenate([every, codes])
            buffer.add(codes)
            if tick == ticks // 2:
                buffer = Buffer.from_arrays(LINE, buffer.to_arrays())
        nodes = np.arange(1, 128)
        first, past = LINE.code_range(nodes)
        expected = [((every >= a) & (every < b)).sum() for a, b in zip(first, past, strict=True)]
        np.testing.assert_array_equal(buffer.within(nodes), expected)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_best_estimate_of_the_root_is_least_squares(seed: int) -> None:
    """Against the normal equations on the unknown counts of the leaves."""
    rng = np.random.default_rng(seed)
    leaves = np.array([4, 5, 6, 14, 15])
    nodes = np.concatenate([leaves, [1, 2, 3, 7, 6]])
    value, variance = rng.normal(10, 5, nodes.size), rng.uniform(0.5, 4, nodes.size)
    holds = np.array([[_inside(leaf, node) for leaf in leaves] for node in nodes], dtype=float)
    weighted = holds / np.sqrt(variance)[:, None]
    best = np.linalg.lstsq(weighted, value / np.sqrt(variance), rcond=None)[0]
    root = best_estimates(LINE, Measured(nodes, value, variance))[0]
    assert root.value[0] == pytest.approx(best.sum())
    assert root.variance[0] == pytest.approx(np.linalg.inv(weighted.T @ weighted).sum())


def _inside(leaf: int, node: int) -> bool:
    while leaf > node:
        leaf >>= 1
    return leaf == node


class TestFilter:
    @staticmethod
    def learn(shares: Shares, first: float, second: float, noise: float, mass: float, tuning: Tuning) -> Shares:
        counts = Measured(np.array([2, 3]), np.array([first, second]), np.array([noise, noise]))
        return follow(LINE, shares, best_estimates(LINE, counts), mass, first + second, tuning)

    def test_exact_counts_of_everything_are_taken_as_they_are(self) -> None:
        shares = self.learn(Shares.none(), 30, 10, 1e-9, 40, Tuning(1.0))
        assert shares.lean[0] == pytest.approx(0.5)
        assert shares.doubt[0] == pytest.approx(0, abs=1e-6)

    def test_noise_without_news_teaches_little(self) -> None:
        known = Shares(np.array([1]), np.array([0.5]), np.array([1e-4]))
        shares = self.learn(known, -30, 40, 1e4, 1000, Tuning(0.1))
        assert shares.lean[0] == pytest.approx(0.5, abs=0.02)

    def test_a_thin_half_beside_a_dense_one_does_not_follow_noise(self) -> None:
        rng, known = np.random.default_rng(3), Shares(np.array([1]), np.array([0.99]), np.array([1e-8]))
        thin = []
        for _ in range(100):  # the thin half held 500 of 100,000 and gets 100 of 20,000
            first, second = rng.normal([19_900, 100], 100)
            lean = float(self.learn(known, first, second, 1e4, 120_000, Tuning(0.05)).lean[0])
            thin.append((1 - lean) / 2 * 120_000)
        assert np.mean(thin) == pytest.approx(600, abs=10)
        assert np.std(thin) < 0.4 * 100

    def test_points_that_suddenly_come_to_a_thin_half_are_believed(self) -> None:
        for lean in (0.99, 1.0):
            known = Shares(np.array([1]), np.array([lean]), np.array([1e-8]))
            there = (1 - lean) / 2 * 100_000
            shares = self.learn(known, 17_000, 3_000, 900.0, 120_000, Tuning(0.05))
            assert (1 - shares.lean[0]) / 2 * 120_000 == pytest.approx(there + 3_000, rel=0.15)

    def test_many_blocks_of_noisy_counts_find_the_lean_and_know_how_well(self) -> None:
        rng, errors, doubts = np.random.default_rng(1), [], []
        for _ in range(300):
            shares, mass = self.learn(Shares.none(), *rng.normal([70, 30], 10), 100.0, 100, Tuning(1.0)), 100.0
            for _ in range(6):
                mass += 50
                shares = self.learn(shares, *rng.normal([35, 15], 10), 100.0, mass, Tuning(0.05))
            errors.append(shares.lean[0] - 0.4)
            doubts.append(shares.doubt[0])
        assert abs(np.mean(errors)) < 0.02
        assert np.std(errors) == pytest.approx(np.sqrt(np.mean(doubts)), rel=0.25)

    def test_where_halves_are_often_empty_what_is_likely_noise_is_emptied(self) -> None:
        def lean(part: float) -> float:
            tuning = Tuning(1.0, emptiness=Emptiness(part))
            return float(self.learn(Shares.none(), 100, 1.5, 4.0, 101.5, tuning).lean[0])

        assert lean(part=0.8) == 1
        assert lean(part=0.02) < 1

    def test_leans_stay_leans(self) -> None:
        rng = np.random.default_rng(2)
        shares = Shares.none()
        for _ in range(200):
            first, second = rng.normal(0, 100, 2)
            shares = self.learn(
                shares, first, second, 50.0, max(first + second, 0.0), Tuning(0.3, emptiness=Emptiness(0.5))
            )
            assert np.isfinite(shares.lean).all()
            assert (np.abs(shares.lean) <= 1).all()
            assert (shares.doubt >= 0).all()


class TestDrift:
    """The drift that a block shows, seen through the noise of its counts."""

    LEAVES = np.arange(64) + 64
    OLD = 1000 * np.exp(-((np.arange(64) - 20) ** 2) / 200)

    def seen(self, counts: np.ndarray, noise: float) -> list[float]:
        known = follow(LINE, Shares.none(), self.layers(self.OLD, 0.1), self.OLD.sum(), self.OLD.sum(), Tuning(1.0))
        rng = np.random.default_rng(1)
        noisy = (rng.poisson(counts) + rng.normal(0, noise, 64) for _ in range(20))
        return [drift_seen(LINE, known, self.layers(block, noise)) for block in noisy]

    def layers(self, counts: np.ndarray, noise: float) -> list[Layer]:
        return best_estimates(LINE, Measured(self.LEAVES, counts, np.full(64, noise**2)))

    @pytest.mark.parametrize("noise", [1.0, 10.0, 100.0])
    def test_more_of_the_same_shows_none(self, noise: float) -> None:
        assert np.mean(self.seen(self.OLD / 5, noise)) < 0.05

    @pytest.mark.parametrize("noise", [1.0, 10.0])
    def test_points_elsewhere_show_it_also_through_noise(self, noise: float) -> None:
        assert min(self.seen(self.OLD[::-1] / 5, noise)) > 0.2

    def test_nothing_counted_shows_nothing(self) -> None:
        assert drift_seen(LINE, Shares.none(), best_estimates(LINE, Measured(np.array([1]), *np.ones((2, 1))))) == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_surprise_makes_blocks_shorter_and_looks_wider(sign: int) -> None:
    surprises = [0.0, 0.2, 0.5, 1.0, 5.0]
    lengths, widths = [enough(0.3, s) for s in surprises], [elsewhere(sign, s) for s in surprises]
    trusts = [tuning(sign, s, Emptiness(0.5)) for s in surprises]
    assert lengths[0] == lengths[1] == 0.3
    assert lengths == sorted(lengths, reverse=True)
    assert widths == sorted(widths)
    assert widths[-1] <= 0.5
    assert [trust.drift for trust in trusts] == sorted(trust.drift for trust in trusts)
    assert trusts[-1].emptiness == Emptiness(0.5, strength=0.0)


def test_blocks_are_shorter_the_less_noise_matters() -> None:
    totals, budgets = [1e2, 1e4, 1e6, 1e8], [0.1, 1.0, 10.0]
    lengths = np.array([[patience(total, budget) for total in totals] for budget in budgets])
    assert (np.diff(lengths, axis=0) <= 0).all()
    assert (np.diff(lengths, axis=1) <= 0).all()
    assert (lengths >= 0.04).all()
    assert (lengths <= 0.6).all()
    assert patience(1e4, 1.0) == pytest.approx(patience(1e6, 0.1))


def test_the_fewer_points_the_more_is_spent_on_totals_and_zones() -> None:
    parts = np.array([spending(total, 0.5) for total in (0, 1_000, 4_000, 1e5, 1e7)])
    np.testing.assert_allclose(parts.sum(axis=1), 1)
    assert (np.diff(parts[:, :2], axis=0) <= 0).all()
    assert parts[1, 0] > parts[2, 0] > parts[3, 0]
    assert (parts > 0).all()


def test_cuts_tile_the_line() -> None:
    shares = Shares(np.array([1, 2, 5]), np.array([0.6, -0.2, 0.9]), np.array([0.1, 0.1, 0.1]))
    nodes, empty = cut(LINE, shares, 100.0, 10.0, 6)
    first, past = (np.sort(ends) for ends in LINE.code_range(np.concatenate([nodes, empty])))
    np.testing.assert_array_equal(first[1:], past[:-1])
    assert (first[0], past[-1]) == (0, 64)
    points, measure = parts_of(LINE, shares, nodes)
    assert points.sum() == pytest.approx(1)
    assert measure.sum() == pytest.approx(1)
    assert (100 * points <= 10 + 1e-9).all()
    zones = np.array([2, 6, 7])
    expected = expect(LINE, shares, zones, np.array([50.0, 0.0, 0.0]), 60.0, 0.1)
    assert expected.number[0] == 50  # seen: more than its share
    assert expected.number.sum() == pytest.approx(50 + 60 * parts_of(LINE, shares, zones)[0][1:].sum())
    counted = count_in_stages(LINE, lambda nodes: 0 * nodes, phd.Simulation(1), 1.0, expected, ((5.0, 2), (3.0, 0)))
    assert counted.node.size > zones.size
    first, past = (np.sort(ends) for ends in LINE.code_range(counted.node))
    np.testing.assert_array_equal(first[1:], past[:-1])
    assert (first[0], past[-1]) == (0, 64)


@pytest.mark.parametrize("begin", [{1: 1000.0}, {2: 100.0, 6: 0.0, 7: 900.0}], ids=["the root", "several nodes"])
def test_no_more_are_opened_than_allowed(begin: dict[int, float]) -> None:
    start, held = np.array(list(begin)), np.array([list(begin.values())])
    for limit in (1, 2, 3, 5, 33):
        nodes, _ = descend(LINE, (Shares.none(),), start, held, lambda _, amounts, __: amounts[0] > 10, limit)
        assert nodes.size <= max(limit, start.size)
        first, past = (np.sort(ends) for ends in LINE.code_range(nodes))
        np.testing.assert_array_equal(first[1:], past[:-1])


def test_masses_fall_from_the_root() -> None:
    shares = Shares(np.array([1, 2, 5]), np.array([0.6, -0.2, 0.9]), np.array([0.1, 0.1, 0.1]))
    np.testing.assert_allclose(masses(LINE, shares, 100.0), [100, 80, 48])
