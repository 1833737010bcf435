"""Inputs that differ by one row give admitted events that differ by exactly that row: through files and by hand."""

from __future__ import annotations

import gzip
import json
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import phdstream as phd
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.io.sources import events as events_module
from phdstream.streams.intake import Intake

pytestmark = pytest.mark.slow

gpd = pytest.importorskip("geopandas")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
shapely = pytest.importorskip("shapely")

Row = dict[str, Any]
CONFIG = """
[input]
files = {files}
time = "time"
coordinates = ["lon", "lat"]
sign = "sign"
user = "who"
bad_rows = "drop"
memory = "1MB"
[ticks]
every = "1d"
start = 2024-03-01
end = 2024-03-04
[domain]
type = "box"
bounds = [[0, 10], [40, 50]]
crs = "EPSG:4326"
depth = 40
[privacy]
epsilon = 1.0
unit = {{ type = "user", inserts = 3, deletes = 3 }}
[stream]
method = "phdstream"
[output]
releases = "out"
state = "private"
[simulation]
seed = 1
"""


def base_rows() -> list[Row]:
    rng = np.random.default_rng(5)
    rows = []
    for i in range(40):
        hour = int(rng.integers(0, 72))
        time = f"2024-03-0{1 + hour // 24} {hour % 24:02d}:{int(rng.integers(60)):02d}:00"
        lon, lat = (float(x) for x in rng.uniform((0, 40), (10, 50)).round(6))
        rows.append({"time": time, "lon": lon, "lat": lat, "sign": 1 if i % 4 else -1, "who": f"u{i % 9}"})
    return sorted(rows, key=lambda row: str(row["time"]))


def one_more(**changes: Any) -> Row:
    return {"time": "2024-03-02 12:00:00", "lon": 3.25, "lat": 44.5, "sign": 1, "who": "u3"} | changes


FAR = "2031-01-01 00:00:00"
POSITIONS: dict[str, tuple[Row, int]] = {
    "first": (one_more(time="2024-03-01 00:00:00"), 0),
    "last": (one_more(time="2024-03-03 23:59:59"), 40),
    "a future stamp at the beginning": (one_more(time="2024-03-03 12:00:00"), 0),
    "out of order at the end": (one_more(time="2024-03-01 01:00:00"), 40),
    "at a batch boundary": (one_more(), 16),
    "after the last tick": (one_more(time=FAR), 3),
    "before the first tick": (one_more(time="1999-01-01 00:00:00"), 20),
    "outside": (one_more(lon=99.0), 7),
    "without a time": (one_more(time=None), 8),
    "without a place": (one_more(lon=None), 9),
    "without a user": (one_more(who=None), 10),
    "with a sign that is none": (one_more(sign=7), 11),
    "of a user with an endless name": (one_more(who="x" * 5000), 12),
    "of a new user": (one_more(who="somebody else"), 13),
    "a duplicate": (base_rows()[5], 6),
}
TEXT_ONLY: dict[str, str] = {
    "too few columns": "2024-03-02 12:00:00,1.5",
    "too many columns": "2024-03-02 12:00:00,3.25,44.5,1,u3,and,more",
    "an open quotation mark": '2024-03-02 12:00:00,3.25,44.5,1,"u3',
    "a quotation mark in the middle": '2024-03-02 12:00:00,3.25,44.5,1,u"3',
    "text for a number": "2024-03-02 12:00:00,east,44.5,1,u3",
    "no time at all": "yesterday,3.25,44.5,1,u3",
    "bytes that are no text": "2024-03-02 12:00:00,3.25,44.5,1,\udcff\udcfe",
}


def as_csv(rows: list[Row], delimiter: str = ",") -> str:
    lines = [delimiter.join("" if row[k] is None else str(row[k]) for k in NAMES) for row in rows]
    return "\n".join([delimiter.join(NAMES), *lines]) + "\n"


NAMES = ("time", "lon", "lat", "sign", "who")


def table(rows: list[Row]) -> pa.Table:
    schema = pa.schema(
        [
            ("time", pa.string()),
            ("lon", pa.float64()),
            ("lat", pa.float64()),
            ("sign", pa.int64()),
            ("who", pa.string()),
        ]
    )
    made = pa.Table.from_pylist(rows, schema=schema)
    return made.set_column(0, "time", made["time"].cast(pa.timestamp("us")))


def features(rows: list[Row]) -> list[dict[str, Any]]:
    return [
        {
            "type": "Feature",
            "properties": {k: row[k] for k in ("time", "sign", "who")},
            "geometry": None if row["lon"] is None else {"type": "Point", "coordinates": [row["lon"], row["lat"]]},
        }
        for row in rows
    ]


def geoframe(rows: list[Row]) -> Any:
    points = [None if r["lon"] is None else shapely.Point(r["lon"], r["lat"]) for r in rows]
    columns = {"time": [r["time"] for r in rows], "sign": [r["sign"] for r in rows], "who": [r["who"] for r in rows]}
    return gpd.GeoDataFrame(columns, geometry=points, crs="EPSG:4326")


def to_file(rows: list[Row], path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        geoframe(rows).to_file(path)


FORMATS: dict[str, Callable[[list[Row], Path], Any]] = {
    "a.csv": lambda rows, p: p.write_text(as_csv(rows)),
    "a.tsv": lambda rows, p: p.write_text(as_csv(rows, "\t")),
    "a.csv.gz": lambda rows, p: p.write_bytes(gzip.compress(as_csv(rows).encode())),
    "a.ndjson": lambda rows, p: p.write_text("".join(json.dumps(row) + "\n" for row in rows)),
    "a.geojson": lambda rows, p: p.write_text(json.dumps({"features": features(rows)})),
    "a.geojsonl": lambda rows, p: p.write_text("".join(json.dumps(f) + "\n" for f in features(rows))),
    "a.parquet": lambda rows, p: pq.write_table(table(rows), p, row_group_size=7),
    "b.parquet": lambda rows, p: geoframe(rows).to_parquet(p),
    "a.gpkg": to_file,
    "a.shp": to_file,
}
Admitted = dict[int, Counter[tuple[str, str, int]]]


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Admitted]:
    """What the intake let through, by tick: (user, sign, code)."""
    monkeypatch.setattr(events_module, "BATCH_ROWS", 16)
    seen: list[tuple[int, Counter[tuple[str, str, int]]]] = []
    original, number = Intake._bounded, [0]

    def watching(self: Intake, codes: Any, kind: int, users: Any) -> Any:
        kept = original(self, codes, kind, users)
        number[0] += kind == 0
        names = ["-"] * len(codes) if users is None else [str(user) for user in users.ids.to_pylist()]
        left = Counter(kept.tolist())
        events: Counter[tuple[str, str, int]] = Counter()
        for name, code in zip(names, codes.tolist(), strict=True):
            if left[code] > 0:
                left[code] -= 1
                events[name, "+-"[kind], code] += 1
        seen.append((number[0], events))
        return kept

    monkeypatch.setattr(Intake, "_bounded", watching)

    def collect() -> Admitted:
        ticks: Admitted = {}
        for tick, events in seen:
            ticks[tick] = ticks.get(tick, Counter()) + events
        seen.clear()
        number[0] = 0
        return ticks

    return collect


def run_on(folder: Path, names: list[str]) -> None:
    (folder / "stream.toml").write_text(CONFIG.format(files=json.dumps(names)))
    run(load_config(folder / "stream.toml"))


def difference(first: Admitted, second: Admitted) -> list[tuple[int, str, str, int]]:
    """What the first has more often than the second."""
    return [(t, *event) for t in first for event in (first[t] - second.get(t, Counter())).elements()]


def check_neighbours(kind: str, row: Row | None, without: Admitted, with_it: Admitted) -> None:
    more, less = difference(with_it, without), difference(without, with_it)
    good = row is not None and all(row[k] is not None for k in NAMES) and row["sign"] in (1, -1) and row["lon"] <= 10
    good = good and str(row["time"]).startswith("2024-03") and len(str(row["who"])) < 1024  # type: ignore[index]
    if not good:
        assert (more, less) == ([], []), kind
        return
    assert row is not None
    user = str(str(row["who"]).encode())
    assert {event[1] for event in more + less} <= {user}, kind  # nobody else's events move
    assert len(more) <= 1
    assert len(less) <= 1  # at the bound an earlier event of the same user takes the place of a later one
    if not less and more:
        assert more[0][0] == int(str(row["time"])[9])
        assert more[0][2] == "+-"[row["sign"] < 0]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.slow
def test_files_that_differ_by_one_row(tmp_path: Path, name: str, admitted: Callable[[], Admitted]) -> None:
    rows = base_rows()
    (tmp_path / "without").mkdir()
    FORMATS[name](rows, tmp_path / "without" / name)
    run_on(tmp_path / "without", [name])
    without = admitted()
    assert sum(map(len, without.values())) > 30
    seen_more = 0
    for kind, (row, place) in POSITIONS.items():
        if name == "a.shp" and (row["lon"] is None or len(str(row["who"])) > 200):
            continue  # it cannot hold that
        folder = tmp_path / kind.replace(" ", "-")
        folder.mkdir()
        FORMATS[name]([*rows[:place], row, *rows[place:]], folder / name)
        run_on(folder, [name])
        with_it = admitted()
        check_neighbours(kind, row, without, with_it)
        seen_more += bool(difference(with_it, without))
    assert seen_more >= 4


def test_lines_of_text_that_are_no_rows(tmp_path: Path, admitted: Callable[[], Admitted]) -> None:
    lines = as_csv(base_rows()).splitlines()
    for kind, line in ({"nothing": ""} | TEXT_ONLY).items():
        folder = tmp_path / kind.replace(" ", "-")
        folder.mkdir()
        (folder / "a.csv").write_bytes("\n".join([*lines[:9], line, *lines[9:]]).encode("utf-8", "surrogateescape"))
        run_on(folder, ["a.csv"])
        if kind == "nothing":
            without = admitted()
            continue
        with_it = admitted()
        row = one_more() if "quotation" in kind else None
        if row is not None and "middle" in kind:
            row["who"] = 'u"3'
        check_neighbours(kind, row, without, with_it)


def test_lines_that_are_no_json(tmp_path: Path, admitted: Callable[[], Admitted]) -> None:
    lines = [json.dumps(row) for row in base_rows()]
    kinds = {"nothing": "", "half": '{"time": "2024', "list": "[1, 2]", "deep": "[" * 100_000, "surrogate": '"\\ud800"'}
    kinds["who"] = json.dumps(one_more(who="\ud800"))
    for kind, line in kinds.items():
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "a.ndjson").write_text("\n".join([*lines[:9], line, *lines[9:]]))
        run_on(tmp_path / kind, ["a.ndjson"])
        if kind == "nothing":
            without = admitted()
        else:
            check_neighbours(kind, None, without, admitted())


def test_the_order_of_rows_and_files_and_their_number_do_not_matter(
    tmp_path: Path, admitted: Callable[[], Admitted]
) -> None:
    """One more event, stamped on day 3, in the first of three daily files made two later days lose their rows."""
    rows, rng = base_rows(), np.random.default_rng(3)
    results = []
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        order = rng.permutation(len(rows)) if attempt else np.arange(len(rows))
        parts = np.array_split(order, 3) if attempt != 1 else [order]
        for i, part in enumerate(parts):
            FORMATS["a.csv"]([rows[j] for j in part], folder / f"{i}.csv")
        run_on(folder, ["*.csv"] if attempt % 2 else [f"{i}.csv" for i in range(len(parts))][::-1])
        results.append(admitted())
        digest = [pq.read_table(p).to_pydict() for p in sorted((folder / "out" / "cells").iterdir())]
        results.append(digest)  # type: ignore[arg-type]
    assert all(result == results[0] for result in results[::2])
    assert all(result == results[1] for result in results[1::2])  # the releases too


def test_spilling_changes_nothing(
    tmp_path: Path, admitted: Callable[[], Admitted], monkeypatch: pytest.MonkeyPatch
) -> None:
    from phdstream.io.sources.gathering import Gathered

    results, spilled = [], [0]
    original = Gathered._spill

    def counting(self: Gathered) -> None:
        spilled[0] += 1
        original(self)

    monkeypatch.setattr(Gathered, "_spill", counting)
    for memory in (1 << 20, 10):
        folder = tmp_path / str(memory)
        folder.mkdir()
        FORMATS["a.csv"](base_rows(), folder / "a.csv")
        (folder / "stream.toml").write_text(CONFIG.format(files='"a.csv"'))
        config = load_config(folder / "stream.toml")
        object.__setattr__(config.input, "memory", memory)
        run(config)
        results.append(admitted())
        assert sorted(p.name for p in (folder / "private").iterdir()) == ["committed", "inputs.npz", "state.npz"]
    assert results[0] == results[1]
    assert spilled[0] > 1


# --- by hand ---

BOX = phd.Box([(0, 10), (40, 50)], names=("lon", "lat"), crs="EPSG:4326", depth=40)
HANDS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda rows: [(np.nan, np.nan) if row is None else row for row in rows],
    "array": lambda rows: np.array([(np.nan, np.nan) if row is None else row for row in rows]),
    "masked array": lambda rows: np.ma.masked_array(
        [(5.0, 45.0) if row is None else row for row in rows], [(row is None,) * 2 for row in rows]
    ),
    "pandas": lambda rows: pd.DataFrame([(None, None) if r is None else r for r in rows], columns=["lon", "lat"]),
    "pandas, other order": lambda rows: pd.DataFrame(
        [(None, None) if r is None else r[::-1] for r in rows], columns=["lat", "lon"]
    ),
    "polars": lambda rows: pl.DataFrame([{"lon": r and r[0], "lat": r and r[1], "more": 1} for r in rows]),
    "arrow": lambda rows: pa.Table.from_pylist([{"lat": r and r[1], "lon": r and r[0]} for r in rows]),
    "geoseries": lambda rows: gpd.GeoSeries([None if r is None else shapely.Point(*r) for r in rows], crs=4326),
    "geoseries, empty": lambda rows: gpd.GeoSeries([shapely.Point() if r is None else shapely.Point(*r) for r in rows]),
    "geodataframe, projected": lambda rows: gpd.GeoDataFrame(
        geometry=[None if r is None else shapely.Point(*r) for r in rows], crs=4326
    ).to_crs(3857),
}


@pytest.mark.parametrize("kind", HANDS)
@pytest.mark.parametrize("unit", [phd.Event(), phd.User(inserts=2)])
def test_updates_that_differ_by_one_row(kind: str, unit: Any, admitted: Callable[[], Admitted]) -> None:
    rng = np.random.default_rng(1)
    rows = [tuple(map(float, p)) for p in rng.uniform((0.1, 40.1), (9.9, 49.9), (20, 2)).round(4)]
    users = [f"u{i % 6}" for i in range(20)]
    precise = phd.Box([(0, 10), (40, 50)], names=("lon", "lat"), crs="EPSG:4326", depth=24)

    def admit(points: list[Any], names: list[str]) -> Admitted:
        stream = phd.PHDStream(precise, 1.0, unit, noise=phd.Simulation(1))
        stream.update(HANDS[kind](points), users=names)
        return admitted()

    without = admit(rows, users)
    for more, place in (
        ((5.5, 45.5), 0),
        ((5.5, 45.5), 20),
        (rows[3], 7),
        (None, 5),
        ((-1.0, 45.0), 9),
        ((5.03, 45.07), 12),
    ):
        with_it = admit([*rows[:place], more, *rows[place:]], [*users[:place], "somebody", *users[place:]])
        gained, lost = difference(with_it, without), difference(without, with_it)
        assert lost == []
        if more is None or more[0] < 0:
            assert gained == []
        else:
            (code,) = precise.encode(np.array([more]))[0]
            assert [event[3] for event in gained] == [code]
