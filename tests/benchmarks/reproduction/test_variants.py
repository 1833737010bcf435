"""Variants that only experiments run."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.reproduction.methods import paper_methods
from benchmarks.reproduction.variants import PointsAsInPaper, PublishedScoreNotPrivate

import phdstream as phd

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
