"""Boxes and cubes: their trees, samples and overlaps, and the inputs they refuse."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT, Box, Cube, Domain, domain_from_dict
from phdstream.errors import InputError
from tests.thorough import cases

FALSE_ALARM = 1e-6
CITY = [(-74.3, -73.7), (40.5, 41.0)]
SOLID = [(0.0, 1.0), (-5.0, 0.3), (1000.0, 1001.7)]
DOMAINS: dict[str, Box | Cube] = {
    "line": Box([(0, 1)]),
    "line by 4, odd bounds": Box([(-3.7, 11.3)], fanout=4, depth=12),
    "line by 8": Box([(-1e-3, 1e6)], fanout=8),
    "city": Box(CITY),
    "city by 4": Box(CITY, fanout=4),
    "city by 8": Box(CITY, fanout=8),
    "city, finest": Box(CITY, depth=62),
    "solid": Box(SOLID),
    "solid by 8": Box(SOLID, fanout=8),
    "70 dimensions": Box([(-1.0, 1.7)] * 70),
    "cube of 3": Cube(3),
    "cube of 5 to depth 3": Cube(5, depth=3),
}
BOXES = {name: domain for name, domain in DOMAINS.items() if isinstance(domain, Box)}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
every_box = pytest.mark.parametrize("domain", BOXES.values(), ids=BOXES)
a_few = settings(max_examples=cases(8, 200))


# --- drawing nodes, partitions and points ---


def nodes_of_level(domain: Domain, level: int) -> st.SearchStrategy[int]:
    return st.integers(1 << (level * domain.level_bits[0]), (2 << (level * domain.level_bits[0])) - 1)


def draw_nodes(data: st.DataObject, domain: Domain, deepest: int | None = None) -> Ints:
    levels = st.integers(0, domain.depth if deepest is None else deepest)
    nodes = st.lists(levels.flatmap(lambda level: nodes_of_level(domain, level)), min_size=1, max_size=8, unique=True)
    return np.array(data.draw(nodes), dtype=np.int64)


def draw_leaves(data: st.DataObject, domain: Domain) -> Ints:
    """Return the leaves of some tree, of mixed levels, in no particular order."""
    leaves = [ROOT]
    for choice in data.draw(st.lists(st.integers(0, 10**6), max_size=12)):
        leaf = leaves.pop(choice % len(leaves))
        splits = level_of(domain, leaf) < domain.depth
        leaves += [(leaf << domain.level_bits[0]) + k for k in range(domain.fanout)] if splits else [leaf]
    return np.array(leaves, dtype=np.int64)


def draw_points(data: st.DataObject, domain: Domain) -> Floats:
    """Return points on the edges of some nodes, one float next to them, and anywhere."""
    nodes, seed = draw_nodes(data, domain), data.draw(st.integers(0, 2**32))
    rng, d = np.random.default_rng(seed), domain.dimension
    if isinstance(domain, Cube):
        return rng.integers(0, 2, (nodes.size, d)).astype(float)
    outer = domain.bounds(np.array([ROOT]))[0]
    corners = domain.bounds(nodes)
    edges = np.where(rng.random((nodes.size, d)) < 0.5, corners[:, :d], corners[:, d:])
    toward = rng.choice([-np.inf, 0, np.inf], edges.shape)
    beside = np.where(toward == 0, edges, np.nextafter(edges, toward))
    anywhere = rng.uniform(outer[:d], outer[d:], (4, d))
    return np.clip(np.concatenate([edges, beside, anywhere, [outer[:d], outer[d:]]]), outer[:d], outer[d:])


def level_of(domain: Domain, node: int) -> int:
    return (int(node).bit_length() - 1) // domain.level_bits[0]


def ancestors(domain: Domain, codes: Ints) -> Ints:
    """Return the node of each code (rows) at each level (columns)."""
    levels = np.arange(domain.depth + 1)
    return (np.int64(ROOT) << (levels * domain.level_bits[0])) | (
        codes[:, None] >> ((domain.depth - levels) * domain.level_bits[0])
    )


def contains(domain: Domain, nodes: Ints, points: Floats) -> Bools:
    """Whether each node holds the point of its row, judged by `bounds` alone."""
    d = domain.dimension
    low, high = np.hsplit(domain.bounds(nodes), [d])
    if isinstance(domain, Cube):
        return np.asarray(((low <= points) & (points <= high)).all(axis=1))
    outer = domain.bounds(np.array([ROOT]))[0, d:]
    return np.asarray(((low <= points) & ((points < high) | ((points == high) & (high == outer)))).all(axis=1))


def inside(domain: Domain, points: Floats) -> Ints:
    codes, held = domain.encode(points)
    assert held.all()
    return codes


# --- children partition their parents ---


@every_domain
@a_few
@given(data=st.data())
def test_measures_of_children_add_up(domain: Domain, data: st.DataObject) -> None:
    nodes = draw_nodes(data, domain, deepest=domain.depth - 1)
    children, parent, share = domain.children(nodes)
    total = np.bincount(parent, weights=domain.measure(children))
    np.testing.assert_allclose(total, domain.measure(nodes), rtol=1e-12)
    np.testing.assert_allclose(domain.measure(children), share * domain.measure(nodes)[parent], rtol=1e-12)


@every_domain
@a_few
@given(data=st.data())
def test_code_ranges_of_children_tile_their_parents(domain: Domain, data: st.DataObject) -> None:
    nodes = draw_nodes(data, domain, deepest=domain.depth - 1)
    first, past = (r.reshape(nodes.size, domain.fanout) for r in domain.code_range(domain.children(nodes)[0]))
    assert (past[:, :-1] == first[:, 1:]).all()
    assert (first[:, 0] == domain.code_range(nodes)[0]).all()
    assert (past[:, -1] == domain.code_range(nodes)[1]).all()


@every_domain
@a_few
@given(data=st.data())
def test_leaves_of_any_tree_tile_the_domain(domain: Domain, data: st.DataObject) -> None:
    leaves = draw_leaves(data, domain)
    first, past = (np.sort(r) for r in domain.code_range(leaves))
    assert first[0] == 0
    assert past[-1] == 1 << (domain.total_bits)
    assert (past[:-1] == first[1:]).all()
    np.testing.assert_allclose(domain.measure(leaves).sum(), domain.measure(np.array([ROOT]))[0], rtol=1e-12)


@every_domain
@a_few
@given(data=st.data())
def test_levels_and_code_ranges_name_the_node_again(domain: Domain, data: st.DataObject) -> None:
    nodes = draw_nodes(data, domain)
    levels, (first, past) = domain.levels(nodes), domain.code_range(nodes)
    assert levels.tolist() == [level_of(domain, node) for node in nodes]
    for code in (first, past - 1):
        assert (ancestors(domain, code)[np.arange(nodes.size), levels] == nodes).all()
    assert (past - first == 1 << ((domain.depth - levels) * domain.level_bits[0])).all()


@every_domain
def test_measure_is_the_volume_or_the_number_of_atoms(domain: Domain) -> None:
    nodes = domain.children(np.array([ROOT]))[0]
    low, high = np.hsplit(domain.bounds(nodes), 2)
    expected = 2.0 ** (low < high).sum(axis=1) if isinstance(domain, Cube) else np.prod(high - low, axis=1)
    np.testing.assert_allclose(domain.measure(nodes), expected, rtol=1e-9)


# --- points and bounds agree ---


@every_domain
@a_few
@given(data=st.data())
def test_a_point_lies_within_the_bounds_of_all_its_nodes(domain: Domain, data: st.DataObject) -> None:
    points = draw_points(data, domain)
    nodes = ancestors(domain, inside(domain, points))
    assert contains(domain, nodes.ravel(), np.repeat(points, nodes.shape[1], axis=0)).all()


@every_domain
@a_few
@given(data=st.data())
def test_exactly_one_child_holds_a_point(domain: Domain, data: st.DataObject) -> None:
    points = draw_points(data, domain)[:8]
    parents = ancestors(domain, inside(domain, points))[:, :-1]
    children = domain.children(parents.ravel())[0]
    held = contains(domain, children, np.repeat(points, parents.shape[1] * domain.fanout, axis=0))
    assert (held.reshape(-1, domain.fanout).sum(axis=1) == 1).all()


@every_box
def test_outer_bounds_belong_to_the_box_and_nothing_beyond(domain: Domain) -> None:
    low, high = np.hsplit(domain.bounds(np.array([ROOT]))[0], 2)
    assert domain.encode(np.array([low, high]))[1].all()
    assert domain.encode(low[None])[0].tolist() == [0]
    assert domain.encode(high[None])[0].tolist() == [(1 << (domain.total_bits)) - 1]
    for axis in range(domain.dimension):
        below, above = low.copy(), high.copy()
        below[axis], above[axis] = np.nextafter(low[axis], -np.inf), np.nextafter(high[axis], np.inf)
        assert not domain.encode(np.array([below, above]))[1].any()


@every_domain
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_a_number_and_infinity_are_outside(domain: Domain, bad: float) -> None:
    for axis in range(domain.dimension):
        point = domain.bounds(np.array([ROOT]))[:, : domain.dimension].copy()
        point[0, axis] = bad
        codes, held = domain.encode(point)
        assert held.tolist() == [False]
        assert 0 <= codes[0] < 1 << (domain.total_bits)


@every_domain
def test_no_points_no_codes(domain: Domain) -> None:
    codes, held = domain.encode(np.empty((0, domain.dimension)))
    assert codes.size == held.size == 0


@pytest.mark.parametrize("value", [0.5, -1, 2, 1 + 1e-12])
def test_a_record_with_any_value_but_0_and_1_is_outside_a_cube(value: float) -> None:
    for cube, axis in itertools.product((Cube(3), Cube(5, depth=3)), (0, 2, -1)):
        record = np.ones((1, cube.dimension))
        record[0, axis] = value
        assert not cube.encode(record)[1].any()


@pytest.mark.parametrize(
    ("bounds", "depth"),
    [((0.0, 1.0), 62), ((1.7e9, 1.7e9 + 86_400), 40), ((0.0, 5e-324), 10), ((1.0, float(np.nextafter(1, 2))), 10)],
    ids=["62 halvings", "a day of Unix time", "subnormal width", "two floats"],
)
def test_cells_finer_than_floats_are_refused_or_still_agree_with_bounds(bounds: Any, depth: Any) -> None:
    try:
        domain = Box([bounds], depth=depth)
    except InputError:
        return
    low, high = domain.bounds(np.array([ROOT]))[0]
    points = np.clip(np.random.default_rng(0).uniform(low, high, (50, 1)), low, high)
    nodes = ancestors(domain, inside(domain, points))
    assert contains(domain, nodes.ravel(), np.repeat(points, nodes.shape[1], axis=0)).all()


def as_deep_as_allowed(bounds: Any) -> Box | None:
    for depth in range(62, 0, -1):
        try:
            return Box(bounds, depth=depth)
        except InputError:
            continue
    return None


@st.composite
def narrow_bounds(draw: st.DrawFn) -> tuple[float, float]:
    """Return a low bound of any size and a high one that may be only a few floats above it."""
    low = draw(st.sampled_from([-1, 1])) * draw(st.floats(0.1, 1)) * 10.0 ** draw(st.integers(-9, 9))
    return low, low + abs(low) * draw(st.floats(1, 10)) * 10.0 ** draw(st.integers(-16, 1))


@settings(max_examples=cases(40, 1000))
@given(st.lists(narrow_bounds(), min_size=1, max_size=3), st.data())
def test_points_agree_with_bounds_at_the_deepest_depth_allowed(bounds: Any, data: st.DataObject) -> None:
    domain = as_deep_as_allowed(bounds)
    if domain is not None:
        points = draw_points(data, domain)
        nodes = ancestors(domain, inside(domain, points))
        assert contains(domain, nodes.ravel(), np.repeat(points, nodes.shape[1], axis=0)).all()
        few = np.arange(min(64, 1 << domain.depth))
        cells = np.unique(np.r_[nodes[:, -1], (1 << domain.depth) + few, (2 << domain.depth) - 1 - few])
        codes = inside(domain, domain.sample(cells, np.ones(cells.size, dtype=np.int64), key=1))
        assert (codes == domain.code_range(cells)[0]).all()


# --- samples ---


def draw_order(data: st.DataObject, domain: Domain) -> tuple[Ints, Ints, int]:
    """Return disjoint nodes, how many points to ask of each, and a key."""
    leaves = draw_leaves(data, domain)
    counts = data.draw(st.lists(st.integers(0, 60), min_size=leaves.size, max_size=leaves.size))
    return leaves, np.array(counts, dtype=np.int64), data.draw(st.integers(0, 2**62 - 1))


def as_rows(points: Floats) -> list[tuple[float, ...]]:
    return sorted(map(tuple, points.tolist()))


@every_domain
@a_few
@given(data=st.data())
def test_a_sample_has_exactly_the_asked_number_of_points_in_each_node(domain: Domain, data: st.DataObject) -> None:
    leaves, counts, key = draw_order(data, domain)
    points = domain.sample(leaves, counts, key)
    assert points.shape == (counts.sum(), domain.dimension)
    codes = inside(domain, points)
    first, past = domain.code_range(leaves)
    held = (first[:, None] <= codes) & (codes < past[:, None])
    assert held.sum(axis=1).tolist() == counts.tolist()


@every_domain
@a_few
@given(data=st.data())
def test_a_sample_is_the_same_each_time_and_whatever_else_is_asked(domain: Domain, data: st.DataObject) -> None:
    leaves, counts, key = draw_order(data, domain)
    points = domain.sample(leaves, counts, key)
    assert (points == domain.sample(leaves, counts, key)).all()
    assert (points == domain.sample(leaves[::-1], counts[::-1], key)).all()
    apart = [domain.sample(leaves[i::2], counts[i::2], key) for i in (0, 1)]
    assert as_rows(points) == as_rows(np.concatenate(apart))


def test_samples_of_cells_only_a_few_floats_wide_stay_inside() -> None:
    domain = Box([(1e6, 1e6 + 1)], depth=30)
    cells = (1 << 30) + np.arange(0, 1 << 30, 123_457)
    codes = inside(domain, domain.sample(cells, np.full(cells.size, 3), key=1))
    assert (codes == np.repeat(domain.code_range(cells)[0], 3)).all()


@every_domain
def test_another_key_gives_other_points(domain: Domain) -> None:
    """All ten differ; only on a tree of eight leaves, with few ways to apportion 30 points, some may agree."""
    samples = {tuple(as_rows(domain.sample(np.array([ROOT]), np.array([30]), key))) for key in range(10)}
    assert len(samples) == 10 or (domain.total_bits == 3 and domain.dimension == 3 and len(samples) > 2)


@every_domain
def test_nothing_asked_nothing_given(domain: Domain) -> None:
    assert domain.sample(np.array([ROOT]), np.array([0]), 1).shape == (0, domain.dimension)
    assert domain.sample(np.zeros(0, np.int64), np.zeros(0, np.int64), 1).shape == (0, domain.dimension)


def kept(domain: Domain, count: int, more: int, key: int) -> float:
    """Return which part of a sample of the root is still there when more points are asked for."""
    few, many = (Counter(as_rows(domain.sample(np.array([ROOT]), np.array([n]), key))) for n in (count, more))
    return (few & many).total() / count


@every_domain
@pytest.mark.parametrize(("count", "more"), [(1, 2), (50, 51), (100, 110), (400, 440)])
def test_asking_for_more_keeps_all_points(domain: Domain, count: int, more: int) -> None:
    assert [kept(domain, count, more, key) for key in range(5)] == [1] * 5


@pytest.mark.parametrize("fanout", [16, 64, 256, 65536])
def test_asking_for_more_keeps_all_points_at_large_fanouts(fanout: Any) -> None:
    domain = Box([(0, 1), (0, 1)], fanout=fanout)
    assert [kept(domain, 400, 440, key) for key in range(2)] == [1] * 2


@every_domain
def test_points_of_a_node_are_those_of_its_children(domain: Domain) -> None:
    points = domain.sample(np.array([ROOT]), np.array([200]), key=3)
    children = domain.children(np.array([ROOT]))[0]
    of_child = np.searchsorted(domain.code_range(children)[1], inside(domain, points), side="right")
    counts = np.bincount(of_child, minlength=children.size)
    assert as_rows(points) == as_rows(domain.sample(children, counts, key=3))


def one_point_in_each_of_many_nodes(domain: Domain, key: int) -> tuple[Ints, Floats]:
    """Return nodes of some level that leaves levels below, and a point sampled in each."""
    level = min(domain.depth - 1, 12 // domain.level_bits[0])
    nodes = (1 << (level * domain.level_bits[0])) + np.arange(1 << (level * domain.level_bits[0]))
    return nodes, domain.sample(nodes, np.ones(nodes.size, dtype=np.int64), key)


def many_single_points(domain: Domain, at_least: int = 4000) -> tuple[Ints, Floats]:
    rng = np.random.default_rng(1)
    batches: list[tuple[Ints, Floats]] = []
    while sum(nodes.size for nodes, _ in batches) < at_least:
        batches.append(one_point_in_each_of_many_nodes(domain, key=int(rng.integers(2**62))))
    return np.concatenate([n for n, _ in batches]), np.concatenate([p for _, p in batches])


@pytest.mark.statistical
@every_domain
def test_a_sampled_point_falls_in_each_part_of_its_node_equally_often(domain: Domain) -> None:
    nodes, points = many_single_points(domain)
    first, past = domain.code_range(nodes)
    bins = min(int(past[0] - first[0]), 64)
    part = (inside(domain, points) - first) // ((past - first) // bins)
    assert stats.chisquare(np.bincount(part, minlength=bins)).pvalue > FALSE_ALARM


@pytest.mark.statistical
@every_box
def test_a_sampled_point_is_uniform_along_every_axis(domain: Domain) -> None:
    nodes, points = many_single_points(domain)
    low, high = np.hsplit(domain.bounds(nodes), 2)
    position = (points - low) / (high - low)
    assert min(stats.kstest(axis, "uniform").pvalue for axis in position.T) > FALSE_ALARM / domain.dimension
    correlation = np.corrcoef(position.T).reshape(domain.dimension, -1) - np.eye(domain.dimension)
    assert np.abs(correlation).max() < 6.5 / np.sqrt(nodes.size)


@pytest.mark.statistical
def test_points_of_one_finest_cell_are_uniform_and_independent() -> None:
    domain = Box(CITY, depth=2)
    cell = np.array([4])
    points = domain.sample(cell, np.array([20_000]), key=1)
    low, high = np.hsplit(domain.bounds(cell)[0], 2)
    position = (points - low) / (high - low)
    squares = np.histogram2d(position[:, 0], position[:, 1], bins=10, range=[(0, 1)] * 2)[0]
    assert stats.chisquare(squares.ravel()).pvalue > FALSE_ALARM
    assert np.abs(np.corrcoef(position[:-1, 0], position[1:, 0])[0, 1]) < 5 / np.sqrt(20_000)


@pytest.mark.statistical
def test_attributes_below_the_depth_of_a_cube_are_fair_coins() -> None:
    points = Cube(5, depth=3).sample(np.array([ROOT]), np.array([8000]), key=1)
    atoms = np.bincount((points @ [16, 8, 4, 2, 1]).astype(int), minlength=32)
    assert stats.chisquare(atoms).pvalue > FALSE_ALARM


# --- overlaps ---


@every_domain
@a_few
@given(data=st.data())
def test_a_node_overlaps_its_own_bounds_wholly_and_its_siblings_not_at_all(domain: Domain, data: st.DataObject) -> None:
    node = draw_nodes(data, domain, deepest=domain.depth - 1)[:1]
    children = domain.children(node)[0]
    assert (domain.overlap(children, domain.bounds(children)) == np.eye(domain.fanout)).all()
    assert (domain.overlap(children, domain.bounds(node)) == 1).all()


@every_domain
@a_few
@given(data=st.data())
def test_a_node_overlaps_its_descendants_by_their_measure(domain: Domain, data: st.DataObject) -> None:
    node = draw_nodes(data, domain, deepest=domain.depth - 1)[:1]
    children, _, share = domain.children(node)
    np.testing.assert_allclose(domain.overlap(node, domain.bounds(children))[:, 0], share, rtol=1e-4)


def tiling(domain: Domain, rng: np.random.Generator) -> Floats:
    """Return rectangles that cut the box at up to three places along each of up to two axes."""
    d = domain.dimension
    outer = domain.bounds(np.array([ROOT]))[0]
    rectangles = outer[None]
    for axis in rng.choice(d, min(d, 2), replace=False):
        cuts = np.sort(rng.uniform(outer[axis], outer[d + axis], rng.integers(1, 4)))
        edges = np.r_[outer[axis], cuts, outer[d + axis]]
        pieces = np.repeat(rectangles, edges.size - 1, axis=0)
        pieces[:, axis] = np.tile(edges[:-1], len(rectangles))
        pieces[:, d + axis] = np.tile(edges[1:], len(rectangles))
        rectangles = pieces
    return rectangles


@every_box
@a_few
@given(data=st.data())
def test_overlaps_of_rectangles_that_tile_the_box_add_up_to_one(domain: Domain, data: st.DataObject) -> None:
    rectangles = tiling(domain, np.random.default_rng(data.draw(st.integers(0, 2**32))))
    share = domain.overlap(draw_nodes(data, domain), rectangles)
    assert (share >= 0).all()
    np.testing.assert_allclose(share.sum(axis=0), 1, atol=1e-9)


def test_overlaps_in_the_plane_against_hand_computed_ones() -> None:
    square = Box([(0, 1), (0, 1)], fanout=4, depth=2)
    quadrants = square.children(np.array([ROOT]))[0]
    share = square.overlap(quadrants, np.array([[0.25, 0.25, 0.75, 0.5], [2.0, 2.0, 3.0, 3.0], [0.4, 0.4, 0.1, 0.9]]))
    by_corner = {tuple(b[:2]): s for b, s in zip(square.bounds(quadrants).tolist(), share.T.tolist(), strict=True)}
    assert by_corner == {(0, 0): [0.25, 0, 0], (0.5, 0): [0.25, 0, 0], (0, 0.5): [0, 0, 0], (0.5, 0.5): [0, 0, 0]}


@given(st.lists(st.floats(-0.5, 1.5), min_size=6, max_size=6), st.integers(1, 15))
def test_overlap_of_a_cube_is_the_share_of_atoms(rectangle: list[float], node: int) -> None:
    cube = Cube(3)
    atoms = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    first, past = (int(r[0]) for r in cube.code_range(np.array([node])))
    within = np.all((np.array(rectangle[:3]) <= atoms) & (atoms <= np.array(rectangle[3:])), axis=1)
    expected = within[first:past].mean()
    assert cube.overlap(np.array([node]), np.array([rectangle])).tolist() == [[expected]]


# --- plain data ---


@every_domain
def test_plain_data_gives_the_same_domain_back(domain: Domain) -> None:
    again = domain_from_dict(json.loads(json.dumps(domain.to_dict())))
    assert again.to_dict() == domain.to_dict()
    assert repr(again) == repr(domain)
    points = domain.sample(np.array([ROOT]), np.array([50]), key=1)
    assert (again.encode(points)[0] == domain.encode(points)[0]).all()


def test_numpy_integers_are_plain_data_too() -> None:
    four: Any = np.int64(4)
    domain = Box([(0, 1)], fanout=four, depth=four)
    assert json.loads(json.dumps(domain.to_dict()))["fanout"] == 4
    assert json.loads(json.dumps(Cube(four).to_dict()))["dimension"] == 4


def test_names_of_coordinates() -> None:
    assert Box(CITY).names == ("x", "y")
    assert Box(SOLID).names == Cube(3).names == ("x", "y", "z")
    assert Cube(5).names == ("x0", "x1", "x2", "x3", "x4")
    assert Box(CITY, names=["lon", "lat"]).names == ("lon", "lat")


def test_default_depth_halves_every_coordinate_ten_times_where_codes_allow() -> None:
    assert [Box([(0, 1)] * d).depth for d in (1, 2, 3, 7)] == [10, 20, 30, 62]
    assert [Box([(0, 1)] * 2, fanout=f).depth for f in (2, 4, 16)] == [20, 10, 5]
    assert (Cube(5).depth, Cube(70).depth) == (5, 62)


# --- what is refused ---


@pytest.mark.parametrize(
    "bounds",
    [
        [],
        [(0, 1, 2)],
        (0, 1),
        [(1, 0)],
        [(1, 1)],
        [(0, np.nan)],
        [(0, np.inf)],
        [(-np.inf, 0)],
        [(-1e308, 1e308)],
        [(0, 1), (0,)],
        [("a", "b")],
        None,
        "bounds",
    ],
)
def test_bad_bounds_are_refused(bounds: Any) -> None:
    with pytest.raises(InputError, match="bounds"):
        Box(bounds)


@pytest.mark.parametrize("fanout", [3, 0, 1, -2, 6, 2.0, "2", None, True, 1 << 17])
def test_a_fanout_that_is_not_a_power_of_two_is_refused(fanout: Any) -> None:
    with pytest.raises(InputError, match="fanout must be a power of two"):
        Box(CITY, fanout=fanout)


@pytest.mark.parametrize("depth", [0, -1, 63, True, 3.0, "3"])
def test_a_bad_depth_is_refused(depth: Any) -> None:
    for make in (lambda: Box(CITY, depth=depth), lambda: Cube(62, depth=depth)):
        with pytest.raises(InputError, match="depth must be a whole number from 1 to"):
            make()


def test_depth_is_limited_by_the_code_and_by_the_attributes() -> None:
    assert Box(CITY, fanout=8, depth=20).depth == 20
    with pytest.raises(InputError, match="from 1 to 20 "):
        Box(CITY, fanout=8, depth=21)
    with pytest.raises(InputError, match="from 1 to 3 "):
        Cube(3, depth=4)


@pytest.mark.parametrize("names", [("x",), ("x", "x"), ("x", ""), (1, 2), ("x", "y", "z"), 5, (["x"], ["y"])])
def test_bad_names_are_refused(names: Any) -> None:
    for make in (lambda: Box(CITY, names=names), lambda: Cube(2, names=names)):
        with pytest.raises(InputError, match="names must be 2 different, non-empty words"):
            make()


@pytest.mark.parametrize("dimension", [0, -1, 2.0, True, "3", None])
def test_a_cube_needs_a_whole_number_of_attributes(dimension: Any) -> None:
    with pytest.raises(InputError, match="whole number of attributes"):
        Cube(dimension)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"type": "bxo", "bounds": [[0, 1]]}, "did you mean 'box'"),
        ({"bounds": [[0, 1]]}, "unknown type of domain None"),
        ({"type": ["box"], "bounds": [[0, 1]]}, "unknown type of domain"),
        ({"type": "box", "bounds": [[0, 1]], "fannout": 2}, "fannout"),
        ({"type": "box"}, "bounds"),
        ({"type": "cube", "dimension": 0}, "attributes"),
    ],
)
def test_a_bad_description_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        domain_from_dict(spec)


def test_input_errors_are_value_errors() -> None:
    with pytest.raises(ValueError, match="fanout"):
        Box(CITY, fanout=3)
