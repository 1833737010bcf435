"""Three brokers behind one face, for tests that hold for each: send, and configure a stream that reads it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.servers import Kafka, Postgres, Redis, Server, start_kafka, start_postgres, start_redis
from tests.service.streams import write_config

START = datetime(2024, 5, 31, tzinfo=UTC)
NAMES = ("kafka", "redis", "postgresql")


class Broker:
    """One server; ``fresh`` begins a new topic (or stream, or table) on it."""

    kind = ""

    def __init__(self, server: Any) -> None:
        self.server, self.topic = server, ""
        self._number = 0

    def fresh(self) -> None:
        self._number += 1
        self.topic = f"t{self._number}_{time.time_ns()}"

    def source(self) -> str:
        """Return the section [source]."""
        raise NotImplementedError

    def send(self, contents: Iterable[bytes | None], arrived: float) -> None:
        """Send messages that are stamped so many seconds after the start; on return the broker has them on disk."""
        raise NotImplementedError

    def send_now(self, contents: Iterable[bytes]) -> None:
        """Send messages that the broker stamps itself."""
        raise NotImplementedError

    def send_rows(self, rows: Iterable[dict[str, Any]], arrived: float) -> None:
        self.send([json.dumps(one).encode() for one in rows], arrived)

    def close(self) -> None:
        self.server.kill()


class KafkaBroker(Broker):
    kind, partitions, stamps = "kafka", 3, "CreateTime"

    def fresh(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        super().fresh()
        self.admin = AdminClient({"bootstrap.servers": self.server.address, "log_level": 0})
        kept = {"message.timestamp.type": self.stamps, "retention.ms": "-1"}  # stamps of 2024 are older than a week
        for made in self.admin.create_topics([NewTopic(self.topic, self.partitions, 1, config=kept)]).values():
            made.result(30)
        self.fresh_producer()

    def fresh_producer(self) -> None:
        from confluent_kafka import Producer

        self._producer = Producer(
            {"bootstrap.servers": self.server.address, "log_level": 0, "enable.idempotence": True, "linger.ms": 2}
        )
        self._sent = 0

    def source(self) -> str:
        return f'type = "kafka"\nservers = "{self.server.address}"\ntopic = "{self.topic}"\nsettle = "0s"'

    def send(self, contents: Iterable[bytes | None], arrived: float) -> None:
        stamp = int(1000 * (START.timestamp() + arrived))
        for content in contents:
            self._sent += 1
            self._producer.produce(self.topic, content, partition=self._sent % self.partitions, timestamp=stamp)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def send_now(self, contents: Iterable[bytes]) -> None:
        self.send(contents, time.time() - START.timestamp())


class RedisBroker(Broker):
    kind = "redis"

    def fresh(self) -> None:
        super().fresh()
        self._last: dict[str, tuple[int, int]] = {}
        self._sent = 0

    def client(self) -> Any:
        import redis

        return redis.Redis.from_url(self.server.url, protocol=2)

    def source(self) -> str:
        keys = json.dumps([f"{self.topic}:a", f"{self.topic}:b"])
        return f'type = "redis"\nurl = "{self.server.url}"\nstreams = {keys}\nsettle = "0s"'

    def send(self, contents: Iterable[bytes | None], arrived: float) -> None:
        """With ids of our own, as Redis would have given them then: a stream's never go back."""
        stamp = int(1000 * (START.timestamp() + arrived))
        with contextlib.closing(self.client()) as client:
            pipe = client.pipeline(transaction=False)
            for content in contents:
                self._sent += 1
                key = f"{self.topic}:{'ab'[self._sent % 2]}"
                last = self._last.get(key, (0, 0))
                at = self._last[key] = max((stamp, 0), (last[0], last[1] + 1))
                pipe.execute_command(
                    "XADD", key, f"{at[0]}-{at[1]}", *(["none", ""] if content is None else ["event", content])
                )
            pipe.execute()

    def send_now(self, contents: Iterable[bytes]) -> None:
        with contextlib.closing(self.client()) as client:
            for content in contents:
                self._sent += 1
                client.execute_command("XADD", f"{self.topic}:{'ab'[self._sent % 2]}", "*", "event", content)


class PostgresBroker(Broker):
    kind = "postgresql"

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.server.url, autocommit=True)

    def fresh(self) -> None:
        super().fresh()
        with contextlib.closing(self.connect()) as db:
            db.execute(
                f"CREATE TABLE {self.topic} (id bigint GENERATED ALWAYS AS IDENTITY, xid xid8 NOT NULL DEFAULT "
                "pg_current_xact_id(), arrived timestamptz NOT NULL DEFAULT clock_timestamp(), event text, "
                "PRIMARY KEY (xid, id))"
            )

    def source(self) -> str:
        return f'type = "postgresql"\nurl = "{self.server.url}"\ntable = "{self.topic}"\nevent = "event"\nsettle = "0s"'

    def send(self, contents: Iterable[bytes | None], arrived: float) -> None:
        stamp = datetime.fromtimestamp(START.timestamp() + arrived, UTC)
        rows = [(stamp, None if one is None else one.decode("latin-1")) for one in contents]
        with contextlib.closing(self.connect()) as db:
            db.cursor().executemany(f"INSERT INTO {self.topic} (arrived, event) VALUES (%s, %s)", rows)

    def send_now(self, contents: Iterable[bytes]) -> None:
        rows = [(one.decode(),) for one in contents]
        with contextlib.closing(self.connect()) as db:
            db.cursor().executemany(f"INSERT INTO {self.topic} (event) VALUES (%s)", rows)


def start_broker(kind: str, folder: Path) -> Broker:
    start: Any = {
        "kafka": lambda: KafkaBroker(start_kafka(folder)),
        "redis": lambda: RedisBroker(start_redis(folder)),
        "postgresql": lambda: PostgresBroker(start_postgres(folder)),
    }[kind]
    broker: Broker = start()
    return broker


def with_source(folder: Path, source: str, **more: str) -> Path:
    """Write a configuration that reads a source."""
    folder.mkdir(parents=True, exist_ok=True)
    path = write_config(folder, **more)
    path.write_text(f"{path.read_text()}\n[source]\n{source}\n")
    return path


def running_broker(kind: str, folder: Path) -> Iterator[Broker]:
    """Give a broker, and end it afterwards: the body of a fixture."""
    broker = start_broker(kind, folder)
    try:
        yield broker
    finally:
        broker.close()


__all__ = ["NAMES", "Broker", "Kafka", "Postgres", "Redis", "Server", "running_broker", "start_broker", "with_source"]
