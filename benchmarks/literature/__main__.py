"""Does a published one-shot method beat tracking's start anywhere? One command, on invented and real sets of points.

    python -m benchmarks.literature run RESULTS [--data DATA] [--quick] [--sets ...] [--epsilons ...] [--seeds ...]
                                        [--methods ...] [--workers N]
    python -m benchmarks.literature collect RESULTS    # docs/results/literature.csv
    python -m benchmarks.literature write              # docs/literature.md and its figure anew, from the CSV

DATA is the folder of the data files; without it only the invented sets are run. `run` makes the published table; it
goes on where it was stopped, and after a change of one method runs that one alone. `run --quick` is for looking: other
seeds, fewer ε and queries, and not the largest sets; it prints the table of ratios of what it ran.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.literature.methods import METHODS, OURS, PLAIN
from benchmarks.literature.page import DOCS, EPSILONS, FIGURE, TABLE, draw, overview, page, prepared, read
from benchmarks.literature.sets import SETS
from benchmarks.literature.trials import FULL, QUICK, Effort, Trial, run_trial, trial_path
from benchmarks.missing import run_missing
from phdstream.errors import InputError, PhdstreamError
from phdstream.evaluation.trials import make_folder

PUBLISHED_SEED, TUNING = 41, (1, 2)
"""The first seed of the published table, which chose nothing; and the seeds that sides and heights were chosen on."""
QUICK_EPSILONS = (0.1, 1.0)
_LEAST = 1e-9
Rows = list[dict[str, Any]]


def trials(
    quick: bool = False,
    sets: Sequence[str] | None = None,
    epsilons: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    real: bool = True,
) -> list[Trial]:
    """Return what to run: one seed on all sets before the next, those that share a set together."""
    named = sets or [name for name, each in SETS.items() if (real or not each.real) and (each.quick or not quick)]
    usual = {name: TUNING if quick else range(PUBLISHED_SEED, PUBLISHED_SEED + SETS[name].seeds) for name in named}
    every = seeds or sorted({seed for each in usual.values() for seed in each})
    levels = epsilons or (QUICK_EPSILONS if quick else EPSILONS)
    return [
        Trial(name, method, epsilon, seed)
        for seed in every
        for name in named
        if seeds or seed in usual[name]
        for epsilon in levels
        for method in methods or METHODS
    ]


def run(results: Path, wanted: list[Trial], effort: Effort, workers: int, data: Path | None) -> dict[Trial, str]:
    """Run what is not there yet; return what failed, and why."""
    folder = make_folder(results / "trials")
    jobs = {trial: (trial_path(folder, trial, effort), (folder, trial, effort, data)) for trial in wanted}
    return run_missing(run_trial, jobs, workers)


def finished(results: Path, wanted: list[Trial], effort: Effort) -> dict[Trial, Rows]:
    """Return the rows of the trials that are there, made by the code that is here."""
    paths = {trial: trial_path(results / "trials", trial, effort) for trial in wanted}
    return {trial: pq.read_table(path).to_pylist() for trial, path in paths.items() if path.exists()}


def ratios(found: dict[Trial, Rows]) -> Rows:
    """Return, for each set, ε, size, method and variant, its error over that of our cells: geometric means over seeds.

    Above 1 ours is better. ``ratio_worst`` and ``ratio_best`` are of the seeds that are worst and best for us,
    ``ratio_spread`` the standard deviation over seeds of the logarithm; ``weighted_ratio`` is of the weighted errors.
    """
    by: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = defaultdict(dict)
    for each in found.values():
        for row in each:
            by[row["set"], row["epsilon"], row["size"], row["method"], row["variant"]][row["seed"]] = row
    rows = []
    for (name, epsilon, size, method, variant), seeds in by.items():
        ours = by.get((name, epsilon, size, OURS, PLAIN), {})
        shared = sorted(set(seeds) & set(ours))
        if not shared:
            continue
        logs = {
            metric: np.array([_log(seeds[seed][metric]) - _log(ours[seed][metric]) for seed in shared])
            for metric in ("error", "weighted_error")
        }
        rows.append({
            "set": name, "points": round(np.mean([seeds[seed]["points"] for seed in shared])), "epsilon": epsilon,
            "size": size, "method": method, "variant": variant, "seeds": len(shared),
            "error": f"{np.mean([seeds[seed]['error'] for seed in shared]):.4g}",
            "ratio": f"{np.exp(logs['error'].mean()):.5g}", "ratio_worst": f"{np.exp(logs['error'].min()):.5g}",
            "ratio_best": f"{np.exp(logs['error'].max()):.5g}",
            "ratio_spread": f"{logs['error'].std(ddof=1) if len(shared) > 1 else 0:.5g}",
            "weighted_ratio": f"{np.exp(logs['weighted_error'].mean()):.5g}", "code": seeds[shared[0]]["code"],
        })  # fmt: skip
    return rows


def _log(error: float) -> float:
    return float(np.log(max(error, _LEAST)))


def collect(results: Path) -> None:
    """Write the table of the published run, which must be whole and of the code that is here."""
    wanted = trials()
    found = finished(results, wanted, FULL)
    if missing := [trial for trial in wanted if trial not in found]:
        sets = ", ".join(dict.fromkeys(trial.set for trial in missing))
        raise InputError(
            f"{len(missing)} trials of the code that is here are missing in {results}: run again ({sets})."
        )
    rows = ratios(found)
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write() -> None:
    """Make the page and its figure anew."""
    (DOCS / "literature.md").write_text(page(), encoding="utf-8")
    if rows := read():
        FIGURE.write_bytes(draw(rows).png)


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked, and return the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.what == "run":
            return _run(asked)
        if asked.what == "collect":
            collect(asked.results)
        else:
            write()
    except PhdstreamError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(asked: argparse.Namespace) -> int:
    data = asked.data.resolve() if asked.data else None
    wanted = trials(asked.quick, asked.sets, asked.epsilons, asked.seeds, asked.methods, data is not None)
    effort = QUICK if asked.quick else FULL
    failed = run(asked.results, wanted, effort, asked.workers, data)
    for trial, reason in failed.items():
        print(f"  {trial} failed: {reason}", file=sys.stderr)
    if asked.quick:
        ours = [trial for trial in trials(True, list(SETS), EPSILONS, asked.seeds) if trial not in wanted]
        print(overview(prepared(ratios(finished(asked.results, wanted + ours, effort)))))
    return int(bool(failed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks.literature", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("run", "collect"):
        commands.add_parser(name).add_argument("results", type=Path)
    commands.add_parser("write")
    run = commands.choices["run"]
    run.add_argument("--data", type=Path, help="the folder of the data files")
    run.add_argument("--quick", action="store_true", help="for looking")
    run.add_argument("--sets", nargs="+", choices=SETS, metavar="SET", help="; ".join(SETS))
    run.add_argument("--epsilons", nargs="+", type=float)
    run.add_argument("--seeds", nargs="+", type=int)
    run.add_argument("--methods", nargs="+", choices=METHODS)
    run.add_argument("--workers", type=int, default=2)
    return parser


if __name__ == "__main__":
    sys.exit(main())
