"""One row is one event, from whatever holds the rows: arrays, frames by name, geometries in any coordinate system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

import phdstream as phd
from phdstream.errors import InputError
from tests.noises import KnownNoise

geopandas = pytest.importorskip("geopandas")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

PLACE = phd.Box([(0, 10), (0, 10)], names=("lon", "lat"), depth=8)
CITY = phd.Box([(-74.3, -73.7), (40.5, 41.0)], names=("lon", "lat"), crs="EPSG:4326")
NAN = np.nan


def counted(domain: Any, data: Any, **options: Any) -> float:
    stream = phd.TrackingStream(domain, 1.0, options.pop("unit", phd.Event()), noise=KnownNoise())
    return stream.update(data, **options).total


class TestGeometries:
    def test_rows_keep_their_places_and_missing_ones_count_nowhere(self) -> None:
        series = geopandas.GeoSeries([shapely.Point(1, 2), None, shapely.Point(), shapely.Point(3, 4, 99)])
        expected = [[1, 2], [NAN, NAN], [NAN, NAN], [3, 4]]
        for data in (series, series.to_frame("geometry"), series.values, list(series), series.to_numpy()):
            np.testing.assert_array_equal(PLACE.points(data), expected)
        np.testing.assert_array_equal(PLACE.points(pandas.Series(list(series), dtype=object)), expected)
        assert counted(PLACE, series) == 2

    @pytest.mark.parametrize(
        "shape",
        [
            shapely.MultiPoint([(1, 1), (2, 2)]),
            shapely.MultiPoint([(1, 1)]),
            shapely.Point(5, 5).buffer(1),
            shapely.LineString([(0, 0), (1, 1)]),
            shapely.GeometryCollection([shapely.Point(1, 1)]),
        ],
    )
    def test_a_row_of_several_points_is_refused_before_anything_changes(self, shape: Any) -> None:
        stream = phd.TrackingStream(PLACE, 1.0, phd.User(inserts=1), noise=KnownNoise())
        for data in ([shapely.Point(1, 1), shape], geopandas.GeoSeries([shape, shapely.Point(1, 1)])):
            with pytest.raises(InputError, match="every event is one point"):
                stream.update(data, users=["ann", "bob"])
        assert stream.tick == 0
        assert stream.update([(1, 1), (1, 1)], users=["ann", "bob"]).total == 2

    def test_users_stay_with_their_rows(self) -> None:
        """An empty geometry used to vanish, and the users of all later rows moved up."""
        series = geopandas.GeoSeries([shapely.Point(), shapely.Point(1, 1), shapely.Point(2, 2)])
        users = ["ann", "bob", "bob"]
        assert counted(PLACE, series, users=users, unit=phd.User(inserts=1)) == 1

    def test_single_geometries_and_mixtures_are_refused(self) -> None:
        for data in (shapely.Point(1, 1), shapely.MultiPoint([(1, 1)]), [shapely.Point(1, 1), (1, 1)]):
            with pytest.raises(InputError, match="point"):
                PLACE.points(data)
        with pytest.raises(InputError, match="set_geometry"):
            PLACE.points(geopandas.GeoDataFrame({"a": [1]}))
        with pytest.raises(InputError, match="two coordinates"):
            phd.Box([(0, 1)] * 3).points([shapely.Point(1, 1)])


class TestCoordinateSystems:
    def test_points_in_another_system_are_converted(self) -> None:
        degrees = geopandas.GeoSeries.from_xy([-74.0, -73.9], [40.7, 40.8], crs="EPSG:4326")
        metres = degrees.to_crs("EPSG:3857")
        np.testing.assert_allclose(CITY.points(metres), CITY.points(degrees))
        assert counted(CITY, metres) == 2
        missing = geopandas.GeoSeries([None, metres[0]], crs="EPSG:3857")
        np.testing.assert_array_equal(np.isnan(CITY.points(missing)), [[True, True], [False, False]])

    def test_a_globe_and_a_region_convert_too(self) -> None:
        metres = geopandas.GeoSeries.from_xy([-74.0], [40.7], crs="EPSG:4326").to_crs("EPSG:3857")
        region = phd.Region(shapely.box(-75, 40, -73, 42), crs="EPSG:4326", depth=8)
        for domain in (phd.Globe(depth=8), region):
            np.testing.assert_allclose(domain.points(metres), [[-74.0, 40.7]])

    def test_a_system_that_the_domain_lacks_is_an_error_not_zero(self) -> None:
        series = geopandas.GeoSeries([shapely.Point(1, 1)], crs="EPSG:3857")
        with pytest.raises(InputError, match="say crs="):
            PLACE.points(series)

    def test_points_without_a_system_are_in_the_domain_s(self) -> None:
        np.testing.assert_array_equal(CITY.points([shapely.Point(-74, 40.7)]), [[-74, 40.7]])

    def test_a_box_names_its_system_for_good(self) -> None:
        box = phd.Box([(0, 1), (0, 1)], crs=4326)
        assert box.crs == "EPSG:4326"
        assert box.to_dict()["crs"] == "EPSG:4326"
        with pytest.raises(InputError, match="not a coordinate reference system"):
            phd.Box([(0, 1), (0, 1)], crs="nonsense")


class TestTables:
    COLUMNS: dict[str, Any] = {"lat": [2.0, None, 4.0], "name": ["a", "b", "c"], "lon": [1, 2, 3]}  # noqa: RUF012

    def test_columns_are_found_by_name(self) -> None:
        table = pa.table(self.COLUMNS)
        tables = [table, table.to_batches()[0], table.to_pandas(), polars.from_arrow(table), self.COLUMNS]
        tables.append(np.array([(2.0, 1), (NAN, 2), (4.0, 3)], dtype=[("lat", "f8"), ("lon", "i4")]))
        for data in tables:
            np.testing.assert_array_equal(PLACE.points(data), [[1, 2], [2, NAN], [3, 4]])

    def test_swapped_columns_count_the_same(self) -> None:
        """Frames were read by position: swapped columns, and everything was dropped without a word."""
        frame = pandas.DataFrame({"lat": [40.7, 40.8], "lon": [-74.0, -73.9]})
        assert counted(CITY, frame) == counted(CITY, frame[["lon", "lat"]]) == 2

    @pytest.mark.parametrize("kind", ["Int64", "Float64", "int64[pyarrow]", "float32"])
    def test_missing_numbers_of_any_kind(self, kind: str) -> None:
        lat = pandas.array([1, None], dtype=kind) if kind != "float32" else np.array([1, NAN], np.float32)
        frame = pandas.DataFrame({"lon": [1, 2], "lat": lat})
        np.testing.assert_array_equal(PLACE.points(frame), [[1, 1], [2, NAN]])

    def test_missing_words_of_any_kind(self) -> None:
        frame = pandas.DataFrame({"lon": [1, pandas.NA, None], "lat": [NAN, 2, 3]}, dtype=object)
        np.testing.assert_array_equal(PLACE.points(frame), [[1, NAN], [NAN, 2], [NAN, 3]])

    def test_a_missing_column_is_named(self) -> None:
        with pytest.raises(InputError, match=r"no column 'lat'.*did you mean 'latt'\?.*names="):
            PLACE.points(pa.table({"latt": [1.0], "lon": [1.0]}))
        with pytest.raises(InputError, match=r"no column 'lat'.*there are elevation, lon\..*names="):
            PLACE.points({"elevation": [1.0], "lon": [1.0]})

    def test_a_header_that_may_be_a_record_is_not_shown(self) -> None:
        with pytest.raises(InputError, match="no column 'lon'") as caught:
            PLACE.points(pandas.DataFrame([[1, 2]], columns=["-73.98", "Ann Smith"]))
        assert "Ann" not in str(caught.value)

    def test_two_columns_of_one_name_are_refused(self) -> None:
        with pytest.raises(InputError, match="more than one column 'lat'"):
            PLACE.points(pandas.DataFrame([[1, 2, 3]], columns=["lat", "lat", "lon"]))
        with pytest.raises(InputError, match="equally long"):
            PLACE.points({"lat": [1], "lon": [1, 2]})


class TestArrays:
    def test_masked_rows_are_missing_points(self) -> None:
        masked = np.ma.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], mask=[[True, True], [False] * 2, [False, True]])
        np.testing.assert_array_equal(PLACE.points(masked), [[NAN, NAN], [2, 2], [3, NAN]])
        np.testing.assert_array_equal(PLACE.points(list(masked)), [[NAN, NAN], [2, 2], [3, NAN]])
        np.testing.assert_array_equal(PLACE.points([(1.0, np.ma.masked)]), [[1, NAN]])
        assert counted(PLACE, masked) == 1

    @pytest.mark.parametrize(
        "empty", [None, [], (), np.empty((0, 2)), np.empty((0, 7)), pa.table({"lon": [], "lat": []})]
    )
    def test_no_rows(self, empty: Any) -> None:
        assert PLACE.points(empty).shape == (0, 2)

    @pytest.mark.parametrize(
        "bad",
        [
            [[1, 10**400]], [[1, 10**5000]], [[1j, 2]], [["1.5", "2"]], [["a", "b"]], [[1, 2], [3]], "abc", b"abc", 3,
            [[]], np.empty((3, 0)), object(), {1, 2}, [[object(), 1]], [[np.datetime64("2020"), 1]], iter([(1, 2)]),
            pandas.DataFrame({"lon": ["1"], "lat": [1]}), pa.table({"lon": ["1"], "lat": [1]}), pandas.Series([1]),
            np.zeros((2, 2, 2)), [np.datetime64("2020")], [None],
        ],
    )  # fmt: skip
    def test_what_are_no_points_is_refused(self, bad: Any) -> None:
        stream = phd.PHDStream(PLACE, 1.0, phd.Event(), noise=KnownNoise())
        for events in ({"inserts": bad}, {"deletes": bad}):
            with pytest.raises(InputError):
                stream.update(**events)
        assert stream.tick == 0

    def test_whole_numbers_beyond_64_bits_are_numbers(self) -> None:
        np.testing.assert_array_equal(PLACE.points([[2**70, 1]]), [[2.0**70, 1]])


class TestPlaces:
    TOWNS = phd.Hierarchy({"US": {"NY": ["A", "B"], "CA": ["C"]}, "MC": ["G"]}, names=("town",))

    def test_from_a_column_or_one_column_a_level(self) -> None:
        expected = [["A"], [""], ["US/NY/B"]]
        names = ["A", None, "US/NY/B"]
        for data in (names, pa.table({"id": [1, 2, 3], "town": names}), pandas.DataFrame({"town": names})):
            assert self.TOWNS.points(data).tolist() == expected
        levels = pandas.DataFrame({"country": ["US", "MC", None], "state": ["NY", "G", None], "p": ["A", NAN, None]})
        assert self.TOWNS.points(levels).tolist() == [["US/NY/A"], ["MC/G"], [""]]
        assert self.TOWNS.encode(self.TOWNS.points(levels))[1].tolist() == [True, True, False]
        with pytest.raises(InputError, match="no column 'town'"):
            self.TOWNS.points(pa.table({"place": ["A"]}))

    def test_numbers_and_nothing_are_places_nowhere(self) -> None:
        odd = [None, NAN, 3, 2.5, 10**5000, "A\0", "A" * 10**6, pandas.NA, (None, "A"), "A"]
        points = self.TOWNS.points(odd)
        assert points.nbytes < 10_000
        assert self.TOWNS.encode(points)[1].tolist() == [False] * 9 + [True]
        masked = np.ma.array(["A", "B"], mask=[True, False])
        assert self.TOWNS.points(masked).tolist() == [[""], ["B"]]
        for bad in (3, "A", {"A": 1}):
            with pytest.raises(InputError):
                self.TOWNS.points(bad)

    @pytest.mark.parametrize(
        "bad",
        [None, 3, [], "A", [None], [3], [["A", None]], [("A", 3)], {"A": None}, {"A": 3}, {3: ["A"]}, {"A": [3, "B"]},
         ["A", "A"], ["A", "A/B"], ["A//B"], ["A\0"], ["\ud800"], pandas.DataFrame({"a": ["x", NAN]}),
         {"A": [[["B"], None]]}],
    )  # fmt: skip
    def test_names_that_are_none(self, bad: Any) -> None:
        with pytest.raises(InputError):
            phd.Hierarchy(bad)

    def test_names_nested_too_deeply(self) -> None:
        deep: Any = "A"
        for _ in range(5000):
            deep = {"x": deep}
        with pytest.raises(InputError):
            phd.Hierarchy(deep)


class TestLayers:
    SQUARES = (shapely.box(0, 0, 5, 5), shapely.box(5, 5, 10, 10))

    def released(self, domain: Any = PLACE) -> phd.Release:
        points = np.repeat([[2.0, 2.0], [7.0, 7.0]], [30, 10], axis=0)
        return phd.PHDStream(domain, 1.0, phd.Event(), noise=KnownNoise()).update(points)

    @pytest.mark.parametrize("kind", ["box", "region", "network", "globe"])
    def test_one_answer_for_each_row_whatever_is_in_it(self, kind: str) -> None:
        lines = [shapely.LineString([(0, 0), (10, 10)])]
        domain = {
            "box": lambda: PLACE,
            "region": lambda: phd.Region(shapely.box(0, 0, 10, 10), depth=8),
            "network": lambda: phd.Network(lines, snap=1.0, depth=8),
            "globe": lambda: phd.Globe(depth=10),
        }[kind]()
        layer = [shapely.Polygon(), self.SQUARES[0], None, shapely.MultiPolygon(), self.SQUARES[1]]
        answer = self.released(domain).count_in(geopandas.GeoSeries(layer))
        np.testing.assert_allclose(answer.value, [0, 30, 0, 0, 10], atol=4)
        np.testing.assert_array_equal(answer.high[[0, 2, 3]], 0)
        assert self.released(domain).count_in(layer[:1]).value.tolist() == [0]

    def test_invalid_polygons_are_mended(self) -> None:
        bowtie = shapely.Polygon([(0, 0), (10, 10), (10, 0), (0, 10)])
        twice = shapely.MultiPolygon([shapely.box(0, 0, 6, 6), shapely.box(1, 1, 10, 10)])
        spike = shapely.Polygon([(0, 0), (5, 0), (5, 5), (9, 9), (5, 5), (0, 5)])
        assert not shapely.is_valid([bowtie, twice, spike]).any()
        answer = self.released().count_in([bowtie, twice, spike])
        assert np.isfinite(answer.value).all()
        assert answer.value[1:].tolist() == pytest.approx([40, 30], abs=1)

    def test_coordinates_that_are_no_numbers(self) -> None:
        for x in ("nan", "inf"):
            with np.errstate(invalid="ignore"):
                endless = shapely.from_wkt(f"POLYGON ((0 0, {x} 1, 1 1, 0 0))")
            with pytest.raises(InputError, match="finite"):
                self.released().count_in([endless])
        with pytest.raises(InputError, match="polygons, not Points"):
            self.released().count_in([shapely.Point(1, 1)])

    def test_a_layer_in_another_system_is_converted_or_refused(self, tmp_path: Path) -> None:
        """Without a system of the domain's own, the answer used to be 0 with an interval of [0, 0]."""
        degrees = geopandas.GeoSeries([shapely.box(-74.1, 40.6, -73.9, 40.8)], crs="EPSG:4326")
        feet = degrees.to_crs("EPSG:2263")
        stream = phd.PHDStream(CITY, 1.0, phd.Event(), noise=KnownNoise())
        release = stream.update(np.full((20, 2), (-74.0, 40.7)))
        feet.to_file(tmp_path / "feet.gpkg")
        for layer in (degrees, feet, feet.to_frame("geometry"), tmp_path / "feet.gpkg"):
            assert np.asarray(release.count_in(layer).value) == pytest.approx([20], abs=0.1)
        with pytest.raises(InputError, match="say crs="):
            self.released().count_in(feet)


@pytest.mark.parametrize("kind", ["box", "globe"])
def test_polygons_pair_by_pair_are_as_all_with_all(kind: str) -> None:
    domain = phd.Box([(0, 10), (0, 10)], depth=12) if kind == "box" else phd.Globe(depth=12)
    rng = np.random.default_rng(3)
    nodes = np.unique(domain.nodes_of(domain.encode(rng.uniform(0, 10, (40, 2)))[0], domain.depth - 3))
    nodes = np.concatenate([nodes, [1]])
    shapes = np.array([shapely.Point(x, y).buffer(r) for x, y, r in rng.uniform(0.5, 9, (30, 3))])
    all_pairs = domain.overlap_shapes(nodes, shapes)
    at, of = (pairs.ravel() for pairs in np.indices(all_pairs.shape))
    covered = domain.covered_by(shapes)
    assert covered is not None
    one_by_one = covered(nodes[of], at, np.ones(at.size, dtype=bool))
    np.testing.assert_allclose(one_by_one, all_pairs.ravel(), atol=1e-9 if kind == "box" else 0.12)
    rough = covered(nodes[of], at, np.zeros(at.size, dtype=bool))
    np.testing.assert_array_equal(rough[(rough == 0) | (rough == 1)], one_by_one[(rough == 0) | (rough == 1)])


def test_hexagons_of_the_world_are_counted_or_refused_at_once() -> None:
    pytest.importorskip("h3")
    stream = phd.PHDStream(phd.Globe(depth=8), 1.0, phd.Event(), noise=KnownNoise())
    release = stream.update(np.random.default_rng(1).normal((10, 40), 15, (500, 2)))
    assert release.to_h3(1)["value"].to_numpy().sum() == pytest.approx(500, rel=0.05)
    with pytest.raises(InputError, match="more than 20,000 cells"):
        release.to_h3(3)
