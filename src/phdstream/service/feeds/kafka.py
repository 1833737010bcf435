"""A Kafka topic. Needs the extra ``kafka``.

**In order.** A partition's messages have offsets that only grow, and the broker hands them over in this order.

**One owner, partitions by hand.** The private folder has one owner, which reads all partitions. So they are assigned
here and not by the group's coordinator, and our own positions say where reading begins. Another consumer of the same
group, joining or leaving, changes nothing: no rebalance reaches us. Offsets are committed to the broker after ours are
on the disk, for those who watch the group's lag; they are never read.

**Arrival** is the message's timestamp. With ``message.timestamp.type=LogAppendTime`` (set it on the topic) the broker
stamps it. With ``CreateTime``, Kafka's default, the sender does, and its word is taken.

**Transactions**: only committed messages are read. What is appended before a tick closes and committed after it is
late.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from phdstream.errors import InputError
from phdstream.service.feeds.protocol import FeedError, Message, Position, moment
from phdstream.service.feeds.settings import KafkaSettings

__all__ = ["KafkaFeed"]

_TIMEOUT = 10.0
_FIXED: dict[str, Any] = {
    "enable.auto.commit": False, "enable.auto.offset.store": False, "auto.offset.reset": "error",
    "enable.partition.eof": True, "isolation.level": "read_committed", "log_level": 0,
    "allow.auto.create.topics": False, "fetch.wait.max.ms": 100, "topic.metadata.refresh.interval.ms": 10_000,
    "reconnect.backoff.max.ms": 1000,
}  # fmt: skip


class KafkaFeed:
    """All partitions of one topic, as `Feed`."""

    def __init__(self, settings: KafkaSettings) -> None:
        try:
            import confluent_kafka
        except ImportError:
            raise InputError("a Kafka source needs more: pip install 'phdstream[kafka]'") from None
        self._kafka, self._settings = confluent_kafka, settings
        self._consumer: Any = None
        self._next: dict[int, int] = {}

    def open(self, positions: Mapping[str, Position]) -> None:
        """Assign every partition, each after its position."""
        known = {"bootstrap.servers": ",".join(self._settings.servers), "group.id": self._settings.group}
        try:
            self._consumer = self._kafka.Consumer(
                self._settings.properties() | known | _FIXED | {"error_cb": lambda error: None}
            )
        except self._kafka.KafkaException as error:
            raise FeedError(f"the settings of the Kafka client are refused: {error.args[0].str()}") from None
        self._next = {}
        self._assign(positions)

    def _assign(self, positions: Mapping[str, Position]) -> None:
        """Begin with the partitions that are not assigned yet."""
        there = self._partitions()
        fresh = [number for number in there if number not in self._next]
        for number in fresh:
            low, high = self._ends(number)
            known = positions.get(self._name(number))
            start = low if known is None else known[0] + 1
            if start < low:
                if self._settings.gone != "skip":
                    raise FeedError(
                        f"{self._name(number)} no longer has messages that were not read yet: its retention removed "
                        'them. They are lost to this stream; with [source] gone = "skip" it goes on without them.'
                    )
                start = low
            if start > high:
                raise FeedError(
                    f"{self._name(number)} has fewer messages than were read of it: it was made anew or is another "
                    "broker's. Set it back, or start a new stream in new folders (its ε comes on top)."
                )
            self._next[number] = start
        if fresh:
            topic = self._settings.topic
            self._consumer.assign([self._kafka.TopicPartition(topic, n, at) for n, at in self._next.items()])

    def _partitions(self) -> list[int]:
        topic = self._asked(lambda: self._consumer.list_topics(self._settings.topic, timeout=_TIMEOUT))
        found = topic.topics.get(self._settings.topic)
        if found is None or found.error is not None or not found.partitions:
            raise FeedError(f"there is no Kafka topic {self._settings.topic} yet, or it may not be read.")
        return sorted(found.partitions)

    def _ends(self, number: int) -> tuple[int, int]:
        one = self._kafka.TopicPartition(self._settings.topic, number)
        found = self._asked(lambda: self._consumer.get_watermark_offsets(one, timeout=_TIMEOUT, cached=False))
        if found is None:
            raise FeedError("the Kafka broker does not answer.")
        return int(found[0]), int(found[1])

    def _asked(self, ask: Any) -> Any:
        try:
            return ask()
        except self._kafka.KafkaException as error:
            raise FeedError(f"the Kafka broker cannot be asked: {error.args[0].name()}.") from None

    def _name(self, number: int) -> str:
        return f"{self._settings.topic}/{number}"

    def read(self, most: int, seconds: float) -> list[Message]:
        """Return some of the next messages."""
        found = []
        for one in self._asked(lambda: self._consumer.consume(most, seconds)):
            error = one.error()
            if error is None:
                found.append(self._message(one))
                self._next[one.partition()] = one.offset() + 1
            elif error.code() == self._kafka.KafkaError._PARTITION_EOF:  # there may be markers behind the last message
                self._next[one.partition()] = max(self._next[one.partition()], one.offset())
            else:
                raise FeedError(f"the Kafka topic cannot be read: {error.name()}.")
        return found

    def _message(self, one: Any) -> Message:
        kind, milliseconds = one.timestamp()
        arrived = None if kind == self._kafka.TIMESTAMP_NOT_AVAILABLE else moment(1000 * milliseconds)
        return Message(self._name(one.partition()), (one.offset(),), arrived, one.value())

    def now(self) -> datetime | None:
        """Return None: a Kafka broker tells no time."""
        return None

    def mark(self) -> dict[int, int]:
        """Return the end of every partition, also of those that came into being meanwhile."""
        self._assign({})
        return {number: self._ends(number)[1] for number in self._partitions()}

    def reached(self, mark: dict[int, int]) -> bool:
        """Whether each partition was read to its end."""
        return all(self._next.get(number, -1) >= end for number, end in mark.items())

    def acknowledge(self, positions: Mapping[str, Position]) -> None:
        """Commit offsets for those who watch the group; whether that works matters to nobody else."""
        topic = self._settings.topic
        offsets = [
            self._kafka.TopicPartition(topic, int(name.rpartition("/")[2]), position[0] + 1)
            for name, position in positions.items()
        ]
        with contextlib.suppress(self._kafka.KafkaException):
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Let go of the client."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()
