"""The baselines: what they do, and that they say what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.baselines import OfflineEachTickNotPrivate, OfflineOnChangesNotPrivate
from tests.noises import KnownNoise

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
    assert release.facts["method"].startswith("baseline")


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
