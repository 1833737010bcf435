"""Regions: polygons of every shape, on every map, from every source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import phdstream as phd
from phdstream.domains import ROOT
from phdstream.errors import InputError

L_SHAPE = shapely.Polygon([(0, 0), (4, 0), (4, 1), (1, 1), (1, 4), (0, 4)])
GEOMETRY = Path(__file__).parents[4] / "shared" / "data" / "geometry"
LAND = GEOMETRY / "land_naturalearth_lowres_without_antarctica.geojson"


class TestShapes:
    @given(seed=st.integers(0, 10_000))
    def test_random_polygons_are_measured_and_sampled_right(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        shape = shapely.union_all(
            [shapely.Point(*p).buffer(r) for p, r in zip(rng.random((4, 2)), rng.random(4) / 3, strict=True)]
        )
        shape = shape.difference(shapely.Point(*rng.random(2)).buffer(0.1))
        region = phd.Region(shape, depth=10)
        assert region.measure(np.array([ROOT]))[0] == pytest.approx(shape.area)
        points = region.sample(np.array([ROOT]), np.array([200]), seed)
        assert shapely.intersects_xy(shape, points[:, 0], points[:, 1]).all()
        trial = rng.random((500, 2)) * 2 - 0.5
        np.testing.assert_array_equal(region.encode(trial)[1], shapely.intersects_xy(shape, trial[:, 0], trial[:, 1]))

    def test_a_cell_that_only_touches_is_not_in_the_tree(self) -> None:
        two = shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(1, 1, 2, 2)])  # they touch in a point
        region = phd.Region(two, depth=4)
        cells = region.children(region.children(np.array([ROOT]))[0])[0]
        assert cells.size == 2
        assert region.measure(cells).tolist() == [1.0, 1.0]

    def test_overlapping_polygons_count_once(self) -> None:
        region = phd.Region([shapely.box(0, 0, 2, 1), shapely.box(1, 0, 3, 1)])
        assert region.measure(np.array([ROOT]))[0] == pytest.approx(3.0)

    def test_holes_stay_empty(self) -> None:
        ring = shapely.Point(0, 0).buffer(2).difference(shapely.Point(0, 0).buffer(1))
        points = phd.Region(ring).sample(np.array([ROOT]), np.array([2000]), 1)
        assert np.hypot(*points.T).min() > 0.99

    def test_a_sliver_gets_its_points(self) -> None:
        sliver = shapely.Polygon([(0, 0), (1, 1e-7), (1, 0)])
        points = phd.Region(sliver, depth=8).sample(np.array([ROOT]), np.array([100]), 1)
        assert shapely.intersects_xy(sliver, points[:, 0], points[:, 1]).all()

    def test_cells_inside_need_no_geometry(self, monkeypatch: pytest.MonkeyPatch) -> None:
        region = phd.Region(L_SHAPE.buffer(10), depth=12)
        region.encode(np.array([[0.5, 0.5]]))
        inner = region.nodes_of(region.encode(np.array([[0.5, 0.5]]))[0], 10)
        region.measure(inner)
        calls: list[int] = []

        def intersection(a: Any, b: Any) -> Any:
            calls.append(len(a))
            return np.array([], object)

        monkeypatch.setattr(shapely, "intersection", intersection)
        region.children(region.nodes_of(region.encode(np.array([[0.5, 0.5]]))[0], 10))
        assert sum(calls) == 0


class TestCoordinateSystems:
    def test_degrees_are_put_on_an_equal_area_map(self) -> None:
        band = phd.Region(shapely.box(-10, 0, 10, 80), crs="EPSG:4326", depth=10)
        assert band.names == ("lon", "lat")
        south = band.sample(np.array([ROOT]), np.array([4000]), 1)[:, 1] < 40
        assert south.mean() == pytest.approx(np.sin(np.radians(40)) / np.sin(np.radians(80)), abs=0.03)

    def test_points_come_back_in_the_users_system(self) -> None:
        region = phd.Region(shapely.box(4, 50, 6, 52), crs="EPSG:4326", tree_crs="EPSG:32631", depth=10)
        points = region.sample(np.array([ROOT]), np.array([500]), 1)
        assert ((points >= (4, 50)) & (points <= (6, 52))).all()
        assert region.crs == "EPSG:4326"
        bounds = region.bounds(np.array([ROOT]))[0]
        assert bounds[:2] == pytest.approx([4, 50], abs=0.05)

    def test_an_equal_area_map_knows_the_size_of_the_land(self) -> None:
        if not LAND.exists():
            pytest.skip("no shared data here")
        square_km = phd.Region(LAND).measure(np.array([ROOT]))[0] / 1e6
        assert square_km == pytest.approx(135e6, rel=0.03)  # the land of the Earth without Antarctica

    def test_a_tree_system_without_the_points_own(self) -> None:
        with pytest.raises(InputError, match="crs='EPSG:4326'"):
            phd.Region(L_SHAPE, tree_crs="EPSG:3857")

    def test_an_unknown_system(self) -> None:
        with pytest.raises(InputError, match="not a coordinate reference system"):
            phd.Region(L_SHAPE, crs="EPSG:99999999")

    def test_a_contradiction(self) -> None:
        with pytest.raises(InputError, match="leave crs out"):
            phd.Region(geopandas.GeoSeries([L_SHAPE], crs="EPSG:4326"), crs="EPSG:3857")


class TestSources:
    @pytest.mark.parametrize("name", ["r.geojson", "r.gpkg", "r.shp", "r.parquet"])
    def test_files(self, tmp_path: Path, name: str) -> None:
        frame = geopandas.GeoDataFrame({"a": [1]}, geometry=[L_SHAPE], crs="EPSG:4326")
        (frame.to_parquet if name.endswith("parquet") else frame.to_file)(tmp_path / name)
        region = phd.Region(tmp_path / name)
        assert region.crs == "EPSG:4326"
        assert region.outline().area == pytest.approx(L_SHAPE.area)

    @pytest.mark.parametrize(
        "source", [L_SHAPE, [L_SHAPE], geopandas.GeoSeries([L_SHAPE]), shapely.MultiPolygon([L_SHAPE])]
    )
    def test_objects(self, source: Any) -> None:
        assert phd.Region(source).outline().area == L_SHAPE.area


class TestBadInput:
    BOW_TIE = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            (BOW_TIE, "not valid .*Self-intersection.*make_valid"),
            (shapely.Polygon(), "all are empty"),
            ([], "all are empty"),
            ([L_SHAPE, shapely.Point(0, 0)], "expected Polygons only, but there are also Points"),
            (shapely.LineString([(0, 0), (1, 1)]), "expected Polygons only"),
            ([L_SHAPE, None], "missing or of another kind"),
            (5, "expected geometries"),
            ("nowhere.geojson", "no file"),
        ],
    )
    def test_each_has_a_message_a_gis_person_understands(self, source: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            phd.Region(source)

    def test_a_broken_file(self, tmp_path: Path) -> None:
        (tmp_path / "r.geojson").write_text("{ not json")
        with pytest.raises(InputError, match="cannot be read as geometries"):
            phd.Region(tmp_path / "r.geojson")

    def test_swapped_coordinates_are_noticed(self) -> None:
        region = phd.Region(shapely.box(-74.3, 40.5, -73.7, 41), crs="EPSG:4326")
        stream = phd.PHDStream(region, 1.0, phd.Event())
        stream.update([[40.7, -74.0]] * 5 + [[-74.0, 40.7]])
        assert stream.private_tally.outside == stream.private_tally.swapped == 5


class TestOnMaps:
    WARDS = geopandas.GeoDataFrame(
        {"ward": ["west", "east"]}, geometry=[shapely.box(-1, -1, 0.5, 5), shapely.box(0.5, -1, 5, 5)], crs="EPSG:4326"
    )

    def release(self, domain: phd.Domain | None = None) -> phd.Release:
        domain = domain or phd.Region(L_SHAPE, crs="EPSG:4326", depth=10)
        stream = phd.PHDStream(domain, 8.0, phd.Event(), noise=phd.Simulation(1))
        return stream.update(domain.sample(np.array([ROOT]), np.array([3000]), 5))

    @pytest.mark.parametrize(
        "domain",
        [
            None,
            phd.Box([(0, 4), (0, 4)]),
            phd.Region(L_SHAPE, depth=8),
            pytest.param("globe", marks=pytest.mark.filterwarnings),
        ],
        ids=["degrees", "box", "plane", "globe"],
    )
    def test_counts_per_ward_add_up(self, domain: Any) -> None:
        if domain == "globe":
            domain = pytest.importorskip("phdstream.domains.globe").Globe(depth=6)
        release = self.release(domain)
        wards = self.WARDS if domain is None else self.WARDS.set_crs(None, allow_override=True)
        if getattr(domain, "names", None) == ("lon", "lat"):
            wards = [shapely.box(-180, -90, 0, 90), shapely.box(0, -90, 180, 90)]
        answer = release.count_in(wards)
        assert answer.value.sum() == pytest.approx(release.total, rel=0.02)
        assert (answer.stderr > 0).all()
        assert (answer.low <= answer.value).all()

    def test_a_layer_in_another_system_is_converted(self) -> None:
        release = self.release()
        direct, converted = (release.count_in(layer).value for layer in (self.WARDS, self.WARDS.to_crs("EPSG:3857")))
        np.testing.assert_allclose(direct, converted, rtol=1e-3)

    def test_a_layer_of_lines_is_refused(self) -> None:
        with pytest.raises(InputError, match="must hold polygons"):
            self.release().count_in([shapely.LineString([(0, 0), (1, 1)])])

    def test_a_layer_beyond_the_end_of_the_map_is_refused(self) -> None:
        region = phd.Region(L_SHAPE, crs="EPSG:4326", depth=8)
        stream = phd.TrackingStream(region, 1.0, phd.Event(), noise=phd.Simulation(1))
        with pytest.raises(InputError, match="beyond 90 degrees"):
            stream.update([(0.5, 0.5)] * 50).count_in([shapely.Polygon([(0, 0), (1e20, 2e19), (-1e20, 1e20)])])

    def test_h3(self) -> None:
        release = self.release()
        table = release.to_h3(5)
        assert sum(table["value"].to_pylist()) == pytest.approx(release.total, rel=1e-3)
        assert table.schema.metadata[b"privacy"] == b"simulated, not private"
        assert len(set(table["h3"].to_pylist())) == table.num_rows

    @pytest.mark.slow
    @pytest.mark.parametrize(("resolution", "message"), [(16, "0 to 15"), (15, "coarser"), (2.5, "0 to 15")])
    def test_h3_resolutions(self, resolution: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            self.release().to_h3(resolution)

    def test_h3_needs_degrees(self) -> None:
        with pytest.raises(InputError, match="degrees"):
            self.release(phd.Box([(0, 5000), (0, 5000)])).to_h3(5)

    def test_geodataframes(self) -> None:
        release = self.release()
        points, cells = release.sample(to="geopandas"), release.cells(to="geopandas")
        assert points.crs == cells.crs == "EPSG:4326"
        assert len(points) == len(release.sample())
        assert points.geometry.within(L_SHAPE.buffer(1e-9)).all()
        assert cells.geometry.union_all().symmetric_difference(L_SHAPE).area < 1e-3
        assert points.attrs["privacy"] == "simulated, not private"
        with pytest.raises(InputError, match="did you mean 'geopandas'"):
            release.cells(to="geopanda")

    def test_three_dimensions_have_no_map(self) -> None:
        release = self.release(phd.Box([(0, 1)] * 3))
        with pytest.raises(InputError, match="two coordinates"):
            release.sample(to="geopandas")


def test_it_says_how_fine_it_is() -> None:
    """In metres where they are known, as people say them; else how large it is in its own units."""
    town = phd.Region([shapely.box(0, 0, 5000, 4000)], crs="EPSG:3857", depth=8)
    assert repr(town) == "Region(1 polygon, finest cells about 280 m, fanout=2, depth=8)"
    assert repr(phd.Region([L_SHAPE, shapely.box(5, 5, 6, 6)], depth=8)).startswith("Region(2 polygons, area 8, ")
