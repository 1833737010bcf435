"""All measurements: on a real standalone cluster of this machine, from a topic, and of the driver alone."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.engines.spark.cluster import Cluster, properties_of
from tests.servers import JARS

from benchmarks.measure import machine
from benchmarks.reproduction.results import DOCS
from benchmarks.spark.driver import driver_rows
from benchmarks.spark.meters import METRICS, Meter, log_settings
from benchmarks.spark.ticks import Held, Tick, local_tick, nodes_of, spark_count, spark_tick, users_table, write_events
from benchmarks.spark.topic import from_topic
from phdstream.engines.spark import SparkEngine, make_session

__all__ = ["CLUSTER", "DRIVER", "TOPIC", "measure_cluster", "measure_driver", "measure_topic"]

CLUSTER, TOPIC, DRIVER = (DOCS / "results" / f"scale-{what}.csv" for what in ("cluster", "topic", "driver"))
_COLUMNS = ("experiment", "turn", "engine", "rows", "users", "partitions", "nodes", "step", "cpu_s", "wall_s", *METRICS)


def measure_cluster(what: str, million: int = 1_000_000, turns: int = 3, table: Path = CLUSTER) -> None:
    """Measure ticks on a cluster and here, with sizes in units of ``million`` rows.

    ``what`` is "known", from which the model is fitted, or "unseen", which it is to predict. Rows of the other stay.
    """
    with tempfile.TemporaryDirectory(prefix="phdstream-scale-") as name:
        folder = Path(name)
        (log := folder / "log").mkdir()
        cluster = Cluster(folder)
        try:
            properties = properties_of(cluster) | log_settings(log) | {"spark.executor.memory": "1g"}
            properties |= {"spark.sql.adaptive.coalescePartitions.enabled": "false"}
            properties |= {"spark.shuffle.readHostLocalDisk": "false"}  # as between two hosts
            session = make_session(cluster.url, properties)
            session.sparkContext.setLogLevel("OFF")
            meter = Meter(session)
            (_known if what == "known" else _unseen)(meter, folder, million, turns)
            session.stop()
        finally:
            cluster.stop()
        meter.add_metrics(log)
    kept = [row for row in _read(table) if (row["experiment"] == "unseen") != (what == "unseen")]
    measured = [row for row in meter.rows if row["experiment"] != "warm-up"]
    _write(table, _COLUMNS, sorted([*kept, *measured], key=lambda row: str(row["experiment"]) == "unseen"))


def measure_topic(messages: int = 400_000, turns: int = 3, table: Path = TOPIC) -> None:
    """Measure a topic of so many messages, by Spark with two cores of this machine and by the local engine."""
    with tempfile.TemporaryDirectory(prefix="phdstream-scale-") as name:
        jars = ",".join(map(str, sorted((JARS / "spark-kafka").glob("*.jar"))))
        session = make_session("local[2]", {"spark.jars": jars, "spark.driver.host": "127.0.0.1"})
        session.sparkContext.setLogLevel("OFF")
        meter = Meter()
        from_topic(meter, Path(name), messages, turns)
        session.stop()
    _write(table, _COLUMNS[: -len(METRICS)], meter.rows)


def measure_driver(million: int = 1_000_000, table: Path = DRIVER) -> None:
    """Measure the driver alone."""
    about = {"machine": _said()}
    rows = [row | about for row in driver_rows([million // 10, million, 4 * million])]
    _write(table, tuple(rows[0]), rows)


def _said() -> str:
    found = machine()
    return f"{found['cores']} cores ({found['processor']}), Python {found['python']}, load {found['load']}"


def _known(meter: Meter, folder: Path, million: int, turns: int) -> None:
    engine, sizes = SparkEngine(meter.session, str(folder / "storage")), [1, 4, 8]
    ticks = {rows: write_events(folder, rows * million) for rows in sizes}
    users = {rows: write_events(folder, rows * million, users=True) for rows in (1, 4)}
    for tick in (ticks[8], ticks[1], users[1]):
        kept = _work(meter, engine, "warm-up", tick, 8, 0)
    for turn in range(turns):
        for tick in (*(ticks[rows] for rows in sizes), *users.values()):
            held = _work(meter, engine, "size", tick, 8, turn, number=2 if tick is ticks[8] else 1)
            kept = held if tick is ticks[8] else kept
        for partitions in (32, 128):
            _work(meter, engine, "partitions", ticks[4], partitions, turn)
        meter.session.conf.set("spark.sql.shuffle.partitions", "8")
        for nodes in (1 << 8, 1 << 16, 1 << 20):
            about = {"engine": "spark", "rows": ticks[8].rows, "users": False, "partitions": 8, "nodes": nodes}
            with meter.step(experiment="nodes", turn=turn, step="count", **about):
                spark_count(engine, kept, nodes_of(nodes))
        users_table(engine, known := 4 * million, 2)
        _work(meter, engine, f"{known} users", users[1], 8, turn, number=3)


def _unseen(meter: Meter, folder: Path, million: int, turns: int) -> None:
    engine, tick = SparkEngine(meter.session, str(folder / "storage")), write_events(folder, 16 * million)
    _work(meter, engine, "warm-up", write_events(folder, 4 * million), 8, 0)
    for turn in range(turns):
        _work(meter, engine, "unseen", tick, 16, turn, 1 << 14)


def _work(
    meter: Meter, engine: SparkEngine, experiment: str, tick: Tick, partitions: int, turn: int,
    nodes: int = 1 << 12, number: int = 1,
) -> Held:  # fmt: skip
    """Take a tick on Spark, and where sizes are compared here too: both must count the same."""
    meter.session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    about = {"experiment": experiment, "turn": turn, "partitions": partitions}
    found, held = spark_tick(meter, engine, tick, nodes_of(nodes), number, **about)
    if experiment in ("size", "unseen"):
        np.testing.assert_array_equal(found, local_tick(meter, tick, nodes_of(nodes), **about))
    return held


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
