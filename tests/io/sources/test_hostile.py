"""Files made to harm: none crashes, hangs, fetches, reads another file or shows a private record."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from phdstream.errors import InputError
from phdstream.io.sources import apart
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import read_events
from phdstream.io.sources.reading import Reading

PLACE = Columns(("lon", "lat"))
VRT = (
    '<OGRVRTDataSource><OGRVRTLayer name="x"><SrcDataSource>{0}</SrcDataSource>'
    '<GeometryField encoding="PointFromColumns" x="lon" y="lat"/></OGRVRTLayer></OGRVRTDataSource>'
)


def count(path: Path, columns: Columns = PLACE, **reading: Any) -> int:
    return sum(map(len, read_events([path], columns, Reading(**reading))))


@pytest.fixture
def listener() -> Any:
    """A server on loopback that only notes who comes."""
    hits: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)

        def wait() -> None:
            try:
                while True:
                    connection, address = server.accept()
                    hits.append(address)
                    connection.close()
            except OSError:
                pass

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        yield server.getsockname()[1], hits


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.gpkg", "a.shp", "a.geojson", "a.csv", "a.parquet", "a.ndjson"])
@pytest.mark.parametrize("what", ["network", "another file"])
def test_a_file_that_names_another(tmp_path: Path, listener: Any, name: str, what: str) -> None:
    port, hits = listener
    (tmp_path / "secret.csv").write_text("lon,lat\n1,2\n")
    source = f"/vsicurl/http://127.0.0.1:{port}/x.csv" if what == "network" else str(tmp_path / "secret.csv")
    (tmp_path / name).write_text(VRT.format(source))
    with pytest.raises(InputError):
        count(tmp_path / name)
    assert hits == []


def test_a_geopackage_with_a_virtual_table(tmp_path: Path, listener: Any) -> None:
    """Its header is right; what it names inside is still not followed."""
    port, hits = listener
    with sqlite3.connect(tmp_path / "a.gpkg") as database:
        database.execute("PRAGMA application_id = 0x47504B47")
        database.execute("CREATE TABLE gpkg_contents (table_name TEXT, data_type TEXT)")
        database.execute("INSERT INTO gpkg_contents VALUES ('x', 'features')")
        database.execute("PRAGMA writable_schema = 1")
        sql = f"CREATE VIRTUAL TABLE x USING VirtualOGR('/vsicurl/http://127.0.0.1:{port}/x.csv')"
        database.execute("INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, ?)", (sql,))
    database.close()
    with pytest.raises(InputError):
        count(tmp_path / "a.gpkg")
    assert hits == []


def test_damaged_parquet_never_takes_the_process_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "PATIENCE", 5.0)
    rng = np.random.default_rng(1)
    path = tmp_path / "a.parquet"
    times = np.datetime64("2024-01-01", "us") + np.arange(2000)
    table = pa.table({"time": times, "lon": rng.random(2000), "lat": rng.random(2000), "who": ["x"] * 2000})
    pq.write_table(table, path, row_group_size=300)
    whole = path.read_bytes()
    columns = Columns(("lon", "lat"), time="time", user="who")
    outcomes, named = {"read": 0, "refused": 0}, set()
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(4, len(content) - 4, 3):
            content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        try:
            count(path, columns, drop_bad=True)
            outcomes["read"] += 1
        except InputError as error:
            outcomes["refused"] += 1
            named.add(str(path) in str(error))
    assert min(outcomes.values()) > 0
    assert named == {True}


@pytest.mark.slow
def test_a_reader_that_dies_or_hangs_is_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("lon,lat\n" + "1,2\n" * 400_000)
    batches = read_events([path], PLACE, Reading())
    next(batches)
    reader = apart._Reader._current
    assert reader is not None
    reader._process.send_signal(signal.SIGKILL)
    with pytest.raises(InputError, match="damaged: reading it crashed, hung"):
        list(batches)
    assert count(path) == 400_000  # another process serves the next

    batches = read_events([path], PLACE, Reading())
    next(batches)
    reader = apart._Reader._current
    assert reader is not None
    reader._process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(apart, "PATIENCE", 0.5)  # only now: a busy machine may take longer to begin
    with pytest.raises(InputError, match="damaged: reading it crashed, hung"):
        list(batches)


@pytest.mark.slow
def test_a_reader_left_in_the_middle_does_not_confuse_the_next(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("lon,lat\n" + "1,2\n" * 400_000)
    (tmp_path / "b.csv").write_text("lon,lat\n" + "3,4\n" * 5)
    first: Any = read_events([tmp_path / "a.csv"], PLACE, Reading())
    next(first)
    assert [e.points.tolist() for e in read_events([tmp_path / "b.csv"], PLACE, Reading())] == [[[3.0, 4.0]] * 5]
    assert sum(map(len, first)) + 0 > 0
    first.close()
    assert count(tmp_path / "b.csv") == 5


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"lon,lat\n" + b"1," * (1 << 22) + b"\n3,4\n"),
        ("a.csv", b"lon,lat\n" + b"9" * (1 << 24) + b",2\n3,4\n"),
        ("a.csv", b"lon,lat\n" + b'"' * 100_001 + b"\n3,4\n"),
        ("a.ndjson", b'{"lon": ' + b"[" * (1 << 22) + b"\n" + b'{"lon": 3, "lat": 4}\n'),
        ("a.ndjson", b'{"lon": 1, "lat": 2, "x": "' + b"y" * (1 << 23) + b'"}\n{"lon": 3, "lat": 4}\n'),
        ("a.ndjson", b'{"lon": "\\ud800", "lat": 2}\n\xff\xfe\n{"lon": 3, "lat": 4}\n'),
    ],
)
def test_endless_lines_cost_only_themselves(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    parts = list(read_events([tmp_path / name], PLACE, Reading(drop_bad=True)))
    assert [point for part in parts for point in part.points.tolist()] == [[3.0, 4.0]]
    assert sum(sum(part.bad.values()) for part in parts) >= 1


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ' * 100_000, '{"features": [' + "[" * 3_000_000, "\ud800"])
def test_geojson_of_endless_depth(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.geojson").write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match="not a whole GeoJSON"):
        count(tmp_path / "a.geojson")


def test_no_core_file_and_little_memory() -> None:
    """The process that reads may not leave what it read behind, nor take all memory."""
    list(read_events([pa.table({"lon": [1.0], "lat": [2.0]})], PLACE, Reading()))
    reader = apart._Reader.at_hand()
    limits = Path(f"/proc/{reader._process.pid}/limits")
    if not limits.exists():
        pytest.skip("no /proc here")
    reader.ask({"path": os.devnull, "columns": {"coordinates": ["x"]}, "reading": {}, "rows": 1})
    with pytest.raises(InputError):
        list(reader.answers(Path(os.devnull), []))
    text = limits.read_text()
    core = next(line for line in text.splitlines() if line.startswith("Max core file size"))
    data = next(line for line in text.splitlines() if line.startswith("Max data size"))
    assert core.split()[4] == "0"
    assert int(data.split()[3]) == apart.MEMORY


def test_a_geopackage_whose_own_count_is_wrong(tmp_path: Path) -> None:
    """GDAL's quick way of reading gives some rows twice where others were deleted behind its back."""
    geopandas = pytest.importorskip("geopandas")
    points = geopandas.points_from_xy(np.arange(50.0), np.arange(50.0))
    geopandas.GeoDataFrame({"k": range(50)}, geometry=points, crs=4326).to_file(tmp_path / "a.gpkg", layer="a")
    with sqlite3.connect(tmp_path / "a.gpkg") as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{name}"')
        database.execute("DELETE FROM a WHERE fid IN (3, 20, 31)")
    database.close()
    (events,) = read_events([tmp_path / "a.gpkg"], PLACE, Reading(crs="EPSG:4326"))
    assert sorted(set(events.points[:, 0].tolist())) == sorted(events.points[:, 0].tolist())
    assert len(events) == 47
