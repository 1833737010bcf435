"""What an operator gets wrong, and what is said about it; and `phdstream check`, which looks before it spends."""

from __future__ import annotations

import stat
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phdstream.app.check import check, private_picture
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import ConfigError, PhdstreamError, UnusableError
from tests.app.commands import phdstream, phdstream_process

pytestmark = pytest.mark.slow

CONFIG = """
[input]
files = "{file}"
time = "time"
coordinates = ["lon", "lat"]
{input}
[ticks]
every = "1d"
start = {start}
end = {end}
[domain]
type = "box"
bounds = [[-74.3, -73.7], [40.5, 41.0]]
[privacy]
epsilon = 1.0
unit = {unit}
[output]
releases = "out"
state = "private"
{more}
"""


def rows() -> list[str]:
    rng = np.random.default_rng(0)
    times = [f"2024-03-0{1 + h // 24} {h % 24:02d}:00:00" for h in range(72)] * 4
    return [
        f"{time},{x:.4f},{y:.4f},u{i % 30}"
        for i, (time, x, y) in enumerate(
            zip(times, rng.uniform(-74.1, -73.9, 288), rng.uniform(40.6, 40.9, 288), strict=True)
        )
    ]


def prepare(folder: Path, lines: list[str] | None = None, content: bytes | None = None, **options: Any) -> Path:
    text = "\n".join(["time,lon,lat,who", *(rows() if lines is None else lines)]) + "\n"
    (folder / "events.csv").write_bytes(text.encode() if content is None else content)
    defaults = {"file": "events.csv", "input": "", "unit": '"event"', "more": ""}
    defaults |= {"start": "2024-03-01", "end": "2024-03-04"}
    (folder / "stream.toml").write_text(CONFIG.format(**(defaults | options)))
    return folder / "stream.toml"


def refused(folder: Path, message: str, kind: type[Exception] = PhdstreamError) -> None:
    """A run is refused, and leaves nothing behind."""
    with pytest.raises(kind, match=message) as error:
        run(load_config(folder / "stream.toml"))
    assert not (folder / "private").exists()
    assert not (folder / "out").exists()
    assert "-74" not in str(error.value).replace(str(folder), "")  # no private record


def fields(line: str) -> list[str]:
    return line.split(",")


class TestMistakes:
    def test_swapped_coordinates(self, tmp_path: Path) -> None:
        prepare(tmp_path, [",".join([f[0], f[2], f[1], f[3]]) for f in map(fields, rows())])
        refused(tmp_path, "longitude and latitude in the right order.*Nothing was spent", UnusableError)

    def test_feet_where_degrees_belong(self, tmp_path: Path) -> None:
        prepare(tmp_path, [f"{fields(r)[0]},985000.5,203000.25,u" for r in rows()])
        refused(tmp_path, "metres or feet, and the domain in degrees", UnusableError)

    def test_a_file_with_a_header_only(self, tmp_path: Path) -> None:
        prepare(tmp_path, [])
        refused(tmp_path, "no row at all", UnusableError)

    def test_the_wrong_year(self, tmp_path: Path) -> None:
        prepare(tmp_path, start="2014-03-01", end="2014-03-04")
        refused(tmp_path, "Is the year of .ticks. right", UnusableError)

    def test_a_future_year_is_not_over(self, tmp_path: Path) -> None:
        prepare(tmp_path, start="2942-03-01", end="2942-03-04")
        report = run(load_config(tmp_path / "stream.toml"))
        assert report.summary()[0].startswith("Nothing to do yet")
        assert not (tmp_path / "private").exists()

    def test_dates_of_another_country(self, tmp_path: Path) -> None:
        lines = [r.replace("2024-03-0", "03/0", 1).replace(" ", "/2024 ", 1) for r in rows()]
        prepare(tmp_path, lines)
        refused(tmp_path, "not a time such as .*time_format")
        prepare(tmp_path, lines, input='time_format = "%m/%d/%Y %H:%M:%S"')
        assert run(load_config(tmp_path / "stream.toml")).private_notes == []

    def test_no_header(self, tmp_path: Path) -> None:
        prepare(tmp_path, content="\n".join(rows()).encode())
        refused(tmp_path, "no column 'time', nor any other.*first line hold the names")

    def test_a_ragged_row_is_named(self, tmp_path: Path) -> None:
        prepare(tmp_path, [*rows()[:50], "2024-03-01 01:00:00,-74.0", *rows()[50:]])
        refused(tmp_path, "as many columns as the first line, first in data row 51")

    @pytest.mark.parametrize("blank", ["", "n/a", "NaN", "null", "-"])
    def test_blank_coordinates_stop(self, tmp_path: Path, blank: str) -> None:
        prepare(tmp_path, [*rows()[:9], f"2024-03-01 01:00:00,{blank},40.7,u", *rows()[9:]])
        refused(tmp_path, "column 'lon' has rows without a number, first in data row 10")

    def test_times_with_a_zone(self, tmp_path: Path) -> None:
        prepare(tmp_path, [r.replace(":00:00,", ":00:00Z,") for r in rows()])
        refused(
            tmp_path, "have a time zone, but .ticks. start has none: give start a zone, such as 2024-05-31T00:00:00Z"
        )

    def test_semicolons_and_decimal_commas(self, tmp_path: Path) -> None:
        content = "\n".join(line.replace(",", ";").replace(".", ",") for line in ["time,lon,lat,who", *rows()])
        prepare(tmp_path, content=content.encode())
        refused(tmp_path, 'is decimal = "," meant')
        prepare(tmp_path, content=content.encode(), input='decimal = ","')
        report = run(load_config(tmp_path / "stream.toml"))
        assert report.private_notes == []
        assert "separated by semicolons" in report.notes[0]

    @pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig"])
    def test_encodings(self, tmp_path: Path, encoding: str) -> None:
        content = "\n".join(["time,lon,lat,who", *(line + "é" for line in rows())]).encode(encoding)
        user: dict[str, Any] = {"unit": '{ type = "user", inserts = 20 }', "input": 'user = "who"'}
        if encoding == "latin-1":
            prepare(tmp_path, content=content, **user)
            refused(tmp_path, "not UTF-8 .see encoding")
            user["input"] += '\nencoding = "latin-1"'
        prepare(tmp_path, content=content, **user)
        assert run(load_config(tmp_path / "stream.toml")).private_notes == []

    def test_utf_16_is_refused(self, tmp_path: Path) -> None:
        """One byte too many in one row would spoil all rows after it."""
        prepare(tmp_path, content="\n".join(["time,lon,lat,who", *rows()]).encode("utf-16"))
        refused(tmp_path, "save it as UTF-8")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"input": 'user = "who"'}, "protected no better than single events"),
            ({"unit": "[[]]"}, "unit must be"),
            ({"input": 'delimiter = ";;"'}, "one character"),
            ({"input": 'delimiter = ","\ndecimal = ","'}, "cannot both be a comma"),
            ({"input": 'encoding = "klingon"'}, "is not known"),
            ({"input": 'time_format = "noon"'}, "strptime"),
            ({"input": 'time_format = "%m/%d/%Y %H:%m"'}, "strptime"),
            ({"input": 'time_format = "%s"'}, "strptime"),
            ({"input": 'encoding = "utf-16-le"'}, "convert the files"),
            ({"start": "0001-01-01T00:00:00+14:00"}, "in the years"),
            ({"input": 'time_format = "%Y-%m-%d %z"'}, "has no time zone"),
            ({"input": 'memory = "much"'}, "a size such as"),
            ({"input": 'bad_rows = "ignore"'}, '"stop" or "drop"'),
            ({"file": "a\\u0000b.csv"}, "null character"),
            ({"more": "format = 3"}, "must be a non-empty text"),
        ],
    )
    def test_settings(self, tmp_path: Path, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            load_config(prepare(tmp_path, **options))

    def test_releases_inside_the_state(self, tmp_path: Path) -> None:
        path = prepare(tmp_path)
        path.write_text(path.read_text().replace('"out"', '"private/out"'))
        with pytest.raises(ConfigError, match="must lie outside state"):
            load_config(path)

    def test_a_folder_for_a_file_and_a_home_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "Is a directory" in phdstream("run", ".", cwd=tmp_path).stderr
        monkeypatch.setenv("HOME", str(tmp_path))
        config = prepare(tmp_path, file="~/events.csv")
        config.write_text(config.read_text().replace('"out"', '"~/out"'))
        assert run(load_config(config)).last_tick == 3
        assert (tmp_path / "out" / "manifest.json").exists()

    def test_a_state_folder_others_can_read(self, tmp_path: Path) -> None:
        config = prepare(tmp_path)
        (tmp_path / "private").mkdir(mode=0o755)
        (tmp_path / "private").chmod(0o755)
        done = phdstream("run", config)
        assert done.returncode == 1
        assert "chmod 700" in done.stderr


class TestTheLastNet:
    @pytest.mark.slow
    def test_a_terminal_that_cannot_write_greek(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
        done = phdstream_process("run", prepare(tmp_path))
        assert done.returncode == 0, done.stderr
        assert "Released ticks 1 to 3" in done.stdout

    def test_an_error_nobody_foresaw_shows_no_value(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(path: Path) -> None:
            raise KeyError("SECRET-41")

        monkeypatch.setattr("phdstream.app.config.load_config", broken)
        done = phdstream("run", prepare(tmp_path))
        assert done.returncode == 1
        assert "an error that should not happen (KeyError)" in done.stderr
        assert "SECRET-41" not in done.stderr

    def test_a_picture_where_none_can_be(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        done = phdstream("check", prepare(tmp_path), "--picture", tmp_path / "no" / "x.png")
        assert done.returncode == 1
        assert "cannot be written" in done.stderr

    @pytest.mark.slow
    def test_no_room_to_spill(self, tmp_path: Path) -> None:
        config = prepare(tmp_path, rows() * 700, input='memory = "1MB"')
        limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200000,) * 2)"
        code = (
            f"{limit}; import sys; from phdstream.app.cli import main; sys.argv = ['p', 'run', {str(config)!r}]; main()"
        )
        code = "from phdstream.io.sources import events; events.BATCH_ROWS = 1000\n" + code
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "no room in the state folder" in done.stderr
        assert "Traceback" not in done.stderr


class TestWhatARunSays:
    def test_held_until_the_start(self, tmp_path: Path) -> None:
        done = phdstream("run", prepare(tmp_path, more="[stream]\nstart_after = 5"))
        assert done.returncode == 0
        assert "Took ticks 1 to 3. Nothing is released before tick 5" in done.stdout
        assert "Released" not in done.stdout

    def test_exit_status_3_and_anyway(self, tmp_path: Path) -> None:
        config = prepare(tmp_path, [])
        assert phdstream("run", config).returncode == 3
        done = phdstream("run", config, "--anyway")
        assert done.returncode == 0
        assert f"Look at {tmp_path / 'out'}: ticks 1 to 3 are there." in done.stdout

    def test_help(self) -> None:
        done = phdstream("-h")
        assert done.returncode == 0
        assert "Exit status: 0 done" in done.stdout
        assert "--show-completion" in done.stdout
        assert phdstream("run", "--nonsense").returncode == 2

    def test_until(self, tmp_path: Path) -> None:
        done = phdstream("run", prepare(tmp_path), "--until", "2024-03-03")
        assert "Released ticks 1 to 2." in done.stdout
        assert "Tick 3 ends at 2024-03-04 00:00:00" in done.stdout


class TestCheck:
    def test_it_reads_everything_and_spends_nothing(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        config = prepare(tmp_path, [*rows(), "2024-03-02 05:00:00,0,0,u1", "2031-01-01 00:00:00,-74,40.7,u1"])
        done = phdstream("check", config)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("PRIVATE: exact numbers")
        for said in ("rows read: 290", "usable now: 288", "outside the domain: 1", "after the last tick: 1"):
            assert said in done.stdout
        assert done.stdout.count("█") > 30
        assert "to expect: about" in done.stdout
        assert "Ready: a run would take ticks 1 to 3." in done.stdout
        picture = private_picture(config)
        assert stat.S_IMODE(picture.stat().st_mode) == 0o600
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert sorted(p.name for p in tmp_path.iterdir()) == ["events.csv", "stream-check-PRIVATE.png", "stream.toml"]

    def test_users_beyond_their_bound(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {"unit": '{ type = "user", inserts = 2 }', "input": 'user = "who"'}
        report = check(load_config(prepare(tmp_path, **options)))
        assert "beyond their user's bound, so not counted: 228" in report.lines  # 288 less 2 for each of 30

    def test_it_stops_where_a_run_would(self, tmp_path: Path) -> None:
        config = prepare(tmp_path, [",".join([f[0], f[2], f[1], f[3]]) for f in map(fields, rows())])
        done = phdstream("check", config, "--no-picture")
        assert done.returncode == 3
        assert "right order?" in done.stdout
        config = prepare(tmp_path, ["x,y,z,w"] * 5, input='bad_rows = "drop"')
        report = check(load_config(config))
        assert not report.ready
        assert "cannot be read" in report.verdict

    def test_of_a_stream_that_has_begun(self, tmp_path: Path) -> None:
        config = load_config(prepare(tmp_path))
        run(config, until=datetime(2024, 3, 3))
        before = {p: p.read_bytes() for p in (tmp_path / "private").iterdir()}
        report = check(config)
        assert report.verdict == "Ready: a run would take ticks 3 to 3."
        assert "  of ticks released before: 192" in report.lines
        assert {p: p.read_bytes() for p in (tmp_path / "private").iterdir()} == before

    @pytest.mark.parametrize("ticks", [40, 400])
    def test_many_ticks_are_grouped(self, tmp_path: Path, ticks: int) -> None:
        config = prepare(tmp_path)
        config.write_text(config.read_text().replace('"1d"', '"1h"' if ticks == 40 else '"5m"'))
        lines = check(load_config(config)).lines
        assert any(line.startswith("events per ") for line in lines)
        assert len(lines) < 45
