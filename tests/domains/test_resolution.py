"""How fine a domain is: about 10 m unless told, wherever units are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains import domain_from_dict, resolution
from phdstream.domains.outlines import land, new_york_state
from phdstream.errors import InputError

NEW_YORK = [(-74.3, -73.7), (40.5, 41.0)]
STREET = [shapely.LineString([(-74.0, 40.7), (-73.9, 40.8)])]
IN_METRES = {
    "a city, by names": lambda **fine: phd.Box(NEW_YORK, names=("lon", "lat"), **fine),
    "a city, latitude first": lambda **fine: phd.Box(NEW_YORK[::-1], names=("Latitude", "Longitude"), **fine),
    "a city, by its system": lambda **fine: phd.Box(NEW_YORK, crs="EPSG:4326", **fine),
    "a city by quarters": lambda **fine: phd.Box(NEW_YORK, crs="EPSG:4326", fanout=4, **fine),
    "a city in feet": lambda **fine: phd.Box([(9e5, 1.07e6), (1.2e5, 2.8e5)], crs="EPSG:2263", **fine),
    "the world": lambda **fine: phd.Box([(-180, 180), (-90, 90)], crs="EPSG:4326", **fine),
    "a state": lambda **fine: phd.Region(new_york_state(), crs="EPSG:4326", **fine),
    "land": lambda **fine: phd.Region(land(), crs="EPSG:4326", **fine),
    "streets": lambda **fine: phd.Network(STREET, snap=9, crs="EPSG:4326", tree_crs="EPSG:32618", **fine),
    "the globe": lambda **fine: phd.Globe(**fine),
}
everywhere = pytest.mark.parametrize("make", IN_METRES.values(), ids=IN_METRES)


@everywhere
@pytest.mark.parametrize(("asked", "metres"), [(None, 10), ("10 m", 10), ("0.5 km", 500), ("2KM", 2000)])
def test_cells_are_as_wide_as_asked(make: Callable[..., phd.Domain], asked: Any, metres: float) -> None:
    domain = make(resolution=asked)
    step = 2.0 ** (max(domain.level_bits[1:]) / 4)  # the nearest level is at most half a level away
    assert domain.cell_metres is not None
    assert metres / step / 1.01 <= domain.cell_metres <= metres * step * 1.01


@everywhere
def test_cells_are_that_wide_on_the_ground(make: Callable[..., phd.Domain]) -> None:
    """The area of finest cells in the domain's own measure, or by the sphere, against the width it claims."""
    domain = make(resolution="2 km")
    low, high = np.hsplit(domain.bounds(np.array([1]))[0], 2)
    middle = domain.nodes_of(domain.encode(((low + high) / 2)[None])[0], domain.depth)
    x0, y0, x1, y1 = domain.bounds(middle)[0]
    if domain.names[0].lower().startswith("lat"):
        x0, y0, x1, y1 = y0, x0, y1, x1
    per_degree = (1, 1) if abs(x0) > 360 else (111_195 * np.cos(np.radians((y0 + y1) / 2)), 111_195)
    feet = 0.3048006 if abs(x0) > 360 else 1
    width = feet * np.sqrt((x1 - x0) * per_degree[0] * (y1 - y0) * per_degree[1])
    assert domain.cell_metres is not None
    assert 0.55 < width / domain.cell_metres < 1.8  # cells of the globe differ, and a bounding box is larger


def test_a_depth_that_is_given_wins_and_both_are_refused() -> None:
    assert phd.Box(NEW_YORK, crs="EPSG:4326", depth=7).depth == 7
    assert phd.Globe(depth=1).depth == 1
    for make in IN_METRES.values():
        with pytest.raises(InputError, match="not both"):
            make(depth=7, resolution="10 m")


def test_units_of_its_own_keep_ten_halvings() -> None:
    for plain in (
        phd.Box([(0, 1), (0, 1)]),
        phd.Box([(0, 5000), (0, 5000)], names=("lon", "lat")),
        phd.Box([(0, 1), (0, 1)], names=("lon", "height")),
        phd.Region(shapely.box(0, 0, 1, 1)),
        phd.Network(STREET, snap=0.1),
    ):
        assert plain.depth == 20
        assert plain.cell_metres is None


def test_a_number_is_in_the_domains_units() -> None:
    assert phd.Box([(0, 1), (0, 1)], resolution=0.25).depth == 4
    assert phd.Box([(0, 8)], resolution=1).depth == 3
    assert phd.Box([(0, 8)] * 3, resolution=1).depth == 9
    assert phd.Box([(0, 1), (0, 1)], resolution=5).depth == 1
    assert phd.Region(shapely.box(0, 0, 1, 1), resolution=0.25).depth == 4
    assert phd.Globe(resolution=0.01).depth == phd.Globe(resolution="1.11 km").depth


@pytest.mark.parametrize(
    "wrong", ["", "m", "10", "ten m", "1..2 m", "0 m", 0, -1, True, float("nan"), [10], "10 miles"]
)
def test_what_is_no_length_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="such as '10 m'"):
        phd.Box(NEW_YORK, crs="EPSG:4326", resolution=wrong)


def test_metres_need_units_that_are_known() -> None:
    with pytest.raises(InputError, match="in degrees or metres"):
        phd.Box([(0, 1), (0, 1)], resolution="10 m")


def test_what_cannot_be_had_is_said() -> None:
    with pytest.raises(InputError, match=r"finest possible is about 0\.034 m"):
        phd.Globe(resolution="1e-3 m")
    world = [(-180, 180), (-90, 90)]
    with pytest.raises(InputError, match=r"at most 62 bits.*about 0\.013 m"):
        phd.Box(world, crs="EPSG:4326", resolution="0.001 m")
    assert phd.Box(world, crs="EPSG:4326", resolution="0.013 m").total_bits == 62


def test_degrees_are_known_without_pyproj(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = phd.Box(NEW_YORK, crs="EPSG:4326").depth
    monkeypatch.setattr(resolution, "find_spec", lambda name: None)
    assert phd.Box(NEW_YORK, crs="EPSG:4326").depth == expected
    assert phd.Box([(9e5, 1.07e6), (1.2e5, 2.8e5)], crs="EPSG:2263").depth == 20


@everywhere
def test_a_saved_domain_keeps_its_depth(make: Callable[..., phd.Domain]) -> None:
    for domain in (make(), make(depth=9), make(resolution="1 km")):
        assert domain_from_dict(domain.to_dict()).depth == domain.depth


def test_people_are_told() -> None:
    stream = phd.TrackingStream(phd.Box(NEW_YORK, names=("lon", "lat")), 1.0, phd.Event())
    assert "finest cells are about 9.2 m wide" in stream.describe()
    assert "finest" not in phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 1.0, phd.Event()).describe()
