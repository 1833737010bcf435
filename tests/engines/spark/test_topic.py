"""A Kafka topic read by Spark, with a real broker and a real cluster: what the service releases of it, to the byte."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from phdstream.app.config import load_config
from phdstream.app.run_topic import run_topic
from phdstream.errors import ConfigError, StateError
from tests.engines.spark.cluster import Cluster, properties_of
from tests.engines.spark.driving import POINTS, killed
from tests.service.feeds.brokers import START, KafkaBroker, running_broker, with_source
from tests.service.feeds.test_every_feed import POISON, Following, rows_of
from tests.service.streams import row
from tests.service.test_publisher import contents
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    for one in running_broker("kafka", tmp_path_factory.mktemp("broker")):
        assert isinstance(one, KafkaBroker)
        yield one


@pytest.fixture
def broker(server: KafkaBroker, spark: Any) -> KafkaBroker:
    server.fresh()
    return server


def configured(folder: Path, broker: KafkaBroker, cluster: Cluster | None = None, **more: str) -> Path:
    """Write a configuration of a stream from the broker's topic; on Spark, if a cluster is named."""
    path = with_source(folder, broker.source(), **more)
    if cluster is not None:
        given = "".join(f'"{name}" = "{value}"\n' for name, value in properties_of(cluster).items())
        engine = f'\n[engine]\ntype = "spark"\nmaster = "{cluster.url}"\n[engine.properties]\n{given}'
        path.write_text(path.read_text() + engine)
    return path


def run_at(path: Path, seconds: float) -> int:
    return run_topic(load_config(path), now=lambda: START + timedelta(seconds=seconds)).last_tick


def released_by_the_service(path: Path, *seconds: float) -> dict[str, bytes]:
    following = Following(path)
    for moment in seconds:
        following.to(moment)
    following.stop()
    return contents(path.parent / "releases")


@pytest.mark.parametrize("late", ["refuse", "next"])
def test_releases_are_those_of_the_service(broker: KafkaBroker, cluster: Cluster, tmp_path: Path, late: str) -> None:
    """Late, early and poisoned messages among them; a run takes what there is, and the next one goes on."""
    ours = configured(tmp_path / "ours", broker, cluster, service=f'late = "{late}"')
    theirs = configured(tmp_path / "theirs", broker, service=f'late = "{late}"')
    broker.send_rows(rows_of(1), 5)
    broker.send([*POISON[:7], None], 6)
    broker.send_rows([*rows_of(2, 20), row(5000)], 9)
    assert run_at(ours, 9) == 0
    assert run_at(ours, 12) == 1
    broker.send_rows(rows_of(1, 30), 13)
    broker.send([b"none"], 14)
    broker.send_rows(rows_of(2, 40), 15)
    broker.send_rows(rows_of(3, 40), 25)
    assert run_at(ours, 30) == 3
    assert run_at(ours, 31) == 3
    expected = released_by_the_service(theirs, 10, 30)
    assert contents(tmp_path / "ours" / "releases") == expected
    letters = pq.read_table(tmp_path / "ours" / "private" / "spark" / "dead-letters").to_pylist()
    assert len({(one["partition"], one["offset"]) for one in letters}) == len(letters) == 9
    assert {one["content"] for one in letters} >= {b"no json", b"[1, 2]", None, b"none"}
    assert all(one["reason"] for one in letters)
    assert sorted((tmp_path / "ours" / "private" / "spark" / "intake").iterdir()) == []


def test_following_a_topic_whose_broker_goes_and_comes_back(
    broker: KafkaBroker, cluster: Cluster, tmp_path: Path
) -> None:
    path = configured(tmp_path / "ours", broker, cluster, ticks="end = 2024-05-31T00:00:40Z")
    ticks = [rows_of(tick) for tick in range(1, 5)]
    hand, told, failures = [5.0], list[int](), list[str]()

    def follow() -> None:
        while True:
            try:
                run_topic(load_config(path), lambda tick, last: told.append(tick), follow=True,
                          now=lambda: START + timedelta(seconds=hand[0]))  # fmt: skip
                return
            except StateError as error:
                failures.append(str(error))
                time.sleep(1)

    thread = threading.Thread(target=follow)
    thread.start()
    for tick, rows in enumerate(ticks, 1):
        if tick == 3:
            broker.server.restart()
        broker.send_rows(rows, 10 * tick - 5)
        hand[0] = 10.0 * tick
        wait_until(lambda: tick in told, 600)  # noqa: B023
        assert told == list(range(1, tick + 1)), failures
    thread.join(600)
    assert not thread.is_alive()
    theirs = configured(tmp_path / "theirs", broker, ticks="end = 2024-05-31T00:00:40Z")
    assert contents(tmp_path / "ours" / "releases") == released_by_the_service(theirs, 10, 20, 30, 40)


def test_the_driver_is_killed_at_every_kind_of_point(broker: KafkaBroker, cluster: Cluster, tmp_path: Path) -> None:
    """And starts anew each time: the releases are those of a run that was never disturbed."""
    ours = configured(tmp_path / "ours", broker, cluster, unit='{ type = "user", inserts = 3, deletes = 1 }',
                      input='user = "who"\nbad_rows = "drop"')  # fmt: skip
    theirs = configured(tmp_path / "theirs", broker, unit='{ type = "user", inserts = 3, deletes = 1 }',
                        input='user = "who"\nbad_rows = "drop"')  # fmt: skip
    for tick, point in enumerate(POINTS, 1):
        rows = [one | {"who": f"user {number % 20}"} for number, one in enumerate(rows_of(tick, 50))]
        broker.send_rows(rows, 10 * tick - 5)
        broker.send(POISON[:2], 10 * tick - 4)
        killed(ours, START + timedelta(seconds=10 * tick), point)
    assert run_at(ours, 10 * len(POINTS)) == len(POINTS)
    expected = released_by_the_service(theirs, *(10.0 * tick for tick in range(1, len(POINTS) + 1)))
    assert contents(tmp_path / "ours" / "releases") == expected
    letters = pq.read_table(tmp_path / "ours" / "private" / "spark" / "dead-letters")
    assert len(letters) == 2 * len(POINTS)


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    engine = '[engine]\ntype = "spark"\nmaster = "local[1]"\n'
    redis = with_source(tmp_path, 'type = "redis"\nurl = "redis://localhost"\nstreams = "rides"')
    redis.write_text(redis.read_text() + engine)
    with pytest.raises(ConfigError, match="reads files or Kafka"):
        load_config(redis)
    kafka = with_source(tmp_path, 'type = "kafka"\nservers = "localhost:1"\ntopic = "rides"', input='files = "*.csv"')
    kafka.write_text(kafka.read_text() + engine)
    with pytest.raises(ConfigError, match="not both"):
        load_config(kafka)
