"""What comes out: cells, counts with intervals, samples, changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.errors import InputError
from tests.noises import KnownNoise
from tests.thorough import cases

SQUARE = phd.Box([(0, 1), (0, 1)], depth=10)
DOMAINS = {
    "square": SQUARE,
    "quad": phd.Box([(-5, 5), (0, 2)], fanout=4, depth=6),
    "space": phd.Box([(0, 1)] * 3, depth=9),
    "cube": phd.Cube(6),
}


def crowd(domain: phd.Domain, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    cells = 1 << (domain.total_bits)
    codes = np.minimum(rng.geometric(8 / cells, n) - 1, cells - 1)
    return domain.place(codes, np.arange(n), key=seed)


def run(domain: phd.Domain, ticks: int, seed: int, epsilon: float = 1.0) -> list[phd.Release]:
    stream = phd.PHDStream(domain, epsilon, phd.Event(), noise=phd.Simulation(seed))
    return [stream.update(crowd(domain, 400, seed + t), crowd(domain, 100, seed + t)) for t in range(ticks)]


def as_bag(points: np.ndarray) -> Counter[tuple[float, ...]]:
    return Counter(map(tuple, points.tolist()))


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
class TestOnEveryDomain:
    @settings(max_examples=cases(5, 50))
    @given(seed=st.integers(0, 10_000))
    def test_applying_all_changes_gives_the_current_sample(self, domain: phd.Domain, seed: int) -> None:
        bag: Counter[tuple[float, ...]] = Counter()
        for release in run(domain, 6, seed):
            changes = release.changes()
            gone = as_bag(changes.deletes)
            assert all(bag[point] >= n for point, n in gone.items())  # only what is there can disappear
            bag = bag - gone + as_bag(changes.inserts)
            assert bag == as_bag(release.sample())

    @settings(max_examples=cases(5, 50))
    @given(seed=st.integers(0, 10_000))
    def test_a_cell_with_as_many_points_as_before_keeps_them(self, domain: phd.Domain, seed: int) -> None:
        before, after = run(domain, 4, seed)[-2:]
        numbers = dict(zip(before.leaves.tolist(), before.points.tolist(), strict=True))
        for node, n in zip(after.leaves.tolist(), after.points.tolist(), strict=True):
            if numbers.get(node) == n:
                one = np.array([node]), np.array([n])
                np.testing.assert_array_equal(domain.sample(*one, before.key), domain.sample(*one, after.key))

    @settings(max_examples=cases(5, 50))
    @given(seed=st.integers(0, 10_000))
    def test_the_sample_has_the_right_number_of_points_in_every_cell(self, domain: phd.Domain, seed: int) -> None:
        release = run(domain, 3, seed)[-1]
        sample = release.sample()
        assert abs(len(sample) - release.total) < 1
        np.testing.assert_array_equal(sample, release.sample())
        codes, inside = domain.encode(sample)
        assert inside.all()
        first, past = domain.code_range(release.leaves)
        inside_cells = np.searchsorted(np.sort(codes), past) - np.searchsorted(np.sort(codes), first)
        np.testing.assert_array_equal(inside_cells, release.points)

    def test_cells_tile_the_domain_and_add_up(self, domain: phd.Domain) -> None:
        release = run(domain, 3, seed=1)[-1]
        first, past = domain.code_range(release.leaves)
        assert first[0] == 0
        assert past[-1] == 1 << (domain.total_bits)
        np.testing.assert_array_equal(first[1:], past[:-1])
        cells = release.cells()
        assert sum(cells["count"].to_pylist()) == pytest.approx(release.total)
        assert sum(cells["unbiased"].to_pylist()) == pytest.approx(release.estimate.unbiased[0])
        assert min(cells["count"].to_pylist()) >= 0

    def test_the_whole_domain_counts_to_the_total(self, domain: phd.Domain) -> None:
        release = run(domain, 3, seed=2)[-1]
        answer = release.count(domain.bounds(np.array([1])))
        assert answer.value[0] == pytest.approx(release.total)
        assert answer.unbiased[0] == pytest.approx(release.estimate.unbiased[0])
        assert answer.stderr[0] == pytest.approx(np.sqrt(release.estimate.variance[0]))


@pytest.mark.statistical
class TestIntervals:
    RECTANGLES = np.array(
        [[0, 0, 0.5, 0.5], [0.05, 0.1, 0.3, 0.9], [0.5, 0.5, 1, 1], [0, 0, 1, 1], [0.1, 0.1, 0.12, 0.13]]
    )

    @pytest.mark.parametrize("counter", ["simple", "block", "hybrid"])
    def test_they_cover_the_noise(self, counter: str) -> None:
        """Against the same trees counted without noise: that is what the noise interval promises to cover."""
        hits = np.array([self._covered(seed, counter) for seed in range(120)])
        assert hits.mean() > 0.93
        assert hits.mean(axis=0).min() > 0.85

    def _covered(self, seed: int, counter: str) -> np.ndarray:
        noise = _NoiseAside(seed)
        noisy = phd.PHDStream(SQUARE, 1.0, phd.Event(), counter=counter, noise=noise)
        for t in range(4):
            release = noisy.update(crowd(SQUARE, 400, t))
        answer = release.count(self.RECTANGLES)
        target = _without_noise(SQUARE, counter, noise.decisions, 4).count(self.RECTANGLES).unbiased
        return (answer.noise_low - 1e-9 <= target) & (target <= answer.noise_high + 1e-9)

    def test_standard_errors_match_the_spread(self) -> None:
        """With a tree that cannot change (one level), the spread of the unbiased answer is the stated one."""
        domain = phd.Box([(0, 1)], depth=1)
        rectangle = [[0.0, 0.75]]
        answers = []
        for seed in range(400):
            stream = phd.PHDStream(domain, 1.0, phd.Event(), noise=phd.Simulation(seed))
            for _ in range(3):
                release = stream.update(np.full((1000, 1), 0.25))
            answers.append(release.count(rectangle))
        spread = np.std([(a.unbiased[0] - 3000) / a.stderr[0] for a in answers])
        assert spread == pytest.approx(1.0, abs=0.2)


class _NoiseAside(phd.Simulation):
    """Keeps every noisy value, so that a run can be repeated with the same trees and no noise in its sums."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.decisions: list[tuple[float, np.ndarray]] = []

    def add(self, values: np.ndarray, scale: float, at: np.ndarray) -> np.ndarray:
        noisy = super().add(values, scale, at)
        self.decisions.append((scale, noisy))
        return noisy


def _without_noise(domain: phd.Domain, counter: str, decisions: list[Any], ticks: int) -> phd.Release:
    """Repeat a run with the same trees and exact sums."""

    class Repeat(KnownNoise):
        def add(self, values: np.ndarray, scale: float, at: np.ndarray) -> np.ndarray:
            recorded_scale, noisy = next(recorded)
            assert recorded_scale == scale
            return noisy if scale == stream.rule.scale else np.array(values)

    recorded = iter(decisions)
    stream = phd.PHDStream(domain, 1.0, phd.Event(), counter=counter, noise=Repeat())
    for t in range(ticks):
        release = stream.update(crowd(domain, 400, t))
    return release


@pytest.mark.statistical
@pytest.mark.slow
def test_rounding_is_unbiased() -> None:
    """Over many keys the number of points of each cell averages to its count."""
    release = run(SQUARE, 3, seed=4)[-1]
    stream = phd.PHDStream(SQUARE, 1.0, phd.Event(), noise=phd.Simulation(4))
    from phdstream.streams.paper.model.estimation import estimate
    from phdstream.streams.paper.model.selection import TreePlan  # the same tree, rounded with other keys
    from phdstream.streams.private_codes import PrivateCodes

    stream.update(crowd(SQUARE, 400, 0))
    store, plan = stream._paper._store, TreePlan(stream._paper._store, 10_000)
    nobody = PrivateCodes(SQUARE.total_bits, stream.budget.of_insert)
    stream._paper._mechanism.select(nobody, plan)
    samples = [estimate(store, plan.levels, key) for key in range(1500)]
    mean = np.mean([s.points for s in samples], axis=0)
    assert release.tick == 3
    np.testing.assert_allclose(mean, samples[0].count, atol=0.08)


def test_churn_is_small() -> None:
    """Most points stay from one release to the next, though every cell's noise is new and the partition moves."""
    releases = run(SQUARE, 10, seed=9, epsilon=2.0)
    last = releases[-1]
    moved = len(last.changes().inserts) + len(last.changes().deletes)
    assert moved < 0.6 * len(last.sample())


def test_tables_convert() -> None:
    import polars as pl

    release = run(SQUARE, 2, seed=1)[-1]
    cells = release.cells()
    assert cells.to_pandas().shape == pl.DataFrame(cells).shape == (release.leaves.size, cells.num_columns)
    changes = release.changes()
    table = changes.to_table()
    assert table["sign"].to_pylist().count(-1) == len(changes.deletes)


def test_a_held_release_says_that_nothing_is_known() -> None:
    stream = phd.PHDStream(SQUARE, 1.0, phd.Event(), start_after=3)
    release = stream.update(crowd(SQUARE, 10, 1))
    assert release.held
    assert release.total == 0
    assert len(release.sample()) == 0
    assert release.cells().num_rows == 0
    assert len(release.changes().inserts) == 0
    answer = release.count([[0, 0, 1, 1]])
    assert answer.high[0] == answer.noise_high[0] == np.inf
    assert "held" in repr(release)


@pytest.mark.parametrize("bad", ["x", [[0, 0, 1]], [0, 0, 1, 1], [[1, 0, 0, 1]], [[0, 0, np.nan, 1]]])
def test_bad_rectangles(bad: Any) -> None:
    release = run(SQUARE, 1, seed=1)[0]
    with pytest.raises(InputError, match="rectangle"):
        release.count(bad)
    with pytest.raises(InputError, match="confidence"):
        release.count([[0, 0, 1, 1]], confidence=95)


def test_no_rectangles() -> None:
    assert run(SQUARE, 1, seed=1)[0].count(np.empty((0, 4))).value.shape == (0,)
