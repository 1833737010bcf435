"""Reading ahead changes nothing but the time it takes; stated times of row groups decide order as the rows would."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phdstream.errors import InputError
from phdstream.sources.ahead import ahead
from phdstream.sources.files import Columns, Events, read_events, read_times
from phdstream.sources.ticks import Clock, check_order, ticks_by_time

CLOCK = Clock.between(date(2024, 1, 1), date(2024, 1, 5), "1d")
HOUR = 3_600_000_000
MICRO = pa.timestamp("us")


def write(path: Path, hours: list[int | None], group: int, kind: pa.DataType = MICRO) -> Path:
    """Write rows at so many hours after the start, in row groups of the given length."""
    first = CLOCK.first_us
    times = pa.array([None if h is None else first + h * HOUR for h in hours], pa.int64()).cast(MICRO)
    times = times.cast(pa.timestamp(kind.unit)).cast(kind)
    table = pa.table({"time": times, "x": np.arange(len(hours), dtype=float)})
    pq.write_table(table, path, row_group_size=group)
    return path


def in_order(times) -> bool:
    try:
        check_order(times, CLOCK)
    except InputError:
        return False
    return True


# --- reading ahead ---


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_the_same_items_in_the_same_order(depth):
    assert list(ahead(iter(range(100)), depth)) == list(range(100))
    assert list(ahead(iter([]), depth)) == []


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield from (1, 2, 3)
        raise InputError("row 4")

    seen = []
    with pytest.raises(InputError, match="row 4"):
        seen.extend(item for item in map(seen.append, ahead(items())) if item)
    assert seen == [1, 2, 3]


def test_no_more_than_asked_for_is_fetched_in_advance():
    fetched = []

    def items():
        for i in range(100):
            fetched.append(i)
            yield i

    source = ahead(items(), depth=2)
    assert next(source) == 0
    source.close()
    assert len(fetched) <= 4


# --- stated times ---


@settings(deadline=None, max_examples=60)
@given(hours=st.lists(st.integers(-5, 101), max_size=12), group=st.integers(1, 5), ordered=st.booleans())
def test_order_is_decided_as_by_all_rows(tmp_path_factory, hours, group, ordered):
    path = write(tmp_path_factory.mktemp("t") / "a.parquet", sorted(hours) if ordered else hours, group)
    by_rows = in_order(read_times([path], "time", zone=False))
    assert in_order(read_times([path], "time", False, CLOCK.one_tick)) == by_rows
    assert by_rows or not ordered


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_row_groups_within_a_tick_are_not_read(tmp_path, unit):
    path = write(tmp_path / "a.parquet", [1, 2, 3, 4, 5, 6, 23, 24, 25], 3, pa.timestamp(unit))
    parts = list(read_times([path], "time", False, CLOCK.one_tick))
    assert [(part - CLOCK.first_us) // HOUR for part in map(list, parts) for part in part] == [1, 3, 4, 6, 23, 24, 25]


def test_times_with_a_zone_are_checked_all_the_same(tmp_path):
    path = write(tmp_path / "a.parquet", [1, 2, 3], 3, pa.timestamp("us", "Europe/Paris"))
    day, next_day = (datetime.fromisoformat(f"2024-01-0{k}T00:00+00:00") for k in (1, 2))
    clock = Clock.between(day, next_day, "1d")
    (part,) = read_times([path], "time", True, clock.one_tick)
    assert part.tolist() == [CLOCK.first_us + HOUR, CLOCK.first_us + 3 * HOUR]
    with pytest.raises(InputError, match="time zone"):
        list(read_times([path], "time", False, clock.one_tick))


def test_a_missing_time_is_found_although_its_group_is_within_a_tick(tmp_path):
    path = write(tmp_path / "a.parquet", [1, 2, 3, 4, None, 6], 3)
    with pytest.raises(InputError, match="without a time, first in data row 5"):
        list(read_times([path], "time", False, CLOCK.one_tick))


@pytest.mark.parametrize("what", ["no file", "no column", "text", "cut off"])
def test_what_is_wrong_with_a_file_is_said_as_ever(tmp_path, what):
    path = tmp_path / "a.parquet"
    if what != "no file":
        pq.write_table(pa.table({"time": ["noon"]} if what == "text" else {"when": [1]}), path)
    if what == "cut off":
        path.write_bytes(path.read_bytes()[:-10])
    complaints = []
    for enough in ((), (CLOCK.one_tick,)):
        with pytest.raises(InputError) as error:
            list(read_times([path], "time", False, *enough))
        complaints.append(str(error.value))
    assert complaints[0] == complaints[1]


# --- cutting into ticks ---


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(-30, 120), max_size=8), max_size=5))
def test_ticks_hold_what_row_by_row_cutting_would_give(batches):
    """Rows go to the tick of their time, unless that is over when their batch comes (late) or never is (outside)."""
    expected: dict[int, list[float]] = {k: [] for k in range(1, 5)}
    late = outside = row = 0
    now, events = 1, []
    for hours in batches:
        times = np.array(hours, dtype=np.int64) * HOUR + CLOCK.first_us
        points = np.arange(row, row + len(hours), dtype=float).reshape(-1, 1)
        row += len(hours)
        events.append(Events(times, points, np.where(points[:, 0] % 3 == 0, -1, 1).astype(np.int8), None))
        for hour, point in zip(hours, points[:, 0], strict=True):
            tick = hour // 24 + 1
            if not 1 <= tick <= 4:
                outside += 1
            elif tick < now:
                late += 1
            else:
                expected[tick].append(point)
        now = max([now, *(hour // 24 + 1 for hour in hours if hour // 24 + 1 <= 4)])
    ticks = list(ticks_by_time(iter(events), CLOCK))
    assert [tick.number for tick in ticks] == [1, 2, 3, 4]
    for tick in ticks:
        assert sorted(np.concatenate([part.points for part in tick.parts]).ravel()) == sorted(expected[tick.number])
        rows, (come, gone) = len(tick), tick.split()
        assert all(point % 3 for point in come.points.ravel())
        assert not any(point % 3 for point in gone.points.ravel())
        assert (len(come) + len(gone), len(tick)) == (rows, 0)
    assert (sum(t.late for t in ticks), sum(t.outside for t in ticks)) == (late, outside)


def test_signs_of_any_kind_of_number_are_read(tmp_path):
    for kind in (pa.int8(), pa.int64(), pa.float64(), pa.string()):
        table = pa.table({"x": [1.0, 2.0], "sign": pa.array(["1", "-1"]).cast(kind)})
        (batch,) = read_events([table], Columns(("x",), sign="sign"), False, False)
        assert batch.sign.tolist() == [1, -1]
    for bad in ([1, 0], [1, None], [1, 2]):
        table = pa.table({"x": [1.0, 2.0], "sign": pa.array(bad, pa.int8())})
        with pytest.raises(InputError, match=r"\+1 or -1, first in data row 2"):
            list(read_events([table], Columns(("x",), sign="sign"), False, False))
        (batch,) = read_events([table], Columns(("x",), sign="sign"), False, True)
        assert (len(batch), batch.bad) == (1, 1)
