"""Loaders of published data sets, on small files of their form; replaying, thinning, geometries."""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import phdstream as phd
from phdstream import data
from phdstream.data import taxi
from phdstream.errors import InputError

SHARED = Path(__file__).parents[3] / "shared" / "data"
DAY = timedelta(days=1)
PARIS, NEW_YORK, OCEAN, NOWHERE = (48.86, 2.35), (42.65, -73.75), (30.0, -40.0), (405.0, 10.0)


def check_in(user: int, day: int, place: tuple[float, float], hour: int = 12) -> str:
    time = datetime(2010, 1, 1, hour) + day * DAY
    return f"{user}\t{time.isoformat()}Z\t{place[0]}\t{place[1]}\t{user + 100}\n"


def write_gowalla(folder: Path, rows: list[str]) -> Path:
    path = folder / "loc-gowalla_totalCheckins.txt.gz"
    path.write_bytes(gzip.compress("".join(rows).encode()))
    return path


class TestGowalla:
    def test_rows(self, tmp_path: Path) -> None:
        rows = [check_in(0, 3, PARIS), check_in(0, 1, NEW_YORK), check_in(1, 2, NOWHERE)]
        table = pa.Table.from_batches(data.gowalla(write_gowalla(tmp_path, rows)))
        assert table.to_pylist() == [
            {"time": datetime(2010, 1, 4, 12), "x": 2.35, "y": 48.86, "user": 0, "location": 100},
            {"time": datetime(2010, 1, 2, 12), "x": -73.75, "y": 42.65, "user": 0, "location": 100},
        ]

    def test_unpacked(self, tmp_path: Path) -> None:
        (tmp_path / "g.txt").write_text(check_in(0, 3, PARIS))
        assert pa.Table.from_batches(data.gowalla(tmp_path / "g.txt")).num_rows == 1

    def test_the_papers_stream(self, tmp_path: Path) -> None:
        rows = [check_in(0, 3, PARIS), check_in(1, 1, NEW_YORK), check_in(2, 0, OCEAN), check_in(3, 40, PARIS)]
        ticks = list(data.gowalla_stream(write_gowalla(tmp_path, rows)).ticks())
        assert len(ticks) == 40
        assert {i: len(t.inserts) for i, t in enumerate(ticks) if len(t.inserts)} == {0: 1, 2: 1, 39: 1}
        assert ticks[0].inserts.tolist() == [[-73.75, 42.65]]
        assert not any(len(t.deletes) for t in ticks)

    def test_with_deletion_after_thirty_days(self, tmp_path: Path) -> None:
        rows = [check_in(0, 3, PARIS), check_in(1, 1, NEW_YORK), check_in(3, 40, PARIS)]
        ticks = list(data.gowalla_stream(write_gowalla(tmp_path, rows), deletion=True).ticks())
        deletes = {i: t.deletes.tolist() for i, t in enumerate(ticks) if len(t.deletes)}
        assert deletes == {30: [[-73.75, 42.65]], 32: [[2.35, 48.86]]}
        assert ticks[30].delete_users is not None
        assert ticks[30].delete_users.tolist() == [1]

    def test_a_stream_takes_it(self, tmp_path: Path) -> None:
        rows = [check_in(i, i % 40, PARIS) for i in range(400)]
        unit, noise = phd.User(inserts=2, deletes=2), phd.Simulation(seed=1)
        stream = phd.PHDStream(phd.Box([(-180, 180), (-90, 90)]), epsilon=50.0, unit=unit, noise=noise)
        for tick in data.gowalla_stream(write_gowalla(tmp_path, rows), deletion=True).ticks():
            release = stream.update(tick.inserts, tick.deletes, tick.users, tick.delete_users)
        assert release.total == pytest.approx(300, abs=30)

    @pytest.mark.parametrize(
        "text",
        [
            "user,time,lat,lon\n1,2,3,4\n",
            "0\t2010-10-19T23:55:27Z\t30.2\t-97.8\n",
            "0\tyesterday\t30.2\t-97.8\t1\n",
            "0\t2010-10-19T23:55:27Z\tnorth\t-97.8\t1\n",
            "",
        ],
    )
    def test_files_of_another_form(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(InputError, match="not SNAP's Gowalla file"):
            list(data.gowalla(write_gowalla(tmp_path, [text])))

    def test_swapped_columns(self, tmp_path: Path) -> None:
        rows = [check_in(i, 1, (-120.0, 40.0)) for i in range(5)]
        with pytest.raises(InputError, match="wrong columns"):
            list(data.gowalla(write_gowalla(tmp_path, rows)))

    def test_cut_off(self, tmp_path: Path) -> None:
        path = write_gowalla(tmp_path, [check_in(i, i % 40, PARIS) for i in range(5000)])
        path.write_bytes(path.read_bytes()[:-500])
        with pytest.raises(InputError, match="not all of it"):
            list(data.gowalla(path))

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"published by SNAP.*loc-gowalla_totalCheckins"):
            data.gowalla(tmp_path / "nothing.txt.gz")


HEADERS = {
    "2009": "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Start_Lon,Start_Lat,End_Lon,End_Lat,Total_Amt\n",
    "2013": "vendor_id, pickup_datetime, dropoff_datetime, pickup_longitude, pickup_latitude, dropoff_longitude, "
    "dropoff_latitude, total_amount\n\n",
    "2015": "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,pickup_longitude,pickup_latitude,dropoff_longitude,"
    "dropoff_latitude,total_amount\n",
}
TRIP = "CMT,2013-01-01 15:11:48,2013-01-01 15:18:10,-73.978165,40.757977,-73.989838,40.751171,7.0\n"


def trip(time: str, x: float = -73.98, y: float = 40.75) -> str:
    return f"CMT,{time},2013-02-01 15:18:10,{x},{y},0,0,7.0\n"


class TestTaxi:
    @pytest.mark.parametrize("year", HEADERS)
    @pytest.mark.parametrize("tail", ["", ",,"])
    def test_headers_over_the_years(self, tmp_path: Path, year: str, tail: str) -> None:
        path = tmp_path / "yellow_tripdata.csv"
        path.write_text(HEADERS[year] + TRIP.replace("\n", tail + "\r\n") * 2)
        assert (
            pa.Table.from_batches(data.yellow_taxi(path)).to_pylist()
            == [
                {
                    "time": datetime(2013, 1, 1, 15, 11, 48),
                    "x": -73.978165,
                    "y": 40.757977,
                    "dropoff_time": datetime(2013, 1, 1, 15, 18, 10),
                    "dropoff_x": -73.989838,
                    "dropoff_y": 40.751171,
                }
            ]
            * 2
        )

    def test_parquet_in_batches(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(taxi, "_BATCH_ROWS", 3)
        time = pa.array([datetime(2013, 1, 1)] * 10, pa.timestamp("ns"))
        columns: dict[str, Any] = {"tpep_pickup_datetime": time, "tpep_dropoff_datetime": time}
        for end in ("pickup", "dropoff"):
            columns |= {f"{end}_longitude": [-73.9] * 10, f"{end}_latitude": [40.7] * 10}
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        assert [batch.num_rows for batch in data.yellow_taxi(tmp_path / "a.parquet")] == [3, 3, 3, 1]

    def test_the_papers_stream(self, tmp_path: Path) -> None:
        rows = [trip("2012-12-31 23:59:59"), trip("2013-01-01 05:59:59"), trip("2013-01-01 06:00:00")]
        rows += [trip("2013-01-31 23:59:59"), trip("2013-02-01 00:00:00"), trip("2013-01-05 00:00:00", 0, 0)]
        rows += [trip("2013-01-05 00:00:00", -74.3, 40.3)]  # in New Jersey
        (tmp_path / "a.csv").write_text(HEADERS["2013"] + "".join(rows))
        ticks = list(data.yellow_taxi_stream(tmp_path / "a.csv").ticks())
        assert len(ticks) == 31 * 4
        assert [i for i, t in enumerate(ticks) for _ in t.inserts] == [0, 1, 123]

    def test_zones_instead_of_coordinates(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID\n1,2,3,4\n")
        with pytest.raises(InputError, match="taxi zones"):
            list(data.yellow_taxi(tmp_path / "a.csv"))

    def test_bad_files(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="Taxi and Limousine Commission"):
            data.yellow_taxi(tmp_path / "nothing.csv")
        (tmp_path / "a.csv").write_text("a,b\n1,2\n")
        with pytest.raises(InputError, match="no column for pickup_datetime"):
            list(data.yellow_taxi(tmp_path / "a.csv"))
        (tmp_path / "b.csv").write_text(HEADERS["2015"] + TRIP + "CMT,2013\n")
        with pytest.raises(InputError, match="not a whole file"):
            list(data.yellow_taxi(tmp_path / "b.csv"))
        (tmp_path / "c.csv").write_text(HEADERS["2015"] + trip("2013-01-01 05:59:59", 40.75, -73.98))
        with pytest.raises(InputError, match="swapped"):
            list(data.yellow_taxi(tmp_path / "c.csv"))
        (tmp_path / "d.parquet").write_bytes(b"PAR1")
        with pytest.raises(InputError, match="not a whole file"):
            list(data.yellow_taxi(tmp_path / "d.parquet"))
        (tmp_path / "e.csv").touch()
        with pytest.raises(InputError, match="no column"):
            list(data.yellow_taxi(tmp_path / "e.csv"))


def events(number: int, days: int = 10) -> pa.Table:
    rng = np.random.default_rng(0)
    start = np.datetime64("2020-01-01", "us")
    time = start + (rng.random(number) ** 2 * days * 86_400_000_000).astype("timedelta64[us]")
    return pa.table({"time": time, "x": rng.random(number), "y": rng.random(number), "user": np.arange(number)})


class TestReplay:
    def test_every_event_comes_once_in_its_tick(self) -> None:
        table = events(1000)
        ticks = list(data.replay(table, timedelta(hours=6), end=datetime(2020, 1, 11)).ticks())
        expected = (table["time"].to_numpy() - np.datetime64("2020-01-01")) // np.timedelta64(6, "h")
        assert [len(t.inserts) for t in ticks] == np.bincount(expected, minlength=40).tolist()
        users = np.concatenate([t.users for t in ticks if t.users is not None])
        assert sorted(users.tolist()) == list(range(1000))
        points = np.concatenate([t.inserts for t in ticks])
        assert points.tolist() == np.column_stack([table["x"], table["y"]])[users].tolist()

    def test_what_expires_was_there_and_goes_in_order(self) -> None:
        came: list[int] = []
        gone: list[int] = []
        for tick in data.replay(events(500), DAY, lifetime=3 * DAY).ticks():
            assert tick.users is not None
            assert tick.delete_users is not None
            gone += tick.delete_users.tolist()
            assert gone == came[: len(gone)]
            came += tick.users.tolist()
        assert 0 < len(gone) < len(came) == 500

    def test_bad_arguments(self) -> None:
        with pytest.raises(InputError, match="no events"):
            data.replay(iter([]), DAY)
        with pytest.raises(InputError, match="longer than nothing"):
            data.replay(events(5), 0 * DAY)
        with pytest.raises(InputError, match="longer than nothing"):
            data.replay(events(5), DAY, start=datetime(2030, 1, 1))

    def test_restricting(self) -> None:
        square = shapely.box(0.2, 0.2, 0.6, 0.6)
        inside = pa.Table.from_batches(data.inside(events(1000), square))
        assert 100 < inside.num_rows < 220
        assert 0.2 <= min(inside["x"].to_pylist()) <= max(inside["x"].to_pylist()) <= 0.6
        days = pa.Table.from_batches(data.between(events(1000), datetime(2020, 1, 2), datetime(2020, 1, 3)))
        assert {time.day for time in days["time"].to_pylist()} == {2}


class TestSubsample:
    def test_the_number_asked_for_whatever_the_batches(self) -> None:
        table = events(10_000)
        first = data.subsample(table, 500, seed=4)
        second = data.subsample(table.to_batches(max_chunksize=77), 500, seed=4)
        assert first.num_rows == 500
        assert len(set(first["user"].to_pylist())) == 500
        assert first.to_pydict() == second.to_pydict()
        assert data.subsample(table, 500, seed=5).to_pydict() != first.to_pydict()
        assert data.subsample(table, 20_000).num_rows == 10_000

    def test_each_time_keeps_its_share(self) -> None:
        table = events(50_000)
        whole, part = (
            np.bincount((t["time"].to_numpy() - np.datetime64("2020-01-01")) // np.timedelta64(1, "D"), minlength=10)
            for t in (table, data.subsample(table, 5_000))
        )
        assert part == pytest.approx(whole / 10, abs=5 * np.sqrt(whole.max() / 10))

    def test_bad_arguments(self) -> None:
        with pytest.raises(InputError):
            data.subsample(events(10), 0)


class TestEventsTable:
    def test_csv_and_parquet(self, tmp_path: Path) -> None:
        table = pa.table({"when": [datetime(2020, 1, 1, 9)], "lat": [40], "lon": [-73.5], "who": ["u"]})
        pq.write_table(table, tmp_path / "a.parquet")
        (tmp_path / "a.csv").write_text("when,lat,lon,who\n2020-01-01 09:00:00,40,-73.5,u\n")
        for name in ("a.parquet", "a.csv"):
            got = data.events_table(tmp_path / name, time="when", x="lon", y="lat", user="who")
            assert got.to_pylist() == [{"time": datetime(2020, 1, 1, 9), "x": -73.5, "y": 40.0, "user": "u"}]
            (tick,) = data.replay(got, DAY).ticks()
            assert tick.users is not None
            assert tick.users.tolist() == ["u"]

    def test_bad_files(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("time,x,y\n2020-01-01,1,2\n,1,2\n")
        with pytest.raises(InputError, match="there is no file"):
            data.events_table(tmp_path / "nothing.csv")
        with pytest.raises(InputError, match="no column 'lon'"):
            data.events_table(tmp_path / "a.csv", x="lon")
        with pytest.raises(InputError, match="must hold a time"):
            data.events_table(tmp_path / "a.csv")
        (tmp_path / "b.csv").write_text("time,x,y\n2020-01-01 10:00:00,east,2\n")
        with pytest.raises(InputError, match="not numbers"):
            data.events_table(tmp_path / "b.csv")
        (tmp_path / "c.parquet").write_bytes(b"PAR1")
        with pytest.raises(InputError, match="cannot be read"):
            data.events_table(tmp_path / "c.parquet")

    @pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
    def test_the_stand_ins(self) -> None:
        gowalla = data.events_table(SHARED / "gowalla_union.parquet", x="lon", y="lat", user="user")
        assert gowalla.num_rows == 371_532
        on_land = data.subsample(data.inside(gowalla, data.land()), 20_000)
        stream = data.replay(on_land, DAY, lifetime=30 * DAY)
        assert stream.count > 500
        assert sum(len(tick.inserts) for tick in stream.ticks()) == 20_000
        uber = data.events_table(SHARED / "uber_apr2014_full.parquet", x="lon", y="lat")
        assert data.replay(uber, timedelta(hours=6)).count == 120


def radius(points: np.ndarray) -> np.ndarray:
    return np.hypot(points[:, 0] - 0.5, points[:, 1] - 0.5)


class TestGrowingCircles:
    def test_both_circles_grow_alike(self) -> None:
        ticks = list(data.growing_circles(points=10_000, ticks=10, seed=1))
        assert [len(t.inserts) for t in ticks] == [1000] * 10
        assert not any(len(t.deletes) for t in ticks)
        for tick in ticks:
            outer = radius(tick.inserts) > 0.35
            assert outer.mean() == pytest.approx(0.5, abs=0.1)
            assert np.median(radius(tick.inserts)[outer]) == pytest.approx(0.42, abs=0.01)
            assert np.median(radius(tick.inserts)[~outer]) == pytest.approx(0.28, abs=0.01)

    @pytest.mark.parametrize("arguments", [{"points": 0}, {"ticks": 0}, {"ticks": 1.5}])
    def test_bad_arguments(self, arguments: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            list(data.growing_circles(**arguments))

    @pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
    def test_they_look_like_the_authors_own(self) -> None:
        theirs = pq.read_table(SHARED / "peer_circles.parquet")
        both = [np.column_stack([theirs["x"], theirs["y"]])]
        both.append(np.concatenate([t.inserts for t in data.growing_circles()]))
        theirs_r, ours_r = (np.quantile(radius(points), np.linspace(0.02, 0.98, 25)) for points in both)
        assert ours_r == pytest.approx(theirs_r, abs=0.02)


class TestGeometries:
    @pytest.mark.parametrize("shape", [data.land(), data.new_york_state()])
    def test_they_are_sound(self, shape: Any) -> None:
        assert shape.geom_type == "MultiPolygon"
        assert shape.is_valid

    def test_where_they_are(self) -> None:
        assert data.land().contains(shapely.Point(2.35, 48.86))
        assert not data.land().intersects(shapely.Point(0, -85))
        assert data.new_york_state().contains(shapely.Point(-73.98, 40.75))
        assert not data.new_york_state().contains(shapely.Point(-74.3, 40.3))

    @pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
    def test_they_are_the_originals(self) -> None:
        names = {
            "land_naturalearth_lowres_without_antarctica": data.land(),
            "new_york_state_500k": data.new_york_state(),
        }
        for name, shape in names.items():
            (original,) = shapely.get_parts(shapely.from_geojson((SHARED / "geometry" / f"{name}.geojson").read_text()))
            assert shapely.equals_exact(original, shape)

    def test_domains_take_them(self) -> None:
        state = phd.Region(data.new_york_state(), crs="EPSG:4326", depth=8)
        _, inside = state.encode(np.array([[-73.98, 40.75], [-74.3, 40.3]]))
        assert inside.tolist() == [True, False]
