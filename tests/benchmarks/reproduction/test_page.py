"""docs/reproduction.md: its numbers are those of docs/results, its figures are there and small, its claims judged."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.reproduction.claims import CLAIMS
from benchmarks.reproduction.page import FILL, NOT_RUN, judged, page, table, table_of_errors
from benchmarks.reproduction.results import DOCS, TEMPLATE, error_rows, load

import benchmarks.reproduction
from benchmarks.reproduction import results
from phdstream.errors import InputError
from phdstream.evaluation.trials import METRICS


def test_the_page_is_the_template_with_the_numbers() -> None:
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == page()


def claims(text: str) -> dict[str, str]:
    """Return the verdict of each claim of a page."""
    section = text.split("## The claims about numbers")[1].split("### Counters")[0]
    rows = re.findall(r"^\| \d+a? \|.*$", section, flags=re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    return {cell[0]: cell[4] for cell in cells}


def test_every_claim_has_a_verdict_that_is_computed_or_not_about_numbers() -> None:
    verdicts = claims(TEMPLATE.read_text(encoding="utf-8"))
    assert {int(number.rstrip("a")) for number in verdicts} == set(range(1, 33))
    by_hand = {number for number, verdict in verdicts.items() if verdict != f"{{{{verdict {number}}}}}"}
    assert by_hand == {"3", "20", "22", "23", "24"}
    stated = claims((DOCS / "reproduction.md").read_text(encoding="utf-8"))
    assert all(re.match(f"(holds|holds partly|does not hold|{NOT_RUN})(:|$)", verdict) for verdict in stated.values())


def test_every_claim_that_is_judged_is_on_the_page() -> None:
    numbers = {claim.number for claim in CLAIMS} | {"9", "16", "17", "17a", "18", "19"}
    assert numbers == claims(TEMPLATE.read_text(encoding="utf-8")).keys() - {"3", "20", "22", "23", "24"}


def test_what_the_page_cites_is_there() -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:tests|src|benchmarks)/[\w/]+\.py)`", text):
        assert (DOCS.parent / path).is_file(), path
    assert "by enumeration" in (DOCS.parent / "tests/streams/paper/test_selective_counting.py").read_text()


def test_every_number_has_five_seeds() -> None:
    assert all(len(row["seeds"].split()) >= 5 for row in load("errors"))
    for name in ("activations", "counters"):
        assert all(int(row["seeds"]) >= 5 for row in load(name)), name


def test_figures_are_there_small_and_all_shown() -> None:
    pages = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")]
    shown = set(re.findall(r"\((?:\.\./)?figures/([^)]+)\)", "".join(pages)))
    there = {path.name: path.stat().st_size for path in (DOCS / "figures").iterdir()}
    assert shown == set(there)
    assert all(size < 150_000 for size in there.values()), there


def rows_of(errors: dict[tuple[str, int], float], code: str = "box:1") -> pa.Table:
    fixed = {"data": "d", "size": "small", "epsilon": 1.0, "t0": 2.0, "code": code}
    return pa.Table.from_pylist(
        [
            fixed | {"method": method, "seed": seed, "tick": tick} | dict.fromkeys(METRICS, error * tick)
            for (method, seed), error in errors.items()
            for tick in (3, 1)
        ]
    )


def test_results_keep_every_seed_and_the_code() -> None:
    row, other = error_rows(rows_of({("a", 2): 0.1, ("a", 1): 0.4, ("b", 1): 0.2}))
    assert (row["method"], row["seeds"], row["error"], row["code"]) == ("a", "1 2", "0.8 0.2", "box:1")
    assert (row["weighted_error"], row["first"], row["last"]) == ("0.8 0.2", "0.4 0.1", "1.2 0.3")
    assert other["seeds"] == "1"


@pytest.fixture
def invented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A page of invented results: nothing else is known."""
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(results, "DOCS", tmp_path)
    for cached in (load, table_of_errors, judged):
        cached.cache_clear()
    yield tmp_path
    for cached in (load, table_of_errors, judged):
        cached.cache_clear()


def test_a_table_marks_what_is_better_than_nothing(invented: Path) -> None:
    seeds = {("phdstream", s): 0.1 + s / 1000 for s in range(5)} | {("nothing", s): 0.2 for s in range(5)}
    results.save("errors", error_rows(rows_of(seeds | {("uniform", s): 0.15 + s / 20 for s in range(5)})))
    text = table("d", "small")
    assert text.splitlines()[0] == "| ε | t0 | nothing | phdstream | uniform |"
    assert "| 0.400 ± 0.000 | **0.204 ± 0.003** | 0.500 ± 0.158 |" in text
    assert FILL["error"]("d", "small", "1", "2", "phdstream") == "0.204 ± 0.003"
    assert FILL["error"]("d", "small", "9", "2", "phdstream") == NOT_RUN
    assert FILL["verdict"]("28") == "holds"
    assert FILL["verdict"]("8") == NOT_RUN
    assert FILL["evidence"]("28").startswith("d: × 0.51 (0.50 to 0.52)")


def test_a_page_of_two_versions_is_refused(invented: Path, tmp_path: Path) -> None:
    for folder, code in (("one", "box:1"), ("two", "box:2")):
        (tmp_path / folder).mkdir()
        pq.write_table(rows_of({("phdstream", 1): 0.1}, code), tmp_path / folder / "results.parquet")
    with pytest.raises(InputError, match="phdstream on a box were made by 2 versions"):
        results.collect(tmp_path)
    results.save(
        "errors", [r for code in ("box:1", "box:2") for r in error_rows(rows_of({("phdstream", 1): 0.1}, code))]
    )
    with pytest.raises(InputError, match="2 versions"):
        page()


def test_the_examples_in_docstrings() -> None:
    """pytest looks for them in the package and the tests only."""
    for module in pkgutil.iter_modules(benchmarks.reproduction.__path__, "benchmarks.reproduction."):
        assert doctest.testmod(importlib.import_module(module.name)).failed == 0, module.name
