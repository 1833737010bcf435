"""Runs the attacks, and makes the page of them.

    python -m benchmarks.attacks           # all of it: docs/results/attacks.csv, then the picture and the tables
    python -m benchmarks.attacks page      # the picture and the tables alone, from the results

Noise is seeded, so the same command gives the same results; it has the distribution of the exact noise.
"""

from __future__ import annotations

import sys

from benchmarks.attacks.outcomes import RESULTS, Outcome, read, run, write
from benchmarks.attacks.page import draw, write_tables


def main(arguments: list[str]) -> None:
    if arguments not in ([], ["page"]):
        raise SystemExit(__doc__)
    if not arguments:
        outcomes: list[Outcome] = run(seeds=range(5), membership=15, reconstruction=20, progress=print)
        write(outcomes, RESULTS)
    draw(read(RESULTS))
    write_tables(read(RESULTS))


if __name__ == "__main__":
    main(sys.argv[1:])
