"""A Kafka topic of synthetic changes, exactly once for readers with ``isolation.level=read_committed``. Public.

A tick is one transaction. The transactional id is the topic's, so at any time one process can write there: a new one
fences all before it, whatever they had begun is aborted, and only then does it read back which tick is the last. From
there on, whoever commits has fenced it. So no tick is there twice, and two streams cannot share a topic.
All messages go to partition 0, for one order; keys are ``tick-index``, so that compaction takes nothing away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from phdstream.errors import SinkError, StateError
from phdstream.io.sinks.messages import completion, tick_messages
from phdstream.io.sinks.protocol import driver, other_content, other_stream, release_digest
from phdstream.release import Release

__all__ = ["KafkaSink"]

_PATIENCE = 30.0
_ROOM, _LAST_WORD = 0.1, 5.0
_FIRST_LOOK = 64
_OURS = {"enable.auto.commit": False, "isolation.level": "read_committed", "enable.partition.eof": True}


class KafkaSink:
    """One stream's topic. ``properties`` are librdkafka's, ``bootstrap.servers`` among them."""

    def __init__(self, properties: dict[str, str], topic: str, stream_id: str) -> None:
        self._kafka: Any = driver("confluent_kafka", "kafka")
        self._topic, self._stream, self.where = topic, stream_id, f"the Kafka topic {topic}"
        self._properties: dict[str, Any] = {"log_level": 0, "error_cb": lambda error: None} | properties
        with self._talking():
            self._make_topic()
            self._check_owner(self._last_completion())  # before any fencing: another stream is not to be disturbed
            self._producer = self._kafka.Producer(
                {"transaction.timeout.ms": 300_000, "compression.type": "lz4", "linger.ms": 20}
                | self._properties | {"transactional.id": f"phdstream-sink-{topic}", "enable.idempotence": True}
            )  # fmt: skip
            self._producer.init_transactions(_PATIENCE)
            self._done = self._check_owner(self._last_completion())

    def _make_topic(self) -> None:
        """Make the topic if it is missing: one partition, of which nothing expires."""
        admin = driver("confluent_kafka.admin", "kafka")
        client = admin.AdminClient(self._properties)
        known = client.list_topics(timeout=_PATIENCE).topics
        if self._topic not in known:
            wanted = admin.NewTopic(self._topic, num_partitions=1, config={"retention.ms": "-1"})
            try:
                client.create_topics([wanted], operation_timeout=_PATIENCE)[self._topic].result(_PATIENCE)
            except self._kafka.KafkaException as error:
                if error.args[0].code() != self._kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def _check_owner(self, done: dict[str, Any] | None) -> dict[str, Any] | None:
        if done is not None and done["stream"] != self._stream:
            raise other_stream(self.where, done["stream"], self._stream)
        return done

    def _last_completion(self) -> dict[str, Any] | None:
        """Return what the last tick's last message says: looked for from the end of the topic, farther each time."""
        with self._reader() as (reader, low, high):
            look = _FIRST_LOOK
            while True:
                start = max(low, high - look)
                found = list(self._completions(reader, start, high))
                if found:
                    return found[-1]
                if start == low:
                    break
                look *= 16
        if low:
            raise StateError(
                f"{self.where} has lost its last tick (retention?), so nobody knows which ticks were there. Use a new "
                "topic with retention.ms=-1, or one that outlasts the time between ticks."
            )
        return None

    @contextmanager
    def _reader(self) -> Iterator[tuple[Any, int, int]]:
        """Give a reader of what is committed, and the offsets between which it is."""
        reader = self._kafka.Consumer(self._properties | _OURS | {"group.id": f"phdstream-sink-{self._topic}"})
        try:
            part = self._kafka.TopicPartition(self._topic, 0)
            yield reader, *reader.get_watermark_offsets(part, timeout=_PATIENCE)
        finally:
            reader.close()

    def _completions(self, reader: Any, start: int, high: int) -> Iterator[dict[str, Any]]:
        """Yield what completes ticks between an offset and the end."""
        if start >= high:
            return
        reader.assign([self._kafka.TopicPartition(self._topic, 0, start)])
        while True:
            message = reader.poll(_PATIENCE)
            if message is None:
                raise SinkError(f"{self.where} does not answer.")
            if message.error() is None:
                if said := completion(message.value()):
                    yield said
            elif message.error().code() == self._kafka.KafkaError._PARTITION_EOF:
                return
            else:
                raise self._kafka.KafkaException(message.error())

    def last_tick(self) -> int:
        """Return the last tick that is committed: nobody else can have committed one meanwhile."""
        return 0 if self._done is None else int(self._done["tick"])

    def has(self, tick: int) -> bool:
        """Tell whether a tick is committed, and still kept by the topic."""
        return self._find(tick) is not None

    def _find(self, tick: int) -> dict[str, Any] | None:
        if tick > self.last_tick():
            return None
        if self._done is not None and self._done["tick"] == tick:
            return self._done
        with self._talking(), self._reader() as (reader, low, high):
            return next((said for said in self._completions(reader, low, high) if said["tick"] == tick), None)

    def publish(self, release: Release) -> None:
        """Add a tick in one transaction, after the last one."""
        if release.tick <= self.last_tick():
            there = self._find(release.tick)
            if there is not None and there.get("digest") != release_digest(release):
                raise other_content(self.where, release.tick)
            return
        with self._talking():
            self._producer.begin_transaction()
            last = self._send(release)
            # A failure here may hide a commit: the sink is then closed, and a new one reads back what is there.
            self._producer.commit_transaction(_PATIENCE * 4)
        self._done = completion(last)

    def _send(self, release: Release) -> bytes:
        message = b""
        for index, message in enumerate(tick_messages(release, self._stream)):
            key = f"{release.tick}-{index}"
            while True:
                try:
                    self._producer.produce(self._topic, message, key, partition=0)
                    break
                except BufferError:
                    self._producer.poll(_ROOM)
        return message

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Turn whatever the client raises into a SinkError."""
        try:
            yield
        except self._kafka.KafkaException as error:
            raise SinkError(f"{self.where} cannot be written ({error.args[0].str()}).") from None

    def close(self) -> None:
        """Let go; what was begun and not committed is thrown away, here or by whoever writes next."""
        with suppress(self._kafka.KafkaException):
            self._producer.purge(in_flight=True)
            self._producer.abort_transaction(_LAST_WORD)
