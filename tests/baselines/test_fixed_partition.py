"""Baseline 3: the cells of the start, counted with the whole budget."""

from __future__ import annotations

import numpy as np

import phdstream as phd
from phdstream.baselines import FixedPartition
from tests.noises import KnownNoise, RecordingNoise

SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)


def points(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 2))


def test_without_noise_it_counts_exactly_in_the_cells_of_the_start() -> None:
    method = FixedPartition(SQUARE, 1.0, noise=KnownNoise())
    first = method.update(points(400, 1))
    release = method.update(points(200, 2), deletes=points(400, 1)[:100])
    assert release.tick == 2
    assert release.total == 500
    np.testing.assert_array_equal(release.leaves, first.leaves)
    assert abs(len(release.sample()) - 500) < 1
    assert release.metadata["method"] == "baseline 3"


def test_a_start_holds_until_it_comes() -> None:
    method = FixedPartition(SQUARE, 1.0, start_after=3, noise=KnownNoise())
    assert [method.update(points(100, t)).held for t in range(4)] == [True, True, False, False]


def test_later_events_have_the_whole_budget() -> None:
    """After the start each noisy sum has scale 1/ε, half of what PHDStream has."""
    noise = RecordingNoise()
    method = FixedPartition(SQUARE, 2.0, noise=noise)
    method.update(points(100, 1))
    started = len(noise.draws)
    method.update(points(100, 2))
    assert [draw.scale for draw in noise.draws[started:]] == [0.5]


def test_changes_and_errors() -> None:
    method = FixedPartition(SQUARE, 1.0, noise=phd.Simulation(1))
    before = method.update(points(400, 1))
    release = method.update(points(100, 2))
    changes = release.changes()
    assert len(before.sample()) + len(changes.inserts) - len(changes.deletes) == len(release.sample())
    assert (release.count([[0, 0, 1, 1]]).stderr > before.count([[0, 0, 1, 1]]).stderr).all()
    assert "differentially private" in release.privacy or release.privacy == "simulated, not private"
