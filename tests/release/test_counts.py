"""Intervals: nested, monotone in confidence, never below zero."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import phdstream as phd
from phdstream.domains import ROOT
from phdstream.release.counts import Counts
from tests.domains.test_every_domain import DOMAINS

VALUE, NOISE = np.array([0.0, 0.5, 20.0, 1000.0]), np.array([0.0, 4.0, 9.0, 100.0])


def around(confidence: float, more: float = 3.0) -> Counts:
    return Counts.around(VALUE, VALUE - 1, NOISE, NOISE * more, confidence, "")


@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.9, 0.999])
def test_the_interval_of_the_noise_lies_within(confidence: float) -> None:
    counts = around(confidence)
    ends = (0 * VALUE, counts.low, counts.noise_low, counts.value, counts.noise_high, counts.high)
    assert all((less <= more).all() for less, more in pairwise(ends))


def test_more_confidence_is_wider() -> None:
    narrow, wide = around(0.8), around(0.95)
    assert (wide.low <= narrow.low).all()
    assert (wide.high[1:] > narrow.high[1:]).all()


def test_the_noise_is_not_all() -> None:
    assert (around(0.9, more=5.0).high[1:] > around(0.9, more=3.0).high[1:]).all()
    assert (around(0.9, more=5.0).stderr == around(0.9).stderr).all()


def test_beside_small_estimates_it_is_longer_upwards() -> None:
    counts = around(0.9)
    up, down = counts.high - counts.value, counts.value - counts.low
    assert up[1] > 2 * down[1]
    assert up[3] == pytest.approx(down[3], rel=0.03)


def test_nothing_unknown_is_no_interval() -> None:
    assert around(0.9).high[0] == around(0.9).low[0] == 0


def test_polygons_are_as_rectangles_but_wider_where_their_border_cuts_cells() -> None:
    """Borders that people drew follow what they divide, so cells that they cut err together."""
    import shapely

    points = np.random.default_rng(3).random((4000, 2)) ** 2
    for make in (phd.TrackingStream, phd.PHDStream):
        stream = make(phd.Box([(0, 1), (0, 1)]), 1.0, phd.Event(), noise=phd.Simulation(1))
        release = [stream.update(part) for part in np.split(points, 4)][-1]
        rectangles = np.array([[0.1, 0.1, 0.37, 0.3], [0.0, 0.0, 0.501, 0.77], [0.9, 0.9, 0.93, 0.95]])
        asked, polygons = release.count(rectangles), release.count_in(shapely.box(*rectangles.T))
        for name in ("value", "stderr", "noise_low", "noise_high"):
            np.testing.assert_allclose(getattr(polygons, name), getattr(asked, name), rtol=1e-6, atol=1e-6)
        assert (polygons.low <= asked.low + 1e-6).all()
        assert (polygons.high >= asked.high - 1e-6).all()
        assert polygons.high[1] > asked.high[1] + 1
        whole = release.count([[0, 0, 1, 1]]), release.count_in([shapely.box(0, 0, 1, 1)])
        np.testing.assert_allclose(whole[0].high, whole[1].high, rtol=1e-6)  # its border cuts nothing


def test_empty_places_are_not_sure_to_be_empty() -> None:
    """Small rectangles in a place released as empty: no points, but room for some; more room in larger ones."""
    stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 1.0, phd.Event(), noise=phd.Simulation(1))
    release = stream.update(0.1 * np.random.default_rng(3).random((4000, 2)))
    answer = release.count([[0.6, 0.6, 0.6 + side, 0.6 + side] for side in (0.01, 0.05, 0.3)], confidence=0.9)
    assert (answer.value < 2).all()
    assert (answer.low == 0).all()
    assert (np.diff(answer.high) > 0).all()
    assert 0 < answer.high[0] < answer.high[2] < 100


@pytest.mark.parametrize("name", DOMAINS)
def test_without_rectangles_it_is_everything(name: str) -> None:
    domain = DOMAINS[name]()
    stream = phd.TrackingStream(domain, 4.0, phd.Event(), noise=phd.Simulation(1))
    release = stream.update(domain.sample(np.array([ROOT]), np.array([500]), 1))
    (found,) = release.count().value
    assert found == pytest.approx(release.total, rel=1e-9)
    assert found == pytest.approx(500, abs=60)


def test_one_name_is_asked_for_as_a_list_of_it() -> None:
    places = phd.Hierarchy({"north": ["A", "B"], "south": ["C"]})
    release = phd.TrackingStream(places, 4.0, phd.Event(), noise=phd.Simulation(1)).update(["A"] * 100 + ["C"] * 50)
    assert release.count("north").value.tolist() == release.count(["north"]).value.tolist()
