"""Plots show what the release says, on every domain that has a map; others are refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

import phdstream as phd
from phdstream.domains.globe import Globe
from phdstream.domains.network import Network
from phdstream.domains.region import Region
from phdstream.errors import InputError, StateError
from phdstream.release.plots import KINDS, draw_ticks
from tests.domains.test_every_domain import ISLANDS, STREETS
from tests.page.folders import CITY, city_releases

matplotlib.use("Agg")
MAPS = {
    "box": lambda: phd.Box([(0, 4), (0, 2)]),
    "islands": lambda: Region(ISLANDS, depth=10),
    "streets": lambda: Network(STREETS, snap=30.0, depth=10),
    "globe": lambda: Globe(depth=7),
}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    matplotlib.pyplot.close("all")


def stream_on(domain: phd.Domain, **more: Any) -> phd.TrackingStream:
    return phd.TrackingStream(domain, 2.0, phd.Event(), noise=phd.Simulation(1), **more)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MAPS)
def test_every_map_is_drawn(name: str, kind: str) -> None:
    domain = MAPS[name]()
    stream = stream_on(domain)
    stream.update(domain.sample(np.array([1]), np.array([400]), 1))
    axes = stream.plot(kind)
    axes.figure.canvas.draw()
    assert axes.get_xlabel() == domain.names[0]
    assert "simulated, not private" in [text.get_text() for text in axes.texts]


def test_points_are_those_of_the_release() -> None:
    release = city_releases(2)[-1]
    axes = release.plot()
    np.testing.assert_array_equal(axes.collections[0].get_offsets(), release.sample())
    changes = release.changes()
    gone, new = release.plot("changes").collections
    np.testing.assert_array_equal(gone.get_offsets(), changes.deletes.reshape(-1, 2))
    np.testing.assert_array_equal(new.get_offsets(), changes.inserts)


def test_cells_are_coloured_by_density() -> None:
    release = city_releases(1)[-1]
    drawn = release.plot("cells").collections[0].get_array()
    cells = release.cells("pandas")
    wide = (cells["lon_max"] - cells["lon_min"]) * np.cos(np.radians(40.79)) * 111.195
    area = wide * (cells["lat_max"] - cells["lat_min"]) * 111.195
    np.testing.assert_allclose(drawn, cells["count"] / area, rtol=1e-3)


def test_uncertainty_is_half_the_interval_by_the_count() -> None:
    release = city_releases(3)[-1]
    drawn = release.plot("uncertainty").collections[0]
    corners = np.array([path.vertices[:4] for path in drawn.get_paths()])
    found = release.count(np.hstack([corners.min(axis=1), corners.max(axis=1)]))
    np.testing.assert_allclose(drawn.get_array(), (found.high - found.low) / 2 / found.value, rtol=1e-6)
    assert (found.value >= 0.99).all()


def test_ticks_side_by_side_share_one_scale() -> None:
    releases = city_releases(3)
    axes = draw_ticks(releases, ["a", "b", "c"], "cells")
    assert len({one.collections[0].norm.vmax for one in axes}) == 1
    assert [one.get_title()[0] for one in axes] == ["a", "b", "c"]
    sizes = {float(one.collections[0].get_sizes()[0]) for one in draw_ticks(releases, ["a", "b", "c"], "points")}
    assert len(sizes) == 1
    with pytest.raises(InputError, match="1 to 24 ticks"):
        draw_ticks(releases * 9, [""] * 27, "points")


@pytest.mark.parametrize("domain", [phd.Hierarchy({"US": ["A", "B"]}), phd.Box([(0, 1)] * 3), phd.Cube(5)])
def test_without_a_map_there_is_no_plot(domain: phd.Domain) -> None:
    stream = stream_on(domain)
    with pytest.raises(StateError, match="before the first tick"):
        stream.plot()
    release = stream.update(domain.sample(np.array([1]), np.array([20]), 1))
    for draw in (release.plot, release.explore):
        with pytest.raises(InputError, match=r"two coordinates.*cells\(\)"):
            draw()


def test_nothing_is_drawn_of_a_held_release() -> None:
    release = stream_on(CITY, start_after=3).update([[-73.95, 40.75]])
    for draw in (release.plot, release.explore):
        with pytest.raises(InputError, match="nothing is released yet"):
            draw()


def test_own_axes_are_drawn_on() -> None:
    _, axes = matplotlib.pyplot.subplots()
    assert city_releases(1)[0].plot("cells", axes) is axes
