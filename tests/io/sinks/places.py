"""Sinks on real servers, and what readers find in them, put together without the code under test."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import phdstream as phd
from phdstream.domains import Domain
from phdstream.io.archive import Archive, open_archive
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.io.sinks.follower import Follower
from phdstream.io.sinks.settings import SinkSettings, read_sinks
from tests.servers import Server

BOX = phd.Box([(-74.3, -73.7), (40.5, 41.0)], crs="EPSG:4326", depth=14)
ID, OTHER = "a" * 32, "b" * 32


def folder_of(
    path: Path, ticks: int = 4, stream_id: str = ID, domain: Domain = BOX, points: int = 300, seed: int = 3
) -> Archive:
    """Return a folder with releases: points that wander over the domain."""
    stream = phd.TrackingStream(domain, epsilon=1.0, unit=phd.Event(), window=3, noise=phd.Simulation(seed=seed))
    rng = np.random.default_rng(1)
    root = domain.bounds(np.array([1]))[0]
    low, high = np.split(root, 2)
    with ReleaseFolder(path, stream_id, {}).open(Archive(path, domain).last_tick) as folder:
        for tick in range(ticks):
            some = rng.random((points, domain.dimension)) ** (1 + tick % 3)
            folder.publish(stream.update(low + (high - low) * some))
    return open_archive(path)


def follower(settings: SinkSettings, archive: Archive) -> Follower:
    return Follower(settings.name, settings.open, archive)


def all_published(settings: SinkSettings, archive: Archive) -> bool:
    """Bring a sink up, let go of it, and tell whether it has all."""
    following = follower(settings, archive)
    done = following.catch_up()
    following.close()
    return done


def one(table: dict[str, str]) -> SinkSettings:
    return read_sinks([table], Path())[0]


@contextmanager
def apart() -> Iterator[Path]:
    """Give a folder that others may enter, as PostgreSQL's user must: pytest closes its own to all but one user."""
    with TemporaryDirectory(prefix="phdstream-server-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "server"


class Place(ABC):
    """A kind of sink on a running server."""

    def __init__(self, server: Server) -> None:
        self.server = server

    @abstractmethod
    def table(self, name: str) -> dict[str, str]:
        """Return the table of a configuration file for a sink of a name."""

    @abstractmethod
    def check(self, name: str, archive: Archive) -> list[int]:
        """Check that all is there once, whole and as in the folder; return the ticks."""

    def settings(self, name: str) -> SinkSettings:
        return one(self.table(name))


class Messages(Place):
    """A sink of changes."""

    @abstractmethod
    def messages(self, name: str) -> list[dict[str, Any]]:
        """Return what a reader reads, from the beginning."""

    def check(self, name: str, archive: Archive) -> list[int]:
        ticks: list[int] = []
        points, index = Counter[tuple[float, ...]](), 0
        for message in self.messages(name):
            if message.get("complete"):
                assert message["count"] == index
                assert message["since"] == (ticks[-1] if ticks else 0)
                assert message["stream"] == ID
                ticks.append(message["tick"])
                sample = archive.release(message["tick"]).sample()
                assert points == Counter(map(tuple, sample.tolist()))
                index = 0
                continue
            assert message["tick"] == (ticks[-1] if ticks else 0) + 1
            assert message["index"] == index
            index += 1
            points[tuple(message["point"])] += message["sign"]
            points += Counter()  # drops zeros
        assert index == 0, "the last tick is not complete"
        return ticks


class OnRedis(Messages):
    def table(self, name: str) -> dict[str, str]:
        return {"type": "redis", "url": f"redis://{self.server.address}/0", "key": name}

    def messages(self, name: str) -> list[dict[str, Any]]:
        import redis

        with redis.Redis(port=self.server.port) as client:
            found: list[Any] = client.xrange(name)
        told = [json.loads(entry[b"message"]) for _, entry in found]
        for (number, _), message in zip(found, told, strict=True):
            assert number.decode() == f"{message['tick']}-{message.get('index', message.get('count'))}"
        return told


class OnKafka(Messages):
    def table(self, name: str) -> dict[str, str]:
        return {"type": "kafka", "brokers": self.server.address, "topic": name}

    def messages(self, name: str) -> list[dict[str, Any]]:
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        reader = Consumer(
            {"bootstrap.servers": self.server.address, "group.id": "reader", "isolation.level": "read_committed",
             "enable.partition.eof": True, "log_level": 0}
        )  # fmt: skip
        reader.assign([TopicPartition(name, 0, 0)])
        told: list[dict[str, Any]] = []
        while True:
            message: Any = reader.poll(30)
            assert message is not None
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF
                reader.close()
                return told
            told.append(json.loads(message.value()))


class OnPostgis(Place):
    def table(self, name: str) -> dict[str, str]:
        where = f"host=127.0.0.1 port={self.server.port} user=postgres dbname=postgres"
        return {"type": "postgis", "connection": where, "prefix": f"{name}_", "schema": "maps"}

    def ask(self, query: str) -> list[Any]:
        import psycopg

        where = f"host=127.0.0.1 port={self.server.port} user=postgres dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def check(self, name: str, archive: Archive) -> list[int]:
        ticks = [tick for (tick,) in self.ask(f"SELECT tick FROM maps.{name}_ticks ORDER BY tick")]
        for part in ("points", "cells"):
            assert [t for (t,) in self.ask(f"SELECT DISTINCT tick FROM maps.{name}_{part} ORDER BY tick")] == ticks
        for tick in ticks:
            release = archive.release(tick)
            points = self.ask(f"SELECT ST_X(geom), ST_Y(geom) FROM maps.{name}_points WHERE tick = {tick}")
            np.testing.assert_array_equal(sorted(points), sorted(map(tuple, release.sample().tolist())))
            columns = "node, count, unbiased, stderr, points, ST_Area(geom)"
            cells = self.ask(f"SELECT {columns} FROM maps.{name}_cells WHERE tick = {tick} ORDER BY id")
            table, shapes = release.cells(), release.domain.geometry(release.leaves)
            for i, column in enumerate(("node", "count", "unbiased", "stderr", "points")):
                np.testing.assert_array_equal([row[i] for row in cells], table[column].to_numpy())
            np.testing.assert_allclose([row[5] for row in cells], [shape.area for shape in shapes])
        return ticks
