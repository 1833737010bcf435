"""docs/reproduction.md: its template, filled with numbers and verdicts from docs/results. So none is typed by hand.

The template says {{error DATA SIZE EPSILON T0 METHOD}} and the like: see `FILL`. What was not run is said to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks.reproduction.claims import CLAIMS, Setting, comparisons
from benchmarks.reproduction.counter_claims import activation_comparisons, counter_comparisons
from benchmarks.reproduction.results import DOCS, KEY, TEMPLATE, Row, load
from benchmarks.reproduction.verdicts import Judged, Outcome, judge
from benchmarks.reproduction.wording import evidence_text, verdict_text

__all__ = ["FILL", "NOT_RUN", "page"]

NOT_RUN = "not run yet"
FIRST = ("phdstream", "nothing", "uniform")


@cache
def table_of_errors() -> dict[Setting, Row]:
    return {tuple(row[name] for name in KEY): row for row in load("errors")}  # type: ignore[misc]


@cache
def judged() -> dict[str, list[tuple[Judged, Outcome]]]:
    """Return every comparison of the page, by its claim's number, with what the claim expects: corrected together."""
    asked = [(one, claim.expects) for claim in CLAIMS for one in comparisons(claim, table_of_errors())]
    asked += [*counter_comparisons(load("counters")), *activation_comparisons(load("activations"))]
    results = judge(one for one, _ in asked)
    found: dict[str, list[tuple[Judged, Outcome]]] = {"": [(result, Outcome.SAME) for result in results.values()]}
    for one, expects in asked:
        parts = [results[part] for part in one.parts()]
        found.setdefault(one.claim, []).append((results[one], expects))
        found.setdefault(f"{one.claim} parts", []).extend((part, expects) for part in parts)
    return found


def verdict(number: str) -> str:
    """Return what a claim comes to, and where it fails."""
    there = judged().get(number)
    return verdict_text(there, judged()[f"{number} parts"]) if there else NOT_RUN


def evidence(number: str) -> str:
    """Return a claim's ratios: by data set, with the interval and the range over settings."""
    there = judged().get(number)
    return evidence_text(there, judged()[f"{number} parts"]) if there else NOT_RUN


def compared() -> str:
    """Return how many comparisons the page makes."""
    return f"{len(judged()[''])}"


def one(metric: str, *setting: str) -> str:
    """Return a metric in a setting: the mean over seeds ± their standard deviation."""
    row = table_of_errors().get(setting)  # type: ignore[arg-type]
    return shown(row[metric]) if row else NOT_RUN


def shown(entry: str) -> str:
    values = np.array(entry.split(), float)
    digits = 3 if values.mean() >= 0.1 else 4
    spread = f" ± {values.std(ddof=1):.{digits}f}" if values.size > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def growth(*setting: str) -> str:
    """Return the error at the first and at the last measured tick."""
    row = table_of_errors().get(setting)  # type: ignore[arg-type]
    return (
        " → ".join(f"{np.mean(np.array(row[end].split(), float)):.3f}" for end in ("first", "last")) if row else NOT_RUN
    )


def markdown(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def table(data: str, size: str, metric: str = "error") -> str:
    """Return a metric on a data set: a row for each ε and t0, a column for each method; bold: better than nothing."""
    there = {setting[2:]: row for setting, row in table_of_errors().items() if setting[:2] == (data, size)}
    if not there:
        return f"{NOT_RUN[0].upper()}{NOT_RUN[1:]}."
    methods = sorted({method for *_, method in there}, key=lambda name: (name not in FIRST, name))
    settings = sorted({(epsilon, t0) for epsilon, t0, _ in there}, key=lambda pair: (float(pair[0]), float(pair[1])))
    lines = [
        [*pair, *(_entry(there.get((*pair, method)), there.get((*pair, "nothing")), metric) for method in methods)]
        for pair in settings
    ]
    return markdown(["ε", "t0", *methods], lines)


def _entry(row: Row | None, nothing: Row | None, metric: str) -> str:
    """Return an entry of a table, bold if it is below that of publishing nothing in every seed."""
    if row is None:
        return "–"
    below = nothing is not None and max(map(float, row[metric].split())) < min(map(float, nothing[metric].split()))
    return f"**{shown(row[metric])}**" if below else shown(row[metric])


def counters() -> str:
    rows = load("counters")
    names = list(dict.fromkeys(row["counter"] for row in rows))
    at = {(row["horizon"], row["counter"]): f"{float(row['mean']):.1f} ± {float(row['spread']):.1f}" for row in rows}
    horizons = dict.fromkeys(row["horizon"] for row in rows)
    return markdown(["T", *names], [[horizon, *(at[horizon, name] for name in names)] for horizon in horizons])


def activated(data: str, epsilon: str, column: str) -> str:
    found = [row for row in load("activations") if (row["data"], row["epsilon"]) == (data, epsilon)]
    return f"{float(found[0][column]):.1%} ± {float(found[0][f'{column}_spread']):.1%}" if found else NOT_RUN


def figure(name: str, *title: str) -> str:
    """Return a picture of docs/figures, or that it was not drawn yet."""
    there = (DOCS / "figures" / f"{name}.png").is_file()
    return f"![{' '.join(title)}](figures/{name}.png)" if there else f"({' '.join(title)}: {NOT_RUN})"


FILL: dict[str, Callable[..., str]] = {
    "error": lambda *setting: one("error", *setting),
    "weighted": lambda *setting: one("weighted_error", *setting),
    "distance": lambda *setting: one("distance", *setting),
    "growth": growth,
    "verdict": verdict,
    "evidence": evidence,
    "compared": compared,
    "table": table,
    "counters": counters,
    "activated": activated,
    "figure": figure,
}


def page() -> str:
    """Return the document: the template with its numbers."""
    text = TEMPLATE.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)([^}]*)\}\}", lambda match: FILL[match[1]](*match[2].split()), text)
