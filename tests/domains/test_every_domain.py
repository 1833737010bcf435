"""One suite, every domain: what the rest of phdstream relies on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from scipy import stats

import phdstream as phd
from phdstream.domains import ROOT, Domain, domain_from_dict

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "geometry"
ISLANDS = [
    shapely.Polygon([(0, 0), (6, 0), (6, 5), (0, 5)], holes=[[(1, 1), (1, 3), (3, 3), (3, 1)]]),
    shapely.Polygon([(8, 8), (8.001, 8), (9.5, 9.9)]),  # a sliver
    shapely.Point(8, 2).buffer(1),
]
STREETS = [shapely.LineString([(0, y), (1000, y)]) for y in range(0, 1001, 100)] + [
    shapely.LineString([(x, 0), (x + 37, 1000)]) for x in range(0, 900, 150)
]
HOSPITALS = {"US": {"NY": ["A", "B", "C"], "CA": ["D"]}, "FR": {"Paris": ["E", "F"]}, "MC": ["G"]}


def _network() -> Domain:
    from phdstream.domains.network import Network

    return Network(STREETS, snap=30.0, depth=12)


def _globe() -> Domain:
    from phdstream.domains.globe import Globe

    return Globe(depth=9)


def _rides() -> Domain:
    vehicle = phd.Category("vehicle", ["bus", "tram", "ferry"])
    return phd.Product(phd.Box([(-74.3, -73.7), (40.5, 41.0)], depth=9), vehicle, phd.Bins("age", [0, 18, 40, 65, 120]))


def _calls() -> Domain:
    return phd.Product(phd.Region(ISLANDS, depth=8), phd.TimeOfDay("hour"), phd.DayOfWeek("day"))


def _tickets() -> Domain:
    from phdstream.domains.network import Network

    lot = phd.Category("lot", {"north": ["A", "B"], "south": {"old": ["C"], "new": ["D", "E", "F"]}})
    first = ["lot"] * lot.depth + ["place"] * 7
    return phd.Product(Network(STREETS, snap=30.0, depth=7), lot, schedule=first)


def _stays() -> Domain:
    illness = phd.Category("illness", {"injury": ["burn", "fracture"], "infection": ["flu", "measles", "mumps"]})
    return phd.Product(phd.Hierarchy(HOSPITALS), illness)


def _flights() -> Domain:
    from phdstream.domains.globe import Globe

    return phd.Product(Globe(depth=6), phd.TimeOfDay("hour", 5), phd.Category("kind", ["mail", "people"]))


def _votes() -> Domain:
    return phd.Product(phd.Box([(0, 1)] * 2, fanout=4, depth=4), phd.Category("party", list("ABCDE")))


PRODUCTS: dict[str, Callable[[], Domain]] = {
    "rides": _rides,
    "calls": _calls,
    "tickets": _tickets,
    "stays": _stays,
    "flights": _flights,
    "votes": _votes,
}
DOMAINS: dict[str, Callable[[], Domain]] = {
    "box": lambda: phd.Box([(-74.3, -73.7), (40.5, 41.0)], depth=12),
    "box of three dimensions": lambda: phd.Box([(0, 1)] * 3, fanout=8, depth=4),
    "cube": lambda: phd.Cube(7),
    "islands": lambda: phd.Region(ISLANDS, depth=12),
    "islands by quarters": lambda: phd.Region(ISLANDS, depth=6, fanout=4),
    "islands in degrees": lambda: phd.Region(ISLANDS, crs="EPSG:4326", depth=12),
    "islands on another map": lambda: phd.Region(ISLANDS, crs="EPSG:4326", tree_crs="EPSG:3035", depth=12),
    "streets": _network,
    "hospitals": lambda: phd.Hierarchy(HOSPITALS),
    "globe": _globe,
    **PRODUCTS,
}


@pytest.fixture(params=DOMAINS.values(), ids=list(DOMAINS), scope="module")
def domain(request: pytest.FixtureRequest) -> Domain:
    return request.param()


def levels_of(domain: Domain, most: int = 300) -> list[np.ndarray]:
    """Nodes of each level, a few hundred at most."""
    rng = np.random.default_rng(1)
    levels = [np.array([ROOT])]
    for _ in range(domain.depth):
        nodes = domain.children(levels[-1])[0]
        levels.append(np.sort(rng.choice(nodes, most, replace=False)) if nodes.size > most else nodes)
    return levels


def spread(domain: Domain, n: int, key: int = 1) -> np.ndarray:
    return domain.sample(np.array([ROOT]), np.array([n]), key)


def test_children_partition_their_parent(domain: Domain) -> None:
    for nodes in levels_of(domain)[:-1]:
        children, parent, share = domain.children(nodes)
        assert (np.bincount(parent, minlength=nodes.size) > 0).all()  # nothing with measure loses all of it
        assert (domain.measure(children) > 0).all()
        total = np.bincount(parent, weights=domain.measure(children))
        np.testing.assert_allclose(total, domain.measure(nodes), rtol=1e-6)
        np.testing.assert_allclose(np.bincount(parent, weights=share), 1, rtol=1e-9)
        np.testing.assert_allclose(share, (domain.measure(children) / total[parent]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("make", DOMAINS.values(), ids=DOMAINS)
def test_what_was_encoded_before_does_not_show(make: Callable[[], Domain]) -> None:
    """Private points are encoded: no bit of what is said of nodes later may tell which nodes they met."""
    nodes = np.concatenate([level[:60] for level in levels_of(make())[::-1]])
    fresh, used = make(), make()
    used.encode(spread(make(), 300, key=7))
    for ask in (
        lambda domain: domain.measure(nodes),
        lambda domain: domain.children(nodes[domain.levels(nodes) < domain.depth])[2],
        lambda domain: domain.bounds(nodes) if not isinstance(domain, phd.Hierarchy) else nodes,
        lambda domain: domain.sample(nodes[-5:], np.full(5, 20), 3),
    ):
        np.testing.assert_array_equal(ask(fresh), ask(used))


@pytest.mark.parametrize("make", DOMAINS.values(), ids=DOMAINS)
def test_a_point_has_its_code_whatever_comes_with_it(make: Callable[[], Domain]) -> None:
    """Alone, in company, in any order, first or last: on corners of cells, inside and outside."""
    domain, other, rng = make(), make(), np.random.default_rng(4)
    points = spread(domain, 120, key=5)
    if points.dtype.kind == "f":
        corners = domain.bounds(levels_of(domain, 60)[-1])[:, : points.shape[1]]
        points = np.concatenate([points, corners, points[:20] + 1e6, points[:5] + np.nan]).view(type(points))
    codes, inside = domain.encode(points)
    order = rng.permutation(len(points))
    few = np.split(order, np.sort(rng.choice(len(points), len(points) * 2 // 3, replace=False)))
    for rows in [*few, np.arange(120), np.flatnonzero(inside), np.flatnonzero(inside)[::-1][1:]]:
        some, there = other.encode(points[rows])
        np.testing.assert_array_equal(there, inside[rows])
        np.testing.assert_array_equal(some[there], codes[rows][there])


def test_codes_and_nodes_agree(domain: Domain) -> None:
    for level, nodes in enumerate(levels_of(domain)):
        assert (domain.levels(nodes) == level).all()
        first, past = domain.code_range(nodes)
        assert (first < past).all()
        np.testing.assert_array_equal(domain.nodes_of(first, level), nodes)
        np.testing.assert_array_equal(domain.nodes_of(past - 1, level), nodes)


def test_samples_lie_in_their_node_and_are_as_many_as_asked(domain: Domain) -> None:
    for nodes in levels_of(domain, most=20):
        for node in nodes[:5]:
            points = domain.sample(np.array([node]), np.array([40]), 7)
            assert len(points) == 40
            codes, inside = domain.encode(points)
            assert inside.all()
            first, past = domain.code_range(np.array([node]))
            assert ((codes >= first) & (codes < past)).all()


def test_samples_are_the_same_each_time_and_more_keep_the_first(domain: Domain) -> None:
    few, many = spread(domain, 200), spread(domain, 260)
    np.testing.assert_array_equal(few, spread(domain, 200))
    bag = {tuple(p) for p in many.tolist()}
    assert np.mean([tuple(p) in bag for p in few.tolist()]) > 0.95


@pytest.mark.statistical
@pytest.mark.slow
def test_samples_are_uniform(domain: Domain) -> None:
    """No more uneven than chance: many keys, few points each, counted in the nodes of a middle level."""
    levels = levels_of(domain)
    nodes = next((n for n in levels if n.size >= 6), levels[-1])
    codes = np.sort(np.concatenate([domain.encode(spread(domain, 25, key))[0] for key in range(160)]))
    first, past = domain.code_range(nodes)
    seen = np.searchsorted(codes, past) - np.searchsorted(codes, first)
    expected = domain.measure(nodes) / domain.measure(np.array([ROOT])) * codes.size
    assert seen.sum() == codes.size
    assert stats.chi2.sf(((seen - expected) ** 2 / expected)[expected > 1].sum(), max(1, (expected > 1).sum())) > 1e-6


def test_encode_then_locate(domain: Domain) -> None:
    """A point's code lies in a node of positive measure at every level."""
    codes, inside = domain.encode(spread(domain, 300))
    assert inside.all()
    for level in range(domain.depth + 1):
        assert (domain.measure(np.unique(domain.nodes_of(codes, level))) > 0).all()


def test_it_survives_being_written_down(domain: Domain) -> None:
    again = domain_from_dict(domain.to_dict())
    assert again.to_dict() == domain.to_dict()
    points = spread(domain, 50)
    np.testing.assert_array_equal(again.encode(points)[0], domain.encode(points)[0])
    np.testing.assert_array_equal(again.sample(np.array([ROOT]), np.array([50]), 1), points)
    assert len(str(domain.summary())) < 1500


def test_a_whole_stream_runs_on_it(domain: Domain) -> None:
    stream = phd.PHDStream(domain, 4.0, phd.Event(), noise=phd.Simulation(3))
    bag: dict[tuple[Any, ...], int] = {}
    for tick in range(4):
        release = stream.update(spread(domain, 400, tick), deletes=spread(domain, 400, tick)[:100])
        changes = release.changes()
        for points, sign in ((changes.deletes, -1), (changes.inserts, 1)):
            for point in map(tuple, points.tolist()):
                bag[point] = bag.get(point, 0) + sign
        assert min(bag.values()) >= 0
    assert sum(bag.values()) == len(release.sample())
    assert abs(len(release.sample()) - release.total) < 1
    assert release.total == pytest.approx(1200, abs=150)
    assert domain.encode(release.sample())[1].all()
    cells = release.cells()
    assert sum(cells["count"].to_pylist()) == pytest.approx(release.total)


def test_counting_everything_gives_the_total(domain: Domain) -> None:
    release = phd.PHDStream(domain, 4.0, phd.Event(), noise=phd.Simulation(3)).update(spread(domain, 500))
    everything = ["US", "FR", "MC"] if isinstance(domain, phd.Hierarchy) else domain.bounds(np.array([ROOT]))
    answer = release.count(everything)
    assert answer.value.sum() == pytest.approx(release.total, rel=1e-6)
    assert (answer.stderr > 0).all()
    assert (answer.low <= answer.noise_low).all()
    assert (answer.noise_high <= answer.high).all()


def test_intervals_are_for_true_counts(domain: Domain) -> None:
    """Parts of the domain, cut where no cell ends: wider than the noise alone, and the true count is inside."""
    come = spread(domain, 2000)
    if isinstance(domain, phd.Hierarchy):
        asked: Any = ["US/NY", "FR"]
        places = domain.nodes_of(domain.encode(come)[0], domain.depth)
        true = domain.overlap(places, domain.queries(asked)).sum(axis=1)
    else:
        whole, d = domain.bounds(np.array([ROOT]))[0], domain.dimension
        asked = np.array([whole, whole])
        asked[0, d] = asked[1, 0] = whole[0] + 0.37 * (whole[d] - whole[0])
        true = np.array([((come >= box[:d]) & (come <= box[d:])).all(axis=1).sum() for box in asked])
    for method in (phd.TrackingStream, phd.PHDStream):
        release = method(domain, 4.0, phd.Event(), noise=phd.Simulation(3)).update(come)
        answer = release.count(asked, confidence=0.999)
        assert (answer.low <= true).all()
        assert (true <= answer.high).all()
        assert (answer.high - answer.low < release.total).all()


@pytest.mark.parametrize("name", [name for name in DOMAINS if name not in ("hospitals", "cube")])
def test_halves_add_up(name: str) -> None:
    """Of a hierarchy and a cube there are no rectangles to halve."""
    domain = DOMAINS[name]()
    release = phd.PHDStream(domain, 4.0, phd.Event(), noise=phd.Simulation(3)).update(spread(domain, 500))
    whole = domain.bounds(np.array([ROOT]))[0]
    cut = whole[0] + 0.37 * (whole[domain.dimension] - whole[0])
    left, right = whole.copy(), whole.copy()
    left[domain.dimension] = right[0] = cut
    assert release.count([left, right]).value.sum() == pytest.approx(release.total, rel=1e-3)


def test_nothing_else_is_inside(domain: Domain) -> None:
    nowhere = ["nowhere"] if isinstance(domain, phd.Hierarchy) else np.full((3, domain.dimension), 1e6)
    if isinstance(domain, phd.Product):  # such numbers are no values; as positions they are of none
        nowhere = spread(domain, 3) + 1e6
    assert not domain.encode(domain.points(nowhere))[1].any()
    if not isinstance(domain, phd.Hierarchy):
        for bad in (np.nan, np.inf, -np.inf):
            assert not domain.encode(np.full((2, domain.dimension), bad))[1].any()
    assert domain.encode(domain.points(None))[0].size == 0


@pytest.mark.slow
def test_points_made_in_pieces_are_the_same_points(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = levels_of(domain)
    nodes = levels[-2] if len(levels) > 2 else levels[-1]
    counts = np.random.default_rng(4).integers(0, 40, nodes.size)
    at_once = [domain.sample(nodes, counts, key=7), domain.sample(np.array([ROOT]), np.array([300]), key=7)]
    monkeypatch.setattr("phdstream.domains.apportion._POINTS_AT_ONCE", 13)
    assert [len(points) for points in at_once] == [counts.sum(), 300]
    np.testing.assert_array_equal(domain.sample(nodes, counts, key=7), at_once[0])
    np.testing.assert_array_equal(domain.sample(np.array([ROOT]), np.array([300]), key=7), at_once[1])
    assert domain.sample(nodes[:0], counts[:0], key=7).shape == (0, domain.dimension)
    assert domain.sample(nodes, 0 * counts, key=7).shape == (0, domain.dimension)
