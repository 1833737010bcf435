"""The claims of the paper (and ours) that are about numbers: what each compares, on what, and what it says of it.

The data are all sets for which both sides were run. So a new preset is judged without a change here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.reproduction.results import Row
from benchmarks.reproduction.verdicts import Comparison, Outcome

__all__ = ["CLAIMS", "Claim", "Setting", "comparisons"]

Setting = tuple[str, str, str, str, str]
"""Data, size of query, ε, t0, method."""
Table = Mapping[Setting, Row]
Side = Callable[[Setting], tuple[Setting, str]]
"""From a setting to what it is compared with: another setting, and what was measured there."""
SIZES = ("small", "medium", "large")
TINY = 1e-12


@dataclass(frozen=True)
class Claim:
    """``method`` against another side, in settings that ``chosen`` takes, by one of the things measured.

    ``expects`` is what the claim says; ``factor`` multiplies the other side (3: "at least three times as large").
    """

    number: str
    method: str
    against: Side
    expects: Outcome
    sizes: tuple[str, ...] = ("small",)
    chosen: Callable[[Setting, Table], bool] = lambda setting, table: True
    measured: str = "error"
    factor: float = 1.0


def method(name: str, measured: str = "error") -> Side:
    """The same setting, with another method."""
    return lambda setting: ((*setting[:4], name), measured)


def at(place: int, value: str, measured: str = "error") -> Side:
    """The same method, with another data set (0), ε (2) or t0 (3)."""
    return lambda setting: ((*setting[:place], value, *setting[place + 1 :]), measured)  # type: ignore[return-value]


def starts(data: str, table: Table) -> list[float]:
    return sorted({float(setting[3]) for setting in table if setting[0] == data})


def start(which: int, setting: Setting, table: Table) -> bool:
    """Whether a setting has the earliest start (0) or the latest (-1) of several."""
    there = starts(setting[0], table)
    return len(there) > 1 and float(setting[3]) == there[which]


def only(setting: Setting, table: Table, **wanted: str) -> bool:
    named = dict(zip(("data", "size", "epsilon", "t0"), setting, strict=False))
    return all(named[key] == value for key, value in wanted.items())


OURS, BETTER, WORSE, SAME = "phdstream", Outcome.BETTER, Outcome.WORSE, Outcome.SAME
EARLIEST, LATEST = partial(start, 0), partial(start, -1)
MOVING = partial(only, data="circles-b")
TRACKING, WEIGHTED = ("tracking", "tracking-insert-only"), "weighted_error"
FEW_DATA = ("gowalla", "gowalla-30-day")
CLAIMS = (
    Claim("1", OURS, method("baseline-1"), SAME, SIZES),
    Claim("2", OURS, method("baseline-2"), BETTER, SIZES),
    Claim("2a", OURS, method("baseline-2-authors"), BETTER, SIZES),
    Claim("4", OURS, method("baseline-3"), BETTER, chosen=EARLIEST),
    Claim("5", OURS, method("baseline-3"), BETTER, SIZES, MOVING),
    Claim("6", OURS, method("baseline-3"), WORSE, chosen=LATEST),
    Claim("7", "baseline-3", method("baseline-3", "first"), WORSE, chosen=LATEST, measured="last"),
    Claim("7a", OURS, method(OURS, "first"), WORSE, chosen=LATEST, measured="last"),
    Claim("8", OURS, method("phdstream-block"), BETTER),
    Claim("10", OURS, method("phdstream-record"), BETTER),
    Claim("10a", OURS, method("phdstream-half-epsilon"), BETTER),
    Claim("11", OURS, at(0, "circles-a"), BETTER, chosen=partial(only, data="circles-a-batch-2000")),
    Claim("11", OURS, at(0, "circles-b"), BETTER, chosen=partial(only, data="circles-b-batch-2000")),
    Claim("11", OURS, at(0, "circles-a"), WORSE, chosen=partial(only, data="circles-a-batch-100")),
    Claim("11", OURS, at(0, "circles-b"), WORSE, chosen=partial(only, data="circles-b-batch-100")),
    Claim("12", OURS, at(3, "100", "last"), BETTER, chosen=partial(only, data="gowalla", t0="300"), measured="last"),
    Claim(
        "12", OURS, at(3, "150", "last"), BETTER, chosen=partial(only, data="gowalla-30-day", t0="300"), measured="last"
    ),
    Claim("13", OURS, method("baseline-2"), BETTER, SIZES[1:], lambda setting, _: setting[0] in FEW_DATA),
    Claim("13", OURS, method("baseline-3"), BETTER, SIZES[1:], lambda setting, _: setting[0] in FEW_DATA),
    Claim("14", "baseline-2", method(OURS), WORSE, factor=3),
    Claim("14a", "phdstream-block", method(OURS), WORSE, factor=3),
    *(Claim("15", "phdstream-block", method(f"phdstream-block-{size}"), BETTER) for size in (2, 4, 16, 32)),
    Claim("21", OURS, method("phdstream-published-not-private"), SAME, SIZES),
    Claim("25", OURS, at(2, "0.5"), BETTER, chosen=partial(only, epsilon="2")),
    Claim("26", OURS, method("nothing", WEIGHTED), BETTER, SIZES, measured=WEIGHTED),
    Claim("27", OURS, method("uniform", WEIGHTED), BETTER, SIZES, measured=WEIGHTED),
    Claim("28", OURS, method("nothing"), BETTER),
    Claim("29", OURS, method("as-published-not-private"), SAME, SIZES),
    *(Claim("30", name, method(OURS), BETTER, SIZES) for name in TRACKING),
    *(Claim("31", name, method(OURS, WEIGHTED), BETTER, SIZES, measured=WEIGHTED) for name in TRACKING),
    *(Claim("32", name, method("nothing", WEIGHTED), BETTER, SIZES, measured=WEIGHTED) for name in TRACKING),
)
"""Claims on several lines with one number are one claim, said of several things."""


def by_seed(row: Row, measured: str) -> dict[str, float]:
    return dict(zip(row["seeds"].split(), map(float, row[measured].split()), strict=True))


def comparisons(claim: Claim, table: Table) -> Iterator[Comparison]:
    """Yield what a claim compares: one comparison for each data set and size, over all its settings."""
    found: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(dict)
    for setting, row in table.items():
        other, measured = claim.against(setting)
        wanted = setting[4] == claim.method and setting[1] in claim.sizes and claim.chosen(setting, table)
        if wanted and other in table:
            ours, theirs = by_seed(row, claim.measured), by_seed(table[other], measured)
            named = f"ε = {setting[2]}, t0 = {setting[3]}"
            found[setting[0], setting[1]][named] = log_ratios(ours, theirs, claim.factor)
    for (data, size), settings in found.items():
        seeds = sorted(set.intersection(*(set(logs) for logs in settings.values())))
        logs = tuple(tuple(of[seed] for seed in seeds) for of in settings.values())
        against = claim.against((data, size, "", "", claim.method))[0]
        yield Comparison(claim.number, where(claim, data, size, against), tuple(settings), logs)


def where(claim: Claim, data: str, size: str, against: Sequence[str]) -> str:
    """Return the words for a comparison's place: the data, the size if not small, and the other side if it varies."""
    varies = claim.number in ("13", "15") and against[4] != claim.method
    return data + (f", {size}" if size != "small" or len(claim.sizes) > 1 else "") + f", {against[4]}" * varies


def log_ratios(ours: Mapping[str, float], theirs: Mapping[str, float], factor: float) -> dict[str, float]:
    shared: Iterable[str] = ours.keys() & theirs.keys()
    return {s: float(np.log(max(ours[s], TINY) / (factor * max(theirs[s], TINY)))) for s in shared}
