"""What attributes cost, and which schedule serves best: places alone, attributes alone, and pairs. One command.

    python -m benchmarks.attributes run DATA    # DATA: the folder of the data files; docs/results/attributes.csv
    python -m benchmarks.attributes write       # the tables of docs/attributes.md anew, from the CSV

`run` takes some 90 minutes on one core and goes on where it was stopped. Every method has the same ε = 1 for an event,
over the whole stream, and is asked the same questions of `count` at the same ticks:

- **product**: one stream of all columns, by several schedules;
- **places alone**: one stream of the same events without attributes (what attributes cost);
- **one stream each**: for one attribute, a stream of places for each of its values. An event has one value, so each
  stream may spend all of ε (parallel composition). That holds for the unit of an event only: a user's events have many
  values, so under `User` the streams have to **share ε**, and the product does not: the same with a part of ε each.

Errors are weighted: the sum of |estimate - true| over the sum of true counts; publishing nothing has 1.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import phdstream as phd
from phdstream.arrays import Floats, Ints
from phdstream.domains.product.schedule import PLACE
from phdstream.evaluation.queries import domain_queries, weighted_error

DOCS = Path(__file__).parents[1] / "docs"
TABLE = DOCS / "results" / "attributes.csv"
PAGE = DOCS / "attributes.md"
QUERIES = {"small": 300, "medium": 150, "large": 60}
SEEDS, EPSILON = (1, 2, 3), 1.0
APART, SHARED = "one stream for each ", ", sharing ε"
INTERVALS = "share of 90% intervals that hold the true count"
_BEGIN, _END = "<!-- tables -->", "<!-- end of tables -->"
NEW_YORK = {"bounds": [(-74.3, -73.65), (40.5, 41.0)], "depth": 24, "names": ("lon", "lat")}
WORLD = {"bounds": [(-180, 180), (-90, 90)], "depth": 42, "names": ("lon", "lat")}
BASES = ["B02512", "B02598", "B02617", "B02682", "B02764"]


@dataclass(frozen=True)
class Data:
    """A real stream: its file, its place, its attributes, the length of its ticks in days, and how many there are."""

    file: str
    place: dict[str, Any]
    attributes: tuple[Any, ...]
    days: int
    start: str
    ticks: int
    first: int
    """The tick of the first release; errors are averaged over four ticks from there to the last."""

    def measured(self) -> list[int]:
        return np.unique(np.linspace(self.first, self.ticks, 4).round().astype(int)).tolist()


STREAMS = {
    "Uber: hour, base": Data(
        "uber_apr2014_full.parquet", NEW_YORK, (phd.TimeOfDay("hour", column="time"), phd.Category("base", BASES)),
        1, "2014-04-01", 30, 5,
    ),
    "Gowalla NYC: weekday": Data(
        "gowalla_nyc.parquet", NEW_YORK, (phd.DayOfWeek("weekday", column="time"),), 7, "2009-04-23", 79, 30
    ),
    "Gowalla world: weekday, hour": Data(
        "gowalla_union.parquet", WORLD,
        (phd.DayOfWeek("weekday", column="time"), phd.TimeOfDay("hour", column="time")), 7, "2009-02-04", 90, 40,
    ),
}  # fmt: skip


def schedules(depths: dict[str, int]) -> dict[str, list[str]]:
    """Return the schedules that are compared, for parts with so many levels."""
    place, others = depths[PLACE], {name: levels for name, levels in depths.items() if name != PLACE}
    attributes = [name for i in range(max(others.values())) for name, levels in others.items() if levels > i]
    turns = {
        1: "one level of the place a turn",
        2: "two levels of the place a turn",
        4: "four levels of the place a turn",
    }
    found = {name: _turns(depths, step) for step, name in turns.items()}
    half = place // 2
    return found | {
        "attributes first": attributes + [PLACE] * place,
        "half of the place first": [PLACE] * half + attributes + [PLACE] * (place - half),
    }


def _turns(depths: dict[str, int], step: int) -> list[str]:
    left, schedule = dict(depths), list[str]()
    while any(left.values()):
        for name in left:
            some = min(left[name], step if name == PLACE else 1)
            schedule += [name] * some
            left[name] -= some
    return schedule


class Truth:
    """The events of a stream by tick, and the true counts of all questions at some tick."""

    def __init__(self, data: Data, folder: Path) -> None:
        columns = pq.read_table(folder / data.file)
        time = columns["time"].combine_chunks().cast("timestamp[us]")
        begin = np.datetime64(data.start, "us").astype(np.int64)
        self.tick = (time.cast("int64").to_numpy() - begin) // (data.days * 86_400_000_000) + 1
        self.place = phd.Box(**data.place)
        self.domain = phd.Product(self.place, *data.attributes)
        self.points = np.asarray(self.domain.points(columns.set_column(0, "time", time)))
        inside = self.domain.encode(self.points)[1] & (self.tick >= 1) & (self.tick <= data.ticks)
        self.points, self.tick = self.points[inside], self.tick[inside]
        self.values = self.points[:, 2:].astype(np.int64)
        self.queries = domain_queries(self.place, QUERIES, 5)
        self.holds = {size: self._held(queries) for size, queries in self.queries.items()}

    def _held(self, queries: Floats) -> list[Ints]:
        """Return which rows each rectangle holds."""
        x, y = self.points[:, 0], self.points[:, 1]
        order = np.argsort(x, kind="stable")
        first = np.searchsorted(x[order], queries[:, 0], "left")
        past = np.searchsorted(x[order], queries[:, 2], "right")
        held = []
        for a, b, (_, low, _, high) in zip(first, past, queries, strict=True):
            rows = order[a:b]
            held.append(rows[(y[rows] >= low) & (y[rows] <= high)])
        return held

    def counts(self, tick: int, size: str | None, attributes: tuple[int, ...]) -> Ints:
        """Return the true counts by the values of attributes (columns), of each rectangle or of all of it (rows)."""
        sizes = [len(self.domain.attributes[i]) for i in attributes]
        now = self.tick <= tick
        rows = [np.arange(len(now))] if size is None else self.holds[size]
        cell = np.zeros(len(now), np.int64)
        for i, many in zip(attributes, sizes, strict=True):
            cell = cell * many + self.values[:, i]
        return np.array([np.bincount(cell[some[now[some]]], minlength=int(np.prod(sizes))) for some in rows])


def questions(truth: Truth) -> Iterator[tuple[str, str | None, tuple[int, ...]]]:
    """Yield what is asked: the name, the size of rectangles, and the attributes by whose values."""
    names = [attribute.name for attribute in truth.domain.attributes]
    for size in QUERIES:
        yield f"places, {size}", size, ()
    for i, name in enumerate(names):
        yield name, None, (i,)
    if len(names) > 1:
        yield " and ".join(names), None, tuple(range(len(names)))
    for i, name in enumerate(names):
        for size in ("medium", "large"):
            yield f"places and {name}, {size}", size, (i,)


def product_answers(
    release: Any, truth: Truth, size: str | None, attributes: tuple[int, ...], confidence: float = 0.9
) -> dict[str, Floats]:
    """Return a product's estimates for a question, and the ends of their intervals: rectangles by values."""
    if size is None:
        names = [truth.domain.attributes[i].name for i in attributes]
        table = release.table(names, confidence=confidence)
        found = {"value": table["value"], "low": table["low"], "high": table["high"]}
        return {name: column.to_numpy().reshape(1, -1) for name, column in found.items()}
    queries = release.domain.queries(truth.queries[size])
    asked = queries
    for i in attributes:  # one at most
        values = len(truth.domain.attributes[i])
        asked, value = np.repeat(queries, values, axis=0), np.tile(np.arange(values), len(queries)).astype(float)
        asked[:, 2 + i], asked[:, release.domain.dimension + 2 + i] = value, value + 1
    counts = release.count(asked, confidence)
    return {name: getattr(counts, name).reshape(len(queries), -1) for name in ("value", "low", "high")}


def errors(truth: Truth, tick: int, answer: Any) -> dict[str, float]:
    """Return the weighted error of each question that can be answered; ``answer`` returns None for the others."""
    found = {}
    for name, size, attributes in questions(truth):
        estimates = answer(size, attributes)
        if estimates is not None:
            found[name] = weighted_error(truth.counts(tick, size, attributes), estimates)
    return found


def run_one(stream: Any, data: Data, truth: Truth, rows: Any) -> Iterator[tuple[int, Any]]:
    """Feed a stream and yield its releases at the ticks that are measured."""
    measured = data.measured()
    for tick in range(1, data.ticks + 1):
        release = stream.update(rows(tick))
        if tick in measured:
            yield tick, release


def trial(data: Data, truth: Truth, method: str, schedule: list[str] | None, seed: int) -> dict[str, float]:
    """Return one method's errors, averaged over the ticks that are measured."""
    fixed: dict[str, Any] = {"start_after": data.first, "insert_only": True, "noise": phd.Simulation(seed)}
    each: list[dict[str, float]] = []
    if method == "places alone":
        stream = phd.TrackingStream(truth.place, EPSILON, phd.Event(), **fixed)
        for tick, release in run_one(stream, data, truth, lambda tick: truth.points[truth.tick == tick, :2]):

            def alone(size: str | None, attributes: tuple[int, ...], release: Any = release) -> Any:
                return None if attributes else release.count(truth.queries[str(size)]).value.reshape(-1, 1)

            each.append(errors(truth, tick, alone))
    elif method.startswith(APART):
        name = method.removeprefix(APART).removesuffix(SHARED)
        at = [a.name for a in truth.domain.attributes].index(name)
        each = _apart(data, truth, at, fixed, seed, shared=method.endswith(SHARED))
    else:
        domain = phd.Product(truth.place, *data.attributes, schedule=schedule)
        stream = phd.TrackingStream(domain, EPSILON, phd.Event(), **fixed)
        marked = type(domain.points(None))
        for tick, release in run_one(stream, data, truth, lambda tick: truth.points[truth.tick == tick].view(marked)):

            def whole(size: str | None, attributes: tuple[int, ...], release: Any = release) -> Any:
                return product_answers(release, truth, size, attributes)["value"]

            each.append(errors(truth, tick, whole))
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def coverage(data: Data, truth: Truth, seed: int) -> dict[str, float]:
    """Return how often 90% intervals of a product, by the default schedule, cover true counts, by question."""
    stream = phd.TrackingStream(
        truth.domain, EPSILON, phd.Event(), start_after=data.first, insert_only=True, noise=phd.Simulation(seed)
    )
    marked, found = type(truth.domain.points(None)), dict[str, list[float]]()
    for tick, release in run_one(stream, data, truth, lambda tick: truth.points[truth.tick == tick].view(marked)):
        for name, size, attributes in questions(truth):
            true, told = truth.counts(tick, size, attributes), product_answers(release, truth, size, attributes)
            found.setdefault(name, []).append(float(((told["low"] <= true) & (true <= told["high"])).mean()))
    return {name: float(np.mean(each)) for name, each in found.items()}


def _apart(data: Data, truth: Truth, at: int, fixed: dict[str, Any], seed: int, shared: bool) -> list[dict[str, float]]:
    """Return the errors of one stream of places for each value of an attribute, each with all of ε or its part."""
    many, answers = len(truth.domain.attributes[at]), dict[int, list[dict[str | None, Floats]]]()
    epsilon = EPSILON / many if shared else EPSILON
    for value in range(many):
        noise = phd.Simulation(seed * 1000 + value)
        stream = phd.TrackingStream(truth.place, epsilon, phd.Event(), **fixed | {"noise": noise})
        own = truth.values[:, at] == value
        for tick, release in run_one(
            stream, data, truth, lambda tick, own=own: truth.points[(truth.tick == tick) & own, :2]
        ):
            found: dict[str | None, Floats] = {s: release.count(q).value for s, q in truth.queries.items()}
            answers.setdefault(tick, []).append(found | {None: np.array([release.total])})
    each = []
    for tick, by_value in answers.items():

        def joined(size: str | None, attributes: tuple[int, ...], by_value: Any = by_value) -> Any:
            table = np.stack([one[size] for one in by_value], axis=1)
            return table.sum(axis=1, keepdims=True) if not attributes else table if attributes == (at,) else None

        each.append(errors(truth, tick, joined))
    return each


def methods(truth: Truth) -> Iterator[tuple[str, list[str] | None, bool]]:
    """Yield all methods on a stream: names, the schedules of products, and whether it is one of the main ones.

    Products by other schedules than the default are run once all else is there.
    """
    depths = {PLACE: truth.place.depth} | {a.name: a.depth for a in truth.domain.attributes}
    yield "places alone", None, True
    for name, schedule in schedules(depths).items():
        yield f"product, {name}", schedule, tuple(schedule) == truth.domain.schedule
    for attribute, end in product(truth.domain.attributes, ("", SHARED)):
        yield f"{APART}{attribute.name}{end}", None, True


def run(folder: Path) -> None:
    """Run what the CSV does not have yet: intervals, then the main methods with all seeds, then other schedules."""
    rows = list(csv.DictReader(TABLE.open())) if TABLE.exists() else []
    done = {(row["stream"], row["method"], row["seed"]) for row in rows}
    for seed, (name, data) in product(SEEDS, STREAMS.items()):
        if (name, INTERVALS, str(seed)) not in done:
            one = {"stream": name, "method": INTERVALS, "seed": str(seed)}
            found = coverage(data, Truth(data, folder), seed)
            rows += [one | {"question": asked, "error": f"{covered:.5f}"} for asked, covered in found.items()]
            _save(rows)
    for main_ones, seed, (name, data) in product((True, False), SEEDS, STREAMS.items()):
        truth = Truth(data, folder)
        for method, schedule, is_main in methods(truth):
            if is_main == main_ones and (name, method, str(seed)) not in done:
                found = trial(data, truth, method, schedule, seed)
                one = {"stream": name, "method": method, "seed": str(seed)}
                rows += [one | {"question": asked, "error": f"{error:.5f}"} for asked, error in found.items()]
                _save(rows)
                print(seed, name, method, {asked: round(error, 3) for asked, error in found.items()}, flush=True)


def _save(rows: list[dict[str, str]]) -> None:
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["stream", "method", "seed", "question", "error"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def tables() -> str:
    """Return the tables of the page: for each stream what attributes cost, and how schedules compare."""
    rows = list(csv.DictReader(TABLE.open()))
    parts = []
    for stream in dict.fromkeys(row["stream"] for row in rows):
        own = [row for row in rows if row["stream"] == stream]
        methods_there = list(dict.fromkeys(row["method"] for row in own))
        ours = f"product, {_default(STREAMS[stream])}"
        products = [name for name in methods_there if name.startswith("product, ")]
        others = [name for name in methods_there if name not in products and name != INTERVALS]
        short = {name: _short(name) + (" (the default)" if name == ours else "") for name in products}
        parts += [
            f"### {stream}\n",
            *_table(
                own,
                {others[0]: others[0], ours: "product"}
                | {name: _short(name) for name in others[1:]}
                | {INTERVALS: "90% intervals of the product hold"},
            ),
        ]
        parts += ["", "By schedule; last the geometric mean:\n", *_table(own, short, mean=True), ""]
    return "\n".join(parts)


def _short(method: str) -> str:
    """Return what a column is called: the method, in few words."""
    return (
        method.removeprefix("product, ")
        .replace(APART, "a stream for each ")
        .replace(" levels of the place a turn", " levels a turn")
        .replace(" level of the place a turn", " level a turn")
    )


def _default(data: Data) -> str:
    """Return the name of the default schedule among those that are compared."""
    domain = phd.Product(phd.Box(**data.place), *data.attributes)
    depths = {PLACE: domain.location.depth} | {a.name: a.depth for a in data.attributes}
    return next(name for name, schedule in schedules(depths).items() if tuple(schedule) == domain.schedule)


def _table(own: list[dict[str, str]], columns: dict[str, str], mean: bool = False) -> list[str]:
    """Return a table of mean errors, a column for each method under its title, a row for each question."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in own:
        found.setdefault((row["question"], row["method"]), []).append(float(row["error"]))
    asked = list(dict.fromkeys(row["question"] for row in own))
    seeds = {method: len({row["seed"] for row in own if row["method"] == method}) for method in columns}
    titles = [f"{title}{'' if seeds[method] == len(SEEDS) else ' ¹'}" for method, title in columns.items()]
    lines = ["| question | " + " | ".join(titles) + " |", "|---" * (len(columns) + 1) + "|"]
    for question in asked:
        cells = [found.get((question, method)) for method in columns]
        lines.append(f"| {question} | " + " | ".join(_shown(cell) if cell else "" for cell in cells) + " |")
    if mean:
        means = [np.exp(np.mean([np.log(np.mean(found[question, m])) for question in asked])) for m in columns]
        lines.append("| **mean** | " + " | ".join(_shown([float(value)]) for value in means) + " |")
    return lines


def _shown(errors: list[float]) -> str:
    return f"{np.mean(errors):.3f}".removeprefix("0")


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("run").add_argument("data", type=Path)
    steps.add_parser("write")
    given = parser.parse_args()
    if given.step == "run":
        run(given.data)
    else:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(_BEGIN)
        PAGE.write_text(before + _BEGIN + "\n\n" + tables() + "\n" + _END + rest.partition(_END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
