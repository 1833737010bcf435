"""Does the default lose anywhere? Tracking against PHDStream, the offline oracle and the floors, on hard streams.

    python -m benchmarks.everywhere run RESULTS [--quick] [--streams ...] [--epsilons ...] [--seeds ...]
                                        [--methods ...] [--workers N]
    python -m benchmarks.everywhere compare RESULTS [--save FILE] [--against FILE]   # what a change does, for tuning
    python -m benchmarks.everywhere collect RESULTS    # docs/results/everywhere.csv
    python -m benchmarks.everywhere write              # docs/everywhere.md anew, from its template and the CSV

`run` makes the published table; it goes on where it was stopped, and after a change of one method runs that one alone.
`run --quick` is for tuning: other seeds, fewer ε, moments and queries, and not the largest stream. `compare` prints
where tracking stands by the quick results that are there, of the code as it is; with ``--against`` also by how much
every stream's error changed since ``--save``.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks import ablation
from benchmarks.everywhere_page import DOCS, SIZES, TABLE, page, standing
from benchmarks.hard_streams import EPSILONS, STREAMS
from benchmarks.hard_trials import FULL, QUICK, Effort, Trial, run_trial, trial_path
from benchmarks.missing import run_missing
from phdstream.errors import InputError, PhdstreamError
from phdstream.evaluation.trials import METRICS, make_folder

METHODS = ("tracking", "phdstream", "oracle", "nothing", "uniform")
PUBLISHED, TUNING = 41, (1, 2)
"""The first seed of the published table, which chose nothing; and the seeds that a change may be chosen on."""
QUICK_EPSILONS, LARGEST = (0.1, 1.0, 8.0), "20 million"
_LEAST = 1e-6
"""An error of nothing at all is taken for this, so that it has a logarithm."""
Rows = list[dict[str, Any]]


def trials(
    quick: bool = False,
    streams: Sequence[str] | None = None,
    epsilons: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
) -> list[Trial]:
    """Return what to run, those that share a stream and a seed together."""
    named = streams or [name for name in STREAMS if not (quick and name == LARGEST)]
    chosen = []
    for name in named:
        stream = STREAMS[name]
        usual = TUNING if quick else range(PUBLISHED, PUBLISHED + stream.seeds)
        levels = epsilons or (QUICK_EPSILONS if quick else stream.epsilons)
        chosen += [Trial(name, m, e, s) for s in seeds or usual for e in levels for m in methods or METHODS]
    return chosen


def run(results: Path, wanted: list[Trial], effort: Effort, workers: int) -> dict[Trial, str]:
    """Run what is not there yet; return what failed, and why."""
    folder = make_folder(results / "trials")
    jobs = {trial: (trial_path(folder, trial, effort), (folder, trial, effort)) for trial in wanted}
    return run_missing(run_trial, jobs, workers)


def finished(results: Path, wanted: list[Trial], effort: Effort) -> dict[Trial, Rows]:
    """Return the rows of the trials that are there, made by the code that is here."""
    paths = {trial: trial_path(results / "trials", trial, effort) for trial in wanted}
    return {trial: pq.read_table(path).to_pylist() for trial, path in paths.items() if path.exists()}


def means(found: dict[Trial, Rows]) -> Rows:
    """Return a row for each trial and size of query: its metrics, averaged over moments."""
    summary = []
    for trial, rows in found.items():
        for size in SIZES:
            each = [row for row in rows if row["size"] == size]
            about = vars(trial) | {"size": size, "code": rows[0]["code"], "seconds": each[-1]["seconds"]}
            summary.append(about | {metric: float(np.mean([row[metric] for row in each])) for metric in METRICS})
    return summary


def ratios(summary: Rows) -> Rows:
    """Return, for each stream, ε, size and method, how it compares with the others: geometric means over seeds.

    ``ratio`` is PHDStream's error over the method's, ``over_oracle`` the method's over the oracle's; ``of_nothing`` and
    ``of_total`` are the weighted errors of publishing nothing, and the total alone, over the method's;
    ``distance_ratio`` is PHDStream's distance over the method's. ``_spread``: the standard deviation over seeds of its
    logarithm; ``_worst``: the worst seed's. All need every method.
    """
    by: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in summary:
        by[row["stream"], row["epsilon"], row["size"], row["method"]][row["seed"]] = row
    rows = []
    for (stream, epsilon, size, method), seeds in by.items():
        bases = [by.get((stream, epsilon, size, base), {}) for base in ("phdstream", "oracle", "nothing", "uniform")]
        shared = sorted(set(seeds).intersection(*bases))
        if not shared:
            continue
        row = {"stream": stream, "epsilon": epsilon, "size": size, "method": method, "seeds": len(shared)}
        row |= {metric: f"{np.mean([seeds[seed][metric] for seed in shared]):.5f}" for metric in METRICS}
        for name, base, metric, sign in (
            ("ratio", bases[0], "error", 1), ("over_oracle", bases[1], "error", -1),
            ("of_nothing", bases[2], "weighted_error", 1), ("of_total", bases[3], "weighted_error", 1),
            ("distance_ratio", bases[0], "distance", 1),
        ):  # fmt: skip
            pairs = [(base[seed][metric], seeds[seed][metric]) for seed in shared]
            logs = np.diff(np.log(np.maximum(pairs, _LEAST)), axis=1)[:, 0] * -1
            row[name] = f"{np.exp(sign * logs.mean()):.4f}"
            row[f"{name}_spread"] = f"{logs.std(ddof=1) if logs.size > 1 else 0:.4f}"
            row[f"{name}_worst"] = f"{np.exp(sign * logs.min()):.4f}"
        rows.append(row | {"code": seeds[shared[0]]["code"]})
    return rows


def collect(results: Path) -> None:
    """Write the table of the published run, which must be whole and of the code that is here."""
    wanted = trials()
    found = finished(results, wanted, FULL)
    if missing := [trial for trial in wanted if trial not in found]:
        streams = ", ".join(dict.fromkeys(trial.stream for trial in missing))
        raise InputError(
            f"{len(missing)} trials of the code that is here are missing in {results}: run again ({streams})."
        )
    rows = ratios(means(found))
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def compare(results: Path, save: Path | None, against: Path | None) -> None:
    """Print where tracking stands by the quick results, and how its errors differ from what was saved."""
    found = finished(results, trials(quick=True, streams=list(STREAMS), epsilons=EPSILONS), QUICK)
    summary = means(found)
    print(standing(ratios(summary)))
    errors: ablation.Errors = defaultdict(list)
    for row in summary:
        if row["method"] == "tracking":
            errors[f"{row['stream']}: ε = {row['epsilon']:g}, seed {row['seed']}"].append(row["error"])
    if save:
        save.write_text(json.dumps(errors, indent=1, ensure_ascii=False), encoding="utf-8")
    if against:
        before = {key: each for key, each in json.loads(against.read_text(encoding="utf-8")).items() if key in errors}
        print(ablation.compare("all", before, errors))
        for stream in STREAMS:
            ours = {name: value for name, value in before.items() if name.startswith(stream + ":")}
            if ours:
                print(ablation.compare(stream, ours, errors))


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked, and return the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.what == "run":
            wanted = trials(asked.quick, asked.streams, asked.epsilons, asked.seeds, asked.methods)
            failed = run(asked.results, wanted, QUICK if asked.quick else FULL, asked.workers)
            for trial, reason in failed.items():
                print(f"  {trial} failed: {reason}", file=sys.stderr)
            return int(bool(failed))
        if asked.what == "compare":
            compare(asked.results, asked.save, asked.against)
        elif asked.what == "collect":
            collect(asked.results)
        else:
            (DOCS / "everywhere.md").write_text(page(), encoding="utf-8")
    except PhdstreamError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks.everywhere", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("run", "compare", "collect"):
        commands.add_parser(name).add_argument("results", type=Path)
    commands.add_parser("write")
    run, compare = commands.choices["run"], commands.choices["compare"]
    run.add_argument("--quick", action="store_true", help="for tuning")
    run.add_argument("--streams", nargs="+", choices=STREAMS, metavar="STREAM", help="; ".join(STREAMS))
    run.add_argument("--epsilons", nargs="+", type=float)
    run.add_argument("--seeds", nargs="+", type=int)
    run.add_argument("--methods", nargs="+", choices=METHODS)
    run.add_argument("--workers", type=int, default=2)
    compare.add_argument("--save", type=Path)
    compare.add_argument("--against", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
