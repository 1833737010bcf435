"""docs/reproduction.md: its template, filled with the numbers of docs/results. So none of them is typed by hand.

The template says {{error DATA SIZE EPSILON T0 METHOD}} and the like: see `FILL`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.reproduction.results import OURS, TEMPLATE, Row, load

__all__ = ["FILL", "page"]


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
