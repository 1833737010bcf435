"""The tables and figures of docs/reproduction.md, collected from the results of full-size runs."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.one_version import out_of_date, refuse_mixed
from phdstream.errors import InputError
from phdstream.evaluation.trials import METRICS

DOCS = Path(__file__).parents[2] / "docs"
TEMPLATE = DOCS / "reproduction.template.md"
KEY = ("data", "size", "epsilon", "t0", "method")
MEASURED = (*METRICS, "first", "last")
"""Means over ticks of each metric; the paper's error at the first measured tick and at the last."""
WIDTHS, COLOURS, LARGEST = (1100, 900, 750, 600, 500), 160, 140_000
FIGURES = (*(f"{metric}-{size}" for metric in ("error", "weighted") for size in ("small", "medium", "large")),
           "distance", "counts", "data", "scatter", "activations", "counters")  # fmt: skip

Row = dict[str, str]


def each(values: Iterable[float]) -> str:
    """Return numbers as one entry of a table, seed by seed."""
    return " ".join(f"{value:.4g}" for value in values)


def mean_and_spread(values: Iterable[float]) -> tuple[str, str]:
    numbers = list(values)
    return f"{np.mean(numbers):.4f}", f"{np.std(numbers, ddof=1) if len(numbers) > 1 else 0:.4f}"


def error_rows(results: pa.Table) -> list[Row]:
    """Return a row for each setting, with the code that made it: what was measured, seed by seed."""
    runs: dict[tuple[str, ...], dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in results.to_pylist():
        key = (row["data"], row["size"], f"{row['epsilon']:g}", f"{row['t0']:g}", row["method"])
        runs[*key, row["code"]][row["seed"]].append(row)
    rows = []
    for setting, seeds in sorted(runs.items()):
        ticks = [sorted(seeds[seed], key=lambda row: int(row["tick"])) for seed in sorted(seeds)]
        row = dict(zip((*KEY, "code"), setting, strict=True)) | {"seeds": " ".join(map(str, sorted(seeds)))}
        row |= {metric: each(float(np.mean([t[metric] for t in run])) for run in ticks) for metric in METRICS}
        rows.append(row | {name: each(run[i]["error"] for run in ticks) for name, i in (("first", 0), ("last", -1))})
    return rows


def activation_rows(table: pa.Table) -> list[Row]:
    by_epsilon: dict[tuple[str, float, float, str], list[dict[str, float]]] = defaultdict(list)
    for row in table.to_pylist():
        by_epsilon[row["data"], row["epsilon"], row["t0"], row.get("code", "")].append(row)
    rows = []
    for (data, epsilon, t0, code), runs in by_epsilon.items():
        row = {"data": data, "epsilon": f"{epsilon:g}", "t0": f"{t0:g}", "code": code, "seeds": str(len(runs))}
        for name in ("nodes", "rare_of_all", "rare_of_active", "median_of_active", "most"):
            row[name], row[f"{name}_spread"] = mean_and_spread(run[name] for run in runs)
        row["rare_each"] = each(run["rare_of_all"] for run in runs)
        rows.append(row)
    return rows


def counter_rows(table: pa.Table) -> list[Row]:
    return [{k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in row.items()} for row in table.to_pylist()]


def collect(folder: Path) -> None:
    """Write docs/results and docs/figures from the folders of finished presets.

    What docs/results has of data sets that are not in ``folder`` stays, if the code that is here made all of it. The
    digest knows the code, not a preset's own numbers: run a preset again when those change.
    """
    tables = {name: _rows_in(folder, pattern, rows) for name, (pattern, rows) in TABLES.items()}
    if not any(tables.values()):
        raise InputError(f"{folder} has no finished results: give the folder that `run` wrote to.")
    merged = {name: _with_kept(name, rows) for name, rows in tables.items()}
    for name, rows in merged.items():
        save(name, rows)
    for path in sorted(p for name in FIGURES for p in folder.glob(f"*/{name}.png")):
        if f"{path.parent.name}-{path.stem}" in template_figures():
            shrink(path, DOCS / "figures" / f"{path.parent.name}-{path.name}")


TABLES: dict[str, tuple[str, Callable[[pa.Table], list[Row]]]] = {
    "errors": ("*/results.parquet", error_rows),
    "activations": ("*/activations.parquet", activation_rows),
    "counters": ("counters/counters-by-horizon.parquet", counter_rows),
}
"""The tables of docs/results: the files they are made from, and how."""


def _rows_in(folder: Path, pattern: str, rows: Callable[[pa.Table], list[Row]]) -> list[Row]:
    return [row for path in sorted(folder.glob(pattern)) for row in rows(pq.read_table(path))]


def _with_kept(name: str, rows: list[Row]) -> list[Row]:
    """Return new rows with those of other data sets that stand in docs/results; refuse them if other code made any."""
    new = {row.get("data", name) for row in rows}
    kept = [row for row in read(name) if row.get("data", name) not in new]
    together = sorted(kept + rows, key=lambda row: row.get("data", name))
    stale = out_of_date(named(name, together)) if kept else {}
    if stale:
        each = [f"{what} on {', '.join(sorted(data))}" for what, data in sorted(stale.items())]
        raise InputError(f"{name}.csv would mix versions: the code that is here did not make {'; '.join(each)}. "
                         "Run those again, and give their results too.")  # fmt: skip
    refuse_mixed(named(name, together))
    return together


def named(table: str, rows: list[Row]) -> list[Row]:
    """Return rows that say method and data: a table that is no method's goes by its own name."""
    return [{"method": table, "data": table} | row for row in rows]


def template_figures() -> set[str]:
    """Return the names of the figures that the page shows."""
    return set(re.findall(r"\{\{figure (\S+)", TEMPLATE.read_text(encoding="utf-8")))


def save(name: str, rows: list[Row]) -> None:
    if not rows:
        return
    path = DOCS / "results" / f"{name}.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    load.cache_clear()


def read(name: str) -> list[Row]:
    """Return the rows of a table of docs/results, none if it was not made yet."""
    path = DOCS / "results" / f"{name}.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def load(name: str) -> list[Row]:
    """Return the same, of one version of the code."""
    rows = read(name)
    refuse_mixed(named(name, rows))
    return rows


def shrink(source: Path, target: Path) -> None:
    """Copy a picture with fewer colours and pixels, fewer still while the file is large."""
    from PIL import Image

    target.parent.mkdir(exist_ok=True)
    for widest in WIDTHS:
        picture = Image.open(source).convert("RGB")
        picture.thumbnail((widest, 2 * widest))
        picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(target, optimize=True)
        if target.stat().st_size < LARGEST:
            return
