"""What ``[[sinks]]`` may say; mistakes are found before anything is read or spent, and no secret is in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from phdstream.errors import ConfigError, SinkError
from phdstream.io.sinks.settings import KafkaSettings, PostgisSettings, RedisSettings, read_sinks

POSTGIS = {"type": "postgis", "connection": "host=db dbname=maps user=writer"}
KAFKA = {"type": "kafka", "brokers": "one:9092,two:9092", "topic": "taxis.changes"}
REDIS = {"type": "redis", "url": "redis://cache:6379/0", "key": "taxis"}


def test_all_kinds(tmp_path: Path) -> None:
    postgis, kafka, redis = read_sinks([POSTGIS, KAFKA, REDIS], tmp_path)
    assert isinstance(postgis, PostgisSettings)
    assert (postgis.schema, postgis.prefix, postgis.secret.read()) == ("public", "phdstream_", None)
    assert isinstance(kafka, KafkaSettings)
    assert kafka.properties() == {"bootstrap.servers": "one:9092,two:9092"}
    assert isinstance(redis, RedisSettings)
    assert [sink.name for sink in (postgis, kafka, redis)] == [
        "postgis:public.phdstream_", "kafka:taxis.changes", "redis:taxis",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"type": "postgres"}, "did you mean 'postgis'"),
        ({}, "type must be one of postgis, kafka, redis"),
        (POSTGIS | {"shema": "x"}, "did you mean 'schema'"),
        ({"type": "kafka", "topic": "x"}, "needs 'brokers'"),
        (KAFKA | {"topic": 7}, "topic must be a text"),
        (KAFKA | {"topic": "a b"}, "topic must be made of"),
        (POSTGIS | {"schema": 'x"; DROP TABLE y'}, "schema must be made of"),
        (POSTGIS | {"prefix": "x" * 60}, "prefix must be made of"),
        (POSTGIS | {"connection": "host=db password=abc"}, "must not hold a password"),
        (POSTGIS | {"connection": "postgresql://me:abc@db/maps"}, "must not hold a password"),
        (REDIS | {"url": "redis://:abc@cache:6379"}, "must not hold a password"),
        (REDIS | {"url": "http://cache"}, "url must be an address"),
        (REDIS | {"password_file": "a", "password_variable": "B"}, "say one"),
    ],
)
def test_mistakes(tmp_path: Path, table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_sinks([table], tmp_path)


@pytest.mark.parametrize(
    ("given", "said"), [({"type": "redis"}, r"write \[\[sinks\]\]"), ([REDIS, REDIS], "redis:taxis twice")]
)
def test_mistakes_in_the_list(tmp_path: Path, given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_sinks(given, tmp_path)


def test_secrets_are_read_when_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filed, named, kafka = read_sinks(
        [POSTGIS | {"password_file": "secret"}, REDIS | {"password_variable": "TAXIS_REDIS"},
         KAFKA | {"properties_file": "kafka.properties"}], tmp_path,
    )  # fmt: skip
    assert isinstance(filed, PostgisSettings)
    assert isinstance(named, RedisSettings)
    assert isinstance(kafka, KafkaSettings)
    for read in (filed.secret.read, named.secret.read, kafka.properties):
        with pytest.raises(SinkError):
            read()
    (tmp_path / "secret").write_text("abc def\n")
    (tmp_path / "kafka.properties").write_text("# who\nsasl.username=me\nsasl.password=a=b\n\n")
    monkeypatch.setenv("TAXIS_REDIS", "xyz")
    assert (filed.secret.read(), named.secret.read()) == ("abc def", "xyz")
    assert kafka.properties() == {
        "sasl.username": "me", "sasl.password": "a=b", "bootstrap.servers": "one:9092,two:9092",
    }  # fmt: skip
    (tmp_path / "kafka.properties").write_text("nonsense\n")
    with pytest.raises(SinkError, match="name=value"):
        kafka.properties()
