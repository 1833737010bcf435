"""`phdstream run` with ``[engine] type = "spark"``: the releases of the engine that is built in, to the bit."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import phdstream as phd
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import ConfigError, InputError, StateError
from phdstream.io.archive import open_archive
from tests.engines.spark.cluster import ONLY_HERE, properties_of
from tests.engines.spark.driving import killed
from tests.engines.spark.streams import invented, same

pytestmark = pytest.mark.slow
NOW = datetime(2026, 1, 4, 12, tzinfo=UTC)
TOML = """
[input]
files = "day-*.parquet"
coordinates = ["x0", "x1"]
time = "when"
sign = "sign"
user = "who"
bad_rows = "drop"
[ticks]
start = 2026-01-01T00:00:00
every = "1d"
[domain]
type = "box"
bounds = [[0, 1], [0, 1]]
depth = 14
[privacy]
epsilon = 2.0
unit = { type = "user", inserts = 5, deletes = 2 }
[output]
releases = "releases"
state = "state"
[simulation]
seed = 3
"""


def prepared(folder: Path, engine: str) -> Path:
    """A configuration, and a file with events of three days."""
    folder.mkdir()
    events = invented(folder, phd.Box([(0, 1), (0, 1)], depth=14), 900, users=True, ticks=3)
    events.path.rename(folder / "day-1.parquet")
    (folder / "stream.toml").write_text(TOML + engine, encoding="utf-8")
    return folder / "stream.toml"


def spark_section(cluster_url: str) -> str:
    return f'[engine]\ntype = "spark"\nmaster = "{cluster_url}"\n'


def test_a_run_on_a_cluster_is_the_run_here(spark: Any, cluster: Any, tmp_path: Path) -> None:
    here = prepared(tmp_path / "here", "")
    there = prepared(tmp_path / "there", spark_section(cluster.url))
    run(load_config(here), now=NOW)
    first = run(load_config(there), until=datetime(2026, 1, 2))
    assert first.last_tick == 1
    report = run(load_config(there), now=NOW)  # goes on, from the open block on the cluster
    assert (report.first_tick, report.last_tick) == (2, 3)
    ours, theirs = (open_archive(path.parent / "releases") for path in (there, here))
    for tick in (1, 2, 3):
        assert same(ours.release(tick), theirs.release(tick))
    assert run(load_config(there), now=NOW).last_tick == 3
    refuses_what_would_count_twice(there)


def test_the_driver_is_killed_on_its_way(spark: Any, cluster: Any, tmp_path: Path) -> None:
    """And starts anew each time: the releases are those of a run here that was never disturbed."""
    section = spark_section(cluster.url) + "[engine.properties]\n"
    section += "".join(f'"{name}" = "{value}"\n' for name, value in properties_of(cluster).items())
    here, there = prepared(tmp_path / "here", ""), prepared(tmp_path / "there", section)
    run(load_config(here), now=NOW)
    for point in ("the table of users is written, events are not", "the events of a tick are held",
                  "a tick is committed", "what is done with is deleted"):  # fmt: skip
        killed(there, NOW, point)
    report = run(load_config(there), now=NOW)
    assert (report.first_tick, report.last_tick) == (3, 3)
    ours, theirs = (open_archive(path.parent / "releases") for path in (there, here))
    assert all(same(ours.release(tick), theirs.release(tick)) for tick in (1, 2, 3))


def test_by_spark_submit_as_the_page_says(spark: Any, cluster: Any, tmp_path: Path) -> None:
    here, there = prepared(tmp_path / "here", ""), prepared(tmp_path / "there", '[engine]\ntype = "spark"\n')
    run(load_config(here), now=NOW)
    page = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(echo .*?)```", page, re.DOTALL)
    settings = " ".join(f"--conf {name}={value}" for name, value in properties_of(cluster).items() if value)
    assert "--master yarn" in block
    block = block.replace("--master yarn", f"--master {cluster.url} {settings}")
    block = block.replace("run ", "run --until 2026-01-04 ")
    environment = os.environ | ONLY_HERE | {"PATH": f"{pyspark_home() / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", block], cwd=there.parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    ours, theirs = (open_archive(path.parent / "releases") for path in (there, here))
    assert all(same(ours.release(tick), theirs.release(tick)) for tick in (1, 2, 3))


def pyspark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def refuses_what_would_count_twice(config: Path) -> None:
    """An engine that changes on the way, a file that comes back changed, a copy of one."""
    text, day = config.read_text(encoding="utf-8"), config.parent / "day-1.parquet"
    config.write_text(text.split("[engine]")[0], encoding="utf-8")
    with pytest.raises(StateError, match=r"\[engine\]"):
        run(load_config(config), now=NOW)
    config.write_text(text, encoding="utf-8")
    table = pq.read_table(day)
    pq.write_table(table, config.parent / "day-2.parquet", compression="gzip")
    with pytest.raises(InputError, match="holds the same as"):
        run(load_config(config), now=NOW)
    (config.parent / "day-2.parquet").unlink()
    pq.write_table(table.slice(5), day)
    with pytest.raises(StateError, match="has changed"):
        run(load_config(config), now=NOW)


def test_rows_beyond_all_bounds_harm_no_other(spark: Any, cluster: Any, tmp_path: Path) -> None:
    """Times at which 64-bit numbers end, and a sign that a smaller number would take for another."""
    here, there = prepared(tmp_path / "here", ""), prepared(tmp_path / "there", spark_section(cluster.url))
    first, ends = 1_767_225_600_000_000, np.iinfo(np.int64)
    odd = [(ends.min, 1), (ends.min + first + 5, 1), (ends.max, 1), (first, 2**32 + 1), (first, 2**62), (first, 7)]
    for path in (here, there):
        table = pq.read_table(path.parent / "day-1.parquet")
        table = table.set_column(3, "sign", table["sign"].cast(pa.int64()))
        more = {"x0": 0.5, "x1": 0.5, "who": "them"}
        rows = {name: pa.array([value] * len(odd)) for name, value in more.items()}
        rows |= {"when": pa.array([time for time, _ in odd], pa.timestamp("us")), "sign": [sign for _, sign in odd]}
        more_rows = pa.table(rows).select(table.column_names).cast(table.schema)
        pq.write_table(pa.concat_tables([table, more_rows]), path.parent / "day-1.parquet")
        run(load_config(path), now=NOW)
    ours, theirs = (open_archive(path.parent / "releases") for path in (there, here))
    assert all(same(ours.release(tick), theirs.release(tick)) for tick in (1, 2, 3))


def test_the_section_is_checked(tmp_path: Path) -> None:
    for wrong, why in (
        ('type = "flink"', "must be"),
        ('type = "spark"\nmasters = "yarn"', "master"),
        ('type = "local"\nmaster = "yarn"', "Spark's"),
        ('type = "spark"\nmaster = 3', "master must be"),
        ('type = "spark"\n[engine.properties]\n"spark.executor.cores" = 3', "names and texts"),
    ):
        path = tmp_path / "stream.toml"
        path.write_text(TOML + f"[engine]\n{wrong}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=why):
            load_config(path)


def test_only_parquet(spark: Any, cluster: Any, tmp_path: Path) -> None:
    config = prepared(tmp_path / "there", spark_section(cluster.url))
    (config.parent / "day-0.csv").write_text("x0,x1,when,sign,who\n", encoding="utf-8")
    config.write_text(config.read_text(encoding="utf-8").replace("day-*.parquet", "day-*"), encoding="utf-8")
    with pytest.raises(InputError, match="not Parquet"):
        run(load_config(config), now=NOW)
    assert not (config.parent / "releases").exists()
