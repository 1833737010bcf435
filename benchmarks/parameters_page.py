"""docs/parameters.md from `TrackingParameters` and the ablation's results: no number is typed by hand.

python -m benchmarks.parameters_page          # writes the page anew
"""

from __future__ import annotations

import csv
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from phdstream.streams.tracking import TrackingParameters

__all__ = ["page"]

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results" / "ablation.csv"


def page() -> str:
    """Return the page."""
    lines = [
        "# The parameters of tracking",
        "",
        "Every number that `TrackingStream` was tuned by, from `streams/tracking/parameters.py`. None touches privacy:",
        "they say how the budget is divided, where to count, and what to make of noisy counts. They are fixed before",
        "any data is seen and saved with the state; a stream that goes on keeps those it began with.",
        "",
        "```python",
        ">>> import phdstream as phd",
        ">>> from phdstream.streams.tracking import TrackingParameters",
        '>>> plain = TrackingParameters().changed({"smoothing.on": False})',
        ">>> stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 1.0, phd.Event(), parameters=plain)",
        "",
        "```",
        "",
    ]
    defaults = TrackingParameters()
    for group in fields(defaults):
        own = getattr(defaults, group.name)
        if not is_dataclass(own):
            lines += ["## Released nodes", "", *_table([group], defaults, "")]
            continue
        lines += [f"## `{group.name}`", "", " ".join((type(own).__doc__ or "").split()), ""]
        lines += _table(fields(own), own, f"{group.name}.")
    return "\n".join([*lines, *_worth()])


def _table(about: Any, own: Any, prefix: str) -> list[str]:
    lines = ["| parameter | value | unit | range | what for |", "|---|---|---|---|---|"]
    for part in about:
        low, high = part.metadata.get("low"), part.metadata.get("high")
        allowed = "" if low is None else f"{low:g} to {high:g}"
        value = str(getattr(own, part.name))
        lines.append(
            f"| `{prefix}{part.name}` | {value} | {part.metadata['unit']} | {allowed} | {part.metadata['why']} |"
        )
    return [*lines, ""]


def _worth() -> list[str]:
    """Return what each heuristic is worth: the error without it, relative to with it."""
    lines = [
        "## What each heuristic is worth",
        "",
        "Errors without it, relative to with it, in percent: on the streams of `benchmarks/utility.py`, ε = 0.5 and 2,",
        "one or two seeds, so that the mean is known to about 1% ([research/ablation.md](research/ablation.md)).",
        "`python benchmarks/utility.py ablate` measures it anew on invented streams.",
        "",
        "| without | small | medium | large | mean |",
        "|---|---|---|---|---|",
    ]
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return [*lines, *("| " + " | ".join(row) + " |" for row in list(csv.reader(file))[1:]), ""]


if __name__ == "__main__":
    (DOCS / "parameters.md").write_text(page(), encoding="utf-8")
