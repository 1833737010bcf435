"""The paper's experiments: run them, draw their figures, write docs/reproduction.md.

    python -m benchmarks.reproduction run PRESET... [--data DATA] [--out RESULTS] [--workers N] [--reduced]
    python -m benchmarks.reproduction figure NAME PRESET... [--data DATA] [--out RESULTS] [--reduced]
    python -m benchmarks.reproduction counters [--out RESULTS]
    python -m benchmarks.reproduction collect RESULTS    # into docs/results and docs/figures; needs Pillow
    python -m benchmarks.reproduction write              # docs/reproduction.md anew, from docs/results and its template
    python -m benchmarks.reproduction stale              # which of docs/results the code that is here did not make

DATA is the folder of the data's files: what is missing is named, and where to get it; simulated circles need none. The
results of a preset are in RESULTS/PRESET. What is finished is never computed twice. NAME is counts, data, scatter or
activations. `collect` keeps what docs/results has of presets that are not in RESULTS, if the code that is here made it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.one_version import out_of_date
from benchmarks.reproduction.counter_comparison import compare_counters
from benchmarks.reproduction.figures import FIGURES, write_figure
from benchmarks.reproduction.page import page
from benchmarks.reproduction.presets import PRESETS, paper_experiment
from benchmarks.reproduction.results import DOCS, TABLES, collect, load, named
from phdstream.errors import PhdstreamError
from phdstream.evaluation import run_experiment


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked, and return the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.what == "run":
            return sum(_run(name, asked) for name in asked.presets) and 1
        if asked.what == "figure":
            for name in asked.presets:
                out = asked.out / name
                experiment = paper_experiment(name, asked.data, out, asked.reduced)
                print(write_figure(asked.name, experiment, out))
        elif asked.what == "counters":
            print(compare_counters(asked.out / "counters"))
        elif asked.what == "collect":
            collect(asked.results)
        elif asked.what == "stale":
            return _say_stale()
        else:
            (DOCS / "reproduction.md").write_text(page(), encoding="utf-8")
    except PhdstreamError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(name: str, asked: argparse.Namespace) -> int:
    """Run a preset; return how many trials failed."""
    out = asked.out / name
    outcome = run_experiment(paper_experiment(name, asked.data, out, asked.reduced), out, asked.workers)
    print(f"{name}: {outcome.done} trials done now, {outcome.kept} before; {outcome.report}", flush=True)
    for trial, reason in outcome.failed.items():
        print(f"  {trial} failed: {reason}", file=sys.stderr)
    return len(outcome.failed)


def _say_stale() -> int:
    """Say which results are of other code; return 1 if there are any."""
    stale = out_of_date(row for name in TABLES for row in named(name, load(name)))
    for method, data in sorted(stale.items()):
        print(f"{method}: run again on {', '.join(sorted(data))}")
    return int(bool(stale))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks.reproduction", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True)
    run, figure, counters = (commands.add_parser(name) for name in ("run", "figure", "counters"))
    figure.add_argument("name", choices=FIGURES)
    for command in (run, figure):
        command.add_argument("presets", nargs="+", choices=PRESETS, metavar="PRESET", help=", ".join(PRESETS))
        command.add_argument("--data", type=Path, default=Path(), help="the folder of the data's files")
        command.add_argument("--reduced", action="store_true", help="a small size, for a first look")
    run.add_argument("--workers", type=int, default=None)
    for command in (run, figure, counters):
        command.add_argument("--out", type=Path, default=Path("results"))
    commands.add_parser("collect").add_argument("results", type=Path)
    commands.add_parser("write")
    commands.add_parser("stale")
    return parser


if __name__ == "__main__":
    sys.exit(main())
