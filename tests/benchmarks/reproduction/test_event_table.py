"""Tables of timed points: read, restricted, thinned, replayed."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from benchmarks.reproduction.event_table import between, inside, replay, subsample
from benchmarks.reproduction.tables import events_table

from phdstream.domains.outlines import land
from phdstream.errors import InputError
from phdstream.evaluation import read_experiment
from phdstream.evaluation.setting import load_setting
from tests.evaluation.experiments import OWN, write_events

SHARED = Path(__file__).parents[4] / "shared" / "data"
DAY = timedelta(days=1)


def events(number: int, days: int = 10) -> pa.Table:
    rng = np.random.default_rng(0)
    start = np.datetime64("2020-01-01", "us")
    time = start + (rng.random(number) ** 2 * days * 86_400_000_000).astype("timedelta64[us]")
    return pa.table({"time": time, "x": rng.random(number), "y": rng.random(number), "user": np.arange(number)})


class TestReplay:
    def test_every_event_comes_once_in_its_tick(self) -> None:
        table = events(1000)
        ticks = list(replay(table, timedelta(hours=6), end=datetime(2020, 1, 11)).ticks())
        expected = (table["time"].to_numpy() - np.datetime64("2020-01-01")) // np.timedelta64(6, "h")
        assert [len(t.inserts) for t in ticks] == np.bincount(expected, minlength=40).tolist()
        users = np.concatenate([t.users for t in ticks if t.users is not None])
        assert sorted(users.tolist()) == list(range(1000))
        points = np.concatenate([t.inserts for t in ticks])
        assert points.tolist() == np.column_stack([table["x"], table["y"]])[users].tolist()

    def test_what_expires_was_there_and_goes_in_order(self) -> None:
        came: list[int] = []
        gone: list[int] = []
        for tick in replay(events(500), DAY, lifetime=3 * DAY).ticks():
            assert tick.users is not None
            assert tick.delete_users is not None
            gone += tick.delete_users.tolist()
            assert gone == came[: len(gone)]
            came += tick.users.tolist()
        assert 0 < len(gone) < len(came) == 500

    def test_bad_arguments(self) -> None:
        with pytest.raises(InputError, match="no events"):
            replay(iter([]), DAY)
        with pytest.raises(InputError, match="longer than nothing"):
            replay(events(5), 0 * DAY)
        with pytest.raises(InputError, match="longer than nothing"):
            replay(events(5), DAY, start=datetime(2030, 1, 1))

    def test_restricting(self) -> None:
        square = shapely.box(0.2, 0.2, 0.6, 0.6)
        kept = pa.Table.from_batches(inside(events(1000), square))
        assert 100 < kept.num_rows < 220
        assert 0.2 <= min(kept["x"].to_pylist()) <= max(kept["x"].to_pylist()) <= 0.6
        days = pa.Table.from_batches(between(events(1000), datetime(2020, 1, 2), datetime(2020, 1, 3)))
        assert {time.day for time in days["time"].to_pylist()} == {2}


class TestSubsample:
    def test_the_number_asked_for_whatever_the_batches(self) -> None:
        table = events(10_000)
        first = subsample(table, 500, seed=4)
        second = subsample(table.to_batches(max_chunksize=77), 500, seed=4)
        assert first.num_rows == 500
        assert len(set(first["user"].to_pylist())) == 500
        assert first.to_pydict() == second.to_pydict()
        assert subsample(table, 500, seed=5).to_pydict() != first.to_pydict()
        assert subsample(table, 20_000).num_rows == 10_000

    def test_each_time_keeps_its_share(self) -> None:
        table = events(50_000)
        whole, part = (
            np.bincount((t["time"].to_numpy() - np.datetime64("2020-01-01")) // np.timedelta64(1, "D"), minlength=10)
            for t in (table, subsample(table, 5_000))
        )
        assert part == pytest.approx(whole / 10, abs=5 * np.sqrt(whole.max() / 10))

    def test_bad_arguments(self) -> None:
        with pytest.raises(InputError):
            subsample(events(10), 0)


class TestEventsTable:
    def test_csv_and_parquet(self, tmp_path: Path) -> None:
        table = pa.table({"when": [datetime(2020, 1, 1, 9)], "lat": [40], "lon": [-73.5], "who": ["u"]})
        pq.write_table(table, tmp_path / "a.parquet")
        (tmp_path / "a.csv").write_text("when,lat,lon,who\n2020-01-01 09:00:00,40,-73.5,u\n")
        for name in ("a.parquet", "a.csv"):
            got = events_table(tmp_path / name, time="when", x="lon", y="lat", user="who")
            assert got.to_pylist() == [{"time": datetime(2020, 1, 1, 9), "x": -73.5, "y": 40.0, "user": "u"}]
            (tick,) = replay(got, DAY).ticks()
            assert tick.users is not None
            assert tick.users.tolist() == ["u"]

    def test_bad_files(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("time,x,y\n2020-01-01,1,2\n,1,2\n")
        with pytest.raises(InputError, match="there is no file"):
            events_table(tmp_path / "nothing.csv")
        with pytest.raises(InputError, match="no column 'lon'"):
            events_table(tmp_path / "a.csv", x="lon")
        with pytest.raises(InputError, match="must hold a time"):
            events_table(tmp_path / "a.csv")
        (tmp_path / "b.csv").write_text("time,x,y\n2020-01-01 10:00:00,east,2\n")
        with pytest.raises(InputError, match="not numbers"):
            events_table(tmp_path / "b.csv")
        (tmp_path / "c.parquet").write_bytes(b"PAR1")
        with pytest.raises(InputError, match="cannot be read"):
            events_table(tmp_path / "c.parquet")

    @pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
    def test_the_stand_ins(self) -> None:
        gowalla = events_table(SHARED / "gowalla_union.parquet", x="lon", y="lat", user="user")
        assert gowalla.num_rows == 371_532
        on_land = subsample(inside(gowalla, land()), 20_000)
        stream = replay(on_land, DAY, lifetime=30 * DAY)
        assert stream.count > 500
        assert sum(len(tick.inserts) for tick in stream.ticks()) == 20_000
        uber = events_table(SHARED / "uber_apr2014_full.parquet", x="lon", y="lat")
        assert replay(uber, timedelta(hours=6)).count == 120


def rows(points: np.ndarray) -> Counter[tuple[float, ...]]:
    return Counter(map(tuple, points.tolist()))


def test_an_experiment_deletes_what_is_replayed_as_deleted(tmp_path: Path) -> None:
    """Against `replay`, which deletes by slices of sorted times."""
    path = write_events(tmp_path / "events.parquet")
    spec = OWN | {"data": OWN["data"] | {"lifetime": "7d"}}
    truth = load_setting(read_experiment(spec, tmp_path)).truth
    stream = replay(events_table(path, x="lon", y="lat"), timedelta(days=1), lifetime=timedelta(days=7))
    live: Counter[tuple[float, ...]] = Counter()
    for moment, tick in zip(truth.moments(1, 1), stream.ticks(), strict=True):
        live = live + rows(tick.inserts) - rows(tick.deletes)
        assert moment.live is not None
        assert rows(moment.live) == live
    assert sum(live.values()) == 7 * 30
