"""What is published of the shares: emptiness, neighbours, smoothing; none of it changes what is known."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.streams.tracking import clearing as clearing_module
from phdstream.streams.tracking import stream as stream_module
from phdstream.streams.tracking.clearing import cleared
from phdstream.streams.tracking.emptiness import Emptiness
from phdstream.streams.tracking.filtering import Tuning, follow
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.measuring import Measured, best_estimates
from phdstream.streams.tracking.shares import Shares, descend
from phdstream.streams.tracking.smoothing import view as smoothed_view

PLANE = Halves(phd.Box([(0, 1), (0, 1)], depth=12))
MANY = 10**6


@settings(max_examples=60, deadline=None)
@given(dimension=st.integers(1, 3), bits=st.integers(0, 9), seed=st.integers(0, 999))
def test_neighbours_touch_along_the_coordinate_halved_next(dimension: int, bits: int, seed: int) -> None:
    box = phd.Box([(0, 1)] * dimension, depth=12)
    nodes = np.unique(np.random.default_rng(seed).integers(1 << bits, 2 << bits, 8))
    axis, mine = bits % dimension, box.bounds(nodes)
    others = [i for i in range(2 * dimension) if i % dimension != axis]
    for side, (beside, there) in enumerate(Halves(box).beside(nodes, bits)):
        edge, its = ((axis, dimension + axis), (dimension + axis, axis))[side]
        np.testing.assert_array_equal(there, mine[:, edge] != side)
        found = box.bounds(beside[there])
        np.testing.assert_array_equal(found[:, its], mine[there, edge])
        np.testing.assert_array_equal(found[:, others], mine[there][:, others])


def view(halves: Halves, shares: Shares, total: float, at_most: int) -> Shares:
    return smoothed_view(halves, shares, total, Emptiness.seen_in(halves, shares, total), at_most)


def leaf_counts(halves: Halves, shares: Shares, total: float, bits: int) -> np.ndarray:
    nodes, held = descend(
        halves, (shares,), np.array([1]), np.array([[total]]), lambda here, _, at: np.full(here.size, at < bits)
    )
    return held[0, np.argsort(nodes)]


def measured_shares(counts: np.ndarray, noise: float, seed: int) -> Shares:
    """Return the shares of a full tree whose leaves were counted with normal noise."""
    noisy = np.maximum(counts + np.random.default_rng(seed).normal(0, noise, counts.size), 0.5)
    parts, variance = [], np.full(counts.size, noise**2)
    while noisy.size > 1:
        first, second = noisy[::2], noisy[1::2]
        mass, variance = first + second, variance[::2] + variance[1::2]
        parts.append((np.arange(mass.size) + mass.size, (first - second) / mass, variance / mass**2))
        noisy = mass
    return Shares(*(np.concatenate(column[::-1]) for column in zip(*parts, strict=True)))


def bump(bits: int, points: float) -> np.ndarray:
    """Return a smooth hill's counts in the cells of one length."""
    corners = PLANE.domain.bounds(np.arange(1 << bits) + (1 << bits))
    x, y = (corners[:, 0] + corners[:, 2]) / 2, (corners[:, 1] + corners[:, 3]) / 2
    hill = np.exp(-((x - 0.45) ** 2 + (y - 0.5) ** 2) / 0.05)
    return points * hill / hill.sum()


class TestSmoothing:
    def test_a_smooth_density_is_found_through_noise(self) -> None:
        true = bump(10, 20_000)
        errors = []
        for seed in range(3):
            shares = measured_shares(true, 12.0, seed)
            seen = view(PLANE, shares, 20_000, MANY)
            errors.append([np.abs(leaf_counts(PLANE, s, 20_000, 10) - true).sum() for s in (shares, seen)])
        plain, smooth = np.mean(errors, axis=0)
        assert smooth < 0.75 * plain

    def test_below_what_was_measured_the_slope_goes_on(self) -> None:
        shares, true = measured_shares(bump(8, 50_000), 1e-3, 1), bump(10, 50_000)
        plain, smooth = (
            np.abs(leaf_counts(PLANE, s, 50_000, 10) - true).sum() for s in (shares, view(PLANE, shares, 50_000, MANY))
        )
        assert smooth < 0.4 * plain

    def test_a_rugged_density_is_left_as_measured(self) -> None:
        true = np.random.default_rng(4).lognormal(3, 1.5, 1 << 10)
        shares = measured_shares(true, 0.5, 1)
        total = float(true.sum())
        plain, seen = (
            np.abs(leaf_counts(PLANE, s, total, 10) - true).sum() for s in (shares, view(PLANE, shares, total, MANY))
        )
        assert seen < 1.1 * plain

    def test_mass_is_only_moved(self) -> None:
        shares = measured_shares(bump(10, 500), 5.0, 7)
        seen = view(PLANE, shares, 500.0, MANY)
        assert leaf_counts(PLANE, seen, 500.0, 12).sum() == pytest.approx(500)
        assert (np.abs(seen.lean) <= 1).all()
        assert (seen.doubt >= 0).all()

    def test_a_half_that_noise_emptied_is_filled_again_and_one_decided_to_be_empty_is_not(self) -> None:
        shares = measured_shares(bump(10, 20_000), 12.0, 1)
        middle = int(np.argmin(np.where(shares.node >= 512, np.abs(shares.lean), 9)))
        clipped = Shares(shares.node, np.where(np.arange(shares.node.size) == middle, 1.0, shares.lean), shares.doubt)
        for part, emptied in ((0.02, False), (0.95, True)):
            seen = smoothed_view(PLANE, clipped, 20_000, Emptiness(part), MANY)
            lean = float(seen.lean[np.searchsorted(seen.node, shares.node[middle])])
            assert (lean > 0.999) == emptied

    def test_with_little_room_nothing_is_added(self) -> None:
        shares = measured_shares(bump(8, 5_000), 1.0, 7)
        np.testing.assert_array_equal(view(PLANE, shares, 5_000, at_most=300).node, shares.node)

    def test_a_tree_that_is_no_grid_is_not_smoothed(self) -> None:
        halves = Halves(phd.Cube(10))
        shares = measured_shares(bump(10, 20_000), 12.0, 1)
        seen = view(halves, shares, 20_000, MANY)
        open_ = np.abs(seen.lean) < 1
        np.testing.assert_array_equal(seen.lean[open_], shares.lean[open_])

    def test_nothing_is_moved_out_of_a_region(self) -> None:
        region = phd.Region(shapely.Polygon([(0, 0), (1, 0), (0, 1)]), depth=12)
        rng = np.random.default_rng(5)
        points = rng.uniform(size=(4_000, 2))
        stream = phd.TrackingStream(region, 2.0, phd.Event(), noise=phd.Simulation(3))
        release = stream.update(points[points.sum(axis=1) < 1])
        assert region.encode(release.sample())[1].all()


class TestClearing:
    """Halves next to nothing, judged by the other halves of their length and by their neighbours."""

    LEAVES, NOISE = np.arange(1 << 10) + (1 << 10), 5.0
    BLACK = (np.floor(8 * PLANE.domain.bounds(LEAVES)[:, :2]).sum(axis=1) % 2).astype(bool)

    def counted(self, true: np.ndarray, seed: int, halves: Halves = PLANE) -> Shares:
        noisy = true + np.random.default_rng(seed).normal(0, self.NOISE, true.size)
        layers = best_estimates(halves, Measured(self.LEAVES, noisy, np.full(true.size, self.NOISE**2)))
        return follow(halves, Shares.none(), layers, noisy.sum(), noisy.sum(), Tuning(1.0))

    def on_black(self, thin: float, seed: int, *, clear: bool) -> float:
        """Return how many points seem to be on the black squares of a chessboard whose white ones are dense."""
        true = np.where(self.BLACK, thin, 60.0)
        shares = self.counted(true, seed)
        if clear:
            shares, _ = cleared(PLANE, shares, true.sum(), np.zeros(shares.node.size, dtype=bool))
        return float(leaf_counts(PLANE, shares, true.sum(), 10)[self.BLACK].sum())

    def test_where_nothing_is_less_remains(self) -> None:
        before, after = (sum(self.on_black(0.0, seed, clear=clear) for seed in range(8)) for clear in (False, True))
        assert after < 0.4 * before

    @pytest.mark.parametrize("thin", [3.0, 10.0])
    def test_what_is_thin_but_there_stays(self, thin: float) -> None:
        kept = np.mean([self.on_black(thin, seed, clear=True) for seed in range(8)])
        assert kept == pytest.approx(thin * self.BLACK.sum(), rel=0.1)

    def test_neighbours_tell_a_hole_from_the_sea(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An island with small thin places, and nothing around it: knowing of neighbours, less is wrong."""
        middle = PLANE.domain.bounds(self.LEAVES) @ np.array([[0.5, 0], [0, 0.5], [0.5, 0], [0, 0.5]])
        holes = np.random.default_rng(9).random(self.LEAVES.size) < 0.15
        true = np.where(np.hypot(*(middle - 0.47).T) < 0.4, np.where(holes, 6.0, 40.0), 0.0)

        def wrong() -> float:
            total = 0.0
            for seed in range(6):
                shares = self.counted(true, seed)
                seen, _ = cleared(PLANE, shares, true.sum(), np.zeros(shares.node.size, dtype=bool))
                total += float(np.abs(leaf_counts(PLANE, seen, true.sum(), 10) - true).sum())
            return total

        knowing = wrong()
        monkeypatch.setattr(clearing_module, "_bare_sides", lambda *_: np.zeros((_[1].size, 2), dtype=np.int64))
        assert knowing < wrong()

    @pytest.mark.parametrize("halves", [PLANE, Halves(phd.Cube(10)), Halves(phd.Box([(0, 1)], depth=10))])
    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 10**6))
    def test_only_smaller_halves_are_cleared_and_only_what_is_said(self, halves: Halves, seed: int) -> None:
        true = np.random.default_rng(seed).lognormal(1, 2, 1 << 10) * (np.arange(1 << 10) % 3 > 0)
        shares = self.counted(true, seed, halves)
        already = np.random.default_rng(seed + 1).random(shares.node.size) < 0.1
        seen, emptied = cleared(halves, shares, float(true.sum()), already)
        assert emptied[already].all()
        np.testing.assert_array_equal(seen.lean[~emptied], shares.lean[~emptied])
        np.testing.assert_array_equal(seen.lean[emptied], np.sign(shares.lean[emptied]))
        np.testing.assert_array_equal(seen.doubt, shares.doubt)

    def test_places_where_nothing_can_be_do_not_tell_how_much_is_empty(self) -> None:
        """Of half the nodes of the last level one half has no measure, of the rest one is thin, and stays so."""
        second = self.LEAVES % 2 == 1
        other = np.repeat(np.random.default_rng(3).random(self.LEAVES.size // 2) < 0.5, 2)
        there = ~(second & other)
        region = phd.Region(shapely.union_all(shapely.box(*PLANE.domain.bounds(self.LEAVES[there]).T)), depth=10)
        true = np.where(second, 10.0, 60.0)[there]
        noisy = true + np.random.default_rng(2).normal(0, self.NOISE, true.size)
        counts = Measured(self.LEAVES[there], noisy, np.full(true.size, self.NOISE**2))
        halves, nowhere = Halves(region), Measured.empty(self.LEAVES[~there])
        layers = best_estimates(halves, Measured.both(counts, nowhere))
        shares = follow(halves, Shares.none(), layers, true.sum(), true.sum(), Tuning(1.0))
        seen, emptied = cleared(halves, shares, true.sum(), np.zeros(shares.node.size, dtype=bool))
        assert leaf_counts(halves, seen, true.sum(), 10)[~there].sum() == 0
        whole = self.LEAVES[second & there] >> 1
        assert emptied[np.searchsorted(shares.node, whole)].mean() < 0.05


class TestEmptiness:
    def test_it_is_learnt_from_what_is_well_known(self) -> None:
        lean = np.where(np.arange(100) < 70, 1.0, 0.1)
        nodes = np.concatenate([np.arange(64) + 64, np.arange(36) + 128])
        whole = Shares(
            np.concatenate([np.arange(1, 64), nodes]), np.concatenate([np.zeros(63), lean]), np.full(163, 1e-4)
        )
        assert Emptiness.seen_in(PLANE, whole, 1000.0).part == pytest.approx(70 / 163, abs=0.15)
        doubtful = Shares(whole.node, whole.lean, np.full(163, 1.0))
        assert Emptiness.seen_in(PLANE, doubtful, 1000.0).part == 0.2

    @given(part=st.floats(0.02, 0.95), lean=st.floats(-1, 1), doubt=st.floats(1e-6, 20))
    def test_only_small_halves_are_emptied_and_never_the_larger(self, part: float, lean: float, doubt: float) -> None:
        decided = Emptiness(part).decide(np.array([lean]), np.array([doubt]))[0]
        assert decided in (lean, np.sign(lean))
        if decided != lean:
            assert (1 - abs(lean)) / 2 <= np.sqrt(doubt)

    def test_the_sparser_the_more_is_emptied(self) -> None:
        lean, doubt = np.linspace(0.5, 1, 50), np.full(50, 0.05)
        emptied = [int((Emptiness(part).decide(lean, doubt) == 1).sum()) for part in (0.05, 0.3, 0.6, 0.9)]
        assert emptied == sorted(emptied)
        assert emptied[-1] > emptied[0]


def test_a_block_divides_its_budget_to_its_end_as_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of the open block have spent on totals and zones: with another division they would spend more than ε."""
    stream = phd.TrackingStream(phd.Box([(0, 1)]), 1.0, phd.Event(), noise=phd.Simulation(1))
    stream.update([(0.5,)] * 50)
    meta, arrays = stream.to_state()
    monkeypatch.setattr(stream_module, "spending", lambda total, epsilon: (0.1, 0.2, 0.7))
    assert phd.TrackingStream.from_state(meta, arrays)._for_leaves == stream._for_leaves

    older = meta | {"own": {k: v for k, v in meta["own"].items() if k not in ("spent_on", "surprises", "viewed_at")}}
    older["own"]["surprise"] = 0.0
    again = phd.TrackingStream.from_state(older, arrays)
    assert again._for_leaves == pytest.approx(0.88)
    assert again.update([(0.5,)]).tick == 2


def test_a_state_at_hand_does_not_change_with_the_stream() -> None:
    rng = np.random.default_rng(2)
    stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 1.0, phd.Event(), noise=phd.Simulation(1))
    stream.update(rng.uniform(size=(2_000, 2)) / 2)
    own = stream.to_state()[0]["own"]
    before = list(own["surprises"])
    for _ in range(3):
        stream.update(rng.uniform(size=(2_000, 2)) / 2 + 0.5)
    assert max(stream.to_state()[0]["own"]["surprises"]) > 0
    assert own["surprises"] == before


def test_the_view_is_the_same_after_a_restart() -> None:
    rng = np.random.default_rng(1)
    stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 1.0, phd.Event(), window=10, noise=phd.Simulation(1))
    for _ in range(8):
        stream.update(rng.beta(2, 5, size=(800, 2)))
    again = phd.TrackingStream.from_state(*stream.to_state())
    events = rng.beta(2, 5, size=(20, 2))
    first, second = (s.update(events).estimate for s in (stream, again))
    for column in ("node", "count", "variance", "points"):
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))
