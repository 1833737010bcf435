"""The floors: what they cost, and that they say as much as they may."""

from __future__ import annotations

import numpy as np
import pytest

import phdstream as phd
from phdstream.baselines import Nothing, UniformTotal
from tests.noises import KnownNoise, RecordingNoise

SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)


def points(n: int) -> np.ndarray:
    return np.random.default_rng(1).random((n, 2))


def test_nothing_draws_no_noise_and_is_the_same_for_all_data() -> None:
    noise = RecordingNoise()
    method = Nothing(SQUARE, 1.0, noise=noise)
    assert [method.update(points(n)).estimate.points.sum() for n in (0, 5, 500)] == [0, 0, 0]
    assert noise.draws == []


def test_uniform_adds_each_tick_to_one_noisy_sum_with_the_whole_budget() -> None:
    """One draw a tick, of scale 1/ε, on that tick's change alone: so an event costs ε once."""
    noise = RecordingNoise()
    method = UniformTotal(SQUARE, 0.5, noise=noise)
    for come, gone in ((100, 0), (30, 80), (0, 0)):
        method.update(points(come), points(gone))
    assert [draw.scale for draw in noise.draws] == [2.0, 2.0, 2.0]
    assert [draw.values.tolist() for draw in noise.draws] == [[100], [-50], [0]]


def test_uniform_spreads_by_measure_and_keeps_its_points() -> None:
    method = UniformTotal(SQUARE, 1.0, noise=KnownNoise())
    first, second = method.update(points(1000) / 10), method.update(points(24) / 10)
    assert second.total == 1024
    assert second.count([[0.25, 0.25, 0.5, 0.75]]).value[0] == pytest.approx(128)
    changes = second.changes()
    assert len(changes.inserts) - len(changes.deletes) == 24
    assert len(changes.deletes) < 24
    assert len(first.sample()) == 1000


def test_a_total_below_nothing_is_nothing() -> None:
    release = UniformTotal(SQUARE, 1.0, noise=KnownNoise()).update(deletes=points(10))
    assert (release.total, release.leaf_unbiased.tolist(), len(release.sample())) == (0.0, [-10.0], 0)
    assert release.count([[0, 0, 1, 1]]).stderr[0] > 1
