"""What docs/utility.md says of intervals, from docs/results/intervals.csv: no number is typed by hand."""

from __future__ import annotations

import csv

import numpy as np

from benchmarks import intervals

__all__ = ["parts"]


def parts() -> dict[str, str]:
    """Return what docs/utility.md says of intervals: the tables, and how wide they are."""
    with intervals.TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    tables = "\n\n".join(_table(rows, name) for name in intervals.METHODS)
    return {"intervals": tables, "interval widths": _widths(rows), "interval summary": _summary(rows)}


def _summary(rows: list[dict[str, str]]) -> str:
    said = []
    for name in intervals.METHODS:
        chosen = [
            r
            for r in rows
            if r["method"] == name and r["stream"] in intervals.CHOSEN and r["where"] in ("at data", "shifted")
        ]
        found = np.array([[float(r["noise_covered"]), float(r["covered"])] for r in chosen]).reshape(-1, 2).round(2)
        if len(found):
            within = [int(((each >= 0.88) & (each <= 0.95)).sum()) for each in found.T]
            low, high = found[:, 1].min(), found[:, 1].max()
            said.append(
                f"{name}: {within[1]} of {len(found)} entries at data or shifted are within .88 to .95 (noise alone: "
                f"{within[0]}); the least is {low:.2f}, the most {high:.2f}, the mean {found[:, 1].mean():.2f} "
                f"(noise alone: {found[:, 0].mean():.2f})"
            )
    return "Real streams. " + "; ".join(said) + "."


def _widths(rows: list[dict[str, str]]) -> str:
    said = []
    for side in intervals.SIDES:
        chosen = [r for r in rows if (r["method"], r["where"], r["side"]) == ("tracking", "at data", f"1/{side}")]
        both = [
            np.median([float(r[w]) for r in chosen if r["stream"] in intervals.CHOSEN])
            for w in ("width", "noise_width")
        ]
        said.append(f"{both[0]:.2f} (noise alone {both[1]:.2f}) for 1/{side}")
    return "At data their median width, relative to the count, is " + ", ".join(said) + " (tracking, real streams)."


def _table(rows: list[dict[str, str]], name: str) -> str:
    wheres = ("at data", "shifted", "anywhere")
    lines = [f"| {name} | " + " | ".join(f"{where}, 1/4, 1/16, 1/64, 1/256" for where in wheres) + " | boroughs |"]
    lines.append("|---" * 5 + "|")
    for stream in dict.fromkeys(row["stream"] for row in rows):
        for what, label in (("noise_covered", "noise alone"), ("covered", "**true counts**")):
            found = {
                (row["where"], row["side"]): row[what]
                for row in rows
                if (row["method"], row["stream"]) == (name, stream)
            }
            cells = [
                " ".join(_short(found.get((where, f"1/{side}"), "")) for side in intervals.SIDES) for where in wheres
            ]
            lines.append(
                f"| {stream}, {label} | " + " | ".join([*cells, _short(found.get(("boroughs", ""), ""))]) + " |"
            )
    return "\n".join(lines)


def _short(number: str) -> str:
    return f"{float(number):.2f}".removeprefix("0") if number else ""
