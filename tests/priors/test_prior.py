"""`Prior`: every kind of public input, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

import phdstream as phd
from phdstream.domains import ROOT
from phdstream.errors import InputError
from phdstream.priors.splits import PriorSplits

SQUARE = phd.Box([(0, 1), (0, 1)], depth=12)
RNG = np.random.default_rng(1)
LEFT = RNG.uniform([0, 0], [0.5, 1], (400, 2))


def first_share(splits: PriorSplits) -> float:
    """Return the share of the root's first half: the left one."""
    assert splits.node[0] == ROOT
    return float((1 + splits.contrast[0]) / 2)


def share_left(prior: phd.Prior, domain: phd.Domain = SQUARE) -> float:
    return first_share(prior.on(domain))


def test_points_with_and_without_weights() -> None:
    points = np.concatenate([LEFT, 1 - LEFT])
    weights = np.repeat([3.0, 1.0], 400)
    assert share_left(phd.Prior.from_points(points, about="a")) == pytest.approx(0.5)
    assert share_left(phd.Prior.from_points(points, weights, about="a")) == pytest.approx(0.75, abs=1e-3)
    table = pa.table({"x": points[:, 0], "y": points[:, 1], "people": weights})
    assert share_left(phd.Prior.from_points(table, "people", about="a")) == pytest.approx(0.75, abs=1e-3)


def test_polygons_spread_their_weight_over_their_area() -> None:
    halves = [shapely.box(0, 0, 0.5, 1), shapely.box(0.5, 0, 1, 1)]
    assert share_left(phd.Prior.from_polygons(halves, about="a")) == pytest.approx(0.5, abs=1e-3)
    splits = phd.Prior.from_polygons(halves, [9, 1], about="a").on(SQUARE)
    assert first_share(splits) == pytest.approx(0.9, abs=1e-3)
    inside = splits.node[(splits.node > 1) & (splits.node < 1 << 8)]
    at = np.searchsorted(splits.node, inside)
    assert np.abs(splits.contrast[at]).max() < 0.01  # evenly


def test_a_polygon_smaller_than_the_lattice_still_holds_its_weight() -> None:
    tiny = [
        shapely.box(0.1, 0.1, 0.1 + 1e-7, 0.1 + 1e-7),
        *(shapely.box(0.6, i / 10, 1, (i + 1) / 10) for i in range(10)),
    ]
    prior = phd.Prior.from_polygons(tiny, [10] + [1] * 10, about="a")
    points, weights = prior._placed(SQUARE)
    assert weights is not None
    assert weights[points[:, 0] < 0.5].sum() == pytest.approx(weights.sum() / 2)


def test_polygons_of_a_geodataframe_with_a_column_and_another_system() -> None:
    geopandas = pytest.importorskip("geopandas")
    box = phd.Box([(-74.3, -73.7), (40.5, 41.0)], crs="EPSG:4326")
    shapes = [shapely.box(-74.3, 40.5, -74.0, 41.0), shapely.box(-74.0, 40.5, -73.7, 41.0)]
    frame = geopandas.GeoDataFrame({"people": [4.0, 1.0]}, geometry=shapes, crs="EPSG:4326").to_crs("EPSG:32618")
    prior = phd.Prior.from_polygons(frame, "people", about="a")
    assert share_left(prior, box) == pytest.approx(0.8, abs=2e-3)
    with pytest.raises(InputError, match="names no coordinate system"):
        prior.on(phd.Box([(-74.3, -73.7), (40.5, 41.0)]))


def test_lines_by_length_by_weight_and_of_a_network() -> None:
    lines = [shapely.LineString([(0.1, 0.1), (0.1, 0.9)]), shapely.LineString([(0.9, 0.1), (0.9, 0.3)])]
    assert share_left(phd.Prior.from_lines(lines, about="a")) == pytest.approx(0.8, abs=1e-3)
    assert share_left(phd.Prior.from_lines(lines, [1, 3], about="a")) == pytest.approx(0.25, abs=1e-3)
    network = phd.Network(lines, snap=0.01, depth=8)
    assert share_left(phd.Prior.from_lines(network, about="a")) == pytest.approx(0.8, abs=1e-3)


def test_a_raster_from_an_array_and_from_a_file(tmp_path: Path) -> None:
    values = np.array([[2.0, -1.0], [1.0, np.nan]])
    splits = phd.Prior.from_raster(values, (0, 0, 1, 1), about="a").on(SQUARE)
    assert first_share(splits) == pytest.approx(1.0, abs=1e-3)
    above = splits.contrast[np.searchsorted(splits.node, 2)]  # of the left half: its lower half minus its upper
    assert above == pytest.approx(-1 / 3, abs=1e-3)
    head = "ncols 2\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 0.5\nNODATA_value -1\n"
    (tmp_path / "people.asc").write_text(head + "2 -1\n1 -1\n")
    assert phd.Prior.from_raster(tmp_path / "people.asc", about="a").on(SQUARE).digest == splits.digest
    for wrong in ("", head, head + "2 1\n1 1 1\n", head + "2 -1\n", "ncols 99999999\n" + head[8:] + "1 1\n"):
        (tmp_path / "wrong.asc").write_text(wrong)
        with pytest.raises(InputError, match=r"wrong\.asc"):
            phd.Prior.from_raster(tmp_path / "wrong.asc", about="a")


def released(domain: phd.Domain, points: Any) -> phd.Release:
    return phd.TrackingStream(domain, 5.0, phd.Event(), noise=phd.Simulation(1)).update(points)


def test_a_release_of_the_same_and_of_another_domain() -> None:
    release = released(SQUARE, LEFT)
    prior = phd.Prior.from_release(release)
    assert share_left(prior) > 0.95
    assert share_left(prior, phd.Box([(0, 1), (0, 1)], depth=6)) > 0.95
    assert "tick 1" in prior.about
    assert prior.simulated


def test_a_product_takes_rows_with_all_attributes() -> None:
    domain = phd.Product(SQUARE, phd.Category("kind", ["bus", "tram"]))
    rows = [(x, y, "bus") for x, y in LEFT]
    assert phd.Prior.from_points(rows, about="a").on(domain).node.size > 1
    assert phd.Prior.from_release(released(domain, rows)).on(domain).node.size > 1
    with pytest.raises(InputError, match="all of the domain's columns"):
        phd.Prior.from_raster(np.ones((2, 2)), (0, 0, 1, 1), about="a").on(domain)
    with pytest.raises(InputError):
        phd.Prior.from_points(LEFT, about="a").on(domain)


def test_a_hierarchy_takes_names() -> None:
    domain = phd.Hierarchy({"US": ["NY", "CA"], "FR": ["Paris", "Lyon"]})
    prior = phd.Prior.from_points([("US", "NY")] * 9 + [("FR", "Lyon")], about="a")
    assert prior.on(domain).node.size >= 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: phd.Prior.from_points(LEFT, about=""), "about"),
        (lambda: phd.Prior.from_points(LEFT, np.ones(3), about="a").on(SQUARE), "3 weights for 400"),
        (lambda: phd.Prior.from_points(LEFT, -np.ones(400), about="a"), "none negative"),
        (lambda: phd.Prior.from_points(LEFT, np.full(400, np.nan), about="a"), "finite"),
        (lambda: phd.Prior.from_points(LEFT, "people", about="a"), "not a table"),
        (lambda: phd.Prior.from_points(LEFT + 7, about="a").on(SQUARE), "nothing of the prior"),
        (lambda: phd.Prior.from_points(LEFT[:3], about="a").on(SQUARE), "fewer than four"),
        (lambda: phd.Prior.from_polygons([shapely.LineString([(0, 0), (1, 1)])], about="a"), "Polygon"),
        (lambda: phd.Prior.from_lines([shapely.box(0, 0, 1, 1)], about="a"), "LineString"),
        (lambda: phd.Prior.from_polygons([shapely.box(0, 0, 1, 1)], [1, 2], about="a"), "2 weights for 1"),
        (lambda: phd.Prior.from_raster(np.zeros((2, 2)), (0, 0, 1, 1), about="a"), "above 0"),
        (lambda: phd.Prior.from_raster(np.ones((2, 2)), (1, 0, 0, 1), about="a"), "bounds"),
        (lambda: phd.Prior.from_raster("nowhere.asc", about="a"), "cannot be read"),
        (lambda: phd.Prior.from_release(LEFT), "a stream has released"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_release_that_is_held_is_no_prior() -> None:
    stream = phd.TrackingStream(SQUARE, 1.0, phd.Event(), start_after=2, noise=phd.Simulation(1))
    with pytest.raises(InputError, match="has released"):
        phd.Prior.from_release(stream.update(LEFT))
