"""From a Kafka topic to a release, by Spark and by the local engine: a real broker, one tick, the same messages."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
from tests.service.feeds.brokers import START, KafkaBroker, running_broker, with_source

from benchmarks.spark.meters import Meter
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.app.run_topic import run_topic
from phdstream.io.archive import open_archive

__all__ = ["from_topic"]

PARTITIONS = 8
OVER = START + timedelta(seconds=12)
"""The first tick, of ten seconds, is over."""


def from_topic(meter: Meter, folder: Path, messages: int, turns: int) -> None:
    """Measure, in turn, both ways from so many messages to the first release; both must release the same.

    A turn before the first is not kept: it warms up.
    """
    for broker in running_broker("kafka", folder / "broker"):
        assert isinstance(broker, KafkaBroker)
        broker.partitions = PARTITIONS
        broker.fresh()
        meter.without = broker.server._process.pid if broker.server._process else 0
        _send(broker, messages)
        for turn in range(-1, turns):
            found = []
            for engine in ("local", "spark"):
                path = _configured(folder / f"{engine}-{turn}", broker, engine)
                about = {"experiment": "topic", "turn": turn, "engine": engine, "rows": messages, "step": "release"}
                with meter.step(partitions=PARTITIONS, nodes=0, users=False, **about):
                    _run(path, engine)
                found.append(open_archive(path.parent / "releases").release(1).to_arrays())
            assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])
    meter.rows = [row for row in meter.rows if row["turn"] >= 0]


def _run(path: Path, engine: str) -> None:
    config = load_config(path)
    report = run_topic(config, now=lambda: OVER) if engine == "spark" else run(config, now=OVER)
    assert report.last_tick == 1


def _configured(folder: Path, broker: KafkaBroker, engine: str) -> Path:
    path = with_source(folder, broker.source())
    path.write_text(f'{path.read_text()}\n[engine]\ntype = "{engine}"\n')
    return path


def _send(broker: KafkaBroker, messages: int) -> None:
    rng = np.random.default_rng(4)
    for some in np.array_split(np.round(rng.random((messages, 2)), 6), max(1, messages // 50_000)):
        at = START + timedelta(seconds=5)
        row = {"time": at.isoformat().replace("+00:00", "Z")}
        broker.send([json.dumps(row | {"x": x, "y": y}).encode() for x, y in some.tolist()], 6)
