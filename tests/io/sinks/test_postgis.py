"""What is special about PostGIS: coordinate systems, domains without a plane, indexes, the view of the latest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
import shapely

import phdstream as phd
from phdstream.domains import Domain
from phdstream.io.archive import open_archive
from phdstream.io.sinks.folder import ReleaseFolder
from tests.io.sinks.places import ID, OnPostgis, all_published, apart, folder_of, follower
from tests.servers import left_out, running, start_postgres


@pytest.fixture(scope="module")
def place() -> Iterator[OnPostgis]:
    with apart() as folder:
        for server in running(start_postgres(folder)):
            found = OnPostgis(server)
            if not found.ask("SELECT 1 FROM pg_available_extensions WHERE name = 'postgis'"):
                left_out("PostGIS is not installed")
            found.ask("CREATE DATABASE bare")
            found.ask("CREATE EXTENSION postgis")
            yield found


def test_the_latest_tick_and_the_promise(place: OnPostgis, tmp_path: Path) -> None:
    archive = folder_of(tmp_path, 3)
    assert all_published(place.settings("latest"), archive)
    release = archive.release(3)
    for part, rows in (("points", len(release.sample())), ("cells", release.leaves.size)):
        assert place.ask(f"SELECT min(tick), max(tick), count(*) FROM maps.latest_{part}_latest") == [(3, 3, rows)]
    epsilon, unit, stream, metadata = place.ask(
        "SELECT epsilon, unit, stream, metadata FROM maps.latest_ticks WHERE tick = 3"
    )[0]
    assert (epsilon, unit, stream) == (1.0, release.metadata["unit"], ID)
    assert metadata == json.loads(json.dumps(release.metadata))
    folder_of(tmp_path, 4)
    assert all_published(place.settings("latest"), archive)
    assert place.ask("SELECT DISTINCT tick FROM maps.latest_points_latest") == [(4,)]


def test_indexes_are_used(place: OnPostgis, tmp_path: Path) -> None:
    assert all_published(place.settings("index"), folder_of(tmp_path, 4, points=6000))
    place.ask("ANALYZE maps.index_points; ANALYZE maps.index_cells; ANALYZE maps.index_ticks")
    small = "ST_MakeEnvelope(-74.0, 40.7, -73.999, 40.701, 4326)"
    for part in ("points", "cells"):
        plan = str(place.ask(f"EXPLAIN SELECT * FROM maps.index_{part} WHERE geom && {small}"))
        assert f"index_{part}_geom_idx" in plan
    plan = str(place.ask("SET enable_seqscan = off; EXPLAIN SELECT count(*) FROM maps.index_points_latest"))
    assert "index_points_tick_idx" in plan


TRIANGLE = shapely.Polygon([(7.0, 50.0), (7.4, 50.0), (7.2, 50.3)])
LINES = shapely.MultiLineString([[(500000, 5500000), (501000, 5500500)], [(500000, 5500500), (501000, 5500500)]])
PLANES: dict[str, tuple[Domain, int, str]] = {
    "globe": (phd.Globe(), 4326, "MULTIPOLYGON"),
    "nowhere": (phd.Box([(0, 1), (0, 1)]), 0, "MULTIPOLYGON"),
    "utm": (phd.Box([(500000, 510000), (5500000, 5510000)], crs="EPSG:25832"), 25832, "MULTIPOLYGON"),
    "region": (phd.Region(TRIANGLE, crs="EPSG:4326", depth=10), 4326, "MULTIPOLYGON"),
    "network": (phd.Network(LINES, snap=300, crs="EPSG:25832", depth=8), 25832, "MULTILINESTRING"),
    "esri": (phd.Box([(0, 1e6), (0, 1e6)], crs="ESRI:54009"), 54009, "MULTIPOLYGON"),
}


@pytest.mark.parametrize("name", PLANES)
def test_every_domain_of_a_plane(place: OnPostgis, tmp_path: Path, name: str) -> None:
    domain, srid, kind = PLANES[name]
    following = follower(place.settings(name), folder_of(tmp_path, 2, domain=domain))
    assert following.catch_up(), following.failure
    following.close()
    assert place.ask(f"SELECT DISTINCT ST_SRID(geom), GeometryType(geom) FROM maps.{name}_cells") == [(srid, kind)]
    assert place.ask(f"SELECT DISTINCT ST_SRID(geom) FROM maps.{name}_points") == [(srid,)]
    found = place.ask(f"SELECT ST_X(geom), ST_Y(geom) FROM maps.{name}_points_latest")
    np.testing.assert_array_equal(
        sorted(found), sorted(map(tuple, open_archive(tmp_path).release(2).sample().tolist()))
    )


def test_points_that_are_no_plane_are_columns(place: OnPostgis, tmp_path: Path) -> None:
    names = ["Mitte", 'Rand, "alt"', ""]
    domains: dict[str, Domain] = {
        "places": phd.Hierarchy([["A", names[0]], ["A", names[1]], ["B", "x"]]), "solid": phd.Box([(0, 1)] * 3),
        "bits": phd.Cube(4),
    }  # fmt: skip
    for name, domain in domains.items():
        stream = phd.TrackingStream(domain, epsilon=2.0, unit=phd.Event(), noise=phd.Simulation(seed=1))
        points = domain.sample(np.array([1]), np.array([200]), 5)
        with ReleaseFolder(tmp_path / name, ID, {}) as folder:
            folder.publish(release := stream.update(points))
        following = follower(place.settings(name), open_archive(tmp_path / name))
        assert following.catch_up(), following.failure
        following.close()
        columns = ", ".join(f'"{column}"' for column in domain.names)
        found = place.ask(f"SELECT {columns} FROM maps.{name}_points")
        assert sorted(found) == sorted(map(tuple, release.sample().tolist()))
        assert place.ask(f"SELECT sum(points) FROM maps.{name}_cells") == [(len(found),)]


def test_rows_have_their_attributes_beside_their_points(place: OnPostgis, tmp_path: Path) -> None:
    vehicle = phd.Category("vehicle", ["bus", 'tram, "old"'])
    rides = phd.Product(phd.Box([(6, 8), (50, 52)], crs="EPSG:4326", depth=8), vehicle, phd.TimeOfDay("hour", 4))
    stream = phd.TrackingStream(rides, epsilon=4.0, unit=phd.Event(), noise=phd.Simulation(seed=1))
    with ReleaseFolder(tmp_path, ID, {}) as folder:
        folder.publish(
            release := stream.update([(7.1, 51.2, 'tram, "old"', 17.5)] * 200 + [(6.3, 50.2, "bus", 3)] * 90)
        )
    assert all_published(place.settings("rows"), open_archive(tmp_path))
    found = place.ask("SELECT ST_X(geom), ST_Y(geom), vehicle, hour FROM maps.rows_points_latest")
    assert sorted(found) == sorted(map(tuple, release.sample()[["x", "y", "vehicle", "hour"]].tolist()))
    by_vehicle = dict(place.ask("SELECT vehicle, count(*) FROM maps.rows_points GROUP BY vehicle"))
    assert by_vehicle['tram, "old"'] > by_vehicle["bus"]
    assert place.ask("SELECT count(*) FROM maps.rows_cells") == [(release.leaves.size,)]


def test_a_database_without_postgis(place: OnPostgis, tmp_path: Path) -> None:
    from tests.io.sinks.places import one

    table = place.table("bare")
    bare = one(table | {"connection": table["connection"].replace("dbname=postgres", "dbname=bare")})
    following = follower(bare, folder_of(tmp_path, 1))
    assert not following.catch_up()
    assert "CREATE EXTENSION postgis" in following.failure


def test_a_table_of_somebody_else_is_left_alone(place: OnPostgis, tmp_path: Path) -> None:
    place.ask("CREATE SCHEMA IF NOT EXISTS maps; CREATE TABLE maps.theirs_points (a integer)")
    following = follower(place.settings("theirs"), folder_of(tmp_path, 1))
    assert not following.catch_up()
    assert 'relation "theirs_points" already exists' in following.failure
    assert place.ask("SELECT to_regclass('maps.theirs_ticks')") == [(None,)]


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_geopandas_reads_it(place: OnPostgis, tmp_path: Path) -> None:
    geopandas = pytest.importorskip("geopandas")
    assert all_published(place.settings("frames"), folder_of(tmp_path, 2))
    with psycopg.connect(place.table("frames")["connection"]) as connection:
        frame = geopandas.read_postgis("SELECT * FROM maps.frames_cells_latest", connection, geom_col="geom")
    assert frame.crs.to_epsg() == 4326
    assert frame["count"].sum() > 0
