"""Variants that only experiments run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely
from benchmarks.reproduction.as_published import AsPublishedNotPrivate
from benchmarks.reproduction.methods import paper_methods
from benchmarks.reproduction.random_points import PointsAsInPaper
from benchmarks.reproduction.variants import PublishedScoreNotPrivate

import phdstream as phd
from phdstream.release.soundness import total_alone

SQUARE = phd.Box([(0, 1), (0, 1)])


def crowd(number: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((number, 2)) * 0.2


def test_what_is_not_private_says_so() -> None:
    stream = PublishedScoreNotPrivate(SQUARE, 1.0, noise=phd.Simulation(1))
    release = stream.update(crowd(100, 1))
    assert "not private" in release.privacy
    assert release.metadata["method"] == "published"
    name = "phdstream-published-not-private"
    assert not paper_methods()[name].private
    assert "not private" in paper_methods()[name].label


def test_at_the_first_tick_the_scores_are_the_same() -> None:
    """With nothing released and nothing deleted P + A and G + ∇F are the same number, and so is the noise."""
    repaired = phd.PHDStream(SQUARE, 1.0, phd.Event(), noise=phd.Simulation(5)).update(crowd(3000, 2))
    published = PublishedScoreNotPrivate(SQUARE, 1.0, noise=phd.Simulation(5)).update(crowd(3000, 2))
    assert abs(repaired.leaves.size - published.leaves.size) < 0.25 * repaired.leaves.size
    assert published.points.sum() == pytest.approx(3000, abs=150)


def test_deletes_enter_the_published_score_and_not_the_repaired_one() -> None:
    """When as much goes as comes, the published score of a fresh place is 0; the repaired one sees the inserts."""
    here = crowd(4000, 3)
    repaired = phd.PHDStream(SQUARE, 8.0, phd.Event(), noise=phd.Simulation(1))
    published = PublishedScoreNotPrivate(SQUARE, 8.0, noise=phd.Simulation(1))
    assert published.update(here, here).leaves.size < 10
    assert repaired.update(here, here).leaves.size > 100


def test_it_follows_the_stream() -> None:
    published = PublishedScoreNotPrivate(SQUARE, 2.0, noise=phd.Simulation(3))
    first = published.update(crowd(5000, 1))
    second = published.update(1 - crowd(5000, 2), crowd(5000, 1))
    assert (first.tick, second.tick) == (1, 2)
    far = np.array([[0.75, 0.75, 1.0, 1.0]])
    assert first.count(far).value[0] < 500
    assert second.count(far).value[0] == pytest.approx(5000, rel=0.1)


class TestPointsAsInPaper:
    def test_a_cell_gets_its_count_rounded_up_and_none_if_it_is_negative(self) -> None:
        ours, papers = (phd.PHDStream(SQUARE, 0.2, phd.Event(), noise=phd.Simulation(4)) for _ in range(2))
        paper = PointsAsInPaper(papers)
        for seed in range(4):
            mine, release = ours.update(crowd(300, seed)), paper.update(crowd(300, seed))
        counts = dict(zip(mine.estimate.node.tolist(), mine.estimate.unbiased.tolist(), strict=True))
        assert min(counts[node] for node in mine.leaves.tolist()) < 0
        assert release.points.tolist() == [max(int(np.ceil(counts[node])), 0) for node in release.leaves.tolist()]

    @pytest.mark.parametrize("domain", [SQUARE, phd.Box([(0, 1), (0, 1)], fanout=4), phd.Cube(3)])
    def test_the_points_lie_in_their_cells(self, domain: phd.Domain) -> None:
        rng = np.random.default_rng(1)
        data = rng.integers(0, 2, (500, 3)) if isinstance(domain, phd.Cube) else rng.random((500, 2)) ** 2
        release = PointsAsInPaper(phd.PHDStream(domain, 2.0, phd.Event(), noise=phd.Simulation(2))).update(data)
        codes = np.sort(domain.encode(release.sample())[0])
        first, end = domain.code_range(release.leaves)
        assert (np.searchsorted(codes, end) - np.searchsorted(codes, first)).tolist() == release.points.tolist()
        assert (release.sample() == release.sample()).all()

    @pytest.mark.parametrize(
        "domain",
        [
            phd.Region(shapely.Polygon([(0, 0), (1, 0), (0, 1)]), depth=8),
            phd.Network(
                [shapely.LineString([(0, 0), (1, 0.3)]), shapely.LineString([(0, 1), (0.2, 0)])], depth=8, snap=1
            ),
        ],
        ids=["region", "network"],
    )
    def test_they_are_independent_also_where_cells_differ_in_size(self, domain: phd.Domain) -> None:
        """Halves of one cell of many points differ as chance has it, and on average get their share of the measure."""
        release = PointsAsInPaper(phd.PHDStream(domain, 1.0, phd.Event(), noise=phd.Simulation(2))).update([])
        halves, _, share = domain.children(np.array([1]))
        begin, end = domain.code_range(halves)
        counts = []
        for key in range(100):
            one = replace(release, key=key, estimate=total_alone(1000.0, 0.0, key))
            codes = np.sort(domain.encode(one.sample())[0])
            counts.append((np.searchsorted(codes, end) - np.searchsorted(codes, begin))[0])
        spread = np.sqrt(1000 * share[0] * (1 - share[0]))
        assert np.mean(counts) == pytest.approx(1000 * share[0], abs=spread / 3)
        assert np.std(counts) == pytest.approx(spread, rel=0.3)


class TestAsPublished:
    """The paper's method as printed, against the paper's own formulas."""

    def test_it_says_what_it_is_and_is_the_same_for_one_seed(self) -> None:
        first, again = (AsPublishedNotPrivate(SQUARE, 1.0, noise=phd.Simulation(1)) for _ in range(2))
        release = first.update(crowd(2000, 1))
        assert "not private" in release.privacy
        assert (release.sample() == again.update(crowd(2000, 1)).sample()).all()

    def test_with_hardly_any_noise_it_counts_a_stream_with_deletes(self) -> None:
        published = AsPublishedNotPrivate(SQUARE, 1e4, noise=phd.Simulation(1))
        here = crowd(4000, 1)
        published.update(here)
        release = published.update(1 - crowd(1000, 2), here[:3000])
        counts = release.leaf_unbiased
        assert counts.sum() == pytest.approx(2000, abs=1)
        assert release.points.tolist() == np.ceil(np.maximum(counts, 0)).astype(int).tolist()

    @pytest.mark.parametrize(("count_noise", "expected"), [(2.0, 4.0), (4.0, 8.0)])
    def test_the_noise_of_counts(self, count_noise: float, expected: float) -> None:
        """With ε = 1/2 a leaf's first count is off by Laplace noise of scale 2/ε, or 4/ε to the letter."""
        empty = phd.Box([(0, 1)], depth=1)
        sources = (phd.Simulation(seed) for seed in range(800))
        streams = [AsPublishedNotPrivate(empty, 0.5, noise=source, count_noise=count_noise) for source in sources]
        noise = np.concatenate([stream.update().leaf_unbiased for stream in streams])
        assert np.abs(noise).mean() == pytest.approx(expected, rel=0.1)

    def test_the_noise_of_the_tree(self) -> None:
        """An empty root splits if Laplace noise of scale λ = 3 · 2/ε lifts 0 above 0; a child needs δ = λ ln 2 more."""
        line = phd.Box([(0, 1)], depth=2)
        streams = [AsPublishedNotPrivate(line, 0.5, noise=phd.Simulation(seed)) for seed in range(800)]
        leaves = np.array([stream.update().leaves.size for stream in streams])
        assert (leaves > 1).mean() == pytest.approx(0.5, abs=0.06)
        assert (leaves == 4).mean() == pytest.approx(0.5 * (0.5 * 0.5) ** 2, abs=0.02)  # P(Z > δ) = exp(-ln 2)/2

    def test_a_node_passes_its_count_on_in_equal_parts(self) -> None:
        """Also where its children differ in size, as the paper's consistent extension does."""
        uneven = phd.Region(shapely.Polygon([(0, 0), (1, 0), (1, 0.2), (0.5, 0.2), (0.5, 1), (0, 1)]), depth=2)
        published = AsPublishedNotPrivate(uneven, 1e4, noise=phd.Simulation(1))
        published._store.expire(np.array([0]), np.array([-100.0]), np.array([0]), np.array([0.0]))
        release = published.update()
        halves, _, share = uneven.children(np.array([1]))
        starts = uneven.code_range(release.leaves)[0]
        edges = np.searchsorted(starts, uneven.code_range(halves)[1])
        assert share[0] > 0.6
        assert np.diff(release.leaf_unbiased.cumsum()[edges - 1], prepend=0) == pytest.approx([50, 50], abs=0.01)
