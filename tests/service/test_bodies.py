"""A row means the same event in a body of NDJSON, in one of Arrow and in a file, whatever other rows come with it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.errors import InputError
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import rows_to_events
from phdstream.io.sources.features import LONGEST_LINE
from phdstream.io.sources.formats import file_rows
from phdstream.io.sources.reading import Reading
from phdstream.service import bodies
from phdstream.service.bodies import ARROW, NDJSON, OUTSIDE, Body, BodyReader
from phdstream.service.journal import event_schema
from tests.thorough import cases

START = datetime(2024, 5, 31, tzinfo=UTC)
DOMAIN = phd.Box([[-10.0, 10.0], [-10.0, 10.0]], depth=40)
CLOCK = Clock(START, timedelta(seconds=10), None)
USERS = Columns(("lon", "lat"), "time", sign="sign", user="who")
EVENTS = Columns(("lon", "lat"), "time")
READING = Reading(zone=True)
Event = tuple[Any, ...]
GOOD = {"lon": "1.5", "lat": "2.5", "time": '"2024-05-31T00:00:05Z"', "sign": "1", "who": '"ann"'}
ODD = [
    "1", "1.5", "-0", "-0.0", "0", "0.0", "1e0", "1E0", "1e400", "-1e400", "1e-400", "1" * 30, "9" * 400, "9" * 5000,
    "9007199254740993", "0." + "1" * 900, "3.0000000000000004440892098500626161694526672363281250", "1.0", "-1", "+1",
    "01", "1.", ".5", "1e", "0x10", "NaN", "Infinity", "-Infinity", "nan", "true", "false", "null", "[]", "{}", "[1]",
    '{"a": 1}', '""', '" "', '"1"', '" 1.5 "', '"+1"', '"1e400"', '"nan"', '"null"', '"1,5"', '"ann"', '"\\ud800"',
    '"\\ud83d\\ude00"', '"\\u0000"', '"a\\u0000"', '"\\q"', '"\x01"', '"\t"', "'1'", "", '"', '"' + "x" * 1024 + '"',
    '"' + "x" * 1025 + '"', '"é"', "1 2", "1,", "[" * 99 + "]" * 99, "[" * 300 + "]" * 300, "[" * 5000 + "]" * 5000,
    '"2024-05-31T00:00:05Z"', '"2024-05-31T00:00:05"', '"2024-05-31 00:00:05+00:00"', '"2024-05-31T00:00:05.5Z"',
    '"2024-05-31T00:00:05.123456789Z"', '"2024/05/31 00:00:05Z"', '"2024-13-31T00:00:05Z"', '"9999-12-31T23:59:59Z"',
    '"0001-01-01T00:00:00Z"', '"0000-01-01T00:00:00Z"', '"2024-05-31T24:00:00Z"', "1717113605", '" 2024-05-31Z "',
    "-0e0", "-0E5", "123456789012345678901234567890", "-12345678901234567890", "18446744073709551616",
]  # fmt: skip
FRAMES = [
    b"%s", b" %s ", b"\t%s\r", b"\x1e%s", b"%s\x1e", b"\xef\xbb\xbf%s", b"%s%s", b"%s %s", b"%s,", b"[%s]", b"%s\x00",
    b"%s\x0b", b"%s\x85", b"%s\x1c", b"%s\r%s", b"\r%s", b"%s\r\r", b"\xff%s", b"",
]  # fmt: skip


def line(values: dict[str, str], extra: str = "") -> bytes:
    text = ", ".join(f'"{name}": {value}' for name, value in values.items())
    return ("{" + text + extra + "}").encode("utf-8", "surrogateescape")


def reader(columns: Columns = USERS) -> BodyReader:
    return BodyReader(DOMAIN, CLOCK, columns, READING)


def slow_reader(columns: Columns = USERS) -> BodyReader:
    """A reader to which no line is a usual one: all are read as those of files."""
    slow = reader(columns)

    def refuse(*_: Any) -> Any:
        raise ValueError

    slow._decode = slow._decode_all = refuse
    return slow


def events_of(body: Body, columns: Columns = USERS) -> Counter[Event]:
    found: Counter[Event] = Counter()
    for part in body.parts:
        batch = pa.ipc.read_record_batch(pa.py_buffer(part.rows), event_schema(columns.user is not None))
        assert batch.num_rows == part.number
        found.update((part.tick, part.sign, *row.values()) for row in batch.to_pylist())
    assert body.rows == found.total() + sum(body.rejected.values())
    return found


def of_file(path: Path, columns: Columns = USERS) -> tuple[Counter[Event], dict[str, int]]:
    """What `phdstream run` makes of a file, as `events_of` says it."""
    found: Counter[Event] = Counter()
    bad: Counter[str] = Counter()
    how = Reading(zone=True, drop_bad=True)
    try:
        for rows in file_rows(path, columns, how, 1000, []):
            events = rows_to_events("x", 1, rows, columns, how)
            codes, inside = DOMAIN.encode(events.points)
            bad.update(events.bad)
            bad[OUTSIDE] += int((~inside).sum())
            assert events.time is not None
            ticks = CLOCK.tick_of(events.time).tolist()
            more = [] if events.users is None else [events.time.tolist(), events.users.to_pylist()]
            each = list(zip(ticks, events.sign.tolist(), codes.tolist(), *more, strict=True))
            found.update(each[i] for i in np.flatnonzero(inside))
    except InputError:  # no rows at all
        assert not path.read_bytes()
    return found, {why: number for why, number in bad.items() if number}


def check(content: bytes, path: Path, columns: Columns = USERS) -> Counter[Event]:
    """Read a body quickly, slowly and from a file: all say the same of every line."""
    fast, slow = (make(columns).read(NDJSON, content) for make in (reader, slow_reader))
    path.write_bytes(content)
    found = events_of(fast, columns)
    assert found == events_of(slow, columns)
    assert fast.rejected == slow.rejected
    assert (found, fast.rejected) == of_file(path, columns)
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bodies") / "a.ndjson"


def test_the_usual_way_is_taken() -> None:
    """The comparisons below compare two ways: usual lines take the quick one, also among others."""
    usual, others = [], []  # type: ignore[var-annotated]
    quick = reader()
    assert quick._all_usual(b"\n".join([line(GOOD)] * 3)) is not None
    quick._line_by_line(b"\n".join([line(GOOD), b"{", line(GOOD | {"lon": '"1"'})]), usual, others)
    assert (len(usual), len(others)) == (1, 2)


@pytest.mark.parametrize("columns", [USERS, EVENTS], ids=["users", "events"])
@pytest.mark.parametrize("name", list(GOOD))
def test_every_odd_value(name: str, columns: Columns, path: Path) -> None:
    lines = [line(GOOD | {name: value}) for value in ODD]
    lines += [line(GOOD, f', "{name}": {value}') for value in ODD]  # a second member of that name: the last one counts
    lines += [line({name: value} | {k: v for k, v in GOOD.items() if k != name}, f', "{name}": 1') for value in ODD]
    lines += [line({key: value for key, value in GOOD.items() if key != name})]
    alone = sum((events_of(reader(columns).read(NDJSON, one), columns) for one in lines), Counter[Event]())
    assert check(b"\n".join(lines), path, columns) == alone


@pytest.mark.parametrize("columns", [USERS, EVENTS], ids=["users", "events"])
def test_every_odd_value_where_nobody_looks(columns: Columns, path: Path) -> None:
    lines = [line(GOOD, f', "x": {value}') for value in ODD] + [line(GOOD, f", {value}: 1") for value in ODD]
    alone = sum((events_of(reader(columns).read(NDJSON, one), columns) for one in lines), Counter[Event]())
    assert check(b"\n".join(lines), path, columns) == alone


@pytest.mark.parametrize("frame", FRAMES)
def test_what_surrounds_a_row(frame: bytes, path: Path) -> None:
    odd = frame.replace(b"%s", line(GOOD))
    check(odd, path)
    for end in (b"\n", b"\r\n", b"\r", b"\n\n"):
        check(end.join([line(GOOD), odd, line(GOOD)]), path)
        check(end.join([odd, line(GOOD), odd, b""]), path)


def test_bytes_that_are_no_text(path: Path) -> None:
    for value in (b'"\xff"', b'"\xed\xa0\x80"', b'"\xc3\xa9"', b'"\xf4\x90\x80\x80"', b'"\xc0\x80"'):
        for name in GOOD:
            check(line(GOOD | {name: "@"}).replace(b"@", value), path)
        check(line(GOOD, ', "x": @').replace(b"@", value), path)
        check(line(GOOD, ", @: 1").replace(b"@", value), path)


@pytest.mark.parametrize("filling", ["x", "é"])
def test_a_line_that_is_too_long(filling: str, path: Path) -> None:
    """A line's length is that of its text without its end, and counts however usual its row is."""
    empty = len(line(GOOD, ', "x": ""'))
    for length in (-1, 0, 1):
        long = line(GOOD, f', "x": "{filling * (LONGEST_LINE + length - empty)}"')
        for content in (long, long + b"\n", b"\n".join([line(GOOD), long, line(GOOD)])):
            found = check(content, path)
            assert (found.total() - content.count(b"\n") // 2 * 2 == 1) is (length < 0)


def test_an_object_over_two_lines_and_two_in_one(path: Path) -> None:
    """As many objects as lines, but not one in each: a line that holds no whole object is no row."""
    one = line(GOOD)
    for broken in (one.replace(b", ", b",\n", 1), line(GOOD, ', "x": [{}\n,{}]'), line(GOOD, ', "x": [{}\n{}]')):
        check(b"\n".join([one, one + one, broken, one]), path)
    nested = line(GOOD, ', "x": [{},\n{}]')
    assert check(b"\n".join([one + one, nested]), path).total() == 0


def test_a_column_that_is_two_things(path: Path) -> None:
    columns = Columns(("lon", "lat"), "time", user="lon")
    for value in ("1", "1.0", '"1"', "1.50"):
        check(line(GOOD | {"lon": value}), path, columns)


values = st.one_of(
    st.sampled_from(ODD), st.sampled_from(list(GOOD.values())), st.floats().map(json.dumps), st.integers().map(str),
    st.floats(-20, 20).map(repr), st.text(max_size=5).map(json.dumps), st.text(max_size=5).map(lambda t: f'"{t}"'),
    st.recursive(st.none() | st.booleans() | st.integers(-2, 2), st.lists, max_leaves=3).map(json.dumps),
    st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1)).map(lambda t: f'"{t.isoformat()}Z"'),
)  # fmt: skip
lines_ = st.builds(
    lambda base, odd, extra: line(base | odd, extra),
    st.sampled_from([GOOD, GOOD, {}]),
    st.dictionaries(st.sampled_from([*GOOD, "x"]), values, max_size=2),
    st.sampled_from(["", "", ', "x": 1', ",", ', "lon": 2', ', "x": "{"', ', "x": {"y": [{}]}', "}{"]),
)


@settings(max_examples=cases(80, 5000))
@given(lines=st.lists(lines_, max_size=8), end=st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"]), users=st.booleans())
@example(lines=[line(GOOD | {"who": "-0"}), line(GOOD | {"who": "0"})], end=b"\n", users=True)
def test_any_lines(lines: list[bytes], end: bytes, users: bool, path: Path) -> None:
    columns = USERS if users else EVENTS
    alone = sum((events_of(reader(columns).read(NDJSON, one), columns) for one in lines), Counter[Event]())
    assert check(end.join(lines), path, columns) == alone


@settings(max_examples=cases(80, 5000))
@given(content=st.lists(lines_, min_size=1, max_size=4).map(b"\n".join), data=st.data())
def test_damaged_lines(content: bytes, data: st.DataObject, path: Path) -> None:
    """Some bytes overwritten, left out or put in: both ways still agree."""
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(damaged)))
        damaged[place : place + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from(
                [b"", b"\n", b"{", b"}", b"}\n{", b'"', b",", b"\\", b"\r", b"\xff", b"0", b"-", b" ", b"["]
            )
        )
    check(bytes(damaged), path)


def test_pieces_do_not_matter(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line(GOOD | {"who": str(i)}) for i in range(40)]
    lines[7], lines[23], lines[31] = b"{", b"", line(GOOD | {"who": "-0"})
    whole = check(b"\n".join(lines), path)
    for size in (1, 50, 100, 137, 1000):
        monkeypatch.setattr(bodies, "_PIECE", size)
        assert check(b"\n".join(lines), path) == whole


def arrow(table: pa.Table, rows: int = 1 << 20) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, rows)
    return sink.getvalue().to_pybytes()


WHO: list[st.SearchStrategy[list[Any]]] = [
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1, max_size=6),
    st.lists(st.text(max_size=6) | st.none(), min_size=1, max_size=6),
]


@settings(max_examples=cases(40, 2000))
@given(who=st.one_of(WHO), data=st.data())
def test_arrow_ndjson_and_parquet(who: list[Any], data: st.DataObject, path: Path) -> None:
    """The same rows, with numbers, texts and nulls, in three ways."""
    number = st.none() | st.floats(-12, 12) | st.floats() | st.sampled_from([0.0, -0.0, 1e300])
    moments = st.datetimes(datetime(2024, 5, 30), datetime(2024, 6, 1)).map(lambda t: t.replace(tzinfo=UTC))
    rows = [
        {
            "lon": data.draw(number),
            "lat": data.draw(number),
            "time": data.draw(moments | st.none()),
            "sign": data.draw(st.sampled_from([1, 1, -1, 0, 2, None])),
            "who": one,
        }
        for one in who
    ]
    schema = pa.schema(
        [
            ("lon", pa.float64()),
            ("lat", pa.float64()),
            ("time", pa.timestamp("us", "UTC")),
            ("sign", pa.int8()),
            ("who", pa.string() if any(isinstance(x, str) for x in who) else pa.int64()),
        ]
    )
    table = pa.Table.from_pylist(rows, schema)
    first = reader().read(ARROW, arrow(table))
    found = events_of(first)
    for kind in (arrow(table, 1), arrow(table.set_column(4, "who", table["who"].dictionary_encode()))):
        assert events_of(reader().read(ARROW, kind)) == found
    texts = [json.dumps(row | {"time": row["time"] and row["time"].isoformat()}) for row in rows]
    posted = reader().read(NDJSON, "\n".join(texts).encode())
    assert events_of(posted) == found
    assert sum(posted.rejected.values()) == sum(first.rejected.values())
    pq.write_table(table, path.with_suffix(".parquet"))
    assert of_file(path.with_suffix(".parquet"))[0] == found


def test_places_by_name(path: Path) -> None:
    """A place's name may be written as a number, and means the same whichever way it comes."""
    columns = Columns(("lon", "lat"), "time", names=True)
    quick, slow = reader(columns), slow_reader(columns)
    for content in (line(GOOD | {"lon": value}) for value in ODD):
        with pytest.MonkeyPatch.context() as patch:
            seen: list[Any] = []
            patch.setattr(BodyReader, "_take", lambda _, events, body, seen=seen: seen.append(events.points.tolist()))
            quick.read(NDJSON, content)
            slow.read(NDJSON, content)
        assert seen[0] == seen[1]
