"""Collecting results: what was not run again stays as it is, if the code that is here made it; else it is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.reproduction.activations import activation_code
from benchmarks.reproduction.counter_comparison import counter_code
from benchmarks.reproduction.methods import paper_methods

from benchmarks.reproduction import results
from phdstream.domains import Box
from phdstream.errors import InputError
from phdstream.evaluation.trials import METRICS, method_code

NOW = method_code(paper_methods()["phdstream"], Box)
RARE = {"rare_of_all": 0.9, "rare_of_active": 0.9, "median_of_active": 2.0, "most": 3}


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for pages, with no results yet."""
    folder = tmp_path / "docs"
    folder.mkdir()
    monkeypatch.setattr(results, "DOCS", folder)
    return folder


def runs(folder: Path, *data: str, code: str = NOW, method: str = "phdstream", error: float = 0.1) -> Path:
    """Write the results of presets, as `run` does."""
    for name in data:
        (folder / name).mkdir(parents=True, exist_ok=True)
        row = {"data": name, "size": "small", "epsilon": 1.0, "t0": 2.0, "method": method, "code": code, "seed": 1}
        table = pa.Table.from_pylist([row | {"tick": 3} | dict.fromkeys(METRICS, error)])
        pq.write_table(table, folder / name / "results.parquet")
    return folder


def kept() -> dict[str, tuple[str, str]]:
    return {row["data"]: (row["code"], row["error"]) for row in results.read("errors")}


def test_data_sets_that_were_not_run_again_stay(docs: Path, tmp_path: Path) -> None:
    results.collect(runs(tmp_path / "first", "a", "b", "c"))
    results.collect(runs(tmp_path / "second", "b", "bb", error=0.2))
    assert kept() == {"a": (NOW, "0.1"), "b": (NOW, "0.2"), "bb": (NOW, "0.2"), "c": (NOW, "0.1")}
    assert list(kept()) == ["a", "b", "bb", "c"]


def test_collecting_some_again_is_the_same_as_collecting_all_at_once(docs: Path, tmp_path: Path) -> None:
    results.collect(runs(tmp_path / "all", "a", "b", "c"))
    at_once = (docs / "results" / "errors.csv").read_bytes()
    results.collect(runs(tmp_path / "some", "b"))
    assert (docs / "results" / "errors.csv").read_bytes() == at_once


def test_a_stale_row_that_would_stay_is_refused_by_name_and_nothing_is_written(docs: Path, tmp_path: Path) -> None:
    results.collect(runs(tmp_path / "first", "a", "b", code="box:old"))
    before = kept()
    with pytest.raises(InputError, match=r"errors\.csv would mix versions: .* did not make phdstream on b\. Run those"):
        results.collect(runs(tmp_path / "second", "a"))
    assert kept() == before


def test_other_methods_of_other_code_are_no_company_either(docs: Path, tmp_path: Path) -> None:
    """No method is there in two versions, and still the table would be of two."""
    results.collect(runs(tmp_path / "first", "a", code="box:old", method="baseline-1"))
    with pytest.raises(InputError, match="did not make baseline-1 on a"):
        results.collect(runs(tmp_path / "second", "b"))


def test_new_results_of_other_code_do_not_join_those_of_this(docs: Path, tmp_path: Path) -> None:
    results.collect(runs(tmp_path / "first", "a"))
    with pytest.raises(InputError, match="did not make phdstream on b"):
        results.collect(runs(tmp_path / "second", "b", code="box:old"))


def test_rows_that_do_not_say_their_code_do_not_stay(docs: Path, tmp_path: Path) -> None:
    results.save("errors", [{"data": "a", "method": "phdstream"}])
    with pytest.raises(InputError, match="did not make phdstream on a"):
        results.collect(runs(tmp_path / "first", "b"))


def test_what_was_run_wholly_anew_replaces_stale_rows(docs: Path, tmp_path: Path) -> None:
    results.collect(runs(tmp_path / "first", "a", "b", code="box:old"))
    results.collect(runs(tmp_path / "second", "a", "b"))
    assert kept() == {"a": (NOW, "0.1"), "b": (NOW, "0.1")}


def activated(folder: Path, data: str, code: str) -> Path:
    (folder / data).mkdir(parents=True, exist_ok=True)
    row = {"data": data, "epsilon": 1.0, "t0": 2.0, "seed": 1, "nodes": 9, "code": code}
    pq.write_table(pa.Table.from_pylist([row | RARE]), folder / data / "activations.parquet")
    return folder


def counted(folder: Path, code: str) -> Path:
    (folder / "counters").mkdir(parents=True, exist_ok=True)
    row = {"horizon": 8, "counter": "Simple", "mean": 5.0, "spread": 0.5, "seeds": 5, "each": "5 5 5", "code": code}
    pq.write_table(pa.Table.from_pylist([row]), folder / "counters" / "counters-by-horizon.parquet")
    return folder


def test_activations_and_counters_stay_too(docs: Path, tmp_path: Path) -> None:
    results.collect(counted(activated(tmp_path / "first", "a", activation_code(Box)), counter_code()))
    results.collect(activated(tmp_path / "second", "b", activation_code(Box)))
    assert [row["data"] for row in results.read("activations")] == ["a", "b"]
    assert [(row["horizon"], row["mean"], row["code"]) for row in results.read("counters")] == [
        ("8", "5", counter_code())
    ]


def test_stale_activations_and_counters_are_refused(docs: Path, tmp_path: Path) -> None:
    results.collect(activated(tmp_path / "first", "a", "box:old"))
    with pytest.raises(InputError, match=r"activations\.csv would mix .* did not make activations on a\."):
        results.collect(runs(tmp_path / "second", "b"))
    results.collect(activated(tmp_path / "third", "a", activation_code(Box)))
    results.collect(counted(tmp_path / "fourth", "counters:old"))
    with pytest.raises(InputError, match=r"counters\.csv would mix .* did not make counters on counters\."):
        results.collect(runs(tmp_path / "second", "b"))


def test_a_folder_without_results_is_refused(docs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no finished results"):
        results.collect(tmp_path)
