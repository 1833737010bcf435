"""Publishing every day: only what is over goes out, new files are found, and what was said stays said."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from phdstream.app.config import load_config
from phdstream.app.run import RunReport, run
from phdstream.errors import InputError, StateError

pytestmark = pytest.mark.slow

CONFIG = """
[input]
files = "events/*.csv"
time = "time"
coordinates = ["lon", "lat"]
[ticks]
every = "1d"
start = 2024-03-01
grace = "2h"
[domain]
type = "box"
bounds = [[0, 10], [40, 50]]
depth = 12
[privacy]
epsilon = 20.0
unit = "event"
[output]
releases = "out"
state = "private"
"""
FIRST = datetime(2024, 3, 1)


def write_day(folder: Path, day: int, rows: int = 200, name: str = "", of: int | None = None) -> Path:
    """Write the events of a day (from 1), as they come in, to a file of that day's name."""
    rng = np.random.default_rng(day)
    begin = FIRST + timedelta(days=(of or day) - 1)
    lines = [
        f"{begin + timedelta(seconds=float(s))},{x:.5f},{y:.5f}"
        for s, x, y in zip(
            rng.uniform(0, 86400, rows), rng.uniform(0, 10, rows), rng.uniform(40, 50, rows), strict=True
        )
    ]
    (folder / "events").mkdir(exist_ok=True)
    path = folder / "events" / (name or f"{begin:%Y-%m-%d}.csv")
    path.write_text("\n".join(["time,lon,lat", *lines]) + "\n")
    return path


def prepare(folder: Path, **changes: str) -> Path:
    text = CONFIG
    for old, new in changes.items():
        text = text.replace(old, new)
    (folder / "stream.toml").write_text(text)
    return folder / "stream.toml"


def at(folder: Path, now: datetime, **options: Any) -> RunReport:
    return run(load_config(folder / "stream.toml"), now=now, **options)


def totals(folder: Path) -> list[float]:
    return [sum(pq.read_table(p)["unbiased"].to_pylist()) for p in sorted((folder / "out" / "cells").glob("*.parquet"))]


@pytest.mark.slow
def test_ten_days_with_a_clock_of_their_own(tmp_path: Path) -> None:
    prepare(tmp_path)
    for day in range(1, 11):
        write_day(tmp_path, day)
        midnight = FIRST + timedelta(days=day)
        early = at(tmp_path, midnight + timedelta(hours=1))  # within the grace: yesterday's events may still come
        assert early.last_tick == day - 1
        assert day > 1 or not (tmp_path / "private").exists()
        report = at(tmp_path, midnight + timedelta(hours=3))
        assert (report.first_tick, report.last_tick) == (day, day)
        assert report.next_end == midnight + timedelta(days=1)
        assert report.missing == []
        again = at(tmp_path, midnight + timedelta(hours=20))
        assert again.last_tick == day < again.first_tick
        assert "no tick is over" in again.summary()[0]
        assert f"ticks 1 to {day} are there" in again.summary()[1]
    assert totals(tmp_path) == pytest.approx([200 * day for day in range(1, 11)], abs=60)


def test_unfinished_days_are_not_released_empty(tmp_path: Path) -> None:
    """Three days of data and an end ten days out: the other seven are neither released nor lost."""
    prepare(tmp_path, **{'every = "1d"': 'every = "1d"\nend = 2024-03-11'})
    for day in (1, 2, 3):
        write_day(tmp_path, day)
    report = at(tmp_path, datetime(2024, 3, 4, 3))
    assert report.last_tick == 3
    write_day(tmp_path, 4)
    assert at(tmp_path, datetime(2024, 3, 5, 3)).last_tick == 4
    assert totals(tmp_path)[-1] == pytest.approx(800, abs=60)
    assert at(tmp_path, datetime(2030, 1, 1)).last_tick == 10  # no more than there are
    assert at(tmp_path, datetime(2031, 1, 1)).next_end is None


def test_until_takes_ticks_whether_they_are_over_or_not(tmp_path: Path) -> None:
    prepare(tmp_path)
    for day in (1, 2, 3):
        write_day(tmp_path, day)
    report = at(tmp_path, datetime(2024, 3, 1, 12), until=datetime(2024, 3, 3))
    assert report.last_tick == 2
    assert any("not over yet" in note for note in report.private_notes)


def test_a_start_with_a_zone_is_compared_in_that_zone(tmp_path: Path) -> None:
    prepare(tmp_path, **{"start = 2024-03-01": "start = 2024-03-01T00:00:00-05:00"})
    path = write_day(tmp_path, 1)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *(line.replace(",", "-05:00,", 1) for line in lines[1:])]) + "\n")
    assert at(tmp_path, datetime(2024, 3, 2, 6, tzinfo=UTC)).last_tick == 0  # 1 in the morning there, grace till 2
    assert at(tmp_path, datetime(2024, 3, 2, 7, tzinfo=UTC)).last_tick == 1
    assert totals(tmp_path)[0] == pytest.approx(200, abs=30)


def test_late_rows_are_told_and_left_out(tmp_path: Path) -> None:
    prepare(tmp_path)
    write_day(tmp_path, 1)
    at(tmp_path, datetime(2024, 3, 2, 3))
    write_day(tmp_path, 2)
    write_day(tmp_path, 77, rows=5, name="late.csv", of=1)
    report = at(tmp_path, datetime(2024, 3, 3, 3))
    assert any(note.startswith("5 rows are of ticks that an earlier run released") for note in report.private_notes)
    assert totals(tmp_path)[1] == pytest.approx(400, abs=40)


def test_files_that_were_done_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from phdstream.io.sources.events import read_events as original

    prepare(tmp_path)
    read: list[str] = []

    def watching(sources: Any, *rest: Any) -> Any:
        read.extend(Path(source).name for source in sources)
        return original(sources, *rest)

    monkeypatch.setattr("phdstream.app.prepare.read_events", watching)
    for day in (1, 2, 3):
        write_day(tmp_path, day)
        at(tmp_path, FIRST + timedelta(days=day, hours=3))
    assert read == ["2024-03-01.csv", "2024-03-02.csv", "2024-03-03.csv"]


class TestOneFileThatGrows:
    def test_grown_at_the_end(self, tmp_path: Path) -> None:
        prepare(tmp_path, **{'"events/*.csv"': '"events/all.csv"'})
        whole = ["time,lon,lat"]
        for day in (1, 2, 3):
            whole += write_day(tmp_path, day, name="part").read_text().splitlines()[1:]
            (tmp_path / "events" / "all.csv").write_text("\n".join(whole) + "\n")
            at(tmp_path, FIRST + timedelta(days=day, hours=3))
        assert totals(tmp_path) == pytest.approx([200, 400, 600], abs=50)

    def test_late_rows_at_the_end_of_a_growing_file(self, tmp_path: Path) -> None:
        prepare(tmp_path)
        path = write_day(tmp_path, 1)
        at(tmp_path, datetime(2024, 3, 2, 3))
        path.write_text(path.read_text() + "2024-03-01 05:00:00,1,41\n2024-03-02 05:00:00,1,41\n")
        report = at(tmp_path, datetime(2024, 3, 3, 3))
        assert any(note.startswith("201 rows are of ticks that an earlier run") for note in report.private_notes)
        assert totals(tmp_path)[1] == pytest.approx(201, abs=30)

    def test_more_rows_do_not_hide_that_others_moved(self, tmp_path: Path) -> None:
        prepare(tmp_path)
        path = write_day(tmp_path, 1)
        at(tmp_path, datetime(2024, 3, 2, 3))
        head, *lines = path.read_text().splitlines()
        moved = [line.replace("2024-03-01", "2024-03-02") for line in lines]
        path.write_text("\n".join([head, *(f"2024-03-01 01:00:00,{i / 30:.3f},41" for i in range(201)), *moved]) + "\n")
        with pytest.raises(StateError, match="not only at its end"):
            at(tmp_path, datetime(2024, 3, 3, 3))

    def test_from_whatever_folder_it_is_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        prepare(tmp_path)
        path = write_day(tmp_path, 1)
        monkeypatch.chdir(tmp_path)
        run(load_config("stream.toml"), now=datetime(2024, 3, 2, 3))
        path.write_text(path.read_text().replace("2024-03-01", "2024-03-02"))
        monkeypatch.chdir(tmp_path.parent)
        with pytest.raises(StateError, match="events of released ticks"):
            run(load_config(f"{tmp_path.name}/stream.toml"), now=datetime(2024, 3, 3, 3))

    @pytest.mark.parametrize("how", ["moved to another day", "taken away", "altered"])
    def test_events_that_were_counted_must_stay(self, tmp_path: Path, how: str) -> None:
        """An event counted on day 1 whose time is now on day 2 would count twice."""
        prepare(tmp_path)
        path = write_day(tmp_path, 1)
        at(tmp_path, datetime(2024, 3, 2, 3))
        lines = path.read_text().splitlines()
        if how == "taken away":
            del lines[5]
        elif how == "altered":
            lines[5] = lines[5].rsplit(",", 1)[0] + ",40.001"
        else:
            lines[5] = lines[5].replace("2024-03-01", "2024-03-02")
        path.write_text("\n".join(lines) + "\n")
        write_day(tmp_path, 2)
        with pytest.raises(StateError, match="events of released ticks are gone from it, altered"):
            at(tmp_path, datetime(2024, 3, 3, 3))
        assert len(totals(tmp_path)) == 1
        path.rename(path.with_name("corrected.csv"))  # as the message says
        assert at(tmp_path, datetime(2024, 3, 3, 3)).last_tick == 2


class TestTheSameFileTwice:
    def test_under_two_names(self, tmp_path: Path) -> None:
        prepare(tmp_path)
        path = write_day(tmp_path, 1)
        shutil.copy(path, path.with_name("copy.csv"))
        with pytest.raises(InputError, match="holds the same as"):
            at(tmp_path, datetime(2024, 3, 2, 3))
        path.with_name("copy.csv").unlink()
        path.with_name("link.csv").symlink_to(path)
        with pytest.raises(InputError, match="the same file"):
            at(tmp_path, datetime(2024, 3, 2, 3))
        assert not (tmp_path / "private").exists()
        assert not (tmp_path / "out").exists()

    def test_in_another_wrapping(self, tmp_path: Path) -> None:
        prepare(tmp_path, **{'"events/*.csv"': '"events/*"'})
        path = write_day(tmp_path, 1)
        path.with_name("copy.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
        with pytest.raises(InputError, match="holds the same as"):
            at(tmp_path, datetime(2024, 3, 2, 3))
        path.with_name("copy.csv.gz").unlink()
        at(tmp_path, datetime(2024, 3, 2, 3))
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")  # the same rows in another order: the same file
        assert at(tmp_path, datetime(2024, 3, 3, 3)).last_tick == 2

    def test_few_events_may_be_alike_by_chance(self, tmp_path: Path) -> None:
        prepare(tmp_path)
        write_day(tmp_path, 1)
        for name in ("a.csv", "b.csv"):
            (tmp_path / "events" / name).write_text(f"time,lon,lat\n2024-03-01 1{name == 'a.csv':d}:00:00,5,45\n")
        assert at(tmp_path, datetime(2024, 3, 2, 3)).last_tick == 1

    def test_named_twice(self, tmp_path: Path) -> None:
        prepare(tmp_path, **{'"events/*.csv"': '["events/*.csv", "events/2024-03-01.csv"]'})
        write_day(tmp_path, 1)
        with pytest.raises(InputError, match="the same file"):
            at(tmp_path, datetime(2024, 3, 2, 3))

    def test_a_copy_of_a_file_that_is_partly_counted(self, tmp_path: Path) -> None:
        prepare(tmp_path)
        path = write_day(tmp_path, 1)
        path.write_text(path.read_text() + "2024-03-02 05:00:00,1,41\n")
        at(tmp_path, datetime(2024, 3, 2, 3))
        shutil.copy(path, path.with_name("copy.csv"))
        with pytest.raises(InputError, match="holds the same as"):
            at(tmp_path, datetime(2024, 3, 3, 3))

    def test_two_copies_of_one_that_was_moved(self, tmp_path: Path) -> None:
        prepare(tmp_path)
        path = write_day(tmp_path, 1)
        path.write_text(path.read_text() + "2024-03-02 05:00:00,1,41\n")
        at(tmp_path, datetime(2024, 3, 2, 3))
        shutil.copy(path, path.with_name("c.csv"))
        path.rename(path.with_name("b.csv"))
        with pytest.raises(InputError, match="holds the same as"):
            at(tmp_path, datetime(2024, 3, 3, 3))

    def test_a_fixed_sensor_that_reports_every_minute(self, tmp_path: Path) -> None:
        prepare(tmp_path)
        write_day(tmp_path, 1, rows=5)
        for hour in (1, 2, 3):
            lines = [f"2024-03-01 {hour:02d}:{minute:02d}:00,5.123,45.456" for minute in range(60)]
            (tmp_path / "events" / f"{hour}.csv").write_text("\n".join(["time,lon,lat", *lines]) + "\n")
        assert at(tmp_path, datetime(2024, 3, 2, 3)).last_tick == 1
        assert totals(tmp_path)[0] == pytest.approx(185, abs=30)

    def test_days_without_events_look_alike(self, tmp_path: Path) -> None:
        prepare(tmp_path)
        write_day(tmp_path, 1)
        for day in (2, 3):
            write_day(tmp_path, day, rows=0)
        assert at(tmp_path, datetime(2024, 3, 4, 3)).last_tick == 3


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('time = "time"', 'time = "dropoff"', r"\[input\] time was 'time'"),
        ('["lon", "lat"]', '["lat", "lon"]', "coordinates|domain"),
        ('time = "time"', 'time = "time"\nsign = "sign"', "sign|insert_only"),
        ("start = 2024-03-01", "start = 2024-03-02", r"\[ticks\] start"),
        ('every = "1d"', 'every = "12h"', r"\[ticks\] every"),
        ('time = "time"', 'time = "time"\ntime_format = "%d.%m.%Y"', "time_format"),
        ('time = "time"', 'time = "time"\ndecimal = ","', "decimal"),
        ("[0, 10]", "[0, 11]", "domain"),
        ("epsilon = 20.0", "epsilon = 30.0", "epsilon"),
        ('releases = "out"', 'releases = "elsewhere"', "has none of them"),
        ('releases = "out"', 'releases = "out"\nformat = "csv"', "begun with format 'parquet'"),
    ],
)
def test_what_was_said_once_stays_said(tmp_path: Path, old: str, new: str, named: str) -> None:
    prepare(tmp_path)
    write_day(tmp_path, 1)
    at(tmp_path, datetime(2024, 3, 2, 3))
    before = sorted(path.name for path in (tmp_path / "private").iterdir())
    prepare(tmp_path, **{old: new})
    write_day(tmp_path, 2)
    with pytest.raises(StateError, match=named):
        at(tmp_path, datetime(2024, 3, 3, 3))
    assert sorted(path.name for path in (tmp_path / "private").iterdir()) == before
    assert not (tmp_path / "elsewhere" / "cells").exists()
    prepare(tmp_path)
    assert at(tmp_path, datetime(2024, 3, 3, 3)).last_tick == 2


def test_a_user_column_cannot_change(tmp_path: Path) -> None:
    user = {'unit = "event"': 'unit = { type = "user", inserts = 2 }', 'time = "time"': 'time = "time"\nuser = "lon"'}
    prepare(tmp_path, **user)
    write_day(tmp_path, 1)
    at(tmp_path, datetime(2024, 3, 2, 3))
    prepare(tmp_path, **(user | {'time = "time"': 'time = "time"\nuser = "lat"'}))
    with pytest.raises(StateError, match=r"\[input\] user was 'lon'.*bound anew"):
        at(tmp_path, datetime(2024, 3, 3, 3))


def test_going_on_in_a_new_folder(tmp_path: Path) -> None:
    prepare(tmp_path)
    for day in (1, 2):
        write_day(tmp_path, day)
    at(tmp_path, datetime(2024, 3, 3, 3))
    prepare(tmp_path, **{'releases = "out"': 'releases = "more"'})
    write_day(tmp_path, 3)
    report = at(tmp_path, datetime(2024, 3, 4, 3), new_folder=True)
    assert report.missing == []
    assert sorted(p.name for p in (tmp_path / "more" / "cells").iterdir()) == [
        "tick-00002.parquet",
        "tick-00003.parquet",
    ]
    assert json.loads((tmp_path / "more" / "manifest.json").read_text())["last_tick"] == 3


def test_a_missing_release_is_said_and_the_last_one_is_restored(tmp_path: Path) -> None:
    prepare(tmp_path)
    for day in (1, 2, 3):
        write_day(tmp_path, day)
    at(tmp_path, datetime(2024, 3, 4, 3))
    kept = (tmp_path / "out" / "points" / "tick-00003.parquet").read_bytes()
    (tmp_path / "out" / "points" / "tick-00003.parquet").unlink()
    (tmp_path / "out" / "cells" / "tick-00001.parquet").unlink()
    report = at(tmp_path, datetime(2024, 3, 4, 3))
    assert report.missing == [1]
    assert any("lacks files of tick(s) 1." in line for line in report.summary())
    assert (tmp_path / "out" / "points" / "tick-00003.parquet").read_bytes() == kept


def test_a_restored_backup_of_the_private_folder_is_told_by_the_releases(tmp_path: Path) -> None:
    prepare(tmp_path)
    write_day(tmp_path, 1)
    at(tmp_path, datetime(2024, 3, 2, 3))
    shutil.copytree(tmp_path / "private", tmp_path / "backup")
    write_day(tmp_path, 2)
    at(tmp_path, datetime(2024, 3, 3, 3))
    shutil.rmtree(tmp_path / "private")
    shutil.move(tmp_path / "backup", tmp_path / "private")
    (tmp_path / "private").chmod(0o700)
    (tmp_path / "out" / "manifest.json").write_text(
        (tmp_path / "out" / "manifest.json").read_text().replace('"last_tick": 2', '"last_tick": 1')
    )
    with pytest.raises(StateError, match="releases up to tick 2, but the state is at tick 1"):
        at(tmp_path, datetime(2024, 3, 3, 3))


class TestARunThatNeverBegan:
    def test_a_missing_file_leaves_no_promise(self, tmp_path: Path) -> None:
        prepare(tmp_path, **{'"events/*.csv"': '"events/2024-03-01.csv"'})
        with pytest.raises(InputError, match="there is no file"):
            at(tmp_path, datetime(2024, 3, 2, 3))
        assert sorted(p.name for p in tmp_path.iterdir()) == ["stream.toml"]
        prepare(tmp_path, **{"epsilon = 20.0": "epsilon = 3.0"})
        write_day(tmp_path, 1)
        assert at(tmp_path, datetime(2024, 3, 2, 3)).last_tick == 1

    def test_a_wrong_column_in_the_second_file_is_found_before_the_first_tick(self, tmp_path: Path) -> None:
        prepare(tmp_path)
        write_day(tmp_path, 1)
        second = write_day(tmp_path, 2)
        second.write_text(second.read_text().replace("lat", "latitude", 1))
        with pytest.raises(InputError, match=r"2024-03-02.csv has no column 'lat'"):
            at(tmp_path, datetime(2024, 3, 4, 3))
        assert sorted(p.name for p in tmp_path.iterdir()) == ["events", "stream.toml"]
