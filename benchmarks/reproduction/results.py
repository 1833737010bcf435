"""The tables and figures of docs/reproduction.md, collected from the results of full-size runs."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DOCS = Path(__file__).parents[2] / "docs"
TEMPLATE = DOCS / "reproduction.template.md"
ERRORS = ["data", "size", "epsilon", "t0", "method", "error", "spread", "seeds", "ratio", "ratio_spread"]
ERRORS += ["first", "last"]
OURS = "phdstream"
WIDTHS, COLOURS, LARGEST = (1100, 900, 750, 600, 500), 160, 140_000
FIGURES = ("error-small", "error-medium", "error-large", "counts", "data", "scatter", "activations", "counters")

Row = dict[str, str]
Key = tuple[str, ...]


def mean_and_spread(values: Iterable[float]) -> tuple[str, str]:
    each = list(values)
    return f"{np.mean(each):.4f}", f"{np.std(each, ddof=1) if len(each) > 1 else 0:.4f}"


def error_rows(results: pa.Table) -> list[Row]:
    """Return a row for each setting: the mean over ticks, its mean and deviation over seeds, the ratio to PHDStream."""
    runs: dict[Key, dict[int, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in results.to_pylist():
        key = (row["data"], row["size"], f"{row['epsilon']:g}", f"{row['t0']:g}", row["method"])
        runs[key][row["seed"]].append((row["tick"], row["error"]))
    means = {key: {s: float(np.mean([e for _, e in run])) for s, run in seeds.items()} for key, seeds in runs.items()}
    rows = []
    for setting, each in sorted(means.items()):
        ours, curves = means[(*setting[:4], OURS)], [sorted(run) for run in runs[setting].values()]
        ratios = [error / ours[seed] for seed, error in each.items() if seed in ours]
        ends = [f"{np.mean([curve[i][1] for curve in curves]):.4f}" for i in (0, -1)]
        values = [*setting, *mean_and_spread(each.values()), str(len(each)), *mean_and_spread(ratios), *ends]
        rows.append(dict(zip(ERRORS, values, strict=True)))
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
        rows.append(row)
    return rows


def collect(folder: Path) -> None:
    """Write docs/results and docs/figures from the folders of finished presets."""
    found = sorted(folder.glob("*/results.parquet"))
    save("errors", [row for path in found for row in error_rows(pq.read_table(path))])
    counted = sorted(folder.glob("*/activations.parquet"))
    save("activations", [row for path in counted for row in activation_rows(pq.read_table(path))])
    by_horizon = pq.read_table(folder / "counters" / "counters-by-horizon.parquet").to_pylist()
    save(
        "counters", [{k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in row.items()} for row in by_horizon]
    )
    for path in sorted(p for name in FIGURES for p in folder.glob(f"*/{name}.png")):
        if f"({path.parent.name}-{path.name}" in template_links():
            shrink(path, DOCS / "figures" / f"{path.parent.name}-{path.name}")


def template_links() -> str:
    return TEMPLATE.read_text(encoding="utf-8").replace("(figures/", "(")


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
    """Return the rows of a table of docs/results."""
    with (DOCS / "results" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


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
