"""docs/reproduction.md: its numbers are those of docs/results, its figures are there and small, its claims judged."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re

import pyarrow as pa
from benchmarks.reproduction.page import page
from benchmarks.reproduction.results import DOCS, error_rows, load

import benchmarks.reproduction


def test_the_page_is_the_template_with_the_numbers() -> None:
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == page()


def test_every_claim_has_a_verdict() -> None:
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    claims = text.split("## The claims")[1].split("### Counters")[0]
    rows = re.findall(r"^\| \d+ \|.*$", claims, flags=re.MULTILINE)
    verdicts = [re.split(r"(?<!\\)\|", row)[5].strip() for row in rows]
    assert len(rows) >= 20
    assert all(re.match("(holds|holds partly|does not hold)(,|:|$)", verdict) for verdict in verdicts), verdicts


def test_every_number_has_five_seeds() -> None:
    for name in ("errors", "activations", "counters"):
        assert all(int(row["seeds"]) >= 5 for row in load(name)), name


def test_figures_are_there_small_and_all_shown() -> None:
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("reproduction.md", "utility.md", "geography.md")]
    shown = set(re.findall(r"\(figures/([^)]+)\)", "".join(pages)))
    there = {path.name: path.stat().st_size for path in (DOCS / "figures").iterdir()}
    assert shown == set(there)
    assert all(size < 150_000 for size in there.values()), there


def test_ratios_are_taken_seed_by_seed() -> None:
    errors = {("phdstream", 1): 0.1, ("phdstream", 2): 0.4, ("other", 1): 0.2, ("other", 2): 0.8}
    fixed = {"data": "d", "size": "small", "epsilon": 1.0, "t0": 2.0, "tick": 2}
    rows = [fixed | {"method": m, "seed": s, "error": error} for (m, s), error in errors.items()]
    other, ours = error_rows(pa.Table.from_pylist(rows))
    assert (other["method"], other["error"], other["ratio"], other["ratio_spread"]) == (
        "other",
        "0.5000",
        "2.0000",
        "0.0000",
    )
    assert (ours["ratio"], ours["seeds"]) == ("1.0000", "2")


def test_the_examples_in_docstrings() -> None:
    """pytest looks for them in the package and the tests only."""
    for module in pkgutil.iter_modules(benchmarks.reproduction.__path__, "benchmarks.reproduction."):
        assert doctest.testmod(importlib.import_module(module.name)).failed == 0, module.name
