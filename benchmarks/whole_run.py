"""The whole of ``phdstream run`` on a large Parquet file, against Polars reading and grouping it; and start-up."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.measure import Figure, best
from benchmarks.rows import write_rows

_CONFIG = """
[input]
files = "rows.parquet"
coordinates = ["x", "y"]
time = "time"
sign = "sign"
[ticks]
every = "1h"
start = 2024-05-31
end = 2024-06-01
[domain]
type = "box"
bounds = [[0, 1], [0, 1]]
[privacy]
epsilon = 1.0
unit = "event"
[output]
releases = "releases-{0}"
state = "state-{0}"
"""
_MEASURED = """
import json, resource, sys, time
start = time.perf_counter()
{0}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([time.perf_counter() - start, peak]))
"""
_RUN = """
from phdstream.app.config import load_config
from phdstream.app.run import run
run(load_config(sys.argv[1]))
"""
_POLARS = """
import polars as pl
grid = [(pl.col(name) * 1024).floor().cast(pl.Int32).alias(name) for name in ("x", "y")]
rows = pl.scan_parquet(sys.argv[1]).group_by(pl.col("time").dt.truncate("1h"), *grid)
rows.agg(pl.col("sign").cast(pl.Int64).sum()).collect(engine="streaming")
"""


def whole_run(rows: int, repeats: int = 3) -> list[Figure]:
    """Measure, in turn, the run and Polars, each in its own process; the best of each."""
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.parquet", rows)
        for attempt in range(repeats):
            (folder / "run.toml").write_text(_CONFIG.format(attempt))
            ours.append(_measured(_RUN, folder / "run.toml"))
            theirs.append(_measured(_POLARS, folder / "rows.parquet"))
    (seconds, memory), (reference, their_memory) = min(ours), min(theirs)
    return [
        Figure("run", "phdstream run, 24 ticks", rows, seconds, "Polars reads and groups the file", reference),
        Figure("run", "its peak memory", rows, memory, "Polars's", their_memory, "MB"),
    ]


def _measured(code: str, path: Path) -> tuple[float, float]:
    script = _MEASURED.format(code)
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def start_up(repeats: int = 7) -> list[Figure]:
    """Start Python and import the package, or ask for help; against starting Python and importing NumPy."""
    reference = best(lambda: _python("-c", "import numpy"), repeats)
    each = {"import phdstream": ("-c", "import phdstream"), "phdstream --help": ("-m", "phdstream", "--help")}
    return [
        Figure("start-up", what, 1, best(partial(_python, *args), repeats), "import numpy", reference)
        for what, args in each.items()
    ]


def _python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
