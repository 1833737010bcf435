"""Gowalla's check-ins, on small files of their form."""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks.reproduction.checkins import gowalla, gowalla_stream

import phdstream as phd
from phdstream.errors import InputError

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
        table = pa.Table.from_batches(gowalla(write_gowalla(tmp_path, rows)))
        assert table.to_pylist() == [
            {"time": datetime(2010, 1, 4, 12), "x": 2.35, "y": 48.86, "user": 0, "location": 100},
            {"time": datetime(2010, 1, 2, 12), "x": -73.75, "y": 42.65, "user": 0, "location": 100},
        ]

    def test_unpacked(self, tmp_path: Path) -> None:
        (tmp_path / "g.txt").write_text(check_in(0, 3, PARIS))
        assert pa.Table.from_batches(gowalla(tmp_path / "g.txt")).num_rows == 1

    def test_the_papers_stream(self, tmp_path: Path) -> None:
        rows = [check_in(0, 3, PARIS), check_in(1, 1, NEW_YORK), check_in(2, 0, OCEAN), check_in(3, 40, PARIS)]
        ticks = list(gowalla_stream(write_gowalla(tmp_path, rows)).ticks())
        assert len(ticks) == 40
        assert {i: len(t.inserts) for i, t in enumerate(ticks) if len(t.inserts)} == {0: 1, 2: 1, 39: 1}
        assert ticks[0].inserts.tolist() == [[-73.75, 42.65]]
        assert not any(len(t.deletes) for t in ticks)

    def test_with_deletion_after_thirty_days(self, tmp_path: Path) -> None:
        rows = [check_in(0, 3, PARIS), check_in(1, 1, NEW_YORK), check_in(3, 40, PARIS)]
        ticks = list(gowalla_stream(write_gowalla(tmp_path, rows), deletion=True).ticks())
        deletes = {i: t.deletes.tolist() for i, t in enumerate(ticks) if len(t.deletes)}
        assert deletes == {30: [[-73.75, 42.65]], 32: [[2.35, 48.86]]}
        assert ticks[30].delete_users is not None
        assert ticks[30].delete_users.tolist() == [1]

    def test_a_stream_takes_it(self, tmp_path: Path) -> None:
        rows = [check_in(i, i % 40, PARIS) for i in range(400)]
        unit, noise = phd.User(inserts=2, deletes=2), phd.Simulation(seed=1)
        stream = phd.PHDStream(phd.Box([(-180, 180), (-90, 90)]), epsilon=50.0, unit=unit, noise=noise)
        for tick in gowalla_stream(write_gowalla(tmp_path, rows), deletion=True).ticks():
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
            list(gowalla(write_gowalla(tmp_path, [text])))

    def test_swapped_columns(self, tmp_path: Path) -> None:
        rows = [check_in(i, 1, (-120.0, 40.0)) for i in range(5)]
        with pytest.raises(InputError, match="wrong columns"):
            list(gowalla(write_gowalla(tmp_path, rows)))

    def test_cut_off(self, tmp_path: Path) -> None:
        path = write_gowalla(tmp_path, [check_in(i, i % 40, PARIS) for i in range(5000)])
        path.write_bytes(path.read_bytes()[:-500])
        with pytest.raises(InputError, match="not all of it"):
            list(gowalla(path))

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"published by SNAP.*loc-gowalla_totalCheckins"):
            gowalla(tmp_path / "nothing.txt.gz")
