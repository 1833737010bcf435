"""docs/everywhere.md: its tables, from docs/results/everywhere.csv and its template."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.hard_streams import EPSILONS, STREAMS
from benchmarks.reproduction.page import markdown

__all__ = ["DOCS", "SIZES", "TABLE", "TARGETS", "page", "standing"]

DOCS = Path(__file__).parents[1] / "docs"
TABLE = DOCS / "results" / "everywhere.csv"
SIZES = ("small", "medium", "large")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """What tracking must reach in every cell: a stream, an ε, a size of query. ``by``: how far it is, 1 if just so."""

    what: str
    column: str
    short: str
    by: Callable[[float], float]


TARGETS = (
    Target("at least 1.3 times as accurate as PHDStream", "ratio", "PHDStream", lambda found: found / 1.3),
    Target("at most twice the error of the offline oracle", "over_oracle", "oracle", lambda found: 2 / found),
    Target("better than publishing nothing, by the weighted error", "of_nothing", "nothing", lambda found: found),
    Target("better than the total alone, by the weighted error", "of_total", "total", lambda found: found),
)


def read() -> list[Row]:
    """Return the rows of the published table, none if it was not made yet."""
    if not TABLE.is_file():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return [row | {"epsilon": float(row["epsilon"])} for row in csv.DictReader(file)]


def page() -> str:
    """Return the document."""
    rows = read()
    ours = [row for row in rows if row["method"] == "tracking"]
    text = (DOCS / "everywhere.template.md").read_text(encoding="utf-8")
    parts = {"targets": targets(rows), "missed": missed(ours), "streams": streams(ours), "table": table(ours)}
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part if ours else "Not run yet.")
    return text


def targets(rows: list[Row]) -> str:
    """Return which targets are reached, in how many cells, and by how much the worst one misses; and the oracle's."""
    ours, oracles = (_of_method(rows, method) for method in ("tracking", "oracle"))
    if not ours:
        return ""
    lines = []
    for target in TARGETS:
        missed = [cell for cell, row in ours.items() if target.by(float(row[target.column])) < 1]
        too = [cell for cell in missed if cell in oracles and target.by(float(oracles[cell][target.column])) < 1]
        worst = min(ours.values(), key=lambda row: target.by(float(row[target.column])))
        seeds = sum(target.by(float(row[f"{target.column}_worst"])) >= 1 for row in ours.values())
        value = float(worst[target.column])
        where = f"{value:.2f} ({worst['stream']}, ε = {worst['epsilon']:g}, {worst['size']})"
        verdict = f"missed by {_short_by(target, value)}" if missed else "reached"
        reached = f"{len(ours) - len(missed)} of {len(ours)}"
        oracle = "" if target.column == "over_oracle" or not missed else f"{len(too)} of {len(missed)}"
        lines.append([target.what, verdict, reached, f"{seeds}", where, oracle])
    heads = ["target", "", "cells that reach it", "in every seed", "worst cell", "of the others the oracle misses too"]
    return markdown(heads, lines)


def _of_method(rows: list[Row], method: str) -> dict[tuple[Any, ...], Row]:
    return {(row["stream"], row["epsilon"], row["size"]): row for row in rows if row["method"] == method}


def _short_by(target: Target, found: float) -> str:
    return f"{100 * (1 - target.by(found)):.0f}%"


def missed(ours: Iterable[Row]) -> str:
    """Return, for each stream, the targets that it misses: at which ε and sizes, and by how much at worst."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in ours:
        for target in TARGETS:
            if target.by(float(row[target.column])) < 1:
                found[row["stream"]][target.column].append(row)
    if not found:
        return "None."
    rows = [
        [stream, *(_misses(target, by[target.column]) for target in TARGETS)]
        for stream in STREAMS
        if (by := found.get(stream))
    ]
    return markdown(["stream", *(target.short for target in TARGETS)], rows)


def _misses(target: Target, rows: list[Row]) -> str:
    if not rows:
        return ""
    worst = min((float(row[target.column]) for row in rows), key=target.by)
    levels = {size: ", ".join(f"{row['epsilon']:g}" for row in rows if row["size"] == size) for size in SIZES}
    return f"by {_short_by(target, worst)}: " + "; ".join(f"{size} at {each}" for size, each in levels.items() if each)


def streams(ours: Iterable[Row]) -> str:
    """Return what the streams are, and how thoroughly each was run."""
    seeds = {(row["stream"], row["epsilon"]): row["seeds"] for row in ours}
    rows = []
    for name, stream in STREAMS.items():
        levels = [epsilon for epsilon in EPSILONS if (name, epsilon) in seeds]
        moments = f"{len(stream.at) or stream.moments}"
        each = ", ".join(f"{epsilon:g}" for epsilon in levels)
        rows.append([name, stream.what, moments, each, "/".join(dict.fromkeys(str(seeds[name, e]) for e in levels))])
    return markdown(["stream", "what", "moments", "ε", "seeds"], rows)


def table(ours: Iterable[Row]) -> str:
    """Return how tracking compares, for each stream and ε: small / medium / large; bold misses its target."""
    by = {(row["stream"], row["epsilon"], row["size"]): row for row in ours}
    rows = []
    for stream, epsilon in dict.fromkeys(key[:2] for key in by):
        cells = [by[stream, epsilon, size] for size in SIZES]
        each = [" / ".join(_value(target, row) for row in cells) for target in TARGETS]
        spread = " / ".join(f"{float(row['ratio_spread']):.2f}" for row in cells)
        rows.append([stream, f"{epsilon:g}", each[0], spread, *each[1:], f"{float(cells[0]['distance_ratio']):.2f}"])
    heads = ["PHDStream / ours", "its spread", "ours / oracle", "nothing / ours", "total alone / ours", "distance"]
    every = "All methods, all metrics: [results/everywhere.csv](results/everywhere.csv)."
    return f"{markdown(['stream', 'ε', *heads], rows)}\n\n{every}"


def _value(target: Target, row: Row) -> str:
    found = float(row[target.column])
    return f"{found:.2f}" if target.by(found) >= 1 else f"**{found:.2f}**"


def standing(rows: Iterable[Row]) -> str:
    """Return where tracking stands, as text: a line for each stream and ε; a star marks what misses its target."""
    ours = [row for row in rows if row["method"] == "tracking"]
    by = {(row["stream"], row["epsilon"], row["size"]): row for row in ours}
    heads = ["PHDStream/ours >= 1.3", "ours/oracle <= 2", "nothing/ours > 1", "total/ours > 1"]
    lines = [f"{'':36}" + "".join(f"{head:24}" for head in heads)]
    for stream, epsilon in dict.fromkeys(key[:2] for key in by):
        each = [" ".join(_starred(target, by[stream, epsilon, size]) for size in SIZES) for target in TARGETS]
        lines.append(f"{stream + f', ε = {epsilon:g}':36}" + "".join(f"{cell:24}" for cell in each))
    for target in TARGETS:
        reached = sum(target.by(float(row[target.column])) >= 1 for row in ours)
        lines.append(f"{target.what}: {reached} of {len(ours)} cells")
    return "\n".join(lines)


def _starred(target: Target, row: Row) -> str:
    found = float(row[target.column])
    return f"{found:.2f}" + (" " if target.by(found) >= 1 else "*")
