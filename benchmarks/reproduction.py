"""The reproduction's tables and figures, from the results of full-size runs.

    python benchmarks/reproduction.py collect RESULTS   # RESULTS/<preset>/..., as the document says; needs Pillow
    python benchmarks/reproduction.py write             # docs/reproduction.md anew, from docs/results and the template

`collect` writes means and spreads to docs/results, and small copies of the figures to docs/figures. `write` fills the
template: {{error DATA SIZE EPSILON T0 METHOD}} and the like, see `FILL`. So no number in the document is typed by hand.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DOCS = Path(__file__).parents[1] / "docs"
TEMPLATE, PAGE = DOCS / "reproduction.template.md", DOCS / "reproduction.md"
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
    for key, each in sorted(means.items()):
        ours, curves = means[(*key[:4], OURS)], [sorted(run) for run in runs[key].values()]
        ratios = [error / ours[seed] for seed, error in each.items() if seed in ours]
        ends = [f"{np.mean([curve[i][1] for curve in curves]):.4f}" for i in (0, -1)]
        values = [*key, *mean_and_spread(each.values()), str(len(each)), *mean_and_spread(ratios), *ends]
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


def load(name: str) -> list[Row]:
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


def select(size: str, method: str, names: Iterable[str], at: Callable[[Row], bool] = lambda row: True) -> list[Row]:
    wanted = set(names)
    rows = [r for r in load("errors") if (r["size"], r["method"]) == (size, method) and r["data"] in wanted and at(r)]
    missing = wanted - {row["data"] for row in rows}
    if not rows or missing:
        raise SystemExit(
            f"there is no result of {method} for {', '.join(sorted(missing or wanted))}: run it and collect"
        )
    return rows


def one(data: str, size: str, epsilon: str, t0: str, method: str) -> Row:
    return select(size, method, [data], lambda row: (row["epsilon"], row["t0"]) == (epsilon, t0))[0]


def error(*setting: str) -> str:
    row = one(*setting)
    value, digits = float(row["error"]), 3 if float(row["error"]) >= 0.1 else 4
    return f"{value:.{digits}f} ± {float(row['spread']):.{digits}f}"


def ratio(*setting: str) -> str:
    row = one(*setting)
    return f"{float(row['ratio']):.2f} ± {float(row['ratio_spread']):.2f}"


def growth(*setting: str) -> str:
    """Return the error at the first and at the last measured tick."""
    row = one(*setting)
    return f"{float(row['first']):.3f} → {float(row['last']):.3f}"


def wins(method: str, size: str, *names: str) -> str:
    """Return in how many settings (data, ε, t0) the method is worse than PHDStream; clearly: by two deviations."""
    rows = select(size, method, names)
    clear = [float(r["ratio"]) - 2 * float(r["ratio_spread"]) > 1 for r in rows]
    return f"{sum(float(r['ratio']) > 1 for r in rows)} of {len(rows)} ({sum(clear)} clearly)"


def spread(method: str, size: str, *names: str) -> str:
    """Return the method's error over PHDStream's: geometric mean, least and most over ε and t0."""
    ratios = np.array([float(row["ratio"]) for row in select(size, method, names)])
    return f"{np.exp(np.log(ratios).mean()):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def spread_at(method: str, size: str, t0: str, *names: str) -> str:
    ratios = np.array([float(row["ratio"]) for row in select(size, method, names, lambda row: row["t0"] == t0)])
    return f"{np.exp(np.log(ratios).mean()):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def table(data: str, size: str) -> str:
    """Return all errors of a data set: a row for each ε and t0, a column for each method."""
    rows = [row for row in load("errors") if (row["data"], row["size"]) == (data, size)]
    methods = sorted({row["method"] for row in rows}, key=lambda name: (not name.startswith(OURS), name))
    settings = sorted({(float(row["epsilon"]), float(row["t0"])) for row in rows})
    lines = [[f"{e:g}", f"{t:g}", *(error(data, size, f"{e:g}", f"{t:g}", m) for m in methods)] for e, t in settings]
    return markdown(["ε", "t0", *methods], lines)


def counters() -> str:
    rows = load("counters")
    names = list(dict.fromkeys(row["counter"] for row in rows))
    at = {(row["horizon"], row["counter"]): f"{float(row['mean']):.1f} ± {float(row['spread']):.1f}" for row in rows}
    horizons = dict.fromkeys(row["horizon"] for row in rows)
    return markdown(["T", *names], [[horizon, *(at[horizon, name] for name in names)] for horizon in horizons])


def activated(data: str, epsilon: str, column: str) -> str:
    row = next(row for row in load("activations") if (row["data"], row["epsilon"]) == (data, epsilon))
    value, deviation = float(row[column]), float(row[f"{column}_spread"])
    if column.startswith("rare"):
        return f"{value:.1%} ± {deviation:.1%}"
    return f"{value:,.0f} ± {deviation:,.0f}"


FILL: dict[str, Callable[..., str]] = {
    "error": error,
    "ratio": ratio,
    "growth": growth,
    "wins": wins,
    "spread": spread,
    "spread_at": spread_at,
    "table": table,
    "counters": counters,
    "activated": activated,
}


def page() -> str:
    """Return the document: the template with its numbers."""
    text = TEMPLATE.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)([^}]*)\}\}", lambda match: FILL[match[1]](*match[2].split()), text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["collect"] and len(sys.argv) == 3:
        collect(Path(sys.argv[2]))
    elif sys.argv[1:] == ["write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.exit(__doc__)
