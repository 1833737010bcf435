"""The baselines: what they do, and that they say what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.baselines import FixedPartition, OfflineEachTickNotPrivate, OfflineOnChangesNotPrivate
from tests.noises import KnownNoise, RecordingNoise

SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)


def points(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 2))


@pytest.mark.parametrize("baseline", [OfflineEachTickNotPrivate, OfflineOnChangesNotPrivate])
def test_without_noise_they_follow_the_size_of_the_data(baseline: Any) -> None:
    method = baseline(SQUARE, 1.0, noise=KnownNoise())
    assert method.update(points(100, 1)).total == pytest.approx(100)
    assert method.update(points(50, 2)).total == pytest.approx(150)
    release = method.update()
    assert release.tick == 3
    assert "not private" in release.privacy
    assert "not private" in repr(release)
    assert release.metadata["method"].startswith("baseline")


def test_baseline_1_forgets_what_was_deleted() -> None:
    method = OfflineEachTickNotPrivate(SQUARE, 1.0, noise=KnownNoise())
    method.update(points(100, 1))
    release = method.update(points(10, 2), deletes=points(100, 1)[:60])
    assert release.total == 50
    assert method.update(deletes=[[0.999, 0.001]]).total == 50  # nothing there to delete


def test_baseline_2_scales_the_changes_up() -> None:
    method = OfflineOnChangesNotPrivate(SQUARE, 1.0, noise=KnownNoise())
    method.update(np.full((900, 2), 0.1))
    release = method.update(np.full((100, 2), 0.9))
    right = release.count([[0.5, 0.5, 1, 1]])
    assert right.value[0] == pytest.approx(1000, rel=0.05)  # it sees the new corner alone
    assert abs(len(release.sample()) - 1000) < 60


class TestFixedPartition:
    def test_without_noise_it_counts_exactly_in_the_cells_of_the_start(self) -> None:
        method = FixedPartition(SQUARE, 1.0, noise=KnownNoise())
        first = method.update(points(400, 1))
        release = method.update(points(200, 2), deletes=points(400, 1)[:100])
        assert release.tick == 2
        assert release.total == 500
        np.testing.assert_array_equal(release.leaves, first.leaves)
        assert abs(len(release.sample()) - 500) < 1
        assert release.metadata["method"] == "baseline 3"

    def test_a_start_holds_until_it_comes(self) -> None:
        method = FixedPartition(SQUARE, 1.0, start_after=3, noise=KnownNoise())
        assert [method.update(points(100, t)).held for t in range(4)] == [True, True, False, False]

    def test_later_events_have_the_whole_budget(self) -> None:
        """After the start each noisy sum has scale 1/ε, half of what PHDStream has."""
        noise = RecordingNoise()
        method = FixedPartition(SQUARE, 2.0, noise=noise)
        method.update(points(100, 1))
        started = len(noise.draws)
        method.update(points(100, 2))
        assert [draw.scale for draw in noise.draws[started:]] == [0.5]

    def test_changes_and_errors(self) -> None:
        method = FixedPartition(SQUARE, 1.0, noise=phd.Simulation(1))
        before = method.update(points(400, 1))
        release = method.update(points(100, 2))
        changes = release.changes()
        assert len(before.sample()) + len(changes.inserts) - len(changes.deletes) == len(release.sample())
        assert (release.count([[0, 0, 1, 1]]).stderr > before.count([[0, 0, 1, 1]]).stderr).all()
        assert "differentially private" in release.privacy or release.privacy == "simulated, not private"
