"""`phdstream run`: files in, releases out; bad input of every kind; interrupted at any instant."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import ConfigError, InputError, PhdstreamError, StateError, UnusableError
from phdstream.streams.durable.locked_folder import LockedFolder
from tests.thorough import cases

DAY = np.timedelta64(1, "D")
START = np.datetime64("2024-03-01", "us")
CONFIG = """
[input]
files = "{file}"
time = "time"
coordinates = ["lon", "lat"]
{input}
[ticks]
{ticks}
[domain]
type = "box"
bounds = [[0, 10], [40, 50]]
depth = 10
[privacy]
epsilon = {epsilon}
unit = {unit}
[output]
releases = "out"
state = "private"
{more}
"""
TICKS = 'every = "1d"\nstart = 2024-03-01\nend = 2024-03-07'
SIMULATED = "[simulation]\nseed = 1"


def table(days: int = 6, per_day: int = 100, seed: int = 0, **columns: Any) -> pa.Table:
    rng = np.random.default_rng(seed)
    n = days * per_day
    time_of = START + np.sort(rng.uniform(0, days, n)) * DAY
    basic = {"time": time_of, "lon": rng.uniform(0, 10, n), "lat": rng.uniform(40, 50, n)}
    return pa.table(basic | columns)


def write(folder: Path, data: pa.Table | None = None, name: str = "events.parquet", **options: Any) -> Path:
    data = table() if data is None else data
    (pq.write_table if name.endswith("parquet") else pyarrow.csv.write_csv)(data, folder / name)
    return write_config(folder, name, **options)


def write_config(folder: Path, name: str = "events.parquet", **options: Any) -> Path:
    defaults = {"file": name, "input": "", "ticks": TICKS, "epsilon": 1.0, "unit": '"event"', "more": ""}
    path = folder / "stream.toml"
    path.write_text(CONFIG.format(**(defaults | options)))
    return path


def released(folder: Path, part: str = "cells") -> list[pa.Table]:
    return [pq.read_table(path) for path in sorted((folder / "out" / part).glob("*.parquet"))]


def totals(folder: Path) -> list[float]:
    return [sum(cells["unbiased"].to_pylist()) for cells in released(folder)]


class TestWhatComesOut:
    @pytest.mark.parametrize("name", ["events.parquet", "events.csv"])
    def test_one_file_of_points_and_one_of_cells_per_tick(self, tmp_path: Path, name: str) -> None:
        seen: list[Any] = []
        report = run(load_config(write(tmp_path, name=name)), lambda tick, total: seen.append((tick, total)))
        assert (report.first_tick, report.last_tick) == (1, 6)
        assert seen == [(t, 6) for t in range(1, 7)]
        points, cells = released(tmp_path, "points"), released(tmp_path)
        assert [t.num_rows > 0 for t in points] == [True] * 6
        assert points[-1].column_names == ["tick", "lon", "lat"]
        assert cells[-1].column_names[:7] == ["tick", "node", "level", "lon_min", "lat_min", "lon_max", "lat_max"]
        assert totals(tmp_path)[-1] == pytest.approx(600, abs=200)

    def test_csv_and_parquet_mean_the_same(self, tmp_path: Path) -> None:
        for name in ("events.parquet", "events.csv"):
            (tmp_path / name).mkdir()
            run(load_config(write(tmp_path / name, name=name, more=SIMULATED)))
        first, second = ([t.to_pydict() for t in released(tmp_path / n)] for n in ("events.parquet", "events.csv"))
        assert first == second

    def test_the_manifest_states_the_promise(self, tmp_path: Path) -> None:
        run(load_config(write(tmp_path)))
        manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
        assert manifest["epsilon"] == 1.0
        assert manifest["unit"] == {"type": "event"}
        assert manifest["domain"]["bounds"] == [[0.0, 10.0], [40.0, 50.0]]
        assert manifest["ticks"] == {
            "start": "2024-03-01T00:00:00",
            "end": "2024-03-07T00:00:00",
            "every_seconds": 86400.0,
        }
        assert manifest["last_tick"] == 6
        assert manifest["version"]
        assert "1-differentially private" in manifest["privacy"]

    def test_no_private_number_is_published(self, tmp_path: Path) -> None:
        data = table(lon=np.full(600, 99.0))  # all outside: 600 dropped
        report = run(load_config(write(tmp_path, data)), anyway=True)
        assert any("600 rows are outside" in note for note in report.private_notes)
        published = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
        manifest = (tmp_path / "out" / "manifest.json").read_text()
        assert "600" not in manifest
        assert {path.suffix for path in published} == {".parquet", ".json"}

    def test_simulation_and_row_ticks_are_marked(self, tmp_path: Path) -> None:
        run(load_config(write(tmp_path, ticks="rows = 150", more=SIMULATED)))
        assert len(released(tmp_path)) == 4
        for part in ("points", "cells"):
            assert released(tmp_path, part)[0].schema.metadata[b"privacy"] == b"simulated, not private"
        manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
        assert manifest["privacy"] == "simulated, not private"
        assert "not private" in manifest["ticks"]["note"]

    def test_signs_users_windows_and_starts(self, tmp_path: Path) -> None:
        sign = np.where(np.arange(600) % 3 == 2, -1, 1)
        data = table(sign=sign, who=pa.array([f"u{i % 50}" for i in range(600)]))
        config = write(
            tmp_path,
            data,
            input='sign = "sign"\nuser = "who"',
            unit='{ type = "user", inserts = 3, deletes = 3 }',
            epsilon=50.0,
            more="[stream]\nstart_after = 3\nmethod = 'phdstream'\ncounter = 'block'",
        )
        report = run(load_config(config))
        assert len(released(tmp_path)) == 4  # ticks 3 to 6
        assert any("beyond their user's bound" in note for note in report.private_notes)
        windowed = tmp_path / "w"
        windowed.mkdir()
        run(load_config(write(windowed, epsilon=50.0, more="[stream]\nwindow = 2")))
        assert totals(windowed) == pytest.approx([100, 200, 200, 200, 200, 200], abs=30)

    def test_events_fall_into_the_tick_of_the_clock(self, tmp_path: Path) -> None:
        """Midnight belongs to the new day; before the start and after the end nothing counts."""
        moments = ["2024-02-29T23:59:59", "2024-03-01T00:00:00", "2024-03-01T23:59:59.999999", "2024-03-02T00:00:00"]
        data = pa.table(
            {
                "time": np.repeat(np.array([*moments, "2024-03-07T00:00:00"], dtype="datetime64[us]"), 1000),
                "lon": np.full(5000, 5.0),
                "lat": np.full(5000, 45.0),
            }
        )
        report = run(load_config(write(tmp_path, data, epsilon=50.0)))
        assert totals(tmp_path)[:2] == pytest.approx([2000, 3000], abs=30)
        assert any(note.startswith("1000 rows are before the first tick") for note in report.private_notes)
        assert any(note.startswith("1000 rows are after the last tick") for note in report.private_notes)

    def test_time_zones(self, tmp_path: Path) -> None:
        data = table().set_column(0, "time", table()["time"].cast(pa.timestamp("us", "UTC")))
        ticks = 'every = "1d"\nstart = 2024-03-01T02:00:00+02:00\nend = 2024-03-07T02:00:00+02:00'
        run(load_config(write(tmp_path, data, ticks=ticks)))
        other = tmp_path / "other"
        other.mkdir()
        with pytest.raises(InputError, match="time zone"):
            run(load_config(write(other, data)))

    def test_several_files_in_order(self, tmp_path: Path) -> None:
        whole = table()
        pq.write_table(whole.slice(0, 250), tmp_path / "a.parquet")
        pyarrow.csv.write_csv(whole.slice(250), tmp_path / "b.csv")
        config = write(tmp_path, whole, more=SIMULATED)
        config.write_text(config.read_text().replace('"events.parquet"', '["a.parquet", "b.csv"]'))
        run(load_config(config))
        assert len(released(tmp_path)) == 6

    def test_dates_without_a_time(self, tmp_path: Path) -> None:
        days = table()["time"].cast(pa.date32(), safe=False)
        run(load_config(write(tmp_path, table().set_column(0, "time", days))))
        assert len(released(tmp_path)) == 6


class TestBadConfiguration:
    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("epsilon = 1.0", "epsilom = 1.0", "did you mean 'epsilon'"),
            ("[privacy]", "[privcy]", "did you mean 'privacy'"),
            ("epsilon = 1.0", "epsilon = 0", "positive, finite"),
            ("epsilon = 1.0", "epsilon = nan", "positive, finite"),
            ("epsilon = 1.0", "", "needs 'epsilon'"),
            ('unit = "event"', 'unit = "evnt"', "did you mean 'event'"),
            ('unit = "event"', 'unit = { type = "user", inserts = 2 }', "needs 'user'"),
            ('unit = "event"', 'unit = { type = "user", limit = 2 }', "takes inserts and deletes"),
            ('type = "box"', 'type = "boxx"', "did you mean 'box'"),
            ("depth = 10", "depth = 100", "depth must be"),
            ("bounds = [[0, 10], [40, 50]]", "bounds = [[10, 0], [40, 50]]", "low below high"),
            ("bounds = [[0, 10], [40, 50]]", "", "bounds"),
            ('every = "1d"', 'every = "1 day"', "not a length of time"),
            ('every = "1d"', "", "needs every"),
            ("end = 2024-03-07", "end = 2024-03-01", "whole number of ticks"),
            ("start = 2024-03-01", 'start = "2024-03-01"', "without quotes"),
            ('every = "1d"', "rows = 100", "not private"),
            ('state = "private"', 'state = "out/private"', "must lie outside releases"),
            ('coordinates = ["lon", "lat"]', 'coordinates = "lon"', "list of column names"),
            ('coordinates = ["lon", "lat"]', 'coordinates = ["lon"]', "names 1 column.* has 2 coordinates"),
            ("[output]", "[stream]\nwindow = 3\n[output]", "no 'sign'"),
            ("[output]", "[stream]\nmethod = 'trackin'\n[output]", "did you mean 'tracking'"),
            ("[output]", "[stream]\ncounter = 'block'\n[output]", "an option of PHDStream"),
            ("[output]", "[output", "not valid TOML"),
            ("[domain]", '[input]\nfiles = "x"\n[domain]', "not valid TOML"),
        ],
    )
    def test_each_mistake_has_its_message(self, tmp_path: Path, old: str, new: str, message: str) -> None:
        path = write(tmp_path)
        text = path.read_text()
        assert old in text
        if "window" in new:
            text = text.replace('time = "time"', 'time = "time"\nsign = "sign"')
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(ConfigError, match=message):
            load_config(path)

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="no configuration file"):
            load_config(tmp_path / "nothing.toml")


class TestBadInput:
    def check(self, folder: Path, message: str, config: Path) -> None:
        with pytest.raises(PhdstreamError, match=message):
            run(load_config(config))
        assert released(folder) == []  # nothing half-written

    def test_unknown_column(self, tmp_path: Path) -> None:
        self.check(
            tmp_path,
            "no column 'lat': did you mean 'latt'",
            write(tmp_path, table().rename_columns(["time", "lon", "latt"])),
        )

    def test_missing_file(self, tmp_path: Path) -> None:
        self.check(tmp_path, "there is no file", write_config(tmp_path))

    @pytest.mark.parametrize("name", ["events.parquet", "events.csv"])
    def test_empty_file(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).touch()
        self.check(tmp_path, "empty, cut off", write_config(tmp_path, name))

    def test_no_rows_is_a_stream_without_events_if_that_is_meant(self, tmp_path: Path) -> None:
        config = load_config(write(tmp_path, table().slice(0, 0)))
        with pytest.raises(UnusableError, match=r"no row at all.*Nothing was spent"):
            run(config)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["events.parquet", "stream.toml"]
        report = run(config, anyway=True)
        assert len(released(tmp_path)) == 6
        assert any("no row" in note for note in report.private_notes)

    def test_truncated_parquet(self, tmp_path: Path) -> None:
        config = write(tmp_path)
        file = tmp_path / "events.parquet"
        file.write_bytes(file.read_bytes()[:-100])
        self.check(tmp_path, "not a whole Parquet file", config)

    def test_text_where_numbers_belong(self, tmp_path: Path) -> None:
        text = [str(x) for x in table()["lat"].to_pylist()]
        text[7] = "north"
        for name in ("events.csv", "events.parquet"):
            config = write(tmp_path, table(lat=pa.array(text)), name=name)
            self.check(tmp_path, "column 'lat' has text where a number belongs, first in data row 8", config)

    def test_numbers_where_times_belong(self, tmp_path: Path) -> None:
        self.check(tmp_path, "not times", write(tmp_path, table().set_column(0, "time", pa.array(np.arange(600)))))

    def test_text_that_is_no_time(self, tmp_path: Path) -> None:
        text = [str(t) for t in table()["time"].to_pylist()]
        text[3] = "yesterday"
        self.check(tmp_path, "not a time", write(tmp_path, table().set_column(0, "time", pa.array(text)), "events.csv"))

    def test_the_order_of_rows_does_not_matter(self, tmp_path: Path) -> None:
        for name, order in (("a", np.arange(600)), ("b", np.arange(600)[::-1])):
            (tmp_path / name).mkdir()
            run(load_config(write(tmp_path / name, table().take(pa.array(order)), more=SIMULATED)))
        first, second = ([t.to_pydict() for t in released(tmp_path / name)] for name in ("a", "b"))
        assert first == second

    def test_bad_rows_can_be_dropped(self, tmp_path: Path) -> None:
        rows = table(sign=pa.array(["1"] * 597 + ["0", "x", ""])).to_pylist()
        lines = ["time,lon,lat,sign"] + [f"{r['time']},{r['lon']},{r['lat']},{r['sign']}" for r in rows]
        lines[1] = "not a time,1,41,1"
        lines[2] = f"{rows[1]['time']},east,41,1"
        lines[3] = f"{rows[2]['time']},,41,1"  # missing
        lines[4] = f"{rows[3]['time']},77,41,1"
        lines.insert(5, "one,column,too,many,here")
        (tmp_path / "events.csv").write_text("\n".join(lines) + "\n")
        config = write_config(tmp_path, "events.csv", input='sign = "sign"\nbad_rows = "drop"')
        report = run(load_config(config))
        unread = [note for note in report.private_notes if "rows could not be read" in note]
        assert sum(int(note.split()[0]) for note in unread) == 7
        assert any(note.startswith("1 rows are outside") for note in report.private_notes)

    def test_signs_that_are_none(self, tmp_path: Path) -> None:
        config = write(tmp_path, table(sign=np.full(600, 2)), input='sign = "sign"')
        self.check(tmp_path, "must be \\+1 or -1", config)

    def test_missing_users(self, tmp_path: Path) -> None:
        who = pa.array([None] + ["u"] * 599)
        config = write(tmp_path, table(who=who), input='user = "who"', unit='{ type = "user", inserts = 2 }')
        self.check(tmp_path, "without a user", config)

    def test_deletes_of_what_was_never_inserted(self, tmp_path: Path) -> None:
        report = run(load_config(write(tmp_path, table(sign=np.full(600, -1)), input='sign = "sign"')))
        assert any("600 deletes came where nothing was left" in note for note in report.private_notes)
        assert all(sum(cells["count"].to_pylist()) >= 0 for cells in released(tmp_path))

    def test_an_output_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "out").write_text("a file is in the way")
        with pytest.raises(InputError, match="cannot be written"):
            run(load_config(write(tmp_path)))


class TestResume:
    def test_a_finished_run_has_nothing_left_to_do(self, tmp_path: Path) -> None:
        config = write(tmp_path)
        run(load_config(config))
        before = digests(tmp_path)
        report = run(load_config(config))
        assert report.last_tick == 6 < report.first_tick
        assert digests(tmp_path) == before

    def test_a_full_disk_at_publication_is_mended_by_the_next_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = write(tmp_path)
        real, calls = LockedFolder.replace, [0]

        def full_at_the_eighth(*args: Any) -> None:
            calls[0] += args[1] != "committed" and "state" not in args[1]
            if calls[0] == 8:
                raise OSError(errno.ENOSPC, "No space left on device")
            real(*args)

        with monkeypatch.context() as patch:
            patch.setattr(LockedFolder, "replace", full_at_the_eighth)
            with pytest.raises(StateError, match="No space left"):
                run(load_config(config))
        before = digests(tmp_path)
        run(load_config(config))
        after = digests(tmp_path)
        assert len(released(tmp_path)) == len(released(tmp_path, "points")) == 6
        assert all(after[name] == digest for name, digest in before.items() if name != "manifest.json")

    def test_more_rows_for_old_ticks_are_not_counted_and_the_operator_is_told(self, tmp_path: Path) -> None:
        config = write(tmp_path, ticks=TICKS.replace("03-07", "03-05"))
        run(load_config(config))
        pq.write_table(table(per_day=120), tmp_path / "events.parquet")
        config.write_text(config.read_text().replace("2024-03-05", "2024-03-07"))
        with pytest.raises(StateError, match="gone from it, altered or more"):
            run(load_config(config))
        (tmp_path / "events.parquet").rename(tmp_path / "more.parquet")
        config.write_text(config.read_text().replace("events.parquet", "more.parquet"))
        report = run(load_config(config))
        assert (report.first_tick, report.last_tick) == (5, 6)
        assert any("of ticks that an earlier run released" in note for note in report.private_notes)

    def test_a_lost_state_does_not_start_over(self, tmp_path: Path) -> None:
        config = write(tmp_path)
        run(load_config(config))
        for path in (tmp_path / "private").iterdir():
            path.unlink()
        with pytest.raises(StateError, match="releases up to tick 6"):
            run(load_config(config))

    @pytest.mark.parametrize(
        ("old", "new"), [("start = 2024-03-01", "start = 2024-02-29"), ('every = "1d"', 'every = "2d"')]
    )
    def test_ticks_cut_otherwise_do_not_go_on(self, tmp_path: Path, old: str, new: str) -> None:
        """Events of a released tick would fall into one still to come, and be counted twice."""
        config = write(tmp_path, ticks=TICKS.replace("03-07", "03-05"))
        run(load_config(config))
        config.write_text(config.read_text().replace(old, new))
        with pytest.raises(StateError, match="counted twice"):
            run(load_config(config))
        assert len(released(tmp_path)) == 4

    def test_another_promise_does_not_go_on(self, tmp_path: Path) -> None:
        run(load_config(write(tmp_path)))
        with pytest.raises(StateError, match="epsilon"):
            run(load_config(write(tmp_path, epsilon=2.0)))

    @pytest.mark.slow
    def test_killed_at_random_instants_it_ends_as_if_never_killed(self, tmp_path: Path) -> None:
        """Every release once published keeps its bits, and at the end all ticks are there."""
        ticks = 'every = "1h"\nstart = 2024-03-01\nend = 2024-03-07'
        config = write(tmp_path, ticks=ticks)
        rng = np.random.default_rng(int.from_bytes(os.urandom(4), "big"))
        seen: dict[str, str] = {}
        for _ in range(cases(5, 60)):
            command = [sys.executable, "-m", "phdstream", "run", str(config)]
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(float(rng.uniform(0.3, 1.2)))
            child.send_signal(signal.SIGKILL)
            status = child.wait()
            now = digests(tmp_path)
            assert all(now[name] == digest for name, digest in seen.items())
            changing = {"manifest.json"} if released(tmp_path) else {"manifest.json", "stream.json"}
            seen = {name: digest for name, digest in now.items() if name not in changing}
            if status == 0:
                break
        run(load_config(config))
        assert len(released(tmp_path)) == len(released(tmp_path, "points")) == 144
        assert not list((tmp_path / "out").rglob("*.tmp"))


def digests(folder: Path) -> dict[str, str]:
    """What is published, by name."""
    files = [p for p in sorted((folder / "out").rglob("*")) if p.suffix in (".parquet", ".json")]
    return {
        p.name + p.parent.name * (p.suffix == ".parquet"): hashlib.sha256(p.read_bytes()).hexdigest() for p in files
    }


@pytest.mark.parametrize(("per_day", "warned"), [(5, True), (2000, False)])
def test_a_release_that_is_expected_to_be_of_no_use_is_warned_of(tmp_path: Path, per_day: int, warned: bool) -> None:
    data = table(per_day=per_day)
    crowd = pa.array(data["lon"].to_numpy() * 0.1)  # all in a tenth of the width
    report = run(load_config(write(tmp_path, data.set_column(1, "lon", crowd))))
    assert ("Warning: At this ε the release is expected to be no better" in "\n".join(report.summary())) == warned
