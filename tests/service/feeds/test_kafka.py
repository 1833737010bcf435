"""What only Kafka has: groups, added partitions, retention, transactions; and the client without a broker."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phdstream.service.feeds.kafka import KafkaFeed
from phdstream.service.feeds.protocol import FeedError
from phdstream.service.feeds.settings import KafkaSettings
from tests.service.feeds.brokers import KafkaBroker, running_broker, with_source
from tests.service.feeds.test_every_feed import Following, released_from_posts, rows_of
from tests.service.test_publisher import contents
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    for one in running_broker("kafka", tmp_path_factory.mktemp("broker")):
        assert isinstance(one, KafkaBroker)
        yield one


@pytest.fixture
def broker(server: KafkaBroker) -> KafkaBroker:
    server.fresh()
    return server


def test_the_group_is_rebalanced_in_mid_tick(broker: KafkaBroker, tmp_path: Path) -> None:
    """Others of our group join, share, take messages, commit offsets and leave: ours are by our own positions."""
    ticks = [rows_of(tick, 90) for tick in (1, 2)]
    following = Following(with_source(tmp_path / "a", broker.source()))
    for tick, rows in enumerate(ticks, 1):
        broker.send_rows(rows[:45], 10 * tick - 5)
        with contextlib.closing(Member(broker)) as one:
            one.wait_for(3)
            with contextlib.closing(Member(broker)) as other:
                wait_until(lambda: one.takes() + other.takes() == 3 and one.parts > 0 and other.parts > 0)
                broker.send_rows(rows[45:], 10 * tick - 1)
                if tick == 1:
                    following.to(10)
            one.wait_for(3)
        following.to(10 * tick)
    following.stop()
    assert contents(tmp_path / "a" / "releases") == released_from_posts(tmp_path / "b", ticks)


class Member:
    """Another consumer of the group, whose partitions the group's coordinator gives it, and takes away again."""

    def __init__(self, broker: KafkaBroker) -> None:
        from confluent_kafka import Consumer

        self._consumer = Consumer(
            {"bootstrap.servers": broker.server.address, "group.id": "phdstream", "auto.offset.reset": "earliest",
             "heartbeat.interval.ms": 300, "log_level": 0}
        )  # fmt: skip
        self.parts = 0
        self._consumer.subscribe([broker.topic], on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, _: Any, parts: list[Any]) -> None:
        self.parts = len(parts)

    def _revoked(self, *_: Any) -> None:
        self.parts = 0

    def takes(self) -> int:
        """Take some messages; return how many partitions it has."""
        self._consumer.consume(50, 0.2)
        return self.parts

    def wait_for(self, parts: int) -> None:
        wait_until(lambda: self.takes() == parts)

    def close(self) -> None:
        self._consumer.close()


def test_our_offsets_are_shown_to_those_who_watch(broker: KafkaBroker, tmp_path: Path) -> None:
    from confluent_kafka import Consumer, TopicPartition

    following = Following(with_source(tmp_path / "a", broker.source() + '\ngroup = "watched"'))
    broker.send_rows(rows_of(1, 30), 5)
    following.to(10)
    following.stop()
    with contextlib.closing(Consumer({"bootstrap.servers": broker.server.address, "group.id": "watched"})) as other:
        found = other.committed([TopicPartition(broker.topic, n) for n in range(3)], timeout=60)
    assert [one.offset for one in found] == [10, 10, 10]


def test_partitions_that_are_added_are_read_before_the_next_close(broker: KafkaBroker, tmp_path: Path) -> None:
    from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

    following = Following(with_source(tmp_path / "a", broker.source()))
    ticks = [rows_of(1), rows_of(2)]
    broker.send_rows(ticks[0], 5)
    following.to(10)
    for made in broker.admin.create_partitions([NewPartitions(broker.topic, 5)]).values():
        made.result(30)
    broker.partitions = 5
    try:
        wait_until(lambda: len(broker.admin.list_topics(broker.topic, timeout=60).topics[broker.topic].partitions) == 5)
        broker.fresh_producer()
        broker.send_rows(ticks[1], 15)
    finally:
        broker.partitions = 3
    following.to(20)
    following.stop()
    assert contents(tmp_path / "a" / "releases") == released_from_posts(tmp_path / "b", ticks)


def test_messages_that_are_gone_hold_the_stream_up_unless_they_may_be_skipped(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    from confluent_kafka import TopicPartition

    settings = KafkaSettings(servers=(broker.server.address,), topic=broker.topic)
    broker.send_rows(rows_of(1, 30), 5)
    cut = broker.admin.delete_records([TopicPartition(broker.topic, n, 5) for n in range(3)])
    for done in cut.values():
        done.result(30)
    feed = KafkaFeed(settings)
    read = {f"{broker.topic}/{n}": (2,) for n in range(3)}
    with pytest.raises(FeedError, match="retention"):
        feed.open(read)
    feed.close()
    feed = KafkaFeed(KafkaSettings(servers=settings.servers, topic=broker.topic, gone="skip"))
    feed.open(read)
    mark, found = feed.mark(), []
    while not feed.reached(mark):
        found += feed.read(100, 0.5)
    feed.close()
    assert sorted(one.position[0] for one in found) == sorted([*range(5, 10)] * 3)
    with pytest.raises(FeedError, match="made anew"):
        feed.open(dict.fromkeys(read, (99,)))
    feed.close()


def test_transactions_that_were_aborted_are_not_read_and_hold_nothing_up(broker: KafkaBroker, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    following = Following(with_source(tmp_path / "a", broker.source()))
    sender = Producer({"bootstrap.servers": broker.server.address, "transactional.id": broker.topic, "log_level": 0})
    sender.init_transactions(30)
    stamp = 1000 * 1717113605
    for rows, end in ((rows_of(1), sender.commit_transaction), (rows_of(2), sender.abort_transaction)):
        sender.begin_transaction()
        for one in rows:
            sender.produce(broker.topic, json.dumps(one), timestamp=stamp)
        sender.flush(30)
        end(30)
    following.to(10)
    following.to(20)
    following.stop()
    assert contents(tmp_path / "a" / "releases") == released_from_posts(tmp_path / "b", [rows_of(1), []])


def test_the_client_code_with_librdkafkas_mock_broker() -> None:
    """What there is where no broker can be fetched: order, marks and positions, by a broker inside the client."""
    from confluent_kafka import Producer

    mock = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    metadata = mock.list_topics("t", timeout=10)
    address = ",".join(f"{one.host}:{one.port}" for one in metadata.brokers.values())
    for number in range(20):
        mock.produce("t", str(number), partition=number % 2)
    assert mock.flush(20) == 0
    feed = KafkaFeed(KafkaSettings(servers=(address,), topic="t"))
    feed.open({"t/0": (3,)})
    mark, found = feed.mark(), []
    while not feed.reached(mark):
        found += feed.read(7, 0.5)
    feed.acknowledge({"t/0": (9,)})
    feed.close()
    assert [one.content for one in found if one.partition == "t/0"] == [str(n).encode() for n in range(8, 20, 2)]
    assert [one.content for one in found if one.partition == "t/1"] == [str(n).encode() for n in range(1, 20, 2)]
    assert all(one.arrived is not None for one in found)


def test_no_broker_is_said() -> None:
    from phdstream.service.feeds import kafka

    feed = KafkaFeed(KafkaSettings(servers=("127.0.0.1:1",), topic="t"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka, "_TIMEOUT", 0.5)
        with pytest.raises(FeedError, match="cannot be asked"):
            feed.open({})
    feed.close()
