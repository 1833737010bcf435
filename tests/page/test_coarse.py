"""A coarse release is a sound release that says the same of its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.page.coarse import coarsened
from phdstream.release.soundness import faults
from tests.page.folders import CITY, city_releases


@pytest.mark.parametrize("method", [phd.TrackingStream, phd.PHDStream])
def test_it_is_sound_and_keeps_counts(method: Any) -> None:
    release = city_releases(3, method=method)[-1]
    coarse = coarsened(release, 50)
    assert not faults(CITY, coarse.estimate)
    assert coarse.leaves.size < release.leaves.size
    assert coarse.total == release.total
    whole = CITY.bounds(np.array([1]))
    for end in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(coarse.count(whole), end), getattr(release.count(whole), end), rtol=1e-9)
    halves = CITY.bounds(np.array([2, 3]))
    np.testing.assert_allclose(coarse.count(halves).value, release.count(halves).value)


def test_intervals_still_hold_what_the_whole_release_says() -> None:
    release = city_releases(3)[-1]
    rng = np.random.default_rng(2)
    corners = np.sort(rng.uniform((-74.03, 40.69), (-73.90, 40.89), (200, 2, 2)), axis=1)
    fine, coarse = (one.count(corners.reshape(200, 4)) for one in (release, coarsened(release)))
    inside = (fine.value >= coarse.low) & (fine.value <= coarse.high)
    assert inside.mean() > 0.97
