"""docs/reproduction.md: its numbers are those of docs/results, its figures are there and small, its claims judged."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def reproduction() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reproduction", ROOT / "benchmarks" / "reproduction.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_the_template_with_the_numbers(reproduction: ModuleType) -> None:
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == reproduction.page()


def test_every_claim_has_a_verdict() -> None:
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    claims = text.split("## The claims")[1].split("### Counters")[0]
    rows = re.findall(r"^\| \d+ \|.*$", claims, flags=re.MULTILINE)
    verdicts = [re.split(r"(?<!\\)\|", row)[5].strip() for row in rows]
    assert len(rows) >= 20
    assert all(re.match("(holds|holds partly|does not hold)(,|:|$)", verdict) for verdict in verdicts), verdicts


def test_every_number_has_five_seeds(reproduction: ModuleType) -> None:
    for name in ("errors", "activations", "counters"):
        assert all(int(row["seeds"]) >= 5 for row in reproduction.load(name)), name


def test_figures_are_there_small_and_all_shown() -> None:
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("reproduction.md", "utility.md")]
    shown = set(re.findall(r"\(figures/([^)]+)\)", "".join(pages)))
    there = {path.name: path.stat().st_size for path in (DOCS / "figures").iterdir()}
    assert shown == set(there)
    assert all(size < 150_000 for size in there.values()), there


def test_ratios_are_taken_seed_by_seed(reproduction: ModuleType) -> None:
    errors = {("phdstream", 1): 0.1, ("phdstream", 2): 0.4, ("other", 1): 0.2, ("other", 2): 0.8}
    fixed = {"data": "d", "size": "small", "epsilon": 1.0, "t0": 2.0, "tick": 2}
    rows = [fixed | {"method": m, "seed": s, "error": error} for (m, s), error in errors.items()]
    other, ours = reproduction.error_rows(pa.Table.from_pylist(rows))
    assert (other["method"], other["error"], other["ratio"], other["ratio_spread"]) == (
        "other",
        "0.5000",
        "2.0000",
        "0.0000",
    )
    assert (ours["ratio"], ours["seeds"]) == ("1.0000", "2")
