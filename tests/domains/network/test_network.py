"""Points on lines: what a `Network` promises, on streets made up to be awkward and on Manhattan's."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import phdstream as phd
from phdstream.arrays import Floats, Ints
from phdstream.domains import ROOT, Domain, domain_from_dict
from phdstream.domains.network import Network
from phdstream.domains.network.nearest import NearestSegment
from phdstream.domains.network.segments import Segments, straight_segments
from phdstream.errors import InputError
from tests.thorough import cases

FALSE_ALARM = 1e-6
MANHATTAN = Path(__file__).parents[4] / "shared" / "data" / "geometry" / "manhattan_osmnx.gpkg"
EVERYTHING = np.array([ROOT])


def wiggles(
    number: int, size: float, seed: int, low: tuple[float, float] = (0, 0), high: tuple[float, float] = (1000, 700)
) -> list[Any]:
    """Return random broken lines between two corners."""
    rng, extent = np.random.default_rng(seed), np.subtract(high, low)
    walks = rng.uniform(0, extent, (number, 1, 2)) + rng.normal(0, size, (number, 4, 2)).cumsum(axis=1)
    return list(shapely.linestrings(low + extent - np.abs(extent - np.abs(walks))))


def line(*points: Any) -> shapely.LineString:
    return shapely.LineString(points)


SQUARE = [(0.0, 8.0), (0.0, 8.0)]
ON_BORDERS = [line((x, 0), (x, 8)) for x in range(9)] + [line((0, y), (8, y)) for y in range(9)]
THROUGH_CORNERS = [line((0, 0), (8, 8)), line((0, 8), (8, 0)), line((0, 4), (4, 0)), line((1, 8), (3, 0))]
TINY_AND_LONG = [
    line((0, 0), (1e5, 3e4)),
    line((5e4, 5e4), (5e4 + 1e-7, 5e4)),
    line((5e4, 5e4), (5e4, 5e4 + 1e-11)),
    line((1e4, 0), (1e4 + 1e-9, 9e4)),  # almost upright
    line(*((2e4 + 0.001 * i, 6e4 + 0.001 * (i % 2)) for i in range(300))),
]
BROADWAY = [(-74.0, 40.70), (-73.98, 40.75), (-73.96, 40.80), (-73.93, 40.87)]

NETWORKS = {
    "random": lambda: Network(wiggles(60, 40, 1), snap=20, depth=14),
    "random by quarters": lambda: Network(wiggles(60, 40, 2), snap=20, depth=7, fanout=4),
    "random by 8": lambda: Network(wiggles(60, 40, 2), snap=20, depth=5, fanout=8),
    "on borders": lambda: Network(ON_BORDERS, snap=0.4, depth=6, bounds=SQUARE),
    "on borders, deep": lambda: Network(ON_BORDERS, snap=0.4, depth=40, bounds=SQUARE),
    "through corners": lambda: Network(THROUGH_CORNERS, snap=0.4, depth=8, bounds=SQUARE),
    "tiny and long": lambda: Network(TINY_AND_LONG, snap=100, depth=30),
    "one upright street": lambda: Network([line((3, 5), (3, 95))], snap=1),
    "far from zero": lambda: Network(wiggles(30, 0.1, 3, (4e6, 5e6), (4e6 + 1, 5e6 + 1)), snap=0.01, depth=12),
    "in degrees": lambda: Network(
        [line(*BROADWAY), *wiggles(40, 0.01, 4, (-74.02, 40.70), (-73.92, 40.88))],
        snap=100,
        crs="EPSG:4326",
        tree_crs="EPSG:32618",
        depth=16,
    ),
}


@pytest.fixture(params=NETWORKS.values(), ids=list(NETWORKS), scope="module")
def network(request: pytest.FixtureRequest) -> Network:
    return request.param()


def levels_of(network: Network, most: int = 200) -> list[Ints]:
    rng, levels = np.random.default_rng(1), [EVERYTHING]
    for _ in range(network.depth):
        nodes = network.children(levels[-1])[0]
        levels.append(np.sort(rng.choice(nodes, most, replace=False)) if nodes.size > most else nodes)
    return levels


def some_nodes(network: Network, most: int = 40) -> Ints:
    nodes = np.concatenate(levels_of(network, 20))
    return np.random.default_rng(2).permutation(nodes)[:most]


def spread(network: Network, number: int, key: int = 1) -> Floats:
    return network.sample(EVERYTHING, np.array([number]), key)


def on_map(network: Network, geometries: Any) -> Any:
    """Return geometries of users' coordinates on the tree's map."""
    return shapely.transform(geometries, network._projection.forward)


def beside(network: Network, number: int, seed: int = 0) -> Floats:
    """Return points at up to twice the snap distance from the lines, vertices, and middles of segments."""
    rng = np.random.default_rng(seed)
    there = network._projection.forward(spread(network, number, seed))
    vertices = network._projection.forward(shapely.get_coordinates(network.boundary())[:number])
    near = there + rng.uniform(-1.5, 1.5, there.shape) * network.snap
    return network._projection.backward(np.concatenate([there, vertices, near]))


# --- the tree ---


def test_children_partition_their_parents(network: Network) -> None:
    for nodes in levels_of(network)[:-1]:
        children, parent, share = network.children(nodes)
        assert (network.measure(children) > 0).all()
        assert (np.diff(parent) >= 0).all()
        assert set(parent.tolist()) == set(range(nodes.size))
        np.testing.assert_allclose(
            np.bincount(parent, weights=network.measure(children)), network.measure(nodes), rtol=1e-12
        )
        np.testing.assert_allclose(share, network.measure(children) / network.measure(nodes)[parent], rtol=1e-12)


def test_the_root_is_as_long_as_all_lines(network: Network) -> None:
    once = shapely.union_all(on_map(network, network._lines))
    assert network.measure(EVERYTHING)[0] == pytest.approx(once.length, rel=1e-6)


@pytest.mark.parametrize("name", ["random", "random by quarters", "random by 8", "far from zero", "in degrees"])
def test_lengths_are_those_that_shapely_cuts_out(name: str) -> None:
    """Unless lines run along borders: those belong to two of Shapely's closed cells."""
    network = NETWORKS[name]()
    nodes = some_nodes(network)
    cells = shapely.box(*network._halves.bounds(nodes).T)
    expected = shapely.length(shapely.intersection(shapely.multilinestrings(on_map(network, network._lines)), cells))
    np.testing.assert_allclose(network.measure(nodes), expected, rtol=1e-5, atol=1e-4 * network.snap)


def test_a_cell_is_the_same_whenever_it_is_asked_for(network: Network) -> None:
    nodes = some_nodes(network)
    fresh = Network.from_dict(network.to_dict())
    assert (fresh.measure(nodes[::-1]) == network.measure(nodes)[::-1]).all()
    for mine, other in zip(fresh._tree.pieces(nodes), network._tree.pieces(nodes), strict=True):
        assert (mine == other).all()


def test_a_cell_without_lines_is_not_in_the_tree() -> None:
    network = Network([line((0, 0), (1, 0)), line((7, 7), (8, 7))], snap=1, bounds=SQUARE, depth=2)
    assert network.children(EVERYTHING)[0].tolist() == [2, 3]
    assert network.children(np.array([2, 3]))[0].tolist() == [4, 7]
    assert network.measure(np.arange(4, 8)).tolist() == [1, 0, 0, 1]
    assert network.geometry(np.array([5]))[0].is_empty
    assert network.overlap(np.array([5]), np.array([[0, 0, 8, 8]])).tolist() == [[0]]
    with pytest.raises(InputError, match="cell without lines"):
        network.sample(np.array([5]), np.array([1]), key=1)


@pytest.mark.parametrize("street", [line((4, 1), (4, 7)), line((1, 4), (7, 4))], ids=["upright", "level"])
def test_a_segment_along_a_dividing_line_belongs_to_the_upper_part(street: Any) -> None:
    network = Network([street], snap=1, bounds=SQUARE, depth=4)
    on_axis = [7, 6] if street.bounds[0] == 4 else [7, 5]
    nodes = np.arange(4, 8)
    assert set(nodes[network.measure(nodes) > 0].tolist()) == set(on_axis)
    assert network.measure(nodes).sum() == 6
    codes, inside = network.encode(np.array([[4.0, 4.0], [3.9, 3.9], [4.1, 4.1]]))
    assert inside.all()
    assert (network.measure(network.nodes_of(codes, 4)) > 0).all()


def test_lines_on_the_outer_border_are_inside() -> None:
    network = Network(ON_BORDERS, snap=0.1, bounds=SQUARE, depth=6)
    corners = np.array([[0, 0], [8, 8], [0, 8], [8, 0], [8, 3.3]], dtype=float)
    codes, inside = network.encode(corners)
    assert inside.all()
    assert (network.measure(network.nodes_of(codes, 6)) > 0).all()


# --- grains ---


@settings(max_examples=cases(60, 1000))
@given(
    st.tuples(*[st.floats(-10, 10)] * 4),
    st.lists(st.one_of(st.floats(-12, 12), st.integers(-10, 10)), min_size=2, max_size=9),
    st.integers(0, 1),
    st.sampled_from([1.0, 1e-12, 3e-16, 0.0]),
)
def test_borders_cut_a_segment_in_their_order_and_where_they_are(
    ends: Any, borders: Any, axis: int, flatter: Any
) -> None:
    ends = np.array([ends])
    ends[0, 2 + axis] = ends[0, axis] + flatter * (ends[0, 2 + axis] - ends[0, axis])
    if (ends[:, :2] == ends[:, 2:]).all():
        return
    segments, borders = Segments(ends), np.sort(np.array(borders, dtype=float))
    row, axes = np.zeros(borders.size, np.int64), np.full(borders.size, axis)
    cuts, size = segments.grains_before(row, axes, borders), segments.grains[0]
    rising = segments.rising(row, axes)[0]
    assert (np.diff(cuts) * (1 if rising else -1) >= 0).all()
    assert ((cuts >= 0) & (cuts <= size)).all()
    inner = (cuts > 0) & (cuts < size)
    reached = segments.along(row[inner], cuts[inner])[:, axis]
    np.testing.assert_allclose(reached, borders[inner], atol=2 * segments.grain)
    below = max(ends[0, axis], ends[0, 2 + axis]) < borders
    assert (cuts[below] == (size if rising else 0)).all()


@pytest.mark.parametrize("slope", [(1, -1), (2, -6), (3, -1), (7, -3), (5, 5)])
def test_a_line_through_the_corner_of_a_cell_leaves_no_crumb_in_its_neighbours(slope: float) -> None:
    for length in (1, 1 / 3, 0.7):
        step = np.array(slope) / 8 * length
        street = line(np.array([4, 4]) - step, np.array([4, 4]) + step)
        network = Network([street], snap=1, bounds=SQUARE, depth=2)
        assert (np.sort(network.measure(np.arange(4, 8))) > network.measure(EVERYTHING) / 3).sum() == 2
        assert (network.measure(np.arange(4, 8)) > 0).sum() == 2


def test_duplicate_and_reversed_segments_count_once() -> None:
    there = line((0, 0), (50, 10), (100, 0))
    again = [there, there.reverse(), line((0, 0), (50, 10)), line((100, 0), (50, 10)), line((5, 5), (5, 5))]
    assert Network(again, snap=1).measure(EVERYTHING) == Network([there], snap=1).measure(EVERYTHING)
    assert len(Network([there, there.reverse()], snap=1).boundary().geoms) == 1
    assert straight_segments(np.array([line((0.0, 0), (1, 0)), line((1, 0), (-0.0, 0))])).shape == (1, 4)


# --- points ---


def test_a_point_lies_in_a_node_with_lines_at_every_level(network: Network) -> None:
    codes, inside = network.encode(beside(network, 300))
    assert inside.any()
    for level in range(network.depth + 1):
        assert (network.measure(np.unique(network.nodes_of(codes[inside], level))) > 0).all()


def test_points_are_inside_within_the_snap_distance_and_go_to_the_nearest_line(network: Network) -> None:
    points = beside(network, 300, seed=5)
    placed = shapely.points(network._projection.forward(points))
    distance = shapely.distance(placed, shapely.multilinestrings(on_map(network, network._lines)))
    codes, inside = network.encode(points)
    clear = np.abs(distance - network.snap) > 1e-5 * network.snap
    assert (inside == (distance <= network.snap))[clear].all()
    cells = network.geometry(network.nodes_of(codes[inside], network.depth))
    assert np.abs(shapely.distance(placed[inside], on_map(network, cells)) - distance[inside]).max() < 1e-6


def test_codes_are_those_of_the_snapped_points() -> None:
    network = Network([line((0, 0), (100, 0)), line((0, 50), (100, 60))], snap=10, depth=10)
    points = np.column_stack([np.random.default_rng(1).uniform(0, 100, 200), np.zeros(200)])
    assert (network.encode(points + np.array([0, 7.5]))[0] == network._box.encode(points)[0]).all()


@pytest.mark.parametrize("snap", [0.5, 20, 100, 5000])
def test_the_nearest_segment_is_found_at_any_distance(snap: Any) -> None:
    """Near ones come from the grid, far ones from Shapely's tree."""
    lines = np.array(wiggles(80, 15, 7))
    ends = straight_segments(lines)
    points = np.random.default_rng(3).uniform(-3000, 4000, (3000, 2))
    points[:1500] = np.random.default_rng(4).uniform((0, 0), (1000, 700), (1500, 2))
    found, at = NearestSegment(Segments(ends), snap)(points)
    distance = shapely.distance(shapely.points(points), shapely.multilinestrings(lines))
    assert ((found >= 0) == (distance <= snap)).all()
    start, end = np.hsplit(ends[found], 2)
    reached = np.hypot(*(start + at[:, None] * (end - start) - points).T)
    np.testing.assert_allclose(reached[found >= 0], distance[found >= 0], atol=1e-9)


def test_the_snap_distance_itself_is_inside_and_a_hair_more_is_not() -> None:
    network = Network([line((0, 0), (100, 0))], snap=5)
    assert network.encode(np.array([[50, 5.0], [50, 5.000001], [-5.0, 0], [-4, 3.1]]))[1].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_what_is_nowhere_is_outside(network: Network, bad: Any) -> None:
    here = spread(network, 1)[0]
    codes, inside = network.encode(np.array([[bad, here[1]], [here[0], bad], [bad, bad]]))
    assert not inside.any()
    assert (codes == 0).all()


def test_no_points_no_codes(network: Network) -> None:
    assert [part.size for part in network.encode(np.empty((0, 2)))] == [0, 0]


def test_points_on_the_other_side_of_the_earth_are_outside() -> None:
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.uniform(-180, 180, 20_000), rng.uniform(-90, 90, 20_000)])
    points = points[np.hypot(*(points - [-73.95, 40.8]).T) > 1]
    assert not NETWORKS["in degrees"]().encode(points)[1].any()


# --- samples ---


@pytest.mark.slow
def test_samples_lie_on_the_lines_and_in_their_node(network: Network) -> None:
    everything = shapely.multilinestrings(on_map(network, network._lines))
    shapely.prepare(everything)
    for nodes in levels_of(network, most=15):
        points = network.sample(nodes, np.full(nodes.size, 20), key=3)
        placed = shapely.points(network._projection.forward(points))
        assert shapely.distance(placed, everything).max() < 1e-6
        codes, inside = network.encode(points)
        assert inside.all()
        first, past = (np.repeat(np.sort(bound), 20) for bound in network.code_range(nodes))
        assert ((first <= codes) & (codes < past)).all()


def test_the_first_points_stay_when_more_are_asked_for(network: Network) -> None:
    nodes = levels_of(network, most=5)[-1]
    few = network.sample(nodes, np.full(nodes.size, 7), key=5).reshape(nodes.size, 7, 2)
    many = network.sample(nodes, np.full(nodes.size, 40), key=5).reshape(nodes.size, 40, 2)
    assert (few == many[:, :7]).all()
    assert not (few == network.sample(nodes, np.full(nodes.size, 7), key=6).reshape(few.shape)).all()


def test_samples_do_not_depend_on_what_else_is_asked(network: Network) -> None:
    nodes = levels_of(network, most=9)[-1]
    counts = np.arange(nodes.size) % 4
    points = network.sample(nodes, counts, key=5)
    assert (points == network.sample(nodes[::-1], counts[::-1], key=5)).all()
    apart = [network.sample(nodes[i : i + 1], counts[i : i + 1], key=5) for i in range(nodes.size)]
    assert (points == np.concatenate(apart)).all()
    assert (points == Network.from_dict(network.to_dict()).sample(nodes, counts, key=5)).all()


def test_places_of_finest_cells_lie_in_them(network: Network) -> None:
    codes = np.repeat(network.code_range(levels_of(network, 50)[-1])[0], 3)
    points = network.place(codes, np.tile([0, 1, 2], codes.size // 3), key=1)
    assert (network.encode(points)[0] == codes).all()
    points = Domain.sample(network, EVERYTHING, np.array([50]), 1)  # what any domain inherits works here too
    assert network.encode(points)[1].all()


def test_nothing_asked_nothing_given(network: Network) -> None:
    assert spread(network, 0).shape == (0, 2)
    assert network.sample(np.zeros(0, np.int64), np.zeros(0, np.int64), 1).shape == (0, 2)


@pytest.mark.statistical
def test_samples_are_uniform_by_length(network: Network) -> None:
    nodes = EVERYTHING
    while nodes.size < 8 and network.levels(nodes[:1])[0] < network.depth:
        nodes = network.children(nodes)[0]
    codes = np.sort(network.encode(spread(network, 4000, key=9))[0])
    first, past = network.code_range(nodes)
    seen = np.searchsorted(codes, past) - np.searchsorted(codes, first)
    share = network.measure(nodes) / network.measure(EVERYTHING)
    assert seen.sum() == codes.size
    enough = share * 4000 > 5
    counted, expected = np.append(seen[enough], seen[~enough].sum()), np.append(share[enough], share[~enough].sum())
    counted, expected = counted[expected > 0], expected[expected > 0]
    assert counted.size == 1 or stats.chisquare(counted, expected / expected.sum() * 4000).pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_samples_are_uniform_along_a_street_with_many_bends() -> None:
    street = line((0, 0), (10, 0), (10, 1), (300, 2), (300, 400))
    points = spread(Network([street], snap=1), 5000)
    position = shapely.line_locate_point(street, shapely.points(points), normalized=True)
    assert stats.kstest(position, "uniform").pvalue > FALSE_ALARM


# --- overlaps ---


def rectangles_over(network: Network, number: int, seed: int = 0) -> Floats:
    low, high = np.hsplit(network.bounds(EVERYTHING)[0], 2)
    corners = np.random.default_rng(seed).uniform(low, high, (2, number, 2))
    return np.hstack([corners.min(axis=0), corners.max(axis=0)])


def lengths_inside(network: Network, nodes: Ints, shapes: Any) -> Floats:
    """Return the share of nodes in shapes, by Shapely."""
    inside = [shapely.length(on_map(network, shapely.intersection(network.geometry(nodes), s))) for s in shapes]
    return np.array(inside) / network.measure(nodes)


def test_overlaps_are_those_that_shapely_cuts_out(network: Network) -> None:
    nodes, rectangles = some_nodes(network), rectangles_over(network, 12)
    expected = lengths_inside(network, nodes, shapely.box(*rectangles.T))
    short = 1e-5 / network.measure(nodes)
    wrong = np.abs(network.overlap(nodes, rectangles) - expected) - short
    assert wrong.max() < (1e-8 if network.crs is None else 1e-4)  # degrees are not equally long all along a piece


def test_overlaps_with_polygons_are_those_that_shapely_cuts_out(network: Network) -> None:
    nodes, (low, high) = some_nodes(network), np.hsplit(network.bounds(EVERYTHING)[0], 2)
    shapes = shapely.buffer(shapely.points(spread(network, 6)), (high - low).max() / 5)
    shapes = np.append(shapes, shapely.Polygon())
    expected = lengths_inside(network, nodes, shapes)
    short = 1e-5 / network.measure(nodes)
    wrong = np.abs(network.overlap_shapes(nodes, shapes) - expected) - short
    assert wrong.max() < (1e-8 if network.crs is None else 1e-4)


def test_overlaps_of_rectangles_that_tile_the_plane_add_up_to_one(network: Network) -> None:
    west, south, east, north = network.bounds(EVERYTHING)[0]
    x = np.r_[west, np.sort(np.random.default_rng(1).uniform(west, east, 3)), east]
    y = np.r_[south, (south + north) / 2, north]
    tiles = np.array([(a, c, b, d) for a, b in pairwise(x) for c, d in pairwise(y)])
    share = network.overlap(some_nodes(network), tiles)
    assert (share >= 0).all()
    np.testing.assert_allclose(share.sum(axis=0), 1, atol=1e-6)


def test_everything_is_inside_its_own_bounds_and_the_lines(network: Network) -> None:
    nodes = some_nodes(network)
    for around in (network.bounds(EVERYTHING), [shapely.total_bounds(network._lines)], [[-np.inf] * 2 + [np.inf] * 2]):
        assert (network.overlap(nodes, np.array(around)) == 1).all()
    assert (network.overlap(nodes, np.array([[1e7, 1e7, 2e7, 2e7]])) == 0).all()


def test_a_line_along_the_side_of_a_rectangle_is_in_the_upper_one_only() -> None:
    network = Network(ON_BORDERS, snap=0.1, bounds=SQUARE, depth=6)
    halves = np.array([[0, 0, 4, 8], [4, 0, 8, 8]], dtype=float)
    np.testing.assert_allclose(network.overlap(EVERYTHING, halves)[:, 0] * 18 * 8, [4 * 8 + 9 * 4, 5 * 8 + 9 * 4])
    children = network.children(EVERYTHING)[0]
    assert (network.overlap(children, network.bounds(children)) == np.eye(2)).all()


def test_many_rectangles_on_one_node_are_worked_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    network = NETWORKS["random"]()
    rectangles = rectangles_over(network, 50)
    expected = network.overlap(EVERYTHING, rectangles)
    for module in ("overlap", "tiled_lines"):
        monkeypatch.setattr(f"phdstream.domains.network.{module}.NUMBERS_AT_ONCE", 100)
    np.testing.assert_allclose(network.overlap(EVERYTHING, rectangles), expected, rtol=1e-12)


def test_bounds_hold_the_lines_of_a_node(network: Network) -> None:
    nodes = some_nodes(network)
    low, high = np.hsplit(network.bounds(nodes), 2)
    least, most = np.hsplit(shapely.bounds(network.geometry(nodes)), 2)
    slack = 1e-6 * np.abs(high - low).max()
    assert (low - slack <= least).all()
    assert (most <= high + slack).all()


# --- end to end ---


@pytest.mark.slow
def test_a_stream_on_a_network(network: Network) -> None:
    stream = phd.PHDStream(network, epsilon=4.0, unit=phd.Event(), noise=phd.Simulation(seed=3))
    held: Counter[tuple[float, ...]] = Counter()
    for tick in range(3):
        points = spread(network, 500, key=tick)
        release = stream.update(points, deletes=points[:100])
        assert release.count(network.bounds(EVERYTHING)).value[0] == pytest.approx(release.total)
        held += Counter(map(tuple, release.changes().inserts.tolist()))
        held -= Counter(map(tuple, release.changes().deletes.tolist()))
        assert held == Counter(map(tuple, release.sample().tolist()))
        assert network.encode(release.sample())[1].all()
    assert abs(release.total - 1200) < 400
    assert release.cells().num_rows == release.leaves.size


def test_a_saved_stream_goes_on_as_it_would_have(tmp_path: Path) -> None:
    network = NETWORKS["in degrees"]()
    stream = phd.PHDStream(network, epsilon=4.0, unit=phd.Event(), noise=phd.Simulation(seed=3))
    stream.update(spread(network, 500))
    stream.save(tmp_path / "state")
    again = phd.PHDStream.load(tmp_path / "state")
    first, second = (s.update(spread(network, 300, key=8)).sample() for s in (stream, again))
    assert (first == second).all()


# --- plain data ---


def test_plain_data_gives_the_same_network_back(network: Network) -> None:
    plain = json.loads(json.dumps(network.to_dict()))
    again = domain_from_dict(plain)
    assert again.to_dict() == network.to_dict()
    assert repr(again) == repr(network)
    points = beside(network, 50)
    for mine, other in zip(again.encode(points), network.encode(points), strict=True):
        assert (mine == other).all()


def test_the_summary_is_short_and_tells_networks_apart() -> None:
    first, second = (Network(wiggles(200, 40, seed), snap=20) for seed in (1, 2))
    summary = json.loads(json.dumps(first.summary()))
    assert summary["digest"] != second.summary()["digest"]
    assert summary["type"] == "network"
    assert summary["length"] == pytest.approx(first.boundary().length)
    assert set(summary) >= {"crs", "tree_crs", "snap", "bounds", "depth", "fanout", "names"}
    assert len(json.dumps(summary)) < 600


def test_names_and_systems() -> None:
    plain, degrees = NETWORKS["random"](), NETWORKS["in degrees"]()
    assert (plain.crs, plain.names) == (None, ("x", "y"))
    assert (degrees.crs, degrees.tree_crs, degrees.names) == ("EPSG:4326", "EPSG:32618", ("lon", "lat"))
    named = Network([line((0, 0), (1, 0))], snap=1, names=("e", "n"))
    assert named.names == ("e", "n")
    assert repr(named) == "Network(1 lines, length=1, snap=1, depth=20)"


@pytest.mark.parametrize(("crs", "unit"), [("EPSG:32618", 1.0), ("EPSG:2263", 0.3048)])
def test_the_finest_cells_are_about_twenty_metres_wide(crs: Any, unit: float) -> None:
    street = line((0, 0), (15_000 / unit, 9_000 / unit))
    network = Network([street], snap=1, crs=crs)
    west, south, east, north = network._box.bounds(np.array([ROOT << network.total_bits]))[0] * unit
    assert 10 < max(east - west, north - south) < 30
    assert Network([street], snap=1, crs=crs, fanout=4).depth * 2 == network.depth


def test_a_long_straight_line_in_degrees_stays_on_its_parallel() -> None:
    network = Network([line((0, 60), (20, 60))], snap=50, crs="EPSG:4326", tree_crs="EPSG:3035")
    points = spread(network, 200)
    assert np.abs(points[:, 1] - 60).max() * 111_000 < 1
    assert np.histogram(points[:, 0], 2, (0, 20))[0].min() > 60
    assert network.encode(np.column_stack([np.linspace(0, 20, 50), np.full(50, 60.0)]))[1].all()


# --- what lines can be ---


def street_graph(**attributes: Any) -> Any:
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiDiGraph(**attributes)
    for node, (x, y) in enumerate([(0, 0), (100, 0), (100, 50)]):
        graph.add_node(node, x=x, y=y)
    graph.add_edge(0, 1)
    graph.add_edge(1, 0)
    graph.add_edge(1, 2, geometry=line((100, 0), (120, 25), (100, 50)))
    graph.add_edge(2, 1, geometry=line((100, 50), (120, 25), (100, 0)))
    graph.add_edge(2, 2)
    return graph


def test_graphs_are_read_with_both_directions_once() -> None:
    network = Network(street_graph(), snap=5)
    assert network.measure(EVERYTHING)[0] == pytest.approx(100 + 2 * np.hypot(20, 25))
    assert Network(street_graph(crs="EPSG:32618"), snap=5).crs == "EPSG:32618"
    with pytest.raises(InputError, match="EPSG:4326 was given"):
        Network(street_graph(crs="EPSG:32618"), snap=5, crs="EPSG:4326")
    bare = street_graph()
    bare.add_edge("nowhere", "somewhere")
    with pytest.raises(InputError, match="x and y at its nodes"):
        Network(bare, snap=5)


def test_lines_are_read_from_series_files_and_collections(tmp_path: Path) -> None:
    lines = [line((0, 0), (1000, 0)), shapely.MultiLineString([[(0, 0), (0, 500)], [(5, 5), (5, 100)]])]
    lines.append(shapely.LinearRing([(50, 50), (60, 50), (60, 60)]))
    series = geopandas.GeoSeries(lines[:2], crs="EPSG:32618")
    series.to_file(tmp_path / "roads.gpkg", layer="edges")
    expected = Network(lines[:2], snap=5, crs="EPSG:32618").to_dict()
    assert Network(series, snap=5).to_dict() == expected
    assert Network(tmp_path / "roads.gpkg", snap=5).to_dict() == expected
    assert domain_from_dict({"type": "network", "lines": str(tmp_path / "roads.gpkg"), "snap": 5}).to_dict() == expected
    ring = 20 + np.hypot(10, 10)
    assert Network(lines, snap=5).measure(EVERYTHING)[0] == pytest.approx(1595 + ring)


def test_heights_are_left_out() -> None:
    flat, steep = line((0, 0), (10, 0)), line((0, 0, 5), (10, 0, 99))
    assert Network([steep], snap=1).to_dict() == Network([flat], snap=1).to_dict()


# --- what is refused ---


@pytest.mark.parametrize(
    ("centre", "zone"), [((-73.9, 40.7), "EPSG:32618"), ((18.4, -33.9), "EPSG:32734"), ((179.9, 0.5), "EPSG:32660")]
)
def test_degrees_alone_are_refused_with_a_planar_system_to_use(centre: Any, zone: Any) -> None:
    street = line(np.array(centre) - 0.01, np.array(centre) + 0.01)
    with pytest.raises(InputError, match=f"need a planar system.*{zone}"):
        Network([street], snap=5, crs="EPSG:4326")
    with pytest.raises(InputError, match=zone):
        Network([street], snap=5, crs="EPSG:4326", tree_crs="EPSG:4269")
    assert pyproj.CRS(zone).is_projected
    assert Network([street], snap=5, crs="EPSG:4326", tree_crs=zone).depth > 10
    with pytest.raises(InputError, match="leave tree_crs out"):
        Network([line((5e5, 1e6), (5e5, 2e6))], snap=5, crs=zone, tree_crs="EPSG:4326")


@pytest.mark.parametrize("snap", [0, -1, np.nan, np.inf, None, "5", True])
def test_a_bad_snap_distance_is_refused(snap: Any) -> None:
    with pytest.raises(InputError, match="snap must be a positive, finite distance"):
        Network([line((0, 0), (1, 0))], snap=snap)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no geometry"),
        (None, "expected geometries"),
        ([shapely.LineString()], "no geometry"),
        ([line((1, 1), (1, 1))], "no line of positive length"),
        ([line((0, 0), (1, 0)), shapely.box(0, 0, 1, 1)], "LineStrings only, but there are also Polygons"),
        ([shapely.Point(0, 0)], "LineStrings only"),
        ([shapely.transform(line((0, 0), (1, 1)), lambda p: np.full_like(p, np.inf))], "finite"),
        ([(0, 0), (1, 1)], "Shapely geometry"),
        ("nowhere.gpkg", "no file"),
    ],
)
def test_bad_lines_are_refused(lines: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Network(lines, snap=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": [(0, 1), (0, 1)]}, "bounds must hold all lines"),
        ({"bounds": [(0, 9)] * 3}, "bounds must hold all lines"),
        ({"bounds": [(9, 0), (0, 9)]}, "bounds"),
        ({"depth": 63}, "depth must be a whole number"),
        ({"fanout": 3}, "fanout must be a power of two"),
        ({"names": ("x",)}, "names must be 2"),
        ({"tree_crs": "EPSG:32618"}, "own crs is not"),
        ({"crs": "EPSG:4326", "tree_crs": "EPSG:nonsense"}, "not a coordinate reference system"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Network([line((0, 0), (5, 5))], snap=1, **options)


def test_lines_that_have_no_place_on_the_map_are_refused() -> None:
    with pytest.raises(InputError, match="choose another tree_crs"):
        Network([line((0, 89), (0, 95))], snap=5, crs="EPSG:4326", tree_crs="EPSG:32631")


def test_a_bad_description_is_refused() -> None:
    with pytest.raises(InputError, match="well-known binary"):
        Network.from_dict({"lines": "streets", "snap": 5})
    with pytest.raises(InputError, match="expected geometries"):
        Network.from_dict({"snap": 5})
    with pytest.raises(InputError, match="snap"):
        domain_from_dict({"type": "network", "lines": "streets.gpkg"})


# --- a city ---


@pytest.mark.skipif(not MANHATTAN.exists(), reason="needs the shared data")
@pytest.mark.slow
def test_manhattan() -> None:
    network = Network(MANHATTAN, snap=50, tree_crs="EPSG:32618")
    edges = geopandas.read_file(MANHATTAN, layer="edges")
    assert network.depth == 21
    assert network.measure(EVERYTHING)[0] == pytest.approx(edges.to_crs(32618).length.sum(), rel=1e-9)
    finest = EVERYTHING
    for _ in range(network.depth):
        finest = network.children(finest)[0]
    points = network.sample(finest, np.full(finest.size, 1), key=1)
    assert (network.encode(points)[0] == np.sort(network.code_range(finest)[0])).all()
    streets = shapely.multilinestrings(on_map(network, network._lines))
    assert shapely.distance(shapely.points(network._projection.forward(points[::50])), streets).max() < 1e-6
