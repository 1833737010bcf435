"""How often intervals cover true counts, and how wide they are: one command.

    python -m benchmarks.intervals run DATA RESULTS [--seeds 2] [--methods tracking phdstream]   # DATA: the data files
    python -m benchmarks.intervals collect RESULTS        # docs/results/intervals.csv; docs/utility.md shows it

`run` takes about 10 minutes a seed on one core, and goes on where it was stopped. 90% intervals of squares with sides
of 1/4 to 1/256 of the domain: around a point that is there, the same shifted by up to its side, and anywhere; and of
New York's boroughs (outlines simplified to 50 m). "Noise" is the interval of the privacy noise alone, all there was up
to 0.1. The model's numbers were chosen on `TUNED`, with other seeds; how `PHDStream`'s clustering is told, on the
invented "city" and "new places". The other streams were looked at, but no number was set by them.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import shapely

import phdstream as phd
from benchmarks.invented import INVENTED
from benchmarks.utility import DOCS, NEW_YORK, NYC, STREAMS, UBER
from phdstream.arrays import Floats, Ints
from phdstream.domains.shapes.geometries import read_layer
from phdstream.evaluation import PointCounter, read_experiment, standard_methods
from phdstream.evaluation.setting import load_setting

TABLE = DOCS / "results" / "intervals.csv"
REAL = ("Gowalla", "Gowalla 30-day", "Gowalla NYC", "Uber", "Yellow taxi", "Yellow taxi, one year")
WITH_LIFE: dict[str, dict[str, Any]] = {
    "Gowalla NYC 30-day": {"data": NYC | {"lifetime": "30d"}, "domain": NEW_YORK, "start_after": [350]},
    "Uber, one week": {"data": UBER | {"lifetime": "7d"}, "domain": NEW_YORK, "start_after": [30]},
}
CHOSEN: dict[str, dict[str, Any]] = {name: STREAMS[name] for name in REAL} | WITH_LIFE
TUNED = {"Gowalla", "Gowalla 30-day", "Gowalla NYC", "Uber"}
BOROUGHS = Path("geometry") / "nyc_boroughs_nybb.geojson"
EPSILONS, CONFIDENCE, MOMENTS, SQUARES = (0.5, 1.0, 2.0), 0.9, 8, 100
SIDES, METHODS = (4, 16, 64, 256), ("tracking", "phdstream")
BETWEEN = 0.05
"""A release is between fine counts if so many of its points came or went since the last one."""
Moments = Iterator[tuple[phd.Release, Floats]]


def method(name: str, domain: phd.Domain, epsilon: float, seed: int, insert_only: bool) -> Any:
    """Return a new stream."""
    noise = phd.Simulation(seed)
    if name == "tracking":
        return phd.TrackingStream(domain, epsilon, phd.Event(), insert_only=insert_only, noise=noise)
    return phd.PHDStream(domain, epsilon, phd.Event(), noise=noise)


def real(stream: str, data: Path, name: str, epsilon: float, seed: int) -> Moments:
    """Yield a real stream's releases at moments spread evenly, with the points that are there."""
    spec = CHOSEN[stream] | {
        "name": stream,
        "measure_every": 1,
        "methods": ["tracking"],
        "epsilons": [1.0],
        "seeds": [1],
    }
    setting = load_setting(read_experiment(spec | {"queries": {"small": 1}}, data, standard_methods))
    start = setting.start_tick(spec["start_after"][0])
    wanted = set(np.linspace(start, setting.truth.ticks, MOMENTS).round().astype(int).tolist())
    made = method(name, setting.domain, epsilon, seed, "lifetime" not in spec["data"])
    for moment in setting.truth.moments(start, 1):
        release = made.update(moment.inserts, moment.deletes)
        if moment.tick in wanted and moment.live is not None:
            yield release, moment.live


def invented(stream: str, name: str, epsilon: float, seed: int) -> Moments:
    """Yield the same of an invented stream."""
    ticks, live = INVENTED[stream](seed % 1000), np.zeros((0, 2))
    made = method(name, phd.Box([(0, 1), (0, 1)], depth=20), epsilon, seed, not any(len(t.deletes) for t in ticks))
    wanted = set(np.linspace(4, len(ticks) - 1, MOMENTS).round().astype(int).tolist())
    for i, tick in enumerate(ticks):
        live = np.concatenate([live[len(tick.deletes) :], tick.inserts])  # who came first goes first
        release = made.update(tick.inserts, tick.deletes)
        if i in wanted:
            yield release, live


def squares(domain: phd.Domain, live: Floats, rng: np.random.Generator) -> dict[tuple[str, str], Floats]:
    """Return squares by where they are and by their side."""
    low, high = np.split(domain.bounds(np.array([1]))[0], 2)
    found = {}
    for parts in SIDES:
        side = (high - low) / parts
        at = live[rng.integers(0, len(live), SQUARES)]
        shifted, anywhere = at + rng.uniform(-1, 1, at.shape) * side, rng.uniform(low, high, at.shape)
        for where, centre in (("at data", at), ("shifted", shifted), ("anywhere", anywhere)):
            inside = np.clip(centre, low + side / 2, high - side / 2)
            found[where, f"1/{parts}"] = np.hstack([inside - side / 2, inside + side / 2])
    return found


def measured(release: phd.Release, live: Floats, boroughs: Any, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return a row for each query: its true count, and both intervals."""
    asked, counter, estimate = squares(release.domain, live, rng), PointCounter(live), release.estimate
    old = estimate.uncounted[0] > BETWEEN * max(estimate.count[0], 1)
    rows = []
    for (where, side), rectangles in asked.items():
        rows += _rows(release.count(rectangles, CONFIDENCE), counter.count(rectangles), where, side, old)
    if boroughs is not None:
        true = np.array([shapely.contains_xy(shape, live).sum() for shape in boroughs])
        rows += _rows(release.count_in(boroughs, CONFIDENCE), true, "boroughs", "", old)
    return rows


def _rows(counts: phd.Counts, true: Ints, where: str, side: str, old: bool) -> list[dict[str, Any]]:
    columns = {name: getattr(counts, name) for name in ("value", "low", "high", "noise_low", "noise_high")}
    table = pd.DataFrame(columns | {"true": true, "where": where, "side": side, "between": old})
    rows: list[dict[str, Any]] = table.to_dict("records")
    return rows


def run(data: Path, results: Path, seeds: int, methods: list[str]) -> None:
    """Run all streams, and write a file for each; what was run before is kept."""
    results.mkdir(parents=True, exist_ok=True)
    shapes = shapely.simplify(read_layer(data / BOROUGHS)[0], 0.0005)
    shapely.prepare(shapes)
    for seed in range(11, 11 + seeds):
        for epsilon in EPSILONS:
            for stream in (*CHOSEN, *INVENTED):
                for name in methods:
                    path = results / f"{stream}_{name}_{epsilon:g}_{seed}.parquet"
                    if path.exists():
                        continue
                    own = zlib.crc32(path.name.encode())  # no two runs share their noise
                    known = stream in CHOSEN
                    moments = real(stream, data, name, epsilon, own) if known else invented(stream, name, epsilon, own)
                    boroughs = shapes if known and CHOSEN[stream]["domain"] == NEW_YORK else None
                    rng = np.random.default_rng(own)
                    rows = [row for release, live in moments for row in measured(release, live, boroughs, rng)]
                    about = {"stream": stream, "method": name, "epsilon": epsilon, "seed": seed}
                    pd.DataFrame(rows).assign(**about).to_parquet(path)
                    print(path.name, flush=True)


def scored(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with what is reported of each: covered, width and interval score, relative to the true count.

    The score is the width plus 20 times by how much the true count was missed (Gneiting and Raftery 2007).
    """
    scale = np.maximum(rows.true, 10)
    for name, low, high in (("", rows.low, rows.high), ("noise_", rows.noise_low, rows.noise_high)):
        missed = np.maximum(low - rows.true, 0) + np.maximum(rows.true - high, 0)
        rows[f"{name}covered"] = missed <= 1e-9
        rows[f"{name}width"] = (high - low) / scale
        rows[f"{name}score"] = (high - low + 2 / (1 - CONFIDENCE) * missed) / scale
    return rows


def summary(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return coverage, median width and mean score of both intervals, by some keys."""
    means = {"covered": "mean", "width": "median", "score": "mean"}
    about = {f"{name}{what}": (f"{name}{what}", how) for name in ("noise_", "") for what, how in means.items()}
    return rows.groupby(keys, sort=False).agg(queries=("true", "size"), **about).round(3).reset_index()


def collect(results: Path) -> None:
    """Write the table, by method, stream, place and side; also by ε, in empty places, and between fine counts."""
    rows = scored(pd.concat([pd.read_parquet(path) for path in sorted(results.glob("*.parquet"))], ignore_index=True))
    keys = ["method", "stream", "where", "side"]
    parts = [summary(rows, keys)]
    at_points = rows[rows["where"].isin(["at data", "shifted"])]
    for name, chosen in (("no points", rows[rows.true == 0]), ("between fine counts", at_points[at_points.between])):
        parts.append(summary(chosen.assign(where=name), keys))
    for epsilon, chosen in at_points.groupby("epsilon"):
        parts.append(summary(chosen.assign(where=f"at data or shifted, ε = {epsilon:g}"), keys))
    table = pd.concat(parts).assign(seeds=rows.seed.nunique())
    order = {name: i for i, name in enumerate((*CHOSEN, *INVENTED))}
    table = table.sort_values("stream", key=lambda names: names.map(order), kind="stable")
    table.sort_values("method", ascending=False, kind="stable").to_csv(TABLE, index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "collect"])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    asked = parser.parse_args()
    if asked.what == "run":
        run(asked.folders[0], asked.folders[1], asked.seeds, asked.methods)
    else:
        collect(asked.folders[0])
