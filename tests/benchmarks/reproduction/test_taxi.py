"""Yellow taxis, on small files in the forms of several years."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.reproduction.taxi import yellow_taxi, yellow_taxi_stream

from benchmarks.reproduction import taxi
from phdstream.errors import InputError

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
            pa.Table.from_batches(yellow_taxi(path)).to_pylist()
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
        assert [batch.num_rows for batch in yellow_taxi(tmp_path / "a.parquet")] == [3, 3, 3, 1]

    def test_the_papers_stream(self, tmp_path: Path) -> None:
        rows = [trip("2012-12-31 23:59:59"), trip("2013-01-01 05:59:59"), trip("2013-01-01 06:00:00")]
        rows += [trip("2013-01-31 23:59:59"), trip("2013-02-01 00:00:00"), trip("2013-01-05 00:00:00", 0, 0)]
        rows += [trip("2013-01-05 00:00:00", -74.3, 40.3)]  # in New Jersey
        (tmp_path / "a.csv").write_text(HEADERS["2013"] + "".join(rows))
        ticks = list(yellow_taxi_stream(tmp_path / "a.csv").ticks())
        assert len(ticks) == 31 * 4
        assert [i for i, t in enumerate(ticks) for _ in t.inserts] == [0, 1, 123]

    def test_zones_instead_of_coordinates(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID\n1,2,3,4\n")
        with pytest.raises(InputError, match="taxi zones"):
            list(yellow_taxi(tmp_path / "a.csv"))

    def test_bad_files(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="Taxi and Limousine Commission"):
            yellow_taxi(tmp_path / "nothing.csv")
        (tmp_path / "a.csv").write_text("a,b\n1,2\n")
        with pytest.raises(InputError, match="no column for pickup_datetime"):
            list(yellow_taxi(tmp_path / "a.csv"))
        (tmp_path / "b.csv").write_text(HEADERS["2015"] + TRIP + "CMT,2013\n")
        with pytest.raises(InputError, match="not a whole file"):
            list(yellow_taxi(tmp_path / "b.csv"))
        (tmp_path / "c.csv").write_text(HEADERS["2015"] + trip("2013-01-01 05:59:59", 40.75, -73.98))
        with pytest.raises(InputError, match="swapped"):
            list(yellow_taxi(tmp_path / "c.csv"))
        (tmp_path / "d.parquet").write_bytes(b"PAR1")
        with pytest.raises(InputError, match="not a whole file"):
            list(yellow_taxi(tmp_path / "d.parquet"))
        (tmp_path / "e.csv").touch()
        with pytest.raises(InputError, match="no column"):
            list(yellow_taxi(tmp_path / "e.csv"))
