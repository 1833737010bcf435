"""What is `TrackingStream`'s own, beside what every stream does (`tests/streams/test_every_stream.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.domains import ROOT, Domain
from phdstream.domains.binary_tree import BinaryTree
from tests.domains.test_every_domain import DOMAINS
from tests.noises import KnownNoise

SQUARE = phd.Box([(0, 1), (0, 1)], depth=10)


def simulated(seed: int = 1, **options: Any) -> phd.TrackingStream:
    defaults: dict[str, Any] = {"domain": SQUARE, "epsilon": 1.0, "unit": phd.Event(), "noise": phd.Simulation(seed)}
    return phd.TrackingStream(**(defaults | options))


def noiseless(**options: Any) -> phd.TrackingStream:
    return simulated(noise=KnownNoise(), **options)


def points(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(1, 3, (n, 2))


class TestTicks:
    def test_without_noise_large_places_are_right_after_many_blocks(self) -> None:
        stream, live = noiseless(), []
        for seed in range(30):
            live.append(points(300, seed))
            release = stream.update(live[-1])
        inside = release.count([[0, 0, 0.25, 0.25], [0.5, 0.5, 1, 1], [0, 0, 0.5, 1]]).value
        x, y = np.concatenate(live).T
        true = [((x < 0.25) & (y < 0.25)).sum(), ((x > 0.5) & (y > 0.5)).sum(), (x < 0.5).sum()]
        np.testing.assert_allclose(inside, true, rtol=0.08, atol=25)

    def test_nothing_at_all_is_a_stream_too(self) -> None:
        stream = simulated()
        for _ in range(5):
            release = stream.update()
        assert release.total >= 0
        assert release.sample().shape[1] == 2


@pytest.mark.parametrize("make", DOMAINS.values(), ids=DOMAINS)
class TestEveryDomain:
    @pytest.mark.slow
    def test_counts_are_close_and_points_inside(self, make: Callable[[], Domain]) -> None:
        domain = make()
        stream = phd.TrackingStream(domain, 2.0, phd.Event(), noise=phd.Simulation(seed=2))
        for key in range(4):
            release = stream.update(domain.sample(np.array([ROOT]), np.array([1500]), key))
        assert release.total == pytest.approx(6000, rel=0.05)
        assert domain.encode(release.sample())[1].all()
        assert release.estimate.leaf.sum() == release.leaves.size
        assert release.cells()["count"].to_numpy().sum() == pytest.approx(release.total)

    @pytest.mark.slow
    def test_with_hardly_any_noise_the_cells_are_right(self, make: Callable[[], Domain]) -> None:
        domain = make()
        stream = phd.TrackingStream(domain, 200.0, phd.Event(), noise=phd.Simulation(seed=2))
        points = domain.sample(np.array([ROOT]), np.array([800]), 1)
        release = stream.update(points)
        first, past = domain.code_range(release.leaves)
        codes = np.sort(domain.encode(points)[0])
        true = np.searchsorted(codes, past) - np.searchsorted(codes, first)
        assert np.abs(release.cells()["count"].to_numpy() - true).sum() < 40

    def test_the_cells_tile_the_domain(self, make: Callable[[], Domain]) -> None:
        domain = make()
        stream = phd.TrackingStream(domain, 2.0, phd.Event(), noise=phd.Simulation(seed=2))
        release = stream.update(domain.sample(np.array([ROOT]), np.array([1500]), 1))
        assert domain.measure(release.leaves).sum() == pytest.approx(domain.measure(np.array([ROOT]))[0], rel=1e-6)

    def test_halves_have_the_domains_measure(self, make: Callable[[], Domain]) -> None:
        """Sums over the binary view, down to the domain's second level, are the domain's own measures."""
        domain = make()
        tree, nodes, part = BinaryTree(domain), np.array([ROOT]), np.ones(1)
        last = int(domain.bits_through[min(2, domain.depth)])
        for bits in range(last):
            first = tree.first_share(nodes, bits)
            part = np.stack([part * first, part * (1 - first)], axis=1).ravel()
            nodes = np.stack([2 * nodes, 2 * nodes + 1], axis=1).ravel()
            nodes, part = nodes[part > 0], part[part > 0]
        np.testing.assert_allclose(part, domain.measure(nodes) / domain.measure(np.array([ROOT]))[0], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in DOMAINS if name not in ("box of three dimensions", "cube", "hospitals", "stays")]
)
def test_errors_for_queries(name: str) -> None:
    """In the plane, where there are rectangles."""
    domain = DOMAINS[name]()
    stream = phd.TrackingStream(domain, 1.0, phd.Event(), noise=phd.Simulation(seed=2))
    release = stream.update(domain.sample(np.array([ROOT]), np.array([3000]), 1))
    place: Any = domain.location if isinstance(domain, phd.Product) else domain
    low, high = np.split(place.bounds(np.array([ROOT]))[0], 2)
    middle = (low + high) / 2
    answer = release.count([[*low, *high], [*low, *middle], [*middle, *high]])
    assert answer.value[0] == pytest.approx(release.total, rel=0.01)
    assert (answer.stderr[1:] >= 0).all()
    assert answer.stderr[0] < 0.2 * release.total


class TestWindow:
    def test_everything_expires_with_its_noise(self) -> None:
        stream = simulated(window=3, epsilon=0.5)
        for seed in range(4):
            stream.update(points(2000, seed))
        none = KnownNoise()
        none.private = False
        stream.noise = none
        for _ in range(3):
            release = stream.update()
        assert release.total == pytest.approx(0, abs=1e-6)
        method: Any = stream._method
        assert method._model.totals.variance < 50 * 2 / (0.03 * 0.5) ** 2

    @pytest.mark.slow
    def test_the_error_of_the_total_stops_growing(self) -> None:
        errors: dict[str, list[float]] = {"early": [], "late": []}
        for seed in range(20):
            stream = simulated(seed=seed, window=5)
            for tick in range(40):
                release = stream.update(points(200, tick))
                if tick in (9, 39):
                    errors["early" if tick == 9 else "late"].append(abs(release.total - 1000))
        assert np.mean(errors["late"]) < 2.5 * np.mean(errors["early"])

    def test_a_window_of_one_tick(self) -> None:
        stream = noiseless(window=1)
        stream.update(points(500))
        assert stream.update(points(300, 1)).total == pytest.approx(300)

    def test_places_left_behind_empty_out(self) -> None:
        stream = noiseless(window=4)
        for seed in range(8):
            stream.update(0.2 * points(500, seed))
        for seed in range(20):
            release = stream.update(0.8 + 0.2 * points(500, seed))
        assert release.count([[0, 0, 0.25, 0.25]]).value[0] < 100


def test_few_nodes_are_kept_and_the_total_stays() -> None:
    stream = simulated(max_nodes=40, epsilon=5.0)
    for seed in range(6):
        release = stream.update(points(2000, seed))
        assert stream.nodes <= 40
    assert release.total == pytest.approx(12_000, rel=0.05)
    empty = simulated(max_nodes=10)
    for _ in range(10):
        empty.update(points(30)[:1])
        assert empty.nodes <= 10  # also where all hold nothing


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("shape", ["even", "clusters"])
def test_ninety_percent_noise_intervals_cover_ninety_percent(epsilon: float, shape: str) -> None:
    """Against the true counts of cells that the tree has measured, over seeds and several blocks.

    Points come where points are, so there is little besides noise; the intervals for true counts are wider.
    """
    covered: list[float] = []
    edges = np.arange(4) / 4
    cells = np.array([[x, y, x + 0.25, y + 0.25] for x in edges for y in edges])
    for seed in range(100, 140):
        rng, live = np.random.default_rng(1000 + seed), []
        stream = simulated(seed, epsilon=epsilon, insert_only=True)
        for number in [8000] + [400] * 11:
            live.append(_cloud(rng, number, shape))
            release = stream.update(live[-1])
        x, y = np.concatenate(live).T
        true = np.histogram2d(x, y, bins=4, range=[[0, 1], [0, 1]])[0].ravel()
        answer = release.count(cells, confidence=0.9)
        covered += ((answer.noise_low <= true) & (true <= answer.noise_high)).tolist()
    assert 0.85 <= np.mean(covered) <= 0.95


def _cloud(rng: np.random.Generator, number: int, shape: str) -> np.ndarray:
    if shape == "even":
        return rng.random((number, 2))
    centres = np.array([[0.2, 0.3], [0.7, 0.6], [0.8, 0.2]])[rng.integers(0, 3, number)]
    return np.clip(centres + rng.normal(0, 0.08, (number, 2)), 0, 0.999)


@pytest.mark.statistical
@pytest.mark.parametrize("ticks", [1, 6])
def test_the_total_knows_its_own_error(ticks: int) -> None:
    """Its squared error is what its variance says, on average: noise that refining dropped and gave back is in both."""
    squares = []
    for seed in range(40):
        rng, stream = np.random.default_rng(seed), simulated(seed, epsilon=0.5, insert_only=True)
        for _ in range(ticks):
            release = stream.update(_cloud(rng, 3000, "clusters"))
        squares.append((release.total - 3000 * ticks) ** 2 / release.estimate.share_variance[0])
    assert 0.5 < np.mean(squares) < 2


def test_describe_says_it_in_words() -> None:
    said = simulated().describe()
    assert "TrackingStream" in said
    assert "0.09 for its tick's total, 0.18 for its zone, 0.73 for its cell" in said
