"""`phdstream report CONFIG.toml`: the private part says what only the custodian may know; the public one does not."""

from __future__ import annotations

import hashlib
import html
import re
import stat
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phdstream.app.config import Config, load_config
from phdstream.app.custodian import private_report, write_custodian_report
from phdstream.app.run import run
from phdstream.errors import InputError, StateError
from phdstream.streams.durable.stream import durable
from tests.app.commands import phdstream
from tests.page.folders import HOSTILE, write_layer

CONFIG = """
[input]
files = "events.csv"
time = "time"
coordinates = ["lon", "lat"]
user = "who"
[ticks]
every = "1d"
start = 2024-03-01
end = 2024-03-05
[domain]
type = "box"
bounds = [[-74.03, -73.90], [40.69, 40.89]]
crs = "EPSG:4326"
[privacy]
epsilon = 2.0
unit = { type = "user", inserts = 2, deletes = 1 }
[stream]
window = 2
[output]
releases = "out"
state = "private"
[account]
folder = "account"
population = "riders"
epsilon = 4.0
"""
NOW = datetime(2024, 4, 1)


def begun(base: Path, text: str = CONFIG) -> Path:
    """Run a stream of 4 days; ann comes on all of them, twice more than she may."""
    rng, lines = np.random.default_rng(1), ["time,lon,lat,who"]
    for day in range(1, 5):
        lines += [f"2024-03-0{day} 08:00:00,{x:.4f},{y:.4f},u{day}-{i}" for i, (x, y) in enumerate(_places(rng, 317))]
        lines += [f"2024-03-0{day} 09:00:00,-73.98,40.75,ann"]
    (base / "events.csv").write_text("\n".join(lines) + "\n")
    (base / "stream.toml").write_text(text)
    write_layer(base / "wards.geojson")
    run(load_config(base / "stream.toml"), now=NOW)
    return base / "stream.toml"


def _places(rng: np.random.Generator, number: int) -> Any:
    return np.clip(rng.normal((-73.98, 40.76), 0.015, (number, 2)), (-74.02, 40.70), (-73.91, 40.88))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begun(tmp_path_factory.mktemp("custodian"))


def text_of(page: Path) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page.read_text())))


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()}


def test_it_says_what_the_operator_must_know(config: Path, tmp_path: Path) -> None:
    page = write_custodian_report(load_config(config), tmp_path / "p.html", config.parent / "wards.geojson", "Riders")
    text = text_of(page)
    assert text.count("PRIVATE") >= 2
    assert "Ticks taken 4 Releases 4 in out" in text
    assert "Beyond a user's bound 2: counted nowhere" in text
    assert "1,269 seen; 1 have used all their inserts" in text
    assert re.search(r"4 2024-03-04 [\d,]+ [\d,]+ to [\d,]+ 318 ", text)
    assert "Drawn: 2 by 1 stream. Left: 2." in text
    assert "small: 0.03% of the domain each" in text
    assert "The park" in text
    assert HOSTILE not in page.read_text()
    assert page.read_text().count("data:image/png") == 2
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_it_loads_nothing_and_runs_nothing(config: Path, tmp_path: Path) -> None:
    page = write_custodian_report(load_config(config), tmp_path / "p.html").read_text()
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert not re.search(r"https?://", page)


def test_the_stream_is_left_as_it_is(config: Path, tmp_path: Path) -> None:
    before = [digests(config.parent / name) for name in ("private", "out", "account")]
    write_custodian_report(load_config(config), tmp_path / "p.html")
    assert [digests(config.parent / name) for name in ("private", "out", "account")] == before


@pytest.mark.slow
def test_the_command_writes_two_files_apart(config: Path) -> None:
    done = phdstream("report", "stream.toml", "--layer", "wards.geojson", cwd=config.parent)
    assert done.returncode == 0, done.stderr
    kept, public = private_report(config), config.parent / "report.html"
    assert f"PRIVATE, for the custodian only: {kept}" in done.stderr.replace("\n", "")
    assert "PRIVATE" not in done.stdout
    assert "have used all their inserts" in kept.read_text()
    for word in ("used all their inserts", "Events read", "over_bound", "riders", "Beyond a user"):
        assert word not in public.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.slow
def test_a_folder_has_no_private_part(config: Path) -> None:
    done = phdstream("report", "out", "--private", "p.html", cwd=config.parent)
    assert done.returncode == 1
    assert "name the stream's CONFIG.toml" in done.stderr


def test_a_stream_that_has_not_begun(tmp_path: Path) -> None:
    (tmp_path / "stream.toml").write_text(CONFIG)
    with pytest.raises(InputError, match="has not begun"):
        write_custodian_report(load_config(tmp_path / "stream.toml"), tmp_path / "p.html")
    assert [path.name for path in tmp_path.iterdir()] == ["stream.toml"]


def test_while_it_is_in_use(config: Path, tmp_path: Path) -> None:
    checked = load_config(config)
    with durable(checked.state, checked.stream()), pytest.raises(StateError, match="two must not"):
        write_custodian_report(checked, tmp_path / "p.html")


def test_missing_releases_are_named(tmp_path: Path) -> None:
    config = begun(tmp_path)
    (tmp_path / "out" / "estimates" / "tick-00002.parquet").unlink()
    text = text_of(write_custodian_report(load_config(config), tmp_path / "p.html"))
    assert "Missing ticks 2: released once, and to be put back from a copy" in text


def test_named_places_have_a_report_and_no_map(tmp_path: Path) -> None:
    domain = '[domain]\ntype = "hierarchy"\nplaces = "places.csv"\n'
    text = re.sub(r"\[domain\][^\[]*bounds[^\n]*\n[^\n]*\n", domain, CONFIG)
    text = text.replace('["lon", "lat"]', '["place"]')
    (tmp_path / "places.csv").write_text("state,place\nNY,Bellevue\nNY,Harlem\nCA,Kaiser\n")
    lines = [f"2024-03-0{day} 08:00:00,NY/Harlem,u{day}{i}" for day in range(1, 5) for i in range(60)]
    (tmp_path / "events.csv").write_text("\n".join(["time,place,who", *lines]) + "\n")
    (tmp_path / "stream.toml").write_text(text)
    config: Config = load_config(tmp_path / "stream.toml")
    run(config, now=NOW)
    shown = text_of(write_custodian_report(config, tmp_path / "p.html"))
    assert "How accurate it is expected to be" in shown
    assert re.search(r"4 2024-03-04 [\d,]+ [\d,]+ to [\d,]+ 60 ", shown)


def test_rows_have_their_place_on_the_map_and_their_attributes_in_tables(tmp_path: Path) -> None:
    """What was dropped of files is said too: a value in no list, a place outside, what cannot be read, other times."""
    domain = '[domain]\ntype = "product"\n[domain.place]\ntype = "box"\nbounds = [[-74.03, -73.90], [40.69, 40.89]]\n'
    domain += '[[domain.attributes]]\ntype = "category"\nname = "fare"\nvalues = ["single", "day"]\n'
    text = re.sub(r"\[domain\][^\[]*bounds[^\n]*\n[^\n]*\n", domain, CONFIG).replace(
        'user = "who"', 'bad_rows = "drop"'
    )
    text = re.sub(r"unit = .*", 'unit = "event"', text).split("[account]")[0]
    rng = np.random.default_rng(1)
    lines = [f"2024-03-0{1 + i % 4} 08:00:00,{x:.4f},{y:.4f},{'single' if i % 3 else 'day'}"
             for i, (x, y) in enumerate(_places(rng, 900))]  # fmt: skip
    lines += ["2024-03-01 08:00:00,-73.95,40.75,month"] * 5 + ["2024-03-02 08:00:00,-70.0,40.75,day"] * 4
    lines += ["yesterday,-73.95,40.75,day"] * 3 + ["2024-02-02 08:00:00,-73.95,40.75,day"] * 2
    (tmp_path / "events.csv").write_text("\n".join(["time,lon,lat,fare", *lines]) + "\n")
    (tmp_path / "stream.toml").write_text(text)
    write_layer(tmp_path / "wards.geojson")
    run(load_config(tmp_path / "stream.toml"), now=NOW)
    with (tmp_path / "events.csv").open("a") as file:
        file.write("2024-03-03 23:00:00,-73.95,40.75,day\n")
    run(load_config(tmp_path / "stream.toml"), now=NOW)
    done = phdstream("report", "stream.toml", "--layer", "wards.geojson", cwd=tmp_path)
    assert "report.html" in done.stdout.replace("\n", ""), done.stderr
    page = private_report(tmp_path / "stream.toml")
    shown = text_of(page)
    assert page.read_text().count("data:image/png") == 2
    assert re.search(r"By fare fare Count 95% interval Margin Of it noise single [\d,]+ ", shown)
    assert "The park" in shown
    for line in (
        "Could not be read 3:", "Outside the domain 9: another place, or a value", "Before the first tick 2:",
        "Too late 1: their tick was released already",
    ):  # fmt: skip
        assert line in shown, line
