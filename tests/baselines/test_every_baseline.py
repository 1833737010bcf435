"""Every baseline: it follows a stream with deletes as it says, and says what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream import baselines
from phdstream.release.soundness import faults
from tests.noises import KnownNoise, RecordingNoise

SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)
WEST, EAST = [[0.0, 0.0, 0.5, 1.0]], [[0.5, 0.0, 1.0, 1.0]]
NOT_PRIVATE = [
    baselines.OfflineEachTickNotPrivate,
    baselines.TrackingEachTickNotPrivate,
    baselines.OfflineOnChangesNotPrivate,
    baselines.OfflineOnInsertsNotPrivate,
]
PRIVATE = [baselines.FixedPartition, baselines.Nothing, baselines.UniformTotal]
AFTER_A_MOVE = {
    baselines.OfflineEachTickNotPrivate: (500, 500),
    baselines.TrackingEachTickNotPrivate: (500, 500),
    baselines.OfflineOnChangesNotPrivate: (0, 500),  # the letter: 500 gained in the east, times 1000/(500 + 500)
    baselines.OfflineOnInsertsNotPrivate: (0, 1000),  # the inserts alone, scaled to all 1000
    baselines.FixedPartition: (500, 500),
    baselines.Nothing: (0, 0),
    baselines.UniformTotal: (500, 500),
}
"""Points in the west and in the east, without noise, when half of 1000 have gone from west to east in one tick."""


def around(x: float, number: int) -> np.ndarray:
    return np.array([x, 0.5]) + np.random.default_rng(1).random((number, 2)) / 100


def releases(baseline: Any, noise: phd.privacy.Noise) -> Iterator[phd.Release]:
    """As many go as come at every tick after the first: the tick's net total is 0."""
    method, here = baseline(SQUARE, 1.0, noise=noise), around(0.1, 1000)
    yield method.update(here)
    yield method.update(around(0.9, 500), here[:500])


def test_none_is_forgotten() -> None:
    named = {getattr(baselines, name) for name in baselines.__all__} - {baselines.Releaser}
    assert named == set(NOT_PRIVATE + PRIVATE) == set(AFTER_A_MOVE)


@pytest.mark.parametrize("baseline", AFTER_A_MOVE)
def test_with_deletes_nothing_is_lost(baseline: Any) -> None:
    """The number of points, in the release and in its synthetic data, when a tick's inserts and deletes balance."""
    *_, release = releases(baseline, KnownNoise())
    for side, expected in zip((WEST, EAST), AFTER_A_MOVE[baseline], strict=True):
        x = release.sample()[:, 0]
        inside = ((x >= side[0][0]) & (x <= side[0][2])).sum()
        assert release.count(side).value[0] == pytest.approx(expected, abs=25)
        assert inside == pytest.approx(expected, abs=25)


@pytest.mark.parametrize("baseline", AFTER_A_MOVE)
def test_releases_are_whole_also_with_much_noise(baseline: Any) -> None:
    for seed in range(3):
        for tick, release in enumerate(releases(baseline, phd.Simulation(seed)), start=1):
            assert release.tick == tick
            assert faults(SQUARE, release.estimate) == []
            assert len(release.sample()) == release.estimate.points[0]


@pytest.mark.parametrize("baseline", NOT_PRIVATE)
def test_what_is_not_private_says_so(baseline: Any) -> None:
    for release in releases(baseline, KnownNoise()):
        assert "not private" in release.privacy
        assert "not private" in repr(release)


@pytest.mark.parametrize("baseline", PRIVATE)
def test_what_is_private_says_so_with_exact_noise_alone(baseline: Any) -> None:
    for release in releases(baseline, phd.privacy.ExactNoise()):
        assert "private" in release.privacy
        assert "not private" not in release.privacy
    if baseline is not baselines.Nothing:  # which looks at nothing, whatever the noise
        assert {release.privacy for release in releases(baseline, phd.Simulation(1))} == {"simulated, not private"}


@pytest.mark.parametrize("baseline", NOT_PRIVATE[:3])
def test_without_deletes_they_follow_the_size_of_the_data(baseline: Any) -> None:
    method = baseline(SQUARE, 1.0, noise=KnownNoise())
    assert method.update(around(0.1, 100)).total == pytest.approx(100)
    assert method.update(around(0.6, 50)).total == pytest.approx(150)
    assert method.update().tick == 3


def test_baseline_1_forgets_what_was_deleted() -> None:
    method, here = baselines.OfflineEachTickNotPrivate(SQUARE, 1.0, noise=KnownNoise()), around(0.1, 100)
    method.update(here)
    assert method.update(around(0.9, 10), here[:60]).total == 50
    assert method.update(deletes=[[0.999, 0.001]]).total == 50  # nothing there to delete


@pytest.mark.parametrize("baseline", [baselines.OfflineOnChangesNotPrivate, baselines.OfflineOnInsertsNotPrivate])
def test_baseline_2_needs_no_release_of_the_ticks_in_between(baseline: Any) -> None:
    """A tick that is skipped counts in the size of the data, and draws no noise."""
    noise = RecordingNoise()
    method, here = baseline(SQUARE, 1.0, noise=noise), around(0.1, 900)
    method.skip(here)
    method.skip(deletes=here[:400])
    assert noise.draws == []
    release = method.update(around(0.9, 100))
    assert (release.tick, release.total) == (3, pytest.approx(600, rel=0.05))


@pytest.mark.parametrize("baseline", [baselines.OfflineOnChangesNotPrivate, baselines.OfflineOnInsertsNotPrivate])
def test_baseline_2_sees_the_latest_changes_alone(baseline: Any) -> None:
    method = baseline(SQUARE, 1.0, noise=KnownNoise())
    method.update(around(0.1, 900))
    release = method.update(around(0.9, 100))
    assert release.count(EAST).value[0] == pytest.approx(1000, rel=0.05)
    assert abs(len(release.sample()) - 1000) < 60
