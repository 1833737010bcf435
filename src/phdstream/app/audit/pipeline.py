"""Files that differ by one unit, through the whole of `phdstream run`, in two runs: all that is public is the same.

The second neighbour's noise is handed what was released for the first. So whatever differs in the folder of releases,
or in what is printed for the public, has found a way around the noise.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from phdstream.app.audit.neighbours import (
    KEY,
    KINDS,
    NAMES,
    Admitted,
    Row,
    admitted_differ_by,
    base_rows,
    compared,
    is_event,
    more_rows,
    ndjson,
    public_files,
    recorder,
    watched,
)
from phdstream.app.config import Config, load_config
from phdstream.app.run import run
from phdstream.audit.finding import Effort, Finding, Progress, Violation
from phdstream.audit.transcript import Recorder, Replayer
from phdstream.errors import PhdstreamError
from phdstream.io.sources import events as events_module

__all__ = ["BOX", "CONFIG", "ROWS", "USERS", "PipelineCheck", "described", "written"]

CONFIG = """
[input]
files = "*.{ending}"
time = "time"
coordinates = ["lon", "lat"]
{input}
bad_rows = "drop"
[ticks]
every = "1d"
start = 2024-03-01
end = 2024-03-05
[domain]
{domain}
[privacy]
epsilon = 1.0
unit = {unit}
[stream]
method = "{method}"
[output]
releases = "out"
state = "private"
"""
USERS = '{ type = "user", inserts = 2, deletes = 1 }'
BOX = 'type = "box"\nbounds = [[0, 10], [40, 50]]\ndepth = 24'
ROWS = f"""
type = "product"
[domain.place]
{BOX}
[[domain.attributes]]
type = "category"
name = "kind"
values = ["a", "b", "c"]
"""
_FEW = 4000
"""Bytes of gathered events: more are spilled to a file, as many events are."""


@dataclass
class _Run:
    """What a run left: the files in the folder of releases, what it said in public, and what it admitted."""

    files: dict[str, bytes]
    said: list[str]
    admitted: Admitted


class PipelineCheck:
    """CSV, NDJSON and Parquet; one more unit, or a row that is none, at any place; resumed in the middle."""

    name = "pipeline"
    shows = (
        "Through `phdstream run`, input that has a unit more admits the same events and that unit's, at most as many "
        "as it may have; given the same noisy values, all files and public messages are the same to the byte."
    )

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Try random files."""
        finding = Finding(self.name, self.shows, excess_found=0.0, largest_loss=0.0)
        with patch.object(events_module, "BATCH_ROWS", 16):
            for seed in effort.seeds(finding, 50.0, 400, progress):
                with tempfile.TemporaryDirectory() as folder:
                    _case(finding, seed, Path(folder))
        return finding


def _case(finding: Finding, seed: int, folder: Path) -> None:
    rng = np.random.default_rng((seed, 5))
    ending, kind = ("csv", "ndjson", "parquet")[seed % 3], KINDS[seed % len(KINDS)]
    method, users, attributes = ("tracking", "phdstream")[seed % 2], seed % 4 < 2, seed % 5 < 2
    rows, where = base_rows(rng), f"case {seed}, {ending}, {method}, one more: {kind}"
    more = more_rows(kind, rng, 5 if users else 1)
    parts, position = int(rng.integers(1, 4)), int(rng.integers(len(rows) + 1))
    with_it = [*rows[:position], *more, *rows[position:]]
    text = CONFIG.format(
        ending=ending, method=method, unit=USERS if users else '"event"', domain=ROWS if attributes else BOX,
        input='sign = "sign"' + ('\nuser = "who"' if users else ""),
    )  # fmt: skip
    memory = _FEW if seed % 7 < 3 else None
    try:
        config = written(folder / "x", text, [], ending, 1)
        stream = config.stream()
        first = recorder(getattr(stream, "rule", None))
        without = _run(written(folder / "x", text, rows, ending, parts, memory), first)
        second = Replayer(first.steps, first.rule, KEY)
        after = _run(written(folder / "x", text, with_it, ending, parts, memory), second)
        event = is_event(kind, users, attributes)
        most = (0, 0) if not event else (2, 1) if users else (1, 1)
        admitted_differ_by(without.admitted, after.admitted, most, where)
        limit = stream.budget.epsilon if event else 0.0
        compared(finding, where, first, second, limit, stream.domain.total_bits)
        _same_in_public(without, after, where)
    except (Violation, PhdstreamError) as error:
        finding.violated(described(where, error))


def described(where: str, error: PhdstreamError) -> str:
    """Return what to write down of an error in a case."""
    if isinstance(error, Violation):
        return str(error) if str(error).startswith(where) else f"{where}: {error}"
    return f"{where}: refused by the product itself ({type(error).__name__})"


def _run(config: Config, noise: Recorder) -> _Run:
    """Run in two halves, in a folder that has the same name for both neighbours; then remove it."""
    said: list[str] = []
    with watched(noise) as admitted:
        for day in (3, 5):
            report = run(config, until=datetime(2024, 3, day))
            said += [report.description, *report.summary(), *report.notes, *report.behind]
    found = _Run(public_files(config.releases), said, dict(admitted))
    shutil.rmtree(config.state.parent)
    return found


def written(folder: Path, text: str, rows: list[Row], ending: str, parts: int, memory: int | None = None) -> Config:
    """Write rows into some files, in turn, and return the configuration that reads them.

    ``memory`` may be less than a configuration can say, for few rows.
    """
    folder.mkdir(exist_ok=True)
    for part in range(parts):
        _write(rows[part::parts], folder / f"{part}.{ending}")
    (folder / "stream.toml").write_text(text)
    config = load_config(folder / "stream.toml")
    return config if memory is None else replace(config, input=replace(config.input, memory=memory))


def _write(rows: list[Row], path: Path) -> None:
    if path.suffix == ".parquet":
        kinds: list[Any] = [pa.string(), pa.float64(), pa.float64(), pa.int64(), pa.string(), pa.string()]
        table = pa.Table.from_pylist(rows, pa.schema(list(zip(NAMES, kinds, strict=True))))
        pq.write_table(table, path, row_group_size=7)
    elif path.suffix == ".ndjson":
        path.write_text(ndjson(rows))
    else:
        lines = [",".join("" if row[name] is None else str(row[name]) for name in NAMES) for row in rows]
        path.write_text("\n".join([",".join(NAMES), *lines]) + "\n")


def _same_in_public(one: _Run, other: _Run, where: str) -> None:
    if one.said != other.said:
        raise Violation(f"{where}: what is said in public depends on private data")
    if one.files.keys() != other.files.keys():
        raise Violation(f"{where}: which files are released depends on private data")
    for name, content in one.files.items():
        if other.files[name] != content:
            raise Violation(f"{where}: {name} depends on private data beyond the noisy values")
    manifest = json.loads(one.files["manifest.json"])
    if manifest["last_tick"] != 4:
        raise Violation(f"{where}: a tick was not released")
