"""The tables and figures of docs/reproduction.md, collected from the results of full-size runs."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.one_version import refuse_mixed
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
    by_epsilon: dict[tuple[str, float, float], list[dict[str, float]]] = defaultdict(list)
    for row in table.to_pylist():
        by_epsilon[row["data"], row["epsilon"], row["t0"]].append(row)
    rows = []
    for (data, epsilon, t0), runs in by_epsilon.items():
        row = {"data": data, "epsilon": f"{epsilon:g}", "t0": f"{t0:g}", "seeds": str(len(runs))}
        for name in ("nodes", "rare_of_all", "rare_of_active", "median_of_active", "most"):
            row[name], row[f"{name}_spread"] = mean_and_spread(run[name] for run in runs)
        row["rare_each"] = each(run["rare_of_all"] for run in runs)
        rows.append(row)
    return rows


def collect(folder: Path) -> None:
    """Write docs/results and docs/figures from the folders of finished presets."""
    found = sorted(folder.glob("*/results.parquet"))
    rows = [row for path in found for row in error_rows(pq.read_table(path))]
    refuse_mixed(rows)
    save("errors", rows)
    counted = sorted(folder.glob("*/activations.parquet"))
    save("activations", [row for path in counted for row in activation_rows(pq.read_table(path))])
    by_horizon = pq.read_table(folder / "counters" / "counters-by-horizon.parquet").to_pylist()
    save(
        "counters",
        [{k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in row.items()} for row in by_horizon],
    )
    for path in sorted(p for name in FIGURES for p in folder.glob(f"*/{name}.png")):
        if f"{path.parent.name}-{path.stem}" in template_figures():
            shrink(path, DOCS / "figures" / f"{path.parent.name}-{path.name}")


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


@cache
def load(name: str) -> list[Row]:
    """Return the rows of a table of docs/results, none if it was not made yet."""
    path = DOCS / "results" / f"{name}.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if name == "errors":
        refuse_mixed(rows)
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
