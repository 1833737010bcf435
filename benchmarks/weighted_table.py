"""The table of weighted errors of docs/utility.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["weighted_table"]

SIZES = ("small", "medium", "large")
METHODS = ("tracking", "phdstream", "the total alone")


def weighted_table(rows: Iterable[Mapping[str, Any]], streams: Iterable[str], epsilons: Iterable[float]) -> str:
    """Return the weighted errors of some methods, by stream and ε; bold: below 1, which publishing nothing scores."""
    found = {(row["stream"], row["epsilon"], row["method"], row["size"]): row.get("weighted_error") for row in rows}
    found = {key: float(value) for key, value in found.items() if value is not None}
    if not found:
        return "Not run yet."
    lines = ["| stream | ε | tracking | PHDStream | the total alone |", "|---|---|---|---|---|"]
    for stream in streams:
        for epsilon in epsilons:
            cells = [" / ".join(_shown(found.get((stream, epsilon, m, size))) for size in SIZES) for m in METHODS]
            if any((stream, epsilon, method, SIZES[0]) in found for method in METHODS):
                lines.append(f"| {stream} | {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _shown(error: float | None) -> str:
    if error is None:
        return "–"
    return f"**{error:.2f}**" if error < 1 else f"{error:.2f}"
