"""Measure everything: ``python -m benchmarks``; what takes long is asked for by ``--events`` and ``--rows``."""

from __future__ import annotations

import argparse
from pathlib import Path

import phdstream as phd
from benchmarks import kernels, ticks, whole_run
from benchmarks.measure import Figure, exponent, machine, table, write_json

METHODS: dict[str, ticks.MakeStream] = {"PHDStream": phd.PHDStream, "TrackingStream": phd.TrackingStream}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--method", default="PHDStream", choices=METHODS, help="the class of streams to measure")
    parser.add_argument("--events", type=int, default=10**8, help="the largest tick to encode and count")
    parser.add_argument("--nodes", type=int, default=10**6, help="the largest tree")
    parser.add_argument("--ticks", type=int, default=10_000, help="the length of the steady stream")
    parser.add_argument("--rows", type=int, default=0, help="also run on a Parquet file of so many rows")
    parser.add_argument("--only-run", action="store_true", help="nothing but the run")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results.json"))
    asked = parser.parse_args(arguments)
    figures = [] if asked.only_run else measure(METHODS[asked.method], asked)
    figures += whole_run.whole_run(asked.rows) if asked.rows else []
    grows = growth(figures)
    print(machine(), table(figures), *(f"{what}: cost grows as size^{b:.2f}" for what, b in grows.items()), sep="\n")
    write_json(asked.json, figures, grows)


def measure(method: ticks.MakeStream, asked: argparse.Namespace) -> list[Figure]:
    """Return all figures but those of the run."""
    return [
        *kernels.encode_and_count(_decades(10**4, asked.events)),
        *kernels.encode_in_dimensions(min(10**6, asked.events), [1, 2, 3, 4, 6]),
        *kernels.noise(min(10**6, asked.events), [0.5, 4.3, 20.0, 300.0, 1e6]),
        *ticks.one_tick(method, min(2500, asked.nodes)),
        *ticks.by_nodes(method, _decades(10**2, asked.nodes)),
        *ticks.by_depth(method, [5, 10, 20, 30, 40]),
        *ticks.steady(method, asked.ticks),
        *whole_run.start_up(),
    ]


def _decades(first: int, last: int) -> list[int]:
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= 10
    return sizes


def growth(figures: list[Figure]) -> dict[str, float]:
    """Return, for each group with several sizes of one thing, the exponent of its growth."""
    series: dict[str, list[Figure]] = {}
    for figure in figures:
        series.setdefault(f"{figure.group}, {figure.what}", []).append(figure)
    fits = {what: [f for f in found if f.unit == "s"] for what, found in series.items()}
    return {
        what: exponent([f.size for f in found], [f.amount for f in found])
        for what, found in fits.items()
        if len({f.size for f in found}) > 2
    }


if __name__ == "__main__":
    main()
