"""The claims about counters, and about how often they are activated, as comparisons."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.reproduction.results import Row
from benchmarks.reproduction.verdicts import Comparison, Outcome

__all__ = ["activation_comparisons", "counter_comparisons"]

SIMPLE, BLOCK, TREE = "Simple", "Block 8", "Binary Tree"
SHORT, LONG, LAST = range(1, 100), range(31, 10**6), (1024, 4096)
RARE = 0.9
GROWTH = {SIMPLE: 1 / 2, BLOCK: 1 / 4}
"""The powers of t by which the paper says that errors grow; a Binary Tree's like (ln t)^(3/2)."""

Judgeable = Iterator[tuple[Comparison, Outcome]]
Errors = dict[tuple[int, str], np.ndarray]


def counter_comparisons(rows: list[Row]) -> Judgeable:
    """Yield the comparisons of claims 16 to 19, each with what is claimed. The settings are horizons."""
    errors = {(int(r["horizon"]), r["counter"]): np.array(r["each"].split(), float) for r in rows if r.get("each")}
    horizons = sorted({horizon for horizon, _ in errors})
    for other in (SIMPLE, BLOCK):
        yield from _against("16", TREE, other, [T for T in horizons if T in SHORT], errors, Outcome.WORSE)
        yield from _against("18", TREE, other, horizons[-1:], errors, Outcome.BETTER)
    yield from _against("17", BLOCK, SIMPLE, [T for T in horizons if T in LONG], errors, Outcome.BETTER)
    yield from _against("17a", BLOCK, SIMPLE, [T for T in horizons if T not in LONG], errors, Outcome.SAME)
    if set(LAST) <= set(horizons):
        yield from (_growth(counter, errors) for counter in (SIMPLE, BLOCK, TREE))


def _against(number: str, one: str, other: str, horizons: list[int], errors: Errors, expects: Outcome) -> Judgeable:
    if horizons:
        logs = tuple(tuple(np.log(errors[T, one] / errors[T, other]).tolist()) for T in horizons)
        yield Comparison(number, f"{one} against {other}", tuple(f"T = {T}" for T in horizons), logs), expects


def _growth(counter: str, errors: Errors) -> tuple[Comparison, Outcome]:
    """Return how an error grows between the last horizons, over what the paper says."""
    first, last = LAST
    said = GROWTH[counter] * np.log(last / first) if counter in GROWTH else 1.5 * np.log(np.log(last) / np.log(first))
    logs = tuple((np.log(errors[last, counter] / errors[first, counter]) - said).tolist())
    return Comparison("19", counter, (f"T = {first} to {last}",), (logs,)), Outcome.SAME


def activation_comparisons(rows: list[Row]) -> Judgeable:
    """Yield claim 9: 0.9 over the share of nodes that are activated rarely, so that below 1 the claim holds."""
    for data in dict.fromkeys(row["data"] for row in rows if row.get("rare_each")):
        of = [row for row in rows if row["data"] == data]
        logs = tuple(tuple(np.log(RARE / np.array(row["rare_each"].split(), float)).tolist()) for row in of)
        yield Comparison("9", data, tuple(f"ε = {row['epsilon']}" for row in of), logs), Outcome.BETTER
