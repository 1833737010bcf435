"""Files of geometries from anywhere: read if they are what their names say, refused with a word otherwise."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains.network import Network
from phdstream.domains.shapes.geometries import read_geometries, read_layer
from phdstream.errors import InputError

geopandas = pytest.importorskip("geopandas")
SHARED = Path(__file__).parents[4] / "shared" / "data" / "geometry"
SQUARES = [shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 4)]
LAYER = '<OGRVRTLayer name="x"><SrcDataSource>{source}</SrcDataSource></OGRVRTLayer>'
VRT = f"<OGRVRTDataSource>{LAYER}</OGRVRTDataSource>"


def reaching_to(x: str) -> Any:
    with np.errstate(invalid="ignore"):
        return shapely.from_wkt(f"POLYGON ((0 0, {x} 1, 1 0, 0 0))")


@pytest.fixture
def frame() -> Any:
    return geopandas.GeoDataFrame({"name": ["a", "b"]}, geometry=SQUARES, crs="EPSG:2263")


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "json", "shp", "fgb", "parquet", "pq", "geoparquet", "GPKG"])
def test_every_kind_of_file_gives_the_same_polygons(tmp_path: Path, frame: Any, ending: str) -> None:
    path = tmp_path / f"squares.{ending}"
    if ending in ("parquet", "pq", "geoparquet"):
        frame.to_parquet(path)
    else:
        frame.to_file(path, driver={"json": "GeoJSON", "GPKG": "GPKG"}.get(ending))
    for read in (read_geometries, read_layer):
        shapes, crs = read(path)
        assert crs == "EPSG:2263"
        assert shapely.equals(sorted(shapes, key=shapely.area), SQUARES).all()
    assert phd.Region(path, depth=6).crs == "EPSG:2263"


@pytest.mark.skipif(not SHARED.exists(), reason="no shared data")
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.geojson")), ids=lambda path: path.stem)
def test_geojson_is_read_as_gdal_reads_it(path: Path) -> None:
    shapes, crs = read_geometries(path)
    frame = geopandas.read_file(path)
    assert str(frame.crs) == crs or str(frame.crs.to_authority()) == str(tuple((crs or "").split(":")))
    assert shapely.equals_exact(shapes, frame.geometry.to_numpy()).all()


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "json", "shp", "fgb", "parquet", "vrt", "txt", "xml"])
def test_a_virtual_source_is_refused_without_gdal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame: Any, ending: str
) -> None:
    """GDAL would open the file that it names, or fetch the address."""
    secret = tmp_path / "secret.gpkg"
    frame.to_file(secret)

    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("GDAL was asked")

    for name in ("read_file", "read_parquet"):
        monkeypatch.setattr(geopandas, name, opened)
    monkeypatch.setattr("pyogrio.list_layers", opened)
    for source in (str(secret), "/vsicurl/http://localhost:1/x.gpkg"):
        path = tmp_path / f"zones.{ending}"
        path.write_text(VRT.format(source=source))
        for read in (phd.Region, lambda at: Network(at, snap=1.0), read_layer):
            with pytest.raises(InputError):
                read(path)


def test_a_database_that_is_no_geopackage_is_refused(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "zones.gpkg"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE x (y)")
    with pytest.raises(InputError, match="not what its name says"):
        read_layer(path)


@pytest.mark.parametrize(
    "path",
    ["/vsicurl/http://localhost/x.gpkg", "http://localhost/x.geojson", "/vsizip/x.zip/x.shp", "nowhere.gpkg",
     "a\0b.gpkg", "/dev/zero.gpkg", "x.zip", "", "GPKG:/etc/passwd", "x" * 5000 + ".gpkg", "\ud800.geojson"],
)  # fmt: skip
def test_only_files_are_files(path: str) -> None:
    with pytest.raises(InputError):
        read_geometries(path)


def test_folders_and_pipes_are_not_files(tmp_path: Path) -> None:
    (tmp_path / "folder.gpkg").mkdir()
    os.mkfifo(tmp_path / "pipe.geojson")
    for name in ("folder.gpkg", "pipe.geojson"):
        with pytest.raises(InputError, match="not a regular file"):
            read_geometries(tmp_path / name)


def feature(geometry: Any) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": geometry}]}


RING = [[0, 0], [1, 0], [1, 1], [0, 0]]
NO_SYSTEMS = [3, {"properties": {"name": "EPSG:1"}}, {"type": "link", "properties": {"href": "http://localhost"}}]


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "null", "3", "[]", '"text"', "{}", '{"type": 3}', '{"type": "Topology"}', "[" * 100_000,
        '{"type":"Polygon","coordinates":' + "[" * 900 + "]" * 900 + "}", '{"a":' * 5000 + "1" + "}" * 5000,
        '{"type": "FeatureCollection"}', '{"type": "FeatureCollection", "features": {}}',
        '{"type": "FeatureCollection", "features": [3]}', '{"type": "FeatureCollection", "features": []}',
        json.dumps(feature(None)), json.dumps(feature(3)), json.dumps(feature("x")), json.dumps(feature([])),
        json.dumps(feature({"type": "Polygon"})), json.dumps(feature({"type": "Polygon", "coordinates": None})),
        json.dumps(feature({"type": "Polygon", "coordinates": [[["a", "b"]]]})),
        json.dumps(feature({"type": "Polygon", "coordinates": [[[0], [1], [2], [0]]]})),
        json.dumps(feature({"type": "Polygon", "coordinates": [RING[:2]]})),
        json.dumps(feature({"type": "Polygon", "coordinates": {"x": 1}})),
        json.dumps(feature({"type": "Point", "coordinates": [1, 1]})),
        json.dumps(feature({"type": "Polygon", "coordinates": [[[0, 0], [float("nan"), 0], [1, 1], [0, 0]]]})),
        '{"type": "Polygon", "coordinates": [[[0, 0], [1e999, 0], [1, 1], [0, 0]]]}',
        '{"type": "Polygon", "coordinates": [[[0, 0], [' + "9" * 5000 + ", 0], [1, 1], [0, 0]]]}",
        *(json.dumps({"type": "Polygon", "coordinates": [RING], "crs": crs}) for crs in NO_SYSTEMS),
        '{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]], "x": "\\ud800"} trailing',
    ],
)  # fmt: skip
def test_what_is_no_geojson_of_polygons_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "zones.geojson"
    path.write_text(content)
    with pytest.raises(InputError):
        phd.Region(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "zones.geojson"
    path.write_bytes(b'{"type": "Polygon", "name": "\xff\xfe", "coordinates": []}')
    with pytest.raises(InputError):
        read_geometries(path)


def test_geojson_of_every_form(tmp_path: Path) -> None:
    path, polygon = tmp_path / "zones.geojson", {"type": "Polygon", "coordinates": [RING]}
    for content in (polygon, {"type": "Feature", "geometry": polygon}, feature(polygon)):
        path.write_text("\ufeff" + json.dumps(content))
        shapes, crs = read_geometries(path)
        assert (len(shapes), shapes[0].area, crs) == (1, 0.5, "EPSG:4326")
    path.write_text(json.dumps(polygon | {"crs": None}))
    assert read_geometries(path)[1] is None
    path.write_text(json.dumps(polygon | {"crs": {"properties": {"name": "urn:ogc:def:crs:EPSG::2263"}}}))
    assert read_geometries(path)[1] == "EPSG:2263"


@pytest.mark.parametrize(
    "polygons",
    [
        shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]),
        reaching_to("nan"),
        reaching_to("inf"),
        shapely.Polygon([(0, 0), (1, 0), (2, 0)]),
        shapely.Point(1, 1),
        shapely.Polygon(),
        [shapely.box(0, 0, 1, 1), None],
        [shapely.box(0, 0, 1, 1), shapely.LineString([(0, 0), (1, 1)])],
    ],
)
def test_regions_and_networks_refuse_hostile_geometry(polygons: Any) -> None:
    with pytest.raises(InputError):
        phd.Region(polygons)
    with pytest.raises(InputError):
        Network(polygons, snap=1)


@pytest.mark.parametrize("text", ["zz", "00", "0103", "0" * 31])
def test_binaries_that_are_none(text: str) -> None:
    for kind, key, others in (("region", "polygons", {}), ("network", "lines", {"snap": 1.0})):
        with pytest.raises(InputError):
            phd.domains.domain_from_dict({"type": kind, key: text, **others})
