"""What a row says does not depend on its company: read alone or among others, it gives the same event or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import Events, read_events, rows_to_events
from phdstream.io.sources.formats import file_rows
from phdstream.io.sources.reading import Reading
from phdstream.io.sources.rows import RowReader
from tests.thorough import cases

COLUMNS = Columns(("lon", "lat"), "time", user="who")
NUMBERS = [
    "1.5", "+1.5", "-1.5", "1.", ".5", "1e5", "1E+5", "1e400", "-1e400", "1e-400", "nan", "NaN", "-nan", "inf",
    "Infinity", "-inf", "", " ", " 2.5 ", "1,5", "1_000", "0x10", "1e", "--1", "1.2.3", "٣", "1\u00a0", "00012",
    "1d", "NA", "null", "-",
]  # fmt: skip
TIMES = [
    "2024-03-01", "2024-03-01 12:00", "2024-03-01T12:00:00", "2024-03-01T12:00:00.123456789", "2024-03-01T12:00:00,5",
    "2024-03-01T1200", "2024-03-01 24:00", "2024-03-01 23:59:60", "2024-02-30", "2024-13-01", "0000-01-01",
    "9999-12-31",
    "2024-03-01Z", "2024-03-01 12:00+01:00", "2024/03/01 12:00", "", "noon", "20240301", " 2024-03-01 ",
    "2024-03-01T12",
]  # fmt: skip
USERS = ["ann", "", " ", "a\tb", "é", '"', 'a"b', "nan", "None", "x" * 1024, "x" * 1025, "'", "=1+1", "\x00", "a\x00"]


def read(path: Path, lines: list[str], **reading: Any) -> list[tuple[Any, ...]]:
    """Return the events of lines, in this process."""
    path.write_bytes("\n".join(["time;lon;lat;who", *lines]).encode())
    how = Reading(drop_bad=True, delimiter=";", **reading)
    found: list[tuple[Any, ...]] = []
    for rows in file_rows(path, COLUMNS, how, 1000, []):
        reader = RowReader("x", 1, COLUMNS, how)
        events = _events(reader, rows)
        assert events.time is not None
        assert events.users is not None
        found += zip(events.time.tolist(), map(tuple, events.points.tolist()), events.users.to_pylist(), strict=True)
    return found


def _events(reader: RowReader, rows: Any) -> Events:
    return rows_to_events(reader.source, reader.first_row, rows, reader.columns, reader.reading)


@pytest.mark.parametrize("decimal", [".", ","])
@settings(max_examples=cases(20, 500))
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(TIMES), st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.sampled_from(USERS)),
        min_size=1,
        max_size=12,
    )
)
@pytest.mark.slow
def test_alone_and_in_company(
    tmp_path_factory: pytest.TempPathFactory, decimal: str, rows: list[tuple[str, ...]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "a.csv"
    lines = [";".join(row) for row in rows]
    alone = [event for line in lines for event in read(path, [line], decimal=decimal)]
    assert read(path, lines, decimal=decimal) == alone


@pytest.mark.parametrize("kind", ["numbers", "times", "users"])
def test_every_odd_value_alone_and_in_company(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.csv"
    good = ["2024-03-01 12:00", "1.5", "2.5", "ann"]
    place, values = {"numbers": (1, NUMBERS), "times": (0, TIMES), "users": (3, USERS)}[kind]
    lines = [";".join([*good[:place], value, *good[place + 1 :]]) for value in values]
    alone = [event for line in lines for event in read(path, [line])]
    assert 0 < len(alone) < len(lines)
    assert read(path, lines) == alone
    assert read(path, lines[::-1]) == alone[::-1]


def test_users_are_the_same_whatever_type_a_file_gives_them() -> None:
    columns, reading = Columns(("x",), user="who"), Reading(drop_bad=True)
    big = 2**53
    kinds: list[Any] = [
        pa.array([7, 8, None], pa.int64()),
        pa.array([7.0, 8.0, None]),
        pa.array([7.0, 8.0, float("nan")]),
        pa.array([7.0, 8.0, 8.5]),
        pa.array([7.0, 8.0, float(big)]),
        pa.array(["7", "8", ""]),
        pa.array(["7", "8", None]).dictionary_encode(),
        pa.array([b"7", b"8", b"x" * 1025]),
    ]
    for kind in kinds:
        (events,) = read_events([pa.table({"x": [1.0, 2.0, 3.0], "who": kind})], columns, reading)
        assert events.users is not None
        assert events.users.to_pylist() == [b"7", b"8"]
        assert sum(events.bad.values()) == 1


@pytest.mark.parametrize("odd", ['"5;5;2026-03-01;u', "\ufeff", '";"', 'a"b;"c;d;e'])
def test_marks_at_the_beginning_of_rows_are_no_rows_business_but_their_own(tmp_path: Path, odd: str) -> None:
    """Arrow takes a byte order mark away at the start of whatever it parses, and other rows decide where that is."""
    path = tmp_path / "a.csv"
    rows = [f"2026-03-01;{i / 100};5;\ufeffu{i}" if i % 2 else f"\ufeff2026-03-01;1;5;u{i}" for i in range(600)]
    without = read(path, rows)
    with_it = read(path, [*rows[:300], odd, *rows[300:]])
    assert [event for event in with_it if event in without] == without
    assert len(with_it) <= len(without) + 1


def test_many_open_quotation_marks_take_no_time(tmp_path: Path) -> None:
    lines = ['2026-03-01;1;5;"ab'] * 20_000
    assert len(read(tmp_path / "a.csv", lines)) == 20_000


def test_categories_in_parquet(tmp_path: Path) -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0] * 50, "who": pa.array(["a", "b", None] * 50).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    (events,) = read_events([tmp_path / "a.parquet"], Columns(("x",), user="who"), Reading(drop_bad=True))
    assert events.users is not None
    assert events.users.to_pylist() == [b"a", b"b"] * 50
