"""Attributes in files and bodies: what a row says does not depend on its company, nor on the form it came in."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import rows_to_events
from phdstream.io.sources.formats import file_rows
from phdstream.io.sources.reading import Reading
from phdstream.service.bodies import ARROW, NDJSON, BodyReader
from tests.thorough import cases

ATTRIBUTES = (
    phd.Category("kind", ["bus", "tram", "12"]),
    phd.Bins("age", [0, 18, 65, 120]),
    phd.TimeOfDay("hour"),
    phd.DayOfWeek("day", column="time"),
)
COLUMNS = Columns(("x", "y"), "time", attributes=tuple(attribute.to_dict() for attribute in ATTRIBUTES))
DOMAIN = phd.Product(phd.Box([(0, 1), (0, 1)], depth=6), *ATTRIBUTES)
TIMES = ["2024-03-01 12:00", "2024-03-02", "2024-02-30", "", "noon"]
KINDS = ["bus", "tram", "12", "12.0", "rocket", "", "BUS", "=1+1", "\x00", "é"]
AGES = ["17", "18", "1e1", "+3", "17,5", "17.5", "120", "121", "-1", "", "nan", "inf", "1e400", "x"]
HOURS = ["0", "23.9", "24", "17:30", "17:30:15", "25:00", "2024-03-01 05:00", "2024-03-01T06:30:00", "", "late", "5,5"]


def read(path: Path, lines: list[str], decimal: str = ".") -> list[tuple[Any, ...]]:
    path.write_bytes("\n".join(["time;x;y;kind;age;hour", *lines]).encode())
    how = Reading(drop_bad=True, delimiter=";", decimal=decimal)
    found: list[tuple[Any, ...]] = []
    for rows in file_rows(path, COLUMNS, how, 1000, []):
        events = rows_to_events("x", 1, rows, COLUMNS, how)
        codes, inside = DOMAIN.encode(events.points)
        assert events.time is not None
        found += zip(events.time.tolist(), map(tuple, events.points.tolist()), codes.tolist(), inside.tolist(),
                     strict=True)  # fmt: skip
    return found


ROW = st.tuples(st.sampled_from(TIMES), st.sampled_from(KINDS), st.sampled_from(AGES), st.sampled_from(HOURS))


@pytest.mark.parametrize("decimal", [".", ","])
@settings(max_examples=cases(20, 500), deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=10))
def test_alone_and_in_company(
    tmp_path_factory: pytest.TempPathFactory, decimal: str, rows: list[tuple[str, ...]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    half = "0,5" if decimal == "," else "0.5"
    lines = [";".join([time, half, half, *values]) for time, *values in rows]
    alone = [event for line in lines for event in read(path, [line], decimal)]
    assert read(path, lines, decimal) == alone


def test_what_each_value_means(tmp_path: Path) -> None:
    def inside(kind: str = "bus", age: str = "20", hour: str = "5") -> str:
        found = read(tmp_path / "a.csv", [f"2024-03-01 12:00;0.5;0.5;{kind};{age};{hour}"])
        return "bad" if not found else "inside" if found[0][3] else "outside"

    assert [inside(kind=kind) for kind in ("bus", "12", "rocket", "")] == ["inside", "inside", "outside", "bad"]
    assert [inside(age=age) for age in ("17", "+3", "121", "", "x")] == ["inside", "inside", "outside", "bad", "bad"]
    hours = ["17:30", "2024-03-01 05:00", "23.9", "24", "late"]
    assert [inside(hour=hour) for hour in hours] == ["inside", "inside", "inside", "outside", "bad"]
    (row,) = read(tmp_path / "a.csv", ["2024-03-01 12:00;0.5;0.5;tram;18;2024-03-09 05:30"])
    assert row[1] == (0.5, 0.5, 1.0, 1.0, 5.5, 4.0)  # the first of March 2024 was a Friday


def test_a_zone_of_the_columns_own(tmp_path: Path) -> None:
    local = phd.TimeOfDay("hour", column="time", zone="America/New_York")
    columns = Columns(("x", "y"), "time", attributes=(local.to_dict(),))
    (tmp_path / "a.csv").write_text("time,x,y\n2024-07-01T05:30:00Z,0.5,0.5\n")
    (rows,) = file_rows(tmp_path / "a.csv", columns, Reading(zone=True), 1000, [])
    events = rows_to_events("x", 1, rows, columns, Reading(zone=True))
    assert events.points.tolist() == [[0.5, 0.5, 1.5]]


START = datetime(2024, 3, 1, tzinfo=UTC)


def body_reader() -> BodyReader:
    return BodyReader(DOMAIN, Clock(START.replace(tzinfo=None), timedelta(days=1), None), COLUMNS, Reading())


def codes_of(body: Any) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = {}
    for part in body.parts:
        batch = pa.ipc.read_record_batch(pa.py_buffer(part.rows), pa.schema([("code", pa.int64())]))
        found.setdefault((part.tick, part.sign), []).extend(batch.column(0).to_pylist())
    return found


ROWS: list[dict[str, Any]] = [
    {"time": "2024-03-01 12:00", "x": 0.5, "y": 0.25, "kind": "bus", "age": 20.0, "hour": 5.5},
    {"time": "2024-03-02 12:00", "x": 0.1, "y": 0.25, "kind": "tram", "age": 70.0, "hour": 23.0},
    {"time": "2024-03-02 12:00", "x": 0.1, "y": 0.25, "kind": "rocket", "age": 70.0, "hour": 23.0},
    {"time": "2024-03-02 12:00", "x": 0.1, "y": 0.25, "kind": None, "age": 70.0, "hour": 23.0},
]


def test_bodies_are_read_as_files_are() -> None:
    lines = "\n".join(map(json.dumps, ROWS)).encode()
    usual = body_reader().read(NDJSON, lines)
    table = pa.Table.from_pylist(ROWS)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = body_reader().read(ARROW, sink.getvalue())
    ids: list[dict[str, Any]] = [row | {"kind": 12} for row in ROWS[:1]]  # a number is its digits
    for body in (usual, arrow):
        assert body.rows == 4
        assert body.rejected == {"the place is outside the domain": 1, "column 'kind' has rows without a value": 1}
        assert sorted(codes_of(body)) == [(1, 1), (2, 1)]
    assert codes_of(usual) == codes_of(arrow)
    for row, (tick, code) in zip(ROWS, [(1, 0), (2, 0)], strict=False):
        columns: dict[str, Any] = {name: [row.get(name)] for name in ("x", "y", "kind", "age", "hour")}
        points = DOMAIN.points(columns | {"time": [datetime.fromisoformat(row["time"])]})
        assert DOMAIN.encode(points)[0][0] == codes_of(usual)[tick, 1][code]
    assert body_reader().read(NDJSON, json.dumps(ids[0]).encode()).rejected == {}


def test_odd_bodies_spoil_their_own_rows_only() -> None:
    odd: list[dict[str, Any]] = [
        {"kind": ["bus"]},
        {"age": "20"},
        {"hour": "5:30"},
        {"kind": 3.5},
        {"age": {}},
        {"hour": True},
        {},
    ]
    lines = [json.dumps(ROWS[0])] + [json.dumps(ROWS[1] | change) for change in odd]
    whole = codes_of(body_reader().read(NDJSON, "\n".join(lines).encode()))
    each = [codes_of(body_reader().read(NDJSON, line.encode())) for line in lines]
    together: dict[tuple[int, int], list[int]] = {}
    for one in each:
        for key, codes in one.items():
            together.setdefault(key, []).extend(codes)
    assert {key: sorted(codes) for key, codes in whole.items()} == {k: sorted(c) for k, c in together.items()}
    assert len(np.unique(together[1, 1])) == 1
