"""docs/literature.md: its tables and its figure, from docs/results/literature.csv and its template.

In the tables a method is judged by the better of its two variants in each cell: a set, an ε and a size of query.
"""

from __future__ import annotations

import csv
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.literature.methods import METHODS, OURS, PLAIN, POINTS, PUBLISHED
from benchmarks.literature.sets import SETS
from benchmarks.reproduction.page import markdown
from phdstream.errors import InputError
from phdstream.evaluation.pictures import Picture, picture_of, subplots

__all__ = ["DOCS", "EPSILONS", "FIGURE", "SIZES", "TABLE", "draw", "overview", "page", "prepared", "read"]

DOCS = Path(__file__).parents[2] / "docs"
TABLE, FIGURE = DOCS / "results" / "literature.csv", DOCS / "figures" / "literature.png"
SIZES, EPSILONS = ("small", "medium", "large"), (0.1, 0.5, 1.0, 2.0)
LEAST = 0.97
"""What a published method's error over ours must not fall below."""
Row = Mapping[str, Any]


def read() -> list[Row]:
    """Return the rows of the published table, none if it was not made yet; all of a method are of one version."""
    if not TABLE.is_file():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return prepared(csv.DictReader(file))


def prepared(rows: Iterable[Row]) -> list[Row]:
    """Return rows with numbers as such, refused if two versions of the code made those of one method."""
    numbers = ("epsilon", "points", "ratio", "ratio_best", "weighted_ratio")
    found: list[Row] = [dict(row) | {name: float(row[name]) for name in numbers} for row in rows]
    for method in METHODS:
        if len(codes := {row["code"] for row in found if row["method"] == method}) > 1:
            raise InputError(f"results of {method} were made by {len(codes)} versions of the code: run it again.")
    return found


def best(rows: Iterable[Row], by: str = "ratio") -> dict[tuple[str, float, str, str], Row]:
    """Return the better variant of each set, ε, size and method, by this error; of ours, its cells."""
    found: dict[tuple[str, float, str, str], Row] = {}
    for row in rows:
        key = row["set"], row["epsilon"], row["size"], row["method"]
        if row["variant"] != POINTS and (key not in found or row[by] < found[key][by]):
            found[key] = row
    return found


def page() -> str:
    """Return the document."""
    text = (DOCS / "literature.template.md").read_text(encoding="utf-8")
    rows = read()
    for part in (summary, methods, kinds, lost, variants, table, sets):
        text = text.replace("{{" + part.__name__ + "}}", part(rows) if rows else "Not run yet.")
    return text


def _mean(ratios: Iterable[float]) -> float:
    found = list(ratios)
    return float(np.exp(np.mean(np.log(found)))) if found else float("nan")


def _published(rows: Iterable[Row]) -> list[Row]:
    return [row for row in best(rows).values() if row["method"] in PUBLISHED]


def _cell(row: Row) -> str:
    return f"{row['set']}, ε = {row['epsilon']:g}, {row['size']}"


def strongest(rows: Iterable[Row]) -> list[Row]:
    """Return, for each cell, whichever published method is the best in it."""
    found: dict[tuple[str, float, str], Row] = {}
    for row in _published(rows):
        key = row["set"], row["epsilon"], row["size"]
        if key not in found or row["ratio"] < found[key]["ratio"]:
            found[key] = row
    return list(found.values())


def kinds(rows: Sequence[Row]) -> str:
    """Return how often a published method wins, by kind of set, and by points times ε on all but uniform points."""
    rivals, parts = strongest(rows), {}
    for kind in dict.fromkeys(each.kind for each in SETS.values()):
        parts[kind] = [row for row in rivals if SETS[row["set"]].kind == kind]
    uneven = [row for row in rivals if SETS[row["set"]].kind != "uniform"]
    for least, most in itertools.pairwise((0, 1_000, 10_000, 100_000, np.inf)):
        name = f"{least:,} to {most:,.0f}" if most < np.inf else f"{least:,} and more"
        of = [row for row in uneven if least <= row["points"] * row["epsilon"] < most]
        parts[f"all but uniform, points × ε {name}"] = of
    lines = []
    for name, of in parts.items():
        if of:
            lines.append([name, _wins(of), _by_size(of)])
    return markdown(["sets", "cells lost", "the best published error over ours"], lines)


def summary(rows: Sequence[Row]) -> str:
    """Return in how many cells a published method wins by more than 3%, and by how much at worst."""
    rivals = strongest(rows)
    losses = [row for row in rivals if row["ratio"] < LEAST]
    if not losses:
        return f"In none of {len(rivals)} cells does a published method win by more than 3%."
    worst = min(losses, key=lambda row: float(row["ratio"]))
    even = sum(LEAST <= row["ratio"] < 1 for row in rivals)
    sure = sum(row["ratio_best"] < 1 for row in losses)
    label, mean = METHODS[worst["method"]].label, _mean(row["ratio"] for row in rivals)
    return (
        f"**The target is missed: in {len(losses)} of {len(rivals)} cells a published method wins by more than 3%** "
        f"({sure} of these in every seed), in {even} by less. At worst its error is {worst['ratio']:.2f} of ours: "
        f"{label}, {_cell(worst)}. Against whichever published method happens to be the best in a cell, ours is "
        f"{mean:.2f} times as accurate on average."
    )


def methods(rows: Sequence[Row]) -> str:
    """Return how each method compares over all cells, and where it wins; and the same by the weighted error."""
    lines, chosen, weighted = [], best(rows), best(rows, "weighted_ratio")
    for name, method in METHODS.items():
        of = [row for row in chosen.values() if row["method"] == name]
        if name == OURS or not of:
            continue
        worst = min(of, key=lambda row: float(row["ratio"]))
        also = [row for row in weighted.values() if row["method"] == name]
        by_weight = [_by_size(also, "weighted_ratio"), _wins(also, "weighted_ratio")]
        lines.append([
            method.label, _by_size(of), _wins(of), f"{worst['ratio']:.2f} ({_cell(worst)})", *by_weight,
        ])  # fmt: skip
    heads = ["its error over ours", "it wins by more than 3%", "its best cell", "by the weighted error", "it wins"]
    return markdown(["method", *heads], lines)


def _by_size(rows: Sequence[Row], metric: str = "ratio") -> str:
    return " / ".join(f"{_mean(row[metric] for row in rows if row['size'] == size):.2f}" for size in SIZES)


def _wins(rows: Sequence[Row], metric: str = "ratio") -> str:
    return f"{sum(row[metric] < LEAST for row in rows)} of {len(rows)}"


def variants(rows: Sequence[Row]) -> str:
    """Return what being non-negative is worth to the published methods, and whole points to ours."""
    by = {(row["set"], row["epsilon"], row["size"], row["method"], row["variant"]): row["ratio"] for row in rows}
    names = dict.fromkeys((method, variant) for *_, method, variant in by if variant != PLAIN)
    lines = []
    for method, variant in names:
        gains = {
            size: [ratio / by[*key[:4], PLAIN] for key, ratio in by.items() if key[2:] == (size, method, variant)]
            for size in SIZES
        }
        label = f"{METHODS[method].label}, {'whole points' if variant == POINTS else 'not negative'}"
        lines.append([label, " / ".join(f"{_mean(found):.2f}" for found in gains.values())])
    return markdown(["", "its error over that of the counts as they are"], lines)


def lost(rows: Sequence[Row]) -> str:
    """Return, for each set, which published methods win by more than 3%: where, and by how much."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in _published(rows):
        if row["ratio"] < LEAST:
            found[row["set"]][row["method"]].append(row)
    if not found:
        return "None."
    lines = []
    for name in SETS:
        for method, each in found.get(name, {}).items():
            by: dict[str, list[str]] = {size: [] for size in SIZES}
            for row in each:
                by[row["size"]].append(f"{row['ratio']:.2f} at {row['epsilon']:g}")
            cells = "; ".join(f"{size} {', '.join(wins)}" for size, wins in by.items() if wins)
            lines.append([name, METHODS[method].label, cells])
    return markdown(["set", "method", "its error over ours, at which ε"], lines)


def table(rows: Sequence[Row]) -> str:
    """Return every method's error over ours, for each set and ε: small / medium / large; bold wins by more than 3%."""
    chosen = best(rows)
    others = [name for name in METHODS if name != OURS]
    lines = []
    for name, epsilon in dict.fromkeys(key[:2] for key in chosen):
        line = [name, f"{epsilon:g}"]
        for method in others:
            cells = [chosen.get((name, epsilon, size, method)) for size in SIZES]
            line.append(" / ".join(_ratio(row) if row else "–" for row in cells))
        lines.append(line)
    return markdown(["set", "ε", *(METHODS[method].label for method in others)], lines)


def _ratio(row: Row) -> str:
    found = row["ratio"]
    text = f"{found:.2f}" if found < 10 else f"{found:.0f}"
    return f"**{text}**" if found < LEAST and row["method"] in PUBLISHED else text


def overview(rows: Sequence[Row]) -> str:
    """Return the table of methods and that of cells, for looking at."""
    if not _published(rows):
        return "No published method was run."
    return "\n\n".join(part(rows) for part in (summary, methods, table))


def sets(rows: Sequence[Row]) -> str:
    """Return what the sets are, and on how many seeds each was run."""
    run = {row["set"]: [f"{row['points']:,.0f}", f"{row['seeds']}"] for row in rows}
    lines = [[name, each.what, *run[name]] for name, each in SETS.items() if name in run]
    return markdown(["set", "what", "points", "seeds"], lines)


def draw(rows: Sequence[Row]) -> Picture:
    """Draw the published methods' errors over ours, in all cells; and below the best one's, over n·ε."""
    chosen, others = best(rows), PUBLISHED
    figure, axes = subplots(2, 3, sharey=False, panel=(4.4, 3.4))
    for column, size in enumerate(SIZES):
        above, below = axes[0][column], axes[1][column]
        for place, name in enumerate(others):
            values = [row["ratio"] for row in chosen.values() if (row["method"], row["size"]) == (name, size)]
            above.plot(values, place + np.linspace(-0.25, 0.25, len(values)), ".", color="#9a9a9a", ms=4)
            above.plot([_mean(values)], [place], "D", color="#0b62c4")
        labels = [METHODS[name].label for name in others] if not column else [""] * len(others)
        above.set_yticks(range(len(others)), labels)
        above.invert_yaxis()
        above.set(xscale="log", title=f"{size} queries", xlabel="its error / ours")
        above.axvline(1, color="#1b1f24", lw=1)
        above.axvline(LEAST, color="#a4262c", lw=1, ls="--")
        _over_numbers(below, [row for row in strongest(rows) if row["size"] == size])
        below.set(xscale="log", yscale="log", xlabel="points × ε", ylabel="" if column else "best published / ours")
        below.axhline(1, color="#1b1f24", lw=1)
        below.axhline(LEAST, color="#a4262c", lw=1, ls="--")
        for axis in (above.xaxis, below.yaxis):
            ticks = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100] if axis is above.xaxis else [0.5, 0.7, 1, 1.5, 2, 3, 5, 8]
            axis.set_major_locator(_fixed(ticks))
            axis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.set_minor_locator(_fixed([]))
        above.grid(alpha=0.25)
        below.grid(alpha=0.25)
    axes[1][2].legend(fontsize=7, ncols=2)
    return picture_of(figure)


def _over_numbers(axis: Any, rows: Sequence[Row]) -> None:
    """Draw rows over n·ε, a mark for each kind of set."""
    for kind, mark in zip(dict.fromkeys(each.kind for each in SETS.values()), "osD^v<>p", strict=False):
        of = [row for row in rows if SETS[row["set"]].kind == kind]
        axis.plot([row["points"] * row["epsilon"] for row in of], [row["ratio"] for row in of], mark, ms=4, label=kind)


def _fixed(ticks: list[float]) -> Any:
    from matplotlib.ticker import FixedLocator

    return FixedLocator(ticks)
