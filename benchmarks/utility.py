"""Accuracy of tracking against PHDStream, the baselines and the offline oracle, on several streams: one command.

    python benchmarks/utility.py run DATA RESULTS [--seeds 5] [--workers 2]   # DATA: the folder of the data files
    python benchmarks/utility.py collect RESULTS      # docs/results/utility.csv and docs/figures/utility.png
    python benchmarks/utility.py write                # docs/utility.md anew, from its template and the CSV
    python benchmarks/utility.py quick [--save FILE] [--against FILE]    # what a change does: a few minutes
    python benchmarks/utility.py ablate [--save FILE]                    # what each heuristic is worth

`run` takes an hour on two cores, and goes on where it was stopped; it finishes one seed on all
streams before the next. Errors are the paper's, on synthetic points. Seeds 11 and up took no part in choosing the
method's constants. `quick` and `ablate` use invented streams: see `benchmarks/ablation.py`.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from phdstream.evaluation import read_experiment, run_experiment
from phdstream.evaluation.pictures import picture_of, subplots

DOCS = Path(__file__).parents[1] / "docs"
TABLE = DOCS / "results" / "utility.csv"
WORLD = {"type": "box", "bounds": [[-180, 180], [-90, 90]], "depth": 42}
NEW_YORK = {"type": "box", "bounds": [[-74.3, -73.65], [40.5, 41.0]], "depth": 24}
"""The finest cells are 10 to 20 m wide, about what a phone knows; at depth 20 the world's were 39 km by 20 km."""
COLUMNS: dict[str, Any] = {"time": "time", "coordinates": ["lon", "lat"]}
GOWALLA = COLUMNS | {"file": "gowalla_union.parquet", "every": "1d"}
GOWALLA |= {"start": date(2009, 2, 4), "end": date(2010, 10, 24)}
NYC = COLUMNS | {"file": "gowalla_nyc.parquet", "every": "1d", "start": date(2009, 4, 1), "end": date(2010, 10, 24)}
UBER = COLUMNS | {"file": "uber_apr2014_full.parquet", "every": "6h"}
UBER |= {"start": date(2014, 4, 1), "end": date(2014, 5, 1)}
TAXI = COLUMNS | {"file": "nyc_yellow_taxi_sample_2009_2015.parquet", "every": "7d"}
TAXI |= {"start": date(2009, 1, 1), "end": date(2015, 6, 25)}
STREAMS: dict[str, dict[str, Any]] = {
    "circles": {"data": {"circles": "growing", "points": 50_000}, "start_after": [0.3], "measure_every": 3},
    "circles moving": {"data": {"circles": "moving", "points": 25_000}, "start_after": [0.3], "measure_every": 5},
    "Gowalla": {"data": GOWALLA, "domain": WORLD, "start_after": [300], "measure_every": 14},
    "Gowalla 30-day": {
        "data": GOWALLA | {"lifetime": "30d"}, "domain": WORLD, "start_after": [350], "measure_every": 12,
    },
    "Gowalla NYC": {"data": NYC, "domain": NEW_YORK, "start_after": [300], "measure_every": 12},
    "Uber": {"data": UBER, "domain": NEW_YORK, "start_after": [20], "measure_every": 4},
    "Yellow taxi": {"data": TAXI, "domain": NEW_YORK, "start_after": [60], "measure_every": 12},
    "Yellow taxi, one year": {
        "data": TAXI | {"lifetime": "364d"}, "domain": NEW_YORK, "start_after": [80], "measure_every": 12,
    },
    "Uber, hourly": {
        "data": UBER | {"every": "1h"}, "domain": NEW_YORK, "start_after": [120], "measure_every": 24,
    },
    "Gowalla, depth 20": {
        "data": GOWALLA, "domain": WORLD | {"depth": 20}, "start_after": [300], "measure_every": 14,
    },
}  # fmt: skip
DELETES = {"circles moving", "Gowalla 30-day", "Yellow taxi, one year"}
HELD_OUT = {"Yellow taxi", "Yellow taxi, one year"}
"""Streams that chose nothing, here or in any constant; not among those of the targets."""
ASIDE = {"Uber, hourly", "Gowalla, depth 20"}
"""Streams that show what finer ticks and coarser cells change: tracking and PHDStream only."""
STUDIED = set(STREAMS) - HELD_OUT - ASIDE
"""Those of the targets."""
EPSILONS, USUAL = [0.1, 0.5, 1.0, 2.0], {0.5, 1.0, 2.0}
TARGETS = {"small": 2.7, "medium": 3.2, "large": 3.5}
PAPER = "phdstream-as-in-paper"
FLOORS = ["nothing", "uniform"]
PEERS = ["phdstream", PAPER, "phdstream-4", "baseline-1", "baseline-2", "baseline-3", "oracle", *FLOORS]
LABELS = {
    "tracking-insert-only": "tracking",
    "tracking-window-30": "tracking, as a window",
    "phdstream-window-30": "PHDStream, as a window",
    PAPER: "PHDStream, points as in the paper",
    "phdstream-4": "PHDStream, fanout 4",
    "baseline-1": "baseline 1 (not private)",
    "baseline-2": "baseline 2 (not private)",
    "baseline-3": "baseline 3",
    "oracle": "offline oracle (not private)",
    "nothing": "publishing nothing",
    "uniform": "the total alone",
}


def methods(stream: str) -> list[str]:
    ours = ["tracking"] if stream in DELETES else ["tracking-insert-only"]
    as_window = ["tracking-window-30", "phdstream-window-30"] if stream == "Gowalla 30-day" else []
    return ours + as_window + (["phdstream", PAPER, *FLOORS] if stream in ASIDE else PEERS)


def run(data: Path, results: Path, seeds: int, workers: int, only: list[str] | None = None) -> None:
    """Run all methods on all streams, or some methods only; what was run before is kept."""
    from benchmarks.reproduction.methods import paper_methods

    for last in range(11, 11 + seeds):
        for name, stream in STREAMS.items():
            queries = {"small": 3000, "medium": 1500, "large": 500}
            chosen_methods = [method for method in methods(name) if only is None or method in only]
            fixed = {"name": name, "methods": chosen_methods, "epsilons": EPSILONS, "queries": queries}
            experiment = read_experiment(stream | fixed | {"seeds": list(range(11, last + 1))}, data, paper_methods)
            outcome = run_experiment(experiment, results / name, workers, lambda *_: None)
            print(f"seed {last}, {name}: {outcome.done} trials", flush=True)
            for trial, reason in outcome.failed.items():
                print(f"  {trial} failed: {reason}")


def check_versions(results: Path) -> None:
    """Refuse results that two versions of the code made, of one method; say which streams to run again."""
    from benchmarks.one_version import refuse_mixed

    columns = ["method", "code"]
    tables = {name: pq.read_table(results / name / "results.parquet", columns=columns) for name in STREAMS}
    grouped = {name: table.group_by(columns).aggregate([]).to_pylist() for name, table in tables.items()}
    refuse_mixed([row | {"stream": name} for name, rows in grouped.items() for row in rows], where="stream")


def ratios(results: Path) -> list[dict[str, Any]]:
    """Return, for each stream, ε, size and method, PHDStream's error over the method's: mean and deviation of seeds.

    ``ratio`` is to our PHDStream's, ``paper_ratio`` to that of PHDStream with points as in the paper.
    """
    rows = []
    for name in STREAMS:
        table = pq.read_table(results / name / "results.parquet").to_pandas()
        by = table.groupby(["epsilon", "size", "method", "seed"])
        mean, other = by["error"].mean(), by[["weighted_error", "distance"]].mean()
        codes = dict(zip(table["method"], table["code"], strict=True))
        for (epsilon, size, method), errors in mean.groupby(level=[0, 1, 2]):
            by_seed = errors.droplevel([0, 1, 2])
            ratio, to_paper = (mean[epsilon, size, base] / by_seed for base in ("phdstream", PAPER))
            row = {"stream": name, "epsilon": epsilon, "size": size, "method": LABELS.get(method, method)}
            row |= {"error": f"{by_seed.mean():.4f}", "spread": f"{by_seed.std():.4f}", "seeds": by_seed.size}
            row |= {"ratio": f"{ratio.mean():.3f}", "ratio_spread": f"{ratio.std():.3f}"}
            row |= {"paper_ratio": f"{to_paper.mean():.3f}", "code": codes[method]}
            of_seeds = other.loc[epsilon, size, method]
            for metric in other.columns:
                row |= {metric: f"{of_seeds[metric].mean():.4f}", f"{metric}_spread": f"{of_seeds[metric].std():.4f}"}
            rows.append(row)
    return rows


def collect(results: Path) -> None:
    check_versions(results)
    rows = ratios(results)
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (DOCS / "figures" / "utility.png").write_bytes(draw(rows).png)


def page() -> str:
    """Return docs/utility.md, from its template and the table: no number of the benchmark is typed by hand."""
    from benchmarks import intervals_page
    from benchmarks.weighted_table import weighted_table

    with TABLE.open(newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row["epsilon"] = float(row["epsilon"])
    text = (DOCS / "utility.template.md").read_text(encoding="utf-8")
    parts = {"seeds": min(row["seeds"] for row in rows), "table": markdown(rows), "targets": targets(rows)}
    parts["weighted"] = weighted_table(rows, STREAMS, EPSILONS)
    parts |= intervals_page.parts()
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    return re.sub(r"{{error (\w+) ([\w -]+)}}", lambda asked: _small_error(rows, *asked.groups()), text)


def _small_error(rows: list[dict[str, Any]], method: str, stream: str) -> str:
    """Return a method's error on small queries at ε = 0.5, as in `.181`."""
    wanted = (stream, 0.5, "small", LABELS[PAPER] if method == "paper" else method)
    (error,) = (r["error"] for r in rows if (r["stream"], r["epsilon"], r["size"], r["method"]) == wanted)
    return f"{float(error):.3f}".lstrip("0")


def targets(rows: list[dict[str, Any]]) -> str:
    """Return the table of targets: reached, or missed by how much, against the paper's PHDStream and against ours."""
    lines = ["| ε in 0.5, 1, 2 | at least | against PHDStream with the paper's points | against ours |"]
    lines.append("|---|---|---|---|")
    ours: dict[str, Any] = {"method": "tracking", "epsilon": USUAL, "stream": STUDIED}
    for what, least, sizes, summary in GOALS:
        bases = ("paper_ratio", "ratio")
        reached = [min(summary(chosen(rows, base, size=size, **ours)) for size in sizes) for base in bases]
        lines.append(f"| {what} | {least:g} | " + " | ".join(_verdict(value, least) for value in reached) + " |")
    return "\n".join(lines)


def _verdict(reached: float, least: float) -> str:
    return f"{reached:.2f}, " + ("reached" if reached >= least else f"missed by {100 * (1 - reached / least):.0f}%")


def chosen(rows: list[dict[str, Any]], base: str = "ratio", **wanted: Any) -> list[float]:
    """Return the ratios to a base of rows with the wanted values, or one of several."""

    def fits(row: dict[str, Any]) -> bool:
        return all(row[key] in value if isinstance(value, set) else row[key] == value for key, value in wanted.items())

    return [float(row[base]) for row in rows if fits(row)]


def geometric(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if values else float("nan")


GOALS: list[tuple[str, float, list[str], Callable[[list[float]], float]]] = [
    *((f"{size} queries, geometric mean over streams", least, [size], geometric) for size, least in TARGETS.items()),
    ("worst cell", 1.8, list(TARGETS), min),
]


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the tables of docs/utility.md."""
    lines = ["| stream | ε | small | medium | large |", "|---|---|---|---|---|"]
    for stream, method in [(name, "tracking") for name in STREAMS] + [("Gowalla 30-day", "tracking, as a window")]:
        for epsilon in EPSILONS:
            cells = [r for s in TARGETS for r in rows if (r["stream"], r["epsilon"], r["size"], r["method"])
                     == (stream, epsilon, s, method)]  # fmt: skip
            label = stream + (" (window)" if "window" in method else "")
            lines.append(
                f"| {label} | {epsilon:g} | " + " | ".join(f"{c['ratio']} ± {c['ratio_spread']}" for c in cells) + " |"
            )
    lines += ["", "| geometric mean, ε ≥ 0.5 | small | medium | large |", "|---|---|---|---|"]
    means = {
        method: [geometric(chosen(rows, method=method, size=size, epsilon=USUAL, stream=STUDIED)) for size in TARGETS]
        for method in dict.fromkeys(row["method"] for row in rows)
    }
    as_windows = zip(means["tracking, as a window"], means["PHDStream, as a window"], strict=True)
    means["tracking against PHDStream, both as windows"] = [ours / theirs for ours, theirs in as_windows]
    for method, values in means.items():
        lines.append(f"| {method} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    for label, streams in (("tracking, worst", STUDIED), ("tracking, streams not used in tuning", HELD_OUT)):
        each = [chosen(rows, method="tracking", size=size, epsilon=USUAL, stream=streams) for size in TARGETS]
        values = [min(ratio) if "worst" in label else geometric(ratio) for ratio in each]
        lines.append(f"| {label} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]]) -> Any:
    """Draw every method's ratio, one panel for each size of query, a point for each stream and ε."""
    names = list(dict.fromkeys(row["method"] for row in rows if row["method"] != "phdstream"))
    figure, axes = subplots(1, 3, panel=(4.2, 3.6))
    for axis, size in zip(axes[0], TARGETS, strict=True):
        for place, method in enumerate(names):
            values = chosen(rows, method=method, size=size, epsilon=USUAL, stream=STUDIED)
            axis.plot(values, np.full(len(values), place) + np.linspace(-0.2, 0.2, len(values)), ".", color="#9a9a9a")
            axis.plot([geometric(values)], [place], "D", color="#0b62c4")
        axis.axvline(1, color="#1b1f24", lw=1)
        axis.axvline(TARGETS[size], color="#a4262c", lw=1, ls="--")
        axis.set(xscale="log", title=f"{size} queries", xlabel="times as accurate as PHDStream")
        axis.set_yticks(range(len(names)), names)
        axis.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"])
        axis.minorticks_off()
        axis.grid(alpha=0.25)
    return picture_of(figure)


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent))  # run by its path, Python looks beside it only
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "collect", "write", "quick", "ablate"])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="methods to run, or heuristics to ablate")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    asked = parser.parse_args()
    if asked.what == "run":
        data, results = asked.folders
        run(data, results, asked.seeds, asked.workers, asked.only)
    elif asked.what == "collect":
        collect(*asked.folders)
    elif asked.what in ("quick", "ablate"):
        from benchmarks import ablation

        if asked.what == "quick":
            ablation.quick(asked.save, asked.against, asked.workers)
        else:
            ablation.ablate(asked.save, asked.only or (), asked.workers)
    else:
        (DOCS / "utility.md").write_text(page(), encoding="utf-8")
