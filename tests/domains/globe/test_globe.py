"""The globe: agreement with S2, areas, bounds, samples, overlaps, and a stream over the whole Earth."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import phdstream as phd
from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT
from phdstream.domains.globe import Globe
from phdstream.domains.globe.s2 import cells_of, codes_of, spherical_area, to_face, to_lon_lat
from phdstream.errors import InputError
from tests.thorough import cases

s2sphere = pytest.importorskip("s2sphere")

FALSE_ALARM = 1e-6
SURFACE = 510_065_621.7  # km²
WHOLE = np.array([[-180.0, -90.0, 180.0, 90.0]])
GLOBES = {depth: Globe(depth=depth) for depth in (1, 2, 5, 14, 18, 29)}
every_globe = pytest.mark.parametrize("globe", GLOBES.values(), ids=[f"depth {depth}" for depth in GLOBES])
a_few = settings(max_examples=cases(10, 200))


# --- drawing points and nodes ---


def anywhere(n: int, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    return np.stack([rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))], axis=1)


def near_poles(n: int, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    from_pole = np.where(rng.random(n) < 0.1, 0, 10.0 ** rng.uniform(-14, 0, n))
    return np.stack([rng.uniform(-180, 180, n), rng.choice([-1, 1], n) * (90 - from_pole)], axis=1)


def on_edges() -> Floats:
    """Return points on edges of faces and cells, on the equator, the poles and the antimeridian, and one float away."""
    lon, lat = (g.ravel() for g in np.meshgrid(np.arange(-180, 181, 15.0), np.arange(-90, 91, 15.0)))
    slanted = np.degrees(np.arctan(np.cos(np.radians(np.arange(-45, 46, 5.0)))))
    sides = np.stack([np.arange(-45, 46, 5.0), slanted], axis=1)
    exact = np.concatenate([np.stack([lon, lat], axis=1), sides, -sides])
    beside = [np.nextafter(exact, toward) for toward in (np.inf, -np.inf, 0)]
    return np.clip(np.concatenate([exact, *beside]), [-180, -90], [180, 90])


def all_points(n: int = 3000, seed: int = 0) -> Floats:
    return np.concatenate([anywhere(n, seed), near_poles(n, seed), on_edges()])


def some_nodes(globe: Globe, level: int, n: int = 60, seed: int = 0) -> Ints:
    """Return nodes of a level, those at the poles and along the antimeridian among them."""
    special = [[0, 90], [0, -90], [100, 89.999999], [180, 30], [179.9999999, -60], [-180, 75], [180, -75], [0, 0]]
    codes, inside = globe.encode(np.concatenate([special, anywhere(n, seed)]))
    assert inside.all()
    return np.unique(globe.nodes_of(codes, level))


def mixed_nodes(globe: Globe, n: int = 60, seed: int = 0) -> Ints:
    levels = sorted({1, 2, 3, globe.depth // 2, globe.depth - 1, globe.depth} & set(range(globe.depth + 1)))
    return np.concatenate([[ROOT], *(some_nodes(globe, level, n, seed) for level in levels if level)])


def within(globe: Globe, nodes: Ints, points: Floats) -> Bools:
    """Whether each point's code is of the node in its row."""
    codes, inside = globe.encode(points)
    first, past = globe.code_range(nodes)
    return inside & (first <= codes) & (codes < past)


# --- agreement with another implementation of S2 ---


def leaf_id(lon: float, lat: float) -> Any:
    return s2sphere.CellId.from_lat_lng(s2sphere.LatLng.from_degrees(lat, lon))


def ids(globe: Globe, points: Floats) -> list[int]:
    return globe.to_s2_ids(globe.nodes_of(globe.encode(points)[0], globe.depth)).tolist()


@every_globe
def test_points_get_the_ids_that_s2_gives(globe: Globe) -> None:
    points = anywhere(400, seed=globe.depth)
    assert ids(globe, points) == [leaf_id(*point).parent(globe.depth - 1).id() for point in points]


@every_globe
def test_points_on_edges_are_in_the_cell_as_s2_sees_it(globe: Globe) -> None:
    """Rounding decides the side, so not the same cell is asked for, but one that S2 finds the point in or beside."""
    points = np.concatenate([on_edges(), near_poles(100)])
    for point, i in zip(points, ids(globe, points), strict=True):
        cell = s2sphere.Cell(s2sphere.CellId(i))
        vector = s2sphere.LatLng.from_degrees(point[1], point[0]).to_point()
        low, uv, high = (
            s2sphere.face_xyz_to_uv(cell.face(), xyz)
            for xyz in (cell.get_vertex_raw(0), vector, cell.get_vertex_raw(2))
        )
        assert uv[0]
        assert all(low[axis] - 1e-14 <= uv[axis] <= high[axis] + 1e-14 for axis in (1, 2))


@pytest.mark.parametrize("lon", [-180, -90, 0, 33.3, 90, 180])
def test_a_pole_is_one_point_whatever_its_longitude(lon: float) -> None:
    globe = GLOBES[29]
    for lat in (-90.0, 90.0):
        assert ids(globe, np.array([[lon, lat]])) == [leaf_id(0, lat).parent(28).id()]


def test_both_ends_of_the_longitudes_are_one_meridian() -> None:
    for globe in GLOBES.values():
        lat = np.linspace(-90, 90, 181)
        east, west = (globe.encode(np.stack([np.full(181, lon), lat], axis=1))[0] for lon in (180.0, -180.0))
        assert (east == west).all()


def test_points_on_both_sides_of_the_antimeridian_are_told_apart() -> None:
    globe, lat = GLOBES[29], np.linspace(-85, 85, 35)
    sides = [np.stack([np.full(35, lon), lat], axis=1) for lon in (-180 + 1e-9, 180 - 1e-9)]
    east, west = (globe.nodes_of(globe.encode(points)[0], 29) for points in sides)
    assert not (east == west).any()
    middles = [globe.bounds(nodes)[:, [0, 2]].mean(axis=1) for nodes in (east, west)]
    assert (middles[0] < -179.9999).all()
    assert (middles[1] > 179.9999).all()


@every_globe
def test_centres_of_s2_cells_are_in_the_nodes_with_their_ids(globe: Globe) -> None:
    nodes = np.concatenate([some_nodes(globe, level, 5) for level in range(1, globe.depth + 1)])
    centres = [s2sphere.CellId(i).to_lat_lng() for i in globe.to_s2_ids(nodes).tolist()]
    points = np.array([(centre.lng().degrees, centre.lat().degrees) for centre in centres])
    assert within(globe, nodes, points).all()


@pytest.mark.parametrize("level", [1, 2, 4, 9, 14])
def test_corners_and_areas_are_those_of_s2(level: int) -> None:
    globe = GLOBES[14]
    nodes = some_nodes(globe, level, 20)
    for node, drawn, area in zip(nodes, globe.vertices(nodes), globe.measure(nodes), strict=True):
        cell = s2sphere.Cell(s2sphere.CellId(int(globe.to_s2_ids(np.array([node]))[0])))
        for corner, (lon, lat) in enumerate(drawn):
            ours = s2sphere.LatLng.from_degrees(lat, lon).to_point()
            assert ours.angle(cell.get_vertex(corner)) < 1e-14
        assert area / SURFACE * 4 * np.pi == pytest.approx(cell.exact_area(), rel=1e-7)


@every_globe
def test_ids_name_the_nodes_again(globe: Globe) -> None:
    nodes = mixed_nodes(globe)[1:]
    again = globe.to_s2_ids(nodes)
    assert again.dtype == np.uint64
    assert (globe.from_s2_ids(again) == nodes).all()
    assert (globe.from_s2_ids(again.astype(np.int64)) == nodes).all()
    assert (globe.from_s2_ids(again.tolist()) == nodes).all()
    levels = [s2sphere.CellId(i).level() for i in again.tolist()]
    assert (globe.levels(nodes) - 1 == levels).all()


@every_globe
def test_nodes_in_order_are_s2_cells_in_order(globe: Globe) -> None:
    nodes = some_nodes(globe, globe.depth)
    assert (np.diff(globe.to_s2_ids(nodes).astype(object)) > 0).all()


# --- the arithmetic ---


@a_few
@given(st.integers(0, 28), st.integers(0, 2**32))
def test_codes_round_trip(level: int, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 6 << 2 * level, 200)
    face, u, v, du, dv = cells_of(codes, level)
    lon, lat = to_lon_lat(face, u + du / 2, v + dv / 2)
    assert (Globe(depth=level + 1).encode(np.stack([lon, lat], axis=1))[0] == codes).all()


@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_the_curve_visits_every_cell_once_and_steps_to_a_neighbour(level: int) -> None:
    size = 1 << level
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(size), np.arange(size)))
    for face in range(6):
        codes = codes_of(np.full(i.size, face), i, j, level)
        order = np.argsort(codes)
        assert (codes[order] == (face << 2 * level) + np.arange(i.size)).all()
        assert (np.abs(np.diff(i[order])) + np.abs(np.diff(j[order])) == 1).all()


def test_faces_and_back() -> None:
    points = all_points()
    face, u, v = to_face(*points.T)
    assert set(face) == set(range(6))
    assert max(np.abs(u).max(), np.abs(v).max()) <= 1 + 1e-15
    lon, lat = to_lon_lat(face, u, v)
    np.testing.assert_allclose(lat, points[:, 1], atol=1e-13)
    apart = (lon - points[:, 0] + 180) % 360 - 180
    np.testing.assert_allclose(apart * np.cos(np.radians(lat)), 0, atol=1e-13)


# --- areas ---


def test_the_whole_is_the_surface_of_the_earth() -> None:
    globe = Globe()
    assert globe.measure(np.array([ROOT]))[0] == pytest.approx(SURFACE, rel=1e-9)
    assert globe.measure(np.arange(8, 14)).sum() == pytest.approx(SURFACE, rel=1e-9)
    level_5 = np.arange(6 << 8) + (8 << 8)
    assert globe.measure(level_5).sum() == pytest.approx(SURFACE, rel=1e-9)


@every_globe
def test_children_partition_their_parents(globe: Globe) -> None:
    for level in range(globe.depth):
        nodes = some_nodes(globe, level)
        children, parent, share = globe.children(nodes)
        assert (np.bincount(parent) == (4 if level else 6)).all()
        assert (globe.levels(children) == level + 1).all()
        np.testing.assert_allclose(np.bincount(parent, weights=share), 1, rtol=1e-14)
        np.testing.assert_allclose(globe.measure(children), share * globe.measure(nodes)[parent], rtol=1e-12)
        first, past = globe.code_range(children)
        assert (first >= globe.code_range(nodes)[0][parent]).all()
        assert (past <= globe.code_range(nodes)[1][parent]).all()
        assert np.unique(children).size == children.size


def test_no_nodes_no_children() -> None:
    assert [part.size for part in Globe().children(np.zeros(0, dtype=np.int64))] == [0, 0, 0]


@pytest.mark.parametrize("level", [2, 3, 5, 7])
def test_areas_of_one_level_differ_by_a_factor_of_at_most_two(level: int) -> None:
    areas = Globe().measure(np.arange(6 << 2 * (level - 1)) + (8 << 2 * (level - 1)))
    assert areas.max() / areas.min() < 2.1


def test_the_finest_cells_are_of_about_ten_metres_by_default() -> None:
    globe = Globe()
    metres = 1000 * np.sqrt(globe.measure(some_nodes(globe, globe.depth, 1000)))
    assert 6 < metres.min() < metres.mean() < metres.max() < 13
    assert metres.mean() == pytest.approx(globe.cell_metres, rel=0.05)


def test_areas_keep_their_accuracy_in_the_smallest_cells() -> None:
    globe = GLOBES[29]
    nodes = some_nodes(globe, 29)
    cells = cells_of(globe.code_range(nodes)[0], 28)
    u, v = cells.u + cells.du / 2, cells.v + cells.dv / 2
    flat = cells.du * cells.dv * (1 + u * u + v * v) ** -1.5
    np.testing.assert_allclose(spherical_area(*cells[1:]), flat, rtol=1e-14)


# --- bounds ---


@every_globe
def test_a_point_lies_within_the_bounds_of_all_its_nodes(globe: Globe) -> None:
    points = all_points()
    codes, inside = globe.encode(points)
    assert inside.all()
    at_end = 180 - np.abs(points[:, 0]) < 1e-12
    for level in range(globe.depth + 1):
        box = globe.bounds(globe.nodes_of(codes, level))
        held = (box[:, :2] <= points) & (points <= box[:, 2:])
        assert held[:, 1].all()
        assert (held[:, 0] | at_end).all()


@every_globe
def test_bounds_are_no_wider_than_corners_and_sides(globe: Globe) -> None:
    nodes = np.concatenate([some_nodes(globe, level) for level in range(2, globe.depth + 1)] or [np.arange(8, 14)])
    box, corners = globe.bounds(nodes), globe.vertices(nodes)
    part = box[:, 2] - box[:, 0] < 360
    np.testing.assert_allclose(box[part, 0], corners[part, :, 0].min(axis=1), atol=1e-3)
    np.testing.assert_allclose(box[part, 2], corners[part, :, 0].max(axis=1), atol=1e-3)
    if globe.depth > 1:
        np.testing.assert_allclose(box[:, 1], corners[:, :, 1].min(axis=1), atol=1e-9)
        np.testing.assert_allclose(box[:, 3], corners[:, :, 1].max(axis=1), atol=1e-9)
        assert (np.abs(corners[~part, :, 1]).max(axis=1) == 90).all()


def test_bounds_of_the_root_and_the_faces() -> None:
    box = Globe().bounds(np.array([ROOT, *range(8, 14)])).round(3)
    assert box.tolist() == [
        [-180, -90, 180, 90],
        [-45, -45, 45, 45],
        [45, -45, 135, 45],
        [-180, 35.264, 180, 90],
        [-180, -45, 180, 45],
        [-135, -45, -45, 45],
        [-180, -90, 180, -35.264],
    ]


@every_globe
def test_drawn_cells_are_in_one_piece(globe: Globe) -> None:
    nodes = mixed_nodes(globe)[1:]
    lon, lat = np.moveaxis(globe.vertices(nodes), 2, 0)
    polar = (globe.levels(nodes) == 1) & (np.abs(lat).min(axis=1) == np.abs(lat).max(axis=1))
    assert (np.ptp(lon, axis=1)[~polar] <= 180).all()
    beyond = (np.abs(lon) > 180 + 1e-9).any(axis=1)
    assert set(nodes[beyond & ~polar]) <= {8 + 3}


# --- samples ---


def one_each(nodes: Ints) -> Ints:
    return np.ones(nodes.size, dtype=np.int64)


@every_globe
def test_samples_lie_in_their_nodes_and_bounds(globe: Globe) -> None:
    for nodes in (some_nodes(globe, globe.depth, 2000), some_nodes(globe, max(1, globe.depth - 2), 300)):
        many = np.repeat(nodes, 3)
        points = globe.sample(nodes, 3 * one_each(nodes), key=5)
        order = np.argsort(globe.code_range(nodes)[0])
        owners = np.repeat(nodes[order], 3)
        assert points.shape == (many.size, 2)
        assert within(globe, owners, points).all()
        box = globe.bounds(owners)
        assert ((box[:, :2] <= points) & (points <= box[:, 2:])).all()


@every_globe
def test_placed_points_keep_their_codes(globe: Globe) -> None:
    codes = globe.encode(all_points(20_000))[0]
    for key in range(3):
        points = globe.place(codes, np.arange(codes.size), key)
        assert (globe.encode(points)[0] == codes).all()


@every_globe
def test_a_sample_is_the_same_whatever_else_is_asked(globe: Globe) -> None:
    nodes = some_nodes(globe, max(1, globe.depth // 2))
    counts = np.random.default_rng(1).integers(0, 20, nodes.size)
    points = globe.sample(nodes, counts, key=9)
    assert (points == globe.sample(nodes[::-1], counts[::-1], key=9)).all()
    apart = np.concatenate([globe.sample(nodes[i::3], counts[i::3], key=9) for i in range(3)])
    assert sorted(map(tuple, points)) == sorted(map(tuple, apart))


def test_asking_for_more_keeps_all_points() -> None:
    few, more = (set(map(tuple, Globe().sample(np.array([ROOT]), np.array([n]), key=3))) for n in (400, 440))
    assert few <= more


def even_on_the_sphere(points: Floats) -> list[float]:
    """Return the p-values for evenness in longitude, in the sine of latitude, and in both together."""
    lon, height = (points[:, 0] + 180) / 360, (np.sin(np.radians(points[:, 1])) + 1) / 2
    squares = np.histogram2d(lon, height, bins=12, range=[(0, 1)] * 2)[0]
    tests = [stats.kstest(lon, "uniform"), stats.kstest(height, "uniform"), stats.chisquare(squares.ravel())]
    return [test.pvalue for test in tests]


@pytest.mark.statistical
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_points_placed_in_the_finest_cells_are_uniform_on_the_sphere(depth: Any) -> None:
    """Dealing is kept out of it: cells are drawn by their area, and each gets one point."""
    globe, rng = Globe(depth=depth), np.random.default_rng(depth)
    nodes = np.arange(6 << 2 * (depth - 1)) + (8 << 2 * (depth - 1))
    area = globe.measure(nodes)
    codes = globe.code_range(rng.choice(nodes, 30_000, p=area / area.sum()))[0]
    assert min(even_on_the_sphere(globe.place(codes, np.arange(codes.size), key=1))) > FALSE_ALARM


@pytest.mark.statistical
def test_single_samples_are_uniform_on_the_sphere() -> None:
    """Cells are thinned out to equal chances by area; each that is left gets one point, apportioned from level 5."""
    globe, rng = Globe(), np.random.default_rng(2)
    nodes = np.arange(6 << 8) + (8 << 8)
    area, points = globe.measure(nodes), []
    for key in range(10):
        chosen = nodes[rng.random(nodes.size) < area / area.max()]
        points.append(globe.sample(chosen, one_each(chosen), key))
    assert min(even_on_the_sphere(np.concatenate(points))) > FALSE_ALARM


def test_a_large_sample_is_spread_more_evenly_than_chance() -> None:
    points = Globe().sample(np.array([ROOT]), np.array([20_000]), key=1)
    squares = np.histogram2d(points[:, 0], np.sin(np.radians(points[:, 1])), bins=8, range=[(-180, 180), (-1, 1)])[0]
    assert np.abs(squares / (20_000 / 64) - 1).max() < 0.1


# --- overlaps ---


def counted_out(globe: Globe, node: Ints, rectangles: Any, parts: int = 500) -> Floats:
    """Return the shares by weighing a fine grid of a cell's points by area."""
    cell = cells_of(globe.code_range(node)[0], globe.depth - 1, globe.depth - globe.levels(node))
    middles = (np.arange(parts) + 0.5) / parts
    u, v = (g.ravel() for g in np.meshgrid(cell.u + cell.du * middles, cell.v + cell.dv * middles))
    weight = (1 + u * u + v * v) ** -1.5
    lon, lat = to_lon_lat(np.repeat(cell.face, u.size), u, v)
    west, south, east, north = rectangles.T[:, :, None]
    return ((west <= lon) & (lon <= east) & (south <= lat) & (lat <= north)) @ weight / weight.sum()


def cutting(globe: Globe, node: Ints, rng: np.random.Generator, n: int) -> Floats:
    """Return rectangles that cut the bounds of a node."""
    box = globe.bounds(node)[0]
    at = np.sort(rng.uniform(-0.3, 1.3, (n, 2, 2)), axis=2)
    ends = box[:2, None] + (box[2:] - box[:2])[:, None] * at
    return np.clip(
        np.concatenate([ends[:, :, 0], ends[:, :, 1]], axis=1), -WHOLE[0, [2, 3, 2, 3]], WHOLE[0, [2, 3, 2, 3]]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "level"), [(1, 1), (14, 1), (14, 2), (14, 3), (14, 6), (14, 14), (17, 17)])
def test_overlaps_of_cut_cells_are_exact(depth: Any, level: int) -> None:
    globe, rng = Globe(depth=depth), np.random.default_rng(level)
    for node in some_nodes(globe, level, 3)[:, None]:
        rectangles = cutting(globe, node, rng, 4)
        np.testing.assert_allclose(
            globe.overlap(node, rectangles)[:, 0], counted_out(globe, node, rectangles), atol=0.006
        )


@pytest.mark.parametrize("level", [18, 22, 29])
def test_overlaps_of_tiny_cells_are_counted_in_parts(level: int) -> None:
    globe, rng = GLOBES[29], np.random.default_rng(level)
    for node in some_nodes(globe, level, 3)[:, None]:
        rectangles = cutting(globe, node, rng, 4)
        expected = counted_out(globe, node, rectangles)
        np.testing.assert_allclose(globe.overlap(node, rectangles)[:, 0], expected, atol=0.13)


def tiles(edges_lon: Floats, edges_lat: Floats) -> Floats:
    lon, lat = np.sort(edges_lon), np.sort(edges_lat)
    west, south = np.meshgrid(lon[:-1], lat[:-1])
    east, north = np.meshgrid(lon[1:], lat[1:])
    return np.stack([west.ravel(), south.ravel(), east.ravel(), north.ravel()], axis=1)


@every_globe
@a_few
@given(seed=st.integers(0, 2**32))
def test_overlaps_of_tiling_rectangles_add_up_to_one(globe: Globe, seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = mixed_nodes(globe, 4, seed)
    box = globe.bounds(rng.choice(nodes, 1))[0]
    anywhere_else = [rng.uniform(-180, 180), rng.choice([-180, -90, 0, 45, 90])], [rng.uniform(-90, 90), 0.0]
    lon, lat = (
        np.r_[rng.uniform(box[k], box[k + 2], 2), anywhere_else[k], -end, end] for k, end in ((0, 180), (1, 90))
    )
    share = globe.overlap(nodes, tiles(lon, lat))
    assert (share >= 0).all()
    assert (share <= 1).all()
    np.testing.assert_allclose(share.sum(axis=0), 1, atol=1e-5)


def test_a_rectangle_has_as_much_of_all_cells_as_it_has_area() -> None:
    globe, rng = Globe(), np.random.default_rng(3)
    cells = np.arange(6 << 8) + (8 << 8)
    at = np.sort(rng.uniform(-1, 1, (30, 2, 2)), axis=2)
    west, east, south, north = 180 * at[:, 0, 0], 180 * at[:, 0, 1], at[:, 1, 0], at[:, 1, 1]
    rectangles = np.stack([west, np.degrees(np.arcsin(south)), east, np.degrees(np.arcsin(north))], axis=1)
    expected = (east - west) / 360 * (north - south) / 2
    np.testing.assert_allclose(globe.overlap(cells, rectangles) @ globe.measure(cells) / SURFACE, expected, rtol=1e-9)
    np.testing.assert_allclose(globe.overlap(np.array([ROOT]), rectangles)[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("level", [0, 1, 2, 3, 6, 11])
def test_a_node_overlaps_a_rectangle_as_much_as_its_children_do(level: int) -> None:
    globe, rng = Globe(), np.random.default_rng(level)
    for node in some_nodes(globe, level, 5)[:, None]:
        children, _, share = globe.children(node)
        rectangles = cutting(globe, node, rng, 10)
        expected = globe.overlap(children, rectangles) @ share
        np.testing.assert_allclose(globe.overlap(node, rectangles)[:, 0], expected, atol=1e-7)


@every_globe
def test_the_whole_earth_holds_every_node_wholly_and_elsewhere_holds_none(globe: Globe) -> None:
    nodes = mixed_nodes(globe)
    everything = np.concatenate([WHOLE, 2 * WHOLE, np.array([[-np.inf, -np.inf, np.inf, np.inf]])])
    assert (globe.overlap(nodes, everything) == 1).all()
    assert (globe.overlap(nodes, np.array([[190.0, -90, 200, 90], [0, 91, 1, 92], [10, 10, 10, 10]])) == 0).all()
    assert globe.overlap(nodes, np.empty((0, 4))).shape == (0, nodes.size)
    assert globe.overlap(nodes[:0], WHOLE).shape == (1, 0)


@every_globe
def test_a_node_is_wholly_in_its_bounds(globe: Globe) -> None:
    nodes = mixed_nodes(globe)
    assert (np.diag(globe.overlap(nodes, globe.bounds(nodes))) == 1).all()


# --- a stream over the whole Earth ---


def cities(n: int, seed: int) -> Floats:
    """Return points about four cities, two of them at the antimeridian."""
    rng = np.random.default_rng(seed)
    centres = np.array([[-0.13, 51.5], [139.7, 35.7], [178.4, -18.1], [-179.9, -16.5]])
    points = centres[rng.integers(0, 4, n)] + rng.normal(0, 0.3, (n, 2))
    return np.stack([(points[:, 0] + 180) % 360 - 180, points[:, 1]], axis=1)


def test_a_stream_over_the_whole_earth() -> None:
    stream = phd.PHDStream(Globe(), epsilon=1.0, unit=phd.Record(), noise=phd.Simulation(seed=1))
    first = stream.update(cities(6000, 1))
    second = stream.update(cities(3000, 2), deletes=cities(6000, 1)[:2000])
    assert second.total == pytest.approx(7000, abs=300)
    assert second.count(WHOLE).value[0] == pytest.approx(second.total, rel=1e-12)
    assert second.cells().column_names[:6] == ["node", "level", "lon_min", "lat_min", "lon_max", "lat_max"]
    near_london, both_sides = [[-2, 50, 2, 53]], [[177, -20, 180, -15], [-180, -20, -178, -15]]
    truth = [1500 + 750 - 500] * 2
    assert [second.count(near_london).value[0], second.count(both_sides).value.sum() / 2] == pytest.approx(
        truth, rel=0.2
    )
    sample, changes = second.sample(), second.changes()
    assert sample.shape == (second.points.sum(), 2)
    assert Globe().encode(sample)[1].all()
    before = sorted(map(tuple, np.concatenate([first.sample(), changes.inserts])))
    assert before == sorted(map(tuple, np.concatenate([sample, changes.deletes])))


def test_tiling_counts_add_up_to_the_total() -> None:
    stream = phd.PHDStream(Globe(depth=20), epsilon=1.0, unit=phd.Event(), noise=phd.Simulation(seed=2))
    release = stream.update(cities(5000, 3))
    counts = release.count(tiles(np.linspace(-180, 180, 19), np.linspace(-90, 90, 10)))
    assert counts.value.sum() == pytest.approx(release.total, rel=1e-6)


# --- plain data, and what is refused ---


def test_plain_data_gives_the_same_globe_back() -> None:
    seven: Any = np.int64(7)
    for globe in (Globe(), Globe(depth=seven, names=["x", "y"])):
        fields = json.loads(json.dumps(globe.to_dict()))
        assert fields.pop("type") == "globe"
        again = Globe(**fields)
        assert (again.to_dict(), repr(again)) == (globe.to_dict(), repr(globe))
    assert repr(Globe(depth=7)) == "Globe(depth=7)"
    assert Globe().names == ("lon", "lat")


def test_levels_and_bits() -> None:
    globe = Globe(depth=4)
    assert (globe.depth, globe.fanout, globe.level_bits, globe.total_bits) == (4, 6, (3, 2, 2, 2), 9)
    assert Globe().depth == 21
    assert Globe(depth=29).total_bits <= 62


@pytest.mark.parametrize(
    "point",
    [(180.001, 0), (-181, 0), (0, 90.001), (0, -91), (180, 91), (np.nan, 0), (0, np.nan), (np.inf, 0), (0, -np.inf)],
)
def test_points_off_the_globe_are_outside(point: list[float]) -> None:
    for globe in GLOBES.values():
        codes, inside = globe.encode(np.array([point, (0.0, 0.0)], dtype=float))
        assert inside.tolist() == [False, True]
        assert 0 <= codes[0] < 6 << (globe.total_bits - 3)


@every_globe
def test_no_points_no_codes(globe: Globe) -> None:
    codes, inside = globe.encode(np.empty((0, 2)))
    assert codes.size == inside.size == 0
    assert globe.sample(np.array([ROOT]), np.array([0]), 1).shape == (0, 2)


@pytest.mark.parametrize("depth", [0, -1, 30, True, 3.0, "3"])
def test_a_bad_depth_is_refused(depth: Any) -> None:
    with pytest.raises(InputError, match="depth must be a whole number from 1 to 29"):
        Globe(depth=depth)


@pytest.mark.parametrize("names", [("lon",), ("x", "x"), ("x", ""), "ab", ("lon", "lat", "h")])
def test_bad_names_are_refused(names: Any) -> None:
    with pytest.raises(InputError, match="names must be 2 different, non-empty words"):
        Globe(names=names)


@pytest.mark.parametrize("rectangles", [[[10, 0, -10, 5]], [[0, 0, np.nan, 1]], [[0, 0, 1]], "all"])
def test_bad_rectangles_are_refused(rectangles: Any) -> None:
    with pytest.raises(InputError, match="rectangle"):
        Globe().queries(rectangles)


def test_the_root_is_no_s2_cell() -> None:
    for ask in (Globe().to_s2_ids, Globe().vertices):
        with pytest.raises(InputError, match="the root is the whole Earth"):
            ask(np.array([8, ROOT]))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([0], "not ids of S2 cells"),
        ([6 << 61 | 1 << 60], "not ids of S2 cells"),
        ([1 << 59], "not ids of S2 cells"),
        ([1 << 61], "not ids of S2 cells"),
        ([1], "finer than this tree's, of level 20: take their parents"),
        ([1.5], "whole numbers of 64 bits"),
        (["4876100000000000"], "whole numbers of 64 bits"),
        ([[1 << 60]], "whole numbers of 64 bits"),
        ([1 << 70], "whole numbers of 64 bits"),
        (None, "whole numbers of 64 bits"),
        (1 << 60, "whole numbers of 64 bits"),
    ],
)
def test_bad_ids_are_refused(bad: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Globe().from_s2_ids(bad)


def test_no_ids_no_nodes() -> None:
    assert Globe().from_s2_ids([]).size == 0
