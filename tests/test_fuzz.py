"""A short run of the fuzzer, the fuzzer itself, and what it once found."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely
from fuzz.__main__ import main
from fuzz.cases import KINDS, Outcome
from fuzz.damage import damaged
from fuzz.harness import Summary, all_cases, run_all

import phdstream as phd
from phdstream.app.config import load_config
from phdstream.errors import BudgetError, ConfigError, InputError
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import Events, read_events
from phdstream.io.sources.reading import Reading
from phdstream.privacy.calibration import calibrate_split

ENOUGH = {"configs": 100, "constructors": 150, "updates": 50, "counts": 50, "files": 25, "layers": 25, "states": 25}
"""Cases of each kind: a second's worth. `make fuzz` runs two hundred times as many."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_no_case_fails(kind: str) -> None:
    summary = run_all(all_cases(ENOUGH[kind], 1, [kind]), processes=1)
    assert summary.kinds[kind]["cases"] == ENOUGH[kind]
    assert summary.kinds[kind]["accepted"] > 0
    assert summary.kinds[kind]["refused"] > 0
    assert summary.failures == {}


def test_cases_are_shared_out_in_proportion_and_numbered_from_the_seed() -> None:
    names = list(all_cases(1000, 7))
    assert len(set(names)) == 1000
    for kind, part in KINDS.items():
        mine = [name for name in names if name.startswith(f"{kind}:")]
        assert abs(len(mine) - 1000 * part) <= 1
        assert mine[0] == f"{kind}:7"


def test_damage_follows_from_the_seed() -> None:
    content = bytes(range(256)) * 4
    assert damaged(Random("a:1"), content) == damaged(Random("a:1"), content)
    assert len({damaged(Random(f"a:{i}"), content) for i in range(50)}) > 45


def test_failures_are_counted_and_named(tmp_path: Path) -> None:
    summary = Summary()
    summary.add("files:3", Outcome("failed", "why"))
    summary.add("files:4", Outcome("refused"))
    figures = summary.to_dict(seed=3)
    assert figures["kinds"] == {"files": {"cases": 2, "accepted": 0, "refused": 1, "failed": 1}}
    assert figures["failures"] == ["files:3"]


@pytest.mark.slow
def test_a_process_that_dies_is_a_failure_and_not_the_end() -> None:
    summary = run_all(iter(["no-such-kind:1", "constructors:1"]), processes=1)
    assert list(summary.failures) == ["no-such-kind:1"]
    assert summary.kinds["constructors"]["cases"] == 1


def test_one_case_can_be_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--case", "constructors:1"]) == 0
    assert capsys.readouterr().out.startswith("constructors:1 ")


def read(path: Path, columns: Columns, **reading: object) -> Events:
    (events,) = read_events([path], columns, Reading(drop_bad=True, **reading))  # type: ignore[arg-type]
    return events


def test_a_place_without_a_name_does_not_move_the_users_of_the_rows_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text(
        '{"p": "a", "u": "1"}\n{"p": null, "u": "2"}\n{"p": "b", "q": "c", "u": "3"}\n{"q": "d", "u": "4"}\n'
    )
    events = read(path, Columns(("p",), user="u", names=True))
    assert events.points.tolist() == [["a"], ["b"]]
    assert events.users is not None
    assert events.users.to_pylist() == [b"1", b"3"]
    events = read(path, Columns(("p", "q"), user="u", names=True))
    assert events.points.tolist() == [["a"], ["b/c"], ["d"]]
    assert events.users is not None
    assert events.users.to_pylist() == [b"1", b"3", b"4"]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_text_in_parquet_that_is_not_utf8_spoils_its_own_row(tmp_path: Path, kind: pa.DataType) -> None:
    marked = pa.array(["ann", "?bob", "eve", None]).cast(kind)
    path = tmp_path / "a.parquet"
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "u": marked})
    pyarrow.parquet.write_table(table, path, compression="none", use_dictionary=pa.types.is_dictionary(kind))
    path.write_bytes(path.read_bytes().replace(b"?bob", b"\xffbob"))
    events = read(path, Columns(("x",), user="u"))
    assert events.points.tolist() == [[1.0], [3.0]]
    assert events.users is not None
    assert events.users.to_pylist() == [b"ann", b"eve"]
    assert read(path, Columns(("u",), names=True)).points.tolist() == [["ann"], ["eve"]]


@pytest.mark.parametrize("encoding", ["iso2022_jp", "hz", "utf-7", "unicode_escape", "raw_unicode_escape", "punycode"])
def test_encodings_in_which_a_line_changes_the_next_are_refused(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        f'[input]\nfiles = "a.csv"\ncoordinates = ["x"]\ntime = "t"\nencoding = "{encoding}"\n'
        '[ticks]\nevery = "1d"\nstart = 2024-01-01\n[domain]\ntype = "box"\nbounds = [[0, 1]]\n'
        '[privacy]\nepsilon = 1\nunit = "event"\n[output]\nreleases = "a"\nstate = "b"\n'
    )
    with pytest.raises(ConfigError, match="line by line"):
        load_config(path)


@pytest.mark.parametrize("beside", ["2024-01-02", "2024-13-01", "2024-01-01 06:00:00,5"])
def test_the_year_0_is_no_time_whatever_stands_beside_it(tmp_path: Path, beside: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"x\tt\n1\t0000-01-01\n2\t{beside}\n")
    assert 1.0 not in read(path, Columns(("x",), "t")).points


BOX = phd.Box([(0, 1), (0, 1)], depth=4)
METHODS: list[Any] = [phd.PHDStream, phd.TrackingStream]


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_for_which_no_noise_can_be_drawn_is_refused_when_the_stream_is_made(method: Any) -> None:
    with pytest.raises(BudgetError, match="nothing but noise"):
        method(BOX, 1e-9, phd.User(10**6))
    method(BOX, 1e-9, phd.Event()).update([(0.5, 0.5)])


def test_the_least_epsilon_is_calibrated_at_once() -> None:
    rule = calibrate_split(1e-9, 4)
    assert rule.loss <= 1e-9
    with pytest.raises(BudgetError, match="nothing but noise"):
        phd.PHDStream(BOX, 1.0, phd.Event(), tree_share=5e-324)


def test_a_bound_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(BudgetError, match="at most"):
        phd.User(10**5000)


@pytest.mark.parametrize("method", METHODS)
def test_whole_numbers_of_numpy_are_options_like_any_other(method: Any) -> None:
    options = {
        "start_after": np.int64(1),
        "max_nodes": np.int64(50),
        "window": np.int64(3),
        "insert_only": np.bool_(True),
    }
    stream = method(BOX, 1.0, phd.Event(), **options)
    assert stream.update([(0.5, 0.5)]).cells().num_rows > 0


def test_a_threshold_beyond_all_counts_is_refused_before_the_first_tick() -> None:
    with pytest.raises(InputError, match="threshold"):
        phd.PHDStream(BOX, 1.0, phd.Event(), threshold=2**63)


def test_a_class_is_no_counter() -> None:
    with pytest.raises(InputError, match="counter must be"):
        phd.PHDStream(BOX, 1.0, phd.Event(), counter=phd.Event)  # type: ignore[arg-type]


def test_a_confidence_next_to_1_is_refused() -> None:
    release = phd.PHDStream(BOX, 1.0, phd.Event()).update([(0.5, 0.5)])
    with pytest.raises(InputError, match="confidence"):
        release.count([[0, 0, 1, 1]], confidence=1 - 2**-53)


@pytest.mark.parametrize(
    "layer", [np.array(0), [shapely.Polygon([(0, 0), (1e300, 1), (1, 1e300), (0.5, 0.1), (1e300, 0)])]]
)
def test_layers_that_are_no_layers_are_refused(layer: Any) -> None:
    release = phd.PHDStream(BOX, 1.0, phd.Event()).update([(0.5, 0.5)])
    with pytest.raises(InputError):
        release.count_in(layer)


@pytest.mark.parametrize("far", [1e31, 1e300])
def test_domains_beyond_all_maps_are_refused(far: float) -> None:
    with pytest.raises(InputError, match="at most 1e"):
        phd.Network([shapely.LineString([(0, 0), (far, 1)])], snap=1)
    with pytest.raises(InputError, match="at most 1e"):
        phd.Region(shapely.box(0, 0, far, far))


def test_a_coordinate_system_may_be_any_nonsense() -> None:
    with pytest.raises(InputError, match="coordinate reference system"):
        phd.Box([(0, 1)], crs=nested(3000))
    with pytest.raises(InputError, match="unknown type"):
        phd.domains.domain_from_dict({"type": nested(3000)})


@pytest.mark.parametrize(
    "users", [np.zeros(1, dtype=[("x", float)]), np.ndarray, [pl.DataFrame({"a": [1.0]})], [1.5, "a"]]
)
def test_users_that_are_no_users_are_refused(users: Any) -> None:
    with pytest.raises(InputError):
        phd.PHDStream(BOX, 1.0, phd.User(1)).update([(0.5, 0.5)], users=users)


def test_points_that_are_not_there_yet_or_masked_oddly_are_refused() -> None:
    stream = phd.PHDStream(BOX, 1.0, phd.Event())
    with pytest.raises(InputError, match="collect"):
        stream.update(pl.DataFrame({"x": [0.5], "y": [0.5]}).lazy())
    with pytest.raises(InputError):
        stream.update([np.ma.masked_all((2, 2)), (0.5, 0.5)])
    assert stream.update(None).tick == 1


@pytest.mark.parametrize("places", [np.array("a"), np.ma.masked, {"a": ["x"], "b": ["y", "z"]}])
def test_places_that_are_no_list_are_refused(places: Any) -> None:
    stream = phd.PHDStream(phd.Hierarchy([["a", "b"], ["a", "c"]]), 1.0, phd.Event())
    with pytest.raises(InputError):
        stream.update(places)
