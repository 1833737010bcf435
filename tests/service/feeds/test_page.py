"""docs/sources.md as it is written: its configurations are loaded, and with its rights and settings events are read."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import ConfigError
from phdstream.io.archive import Archive
from phdstream.service.feeds.settings import KNOWN, read_source
from tests.servers import Kafka, Postgres, Redis, start_kafka, start_postgres, start_redis

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "sources.md").read_text()
PASSWORD = "a password of nobody"
HOUR = timedelta(hours=1)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def whole(block: str) -> str:
    """Return a configuration; one of which the page says so has the other sections of the one for Kafka."""
    if "[ticks]" in block:
        return block
    kafka = next(one for one in blocks("toml") if 'type = "kafka"' in one)
    start, end = kafka.index("[source]"), kafka.index("[ticks]")
    return kafka[:start] + block + kafka[end:]


def block_of(kind: str) -> str:
    (found,) = (one for one in blocks("toml") if f'type = "{kind}"' in one)
    return whole(found)


@pytest.mark.parametrize("block", blocks("toml"))
def test_every_configuration_is_loaded(tmp_path: Path, block: str) -> None:
    (tmp_path / "stream.toml").write_text(whole(block))
    config = load_config(tmp_path / "stream.toml")
    assert config.input.patterns or config.source is not None
    assert set(tomllib.loads(block)) <= set(tomllib.loads(whole(block)))


def test_every_kind_of_source_and_every_key_is_documented() -> None:
    assert len(blocks("toml")) == 4
    table = (DOCS / "configuration.md").read_text()
    section = table[table.index("| `[source]`") : table.index("| `[[sinks]]`")]
    assert {name for name in KNOWN if f"`{name}`" not in section} == set()


@pytest.mark.parametrize("key", ["PINNED", "TYPE", "topik"])
def test_a_key_that_there_is_not_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError, match=f"has no key '{key}'"):
        read_source({"type": "kafka", "servers": "a:1", "topic": "b", key: "c"}, Path())


def written(folder: Path, text: str, start: datetime) -> Path:
    """Write a configuration with noise that can be repeated and hardly counts."""
    text = re.sub(r"start = .*", f"start = {start.isoformat()}", text).replace("epsilon = 1.0", "epsilon = 50.0")
    (folder / "stream.toml").write_text(text + "\n[simulation]\nseed = 1\n")
    return folder / "stream.toml"


def total(folder: Path, text: str) -> float:
    """Return the total of a tick of an hour that began half an hour ago: brokers stamp what comes by their clocks."""
    start = (datetime.now(UTC) - HOUR / 2).replace(microsecond=0)
    config = load_config(written(folder, text, start))
    report = run(config, until=start + HOUR)
    assert report.last_tick == 1
    release = Archive(config.releases, config.domain).release(1)
    return float(release.total)


def secret(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o600)


def rows(number: int) -> list[dict[str, Any]]:
    now = datetime.now(UTC).isoformat()
    return [{"time": now, "lon": -74 + i / 1000, "lat": 40.7 + i / 1000} for i in range(number)]


def served(start: Callable[[Path], Any], folder: Path) -> Iterator[Any]:
    server = start(folder)
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    yield from served(start_kafka, tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    yield from served(start_redis, tmp_path_factory.mktemp("redis"))


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    yield from served(start_postgres, tmp_path_factory.mktemp("postgres"))


@pytest.mark.slow
def test_kafka(kafka: Kafka, tmp_path: Path) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    (commands,) = (one for one in blocks("sh") if "kafka-topics.sh" in one)
    settings = dict(re.findall(r"--config ([a-z.]+)=(\S+)", commands))
    partitions = int(re.findall(r"--partitions (\d+)", commands)[0])
    admin = AdminClient({"bootstrap.servers": kafka.address, "log_level": 0})
    for made in admin.create_topics([NewTopic("rides", partitions, 1, config=settings)]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": kafka.address, "log_level": 0})
    for row in rows(300):
        producer.produce("rides", json.dumps(row), timestamp=1)  # a sender that says it was in 1970
    assert producer.flush(30) == 0
    text = re.sub(r"servers = .*", f'servers = ["{kafka.address}"]', block_of("kafka"))
    secret(
        tmp_path, "kafka.properties", "# as on the page, for a broker without passwords\nsecurity.protocol=PLAINTEXT\n"
    )
    assert total(tmp_path, text) == pytest.approx(300, abs=20)


@pytest.mark.slow
def test_redis(redis: Redis, tmp_path: Path) -> None:
    from redis import Redis as Client
    from redis.exceptions import NoPermissionError

    (rights,) = blocks("text")
    host, port = redis.address.split(":")
    with contextlib.closing(Client(host, int(port))) as owner:
        for line in rights.splitlines():
            words = [word.replace("PASSWORD", PASSWORD) for word in line.split()]
            assert owner.execute_command(*words)
    with contextlib.closing(Client(host, int(port), username="sensor", password=PASSWORD, protocol=2)) as sensor:
        for place, row in enumerate(rows(300)):
            sensor.execute_command("XADD", f"rides:{('north', 'south')[place % 2]}", "*", "event", json.dumps(row))
        with pytest.raises(NoPermissionError):
            sensor.execute_command("XRANGE", "rides:north", "-", "+")
    secret(tmp_path, "redis.password", PASSWORD + "\n")
    text = block_of("redis").replace("rediss://", "redis://").replace("cache.example.org:6379", redis.address)
    assert total(tmp_path, text) == pytest.approx(300, abs=20)
    with contextlib.closing(Client(host, int(port), username="phdstream", password=PASSWORD, protocol=2)) as reader:
        with pytest.raises(NoPermissionError):
            reader.execute_command("XADD", "rides:north", "*", "event", "x")
        with pytest.raises(NoPermissionError):
            reader.execute_command("XREAD", "STREAMS", "others", "0")


@pytest.mark.slow
def test_postgresql(postgres: Postgres, tmp_path: Path) -> None:
    import psycopg

    (statements,) = blocks("sql")
    with contextlib.closing(psycopg.connect(postgres.url, autocommit=True)) as owner:
        owner.execute(statements.replace("PASSWORD'", f"{PASSWORD}'"))
    as_role = postgres.url.replace("postgres@", "{}@")
    with contextlib.closing(psycopg.connect(as_role.format("sensor"), autocommit=True)) as sensor:
        insert = 'INSERT INTO public.rides ("time", lon, lat) VALUES (%(time)s, %(lon)s, %(lat)s)'
        sensor.cursor().executemany(insert, rows(300))
        for column, value in (("xid", "'1'"), ("arrived", "'2000-01-01'")):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                sensor.execute(f"INSERT INTO public.rides ({column}) VALUES ({value})")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sensor.execute("SELECT * FROM public.rides")
    secret(tmp_path, "postgres.password", PASSWORD + "\n")
    text = re.sub(r"url = .*", f'url = "{as_role.format("phdstream")}"', block_of("postgresql"))
    assert total(tmp_path, text) == pytest.approx(300, abs=20)
    reader = psycopg.connect(as_role.format("phdstream"), autocommit=True)
    with contextlib.closing(reader), pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute("DELETE FROM public.rides")
