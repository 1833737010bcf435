"""A Kafka topic that Spark's workers read, with the rules of `phdstream.service.feeds.kafka`. **Private.**

What a message holds, and when it arrived, is what the service would say of it: the same code reads it
(`phdstream.service.feeds.sifting`), in the workers' own Python, each message for itself.

**Once**: the offsets of every micro-batch are in Spark's checkpoint; see `phdstream.engines.spark.streaming`. **All
before the close**: a tick waits for a batch that was begun ``settle`` after it closed, and Spark begins a batch by
asking the broker where every partition ends, new ones too. **Transactions**: only committed messages are read.

**Dead letters** are in the engine's storage, ``dead-letters/batch-...``, Parquet: where the message is, when it
arrived, the reason, the content (until a worker has kept so many bytes of them in one batch as ``dead_letters`` says).
A batch that is handed over again replaces its own. They are for the operator, who may delete them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from phdstream.engines.spark.codes import domain_at_hand
from phdstream.engines.spark.encoding import RowCoder
from phdstream.engines.spark.streaming import SparkStreaming
from phdstream.errors import InputError
from phdstream.io.sources.clock import Clock
from phdstream.service.bodies import BodyReader
from phdstream.service.feeds.protocol import Message, moment
from phdstream.service.feeds.settings import KafkaSettings
from phdstream.service.feeds.sifting import Sifted, sift
from phdstream.service.journal import Part, event_schema
from phdstream.service.schedule import microseconds

__all__ = ["TopicCoder", "TopicStreaming", "read_topic"]

_LETTERS = "dead-letters"
_LETTER = "partition int, offset long, reason string, content binary"
_LETTER_FIELDS = [("arrived", pa.int64()), ("partition", pa.int32()), ("offset", pa.int64()), ("reason", pa.string()),
                  ("content", pa.binary())]  # fmt: skip


def read_topic(session: Any, settings: KafkaSettings) -> Any:
    """Return a topic as a streaming frame, from its first message on.

    The file of properties has names of Kafka's Java client here, which is Spark's.
    """
    reader = session.readStream.format("kafka").option("subscribe", settings.topic)
    fixed = {"kafka.bootstrap.servers": ",".join(settings.servers), "kafka.isolation.level": "read_committed"}
    fixed |= {"startingOffsets": "earliest", "failOnDataLoss": str(settings.gone == "stop").lower()}
    for name, value in ({f"kafka.{name}": value for name, value in settings.properties().items()} | fixed).items():
        reader = reader.option(name, value)
    try:
        return reader.load()
    except Exception as error:
        if "data source" not in str(error).lower():
            raise
        raise InputError(
            "Spark cannot read Kafka without its own package for that: name it in [engine.properties], as "
            f'"spark.jars.packages" = "org.apache.spark:spark-sql-kafka-0-10_2.13:{session.version}".'
        ) from None


@dataclass(frozen=True)
class TopicCoder(RowCoder):
    """Codes the messages of a topic. ``ahead`` is the schedule's; ``most``: bytes of letters that a worker keeps."""

    ahead: timedelta = timedelta()
    most: int = 0

    def sifted(self, frame: Any) -> Any:
        """Return what messages hold: coded rows with the time of their arrival, or dead letters, with a ``reason``."""
        schema = f"tick long, {self.stored_schema}, arrived long, {_LETTER}"
        frame = frame.select("partition", "offset", "timestamp", "value")
        return frame.mapInArrow(self._by_messages(), schema)

    def coded(self, frame: Any) -> Any:
        """Return the coded rows of what `sifted` returned."""
        columns = ["tick", *(column.split()[0] for column in self.stored_schema.split(", ")), "arrived"]
        return frame.filter("reason is null").select(*columns)

    def letters(self, frame: Any) -> Any:
        """Return the dead letters of what `sifted` returned."""
        return frame.filter("reason is not null").selectExpr(
            "partition", "offset", "timestamp_micros(arrived) as arrived", "reason", "content"
        )

    def _by_messages(self) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return what sifts batches of messages, in a worker's Python."""
        domain = json.dumps(self.domain.to_dict())
        clock, columns, reading, ahead, most = self.clock, self.columns, self.reading, self.ahead, self.most
        stored = event_schema(columns.user is not None)
        whole = pa.schema([("tick", pa.int64()), ("sign", pa.int32()), *stored, *_LETTER_FIELDS])

        def coded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            read, kept = BodyReader(domain_at_hand(domain), clock, columns, reading).read, 0
            for batch in batches:
                tables = [whole.empty_table()]
                for some in _alike(_messages(batch), clock, ahead):
                    found = sift(read, some)
                    tables += [_rows(part, stored, some[0]) for part in found.parts]
                    letters, kept = _letters(found, kept, most)
                    tables.append(letters)
                together = pa.concat_tables(tables, promote_options="default")  # what a table lacks is null
                yield from together.cast(_as_spark_has_it(whole)).to_batches()

        return coded


def _messages(batch: pa.RecordBatch) -> list[Message]:
    columns = (batch.column(name) for name in ("partition", "offset", "timestamp", "value"))
    numbers, offsets, stamps, values = columns
    stamps = stamps.cast(pa.int64())
    found = zip(numbers.to_pylist(), offsets.to_pylist(), stamps.to_pylist(), values.to_pylist(), strict=True)
    return [Message(str(n), (at,), None if us is None else moment(us), value) for n, at, us, value in found]


def _alike(messages: list[Message], clock: Clock, ahead: timedelta) -> list[list[Message]]:
    """Return messages in lots for whose events the schedule says the same, by the time of their arrival."""
    lots: dict[Any, list[Message]] = {}
    for one in messages:
        key = None if one.arrived is None else (clock.over(one.arrived), clock.until(one.arrived + ahead))
        lots.setdefault(key, []).append(one)
    return list(lots.values())


def _as_spark_has_it(schema: pa.Schema) -> pa.Schema:
    """Return a schema with users of the kind that Spark takes."""
    at = schema.get_field_index("user")
    return schema if at < 0 else schema.set(at, pa.field("user", pa.binary()))


def _rows(part: Part, stored: pa.Schema, first: Message) -> pa.Table:
    """Return the coded rows of a part of a lot, with the arrival of the lot's first message, which stands for all."""
    table = pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(part.rows), stored)])
    assert first.arrived is not None
    for name, value in (("tick", part.tick), ("sign", part.sign), ("arrived", microseconds(first.arrived))):
        kind = pa.int32() if name == "sign" else pa.int64()
        table = table.append_column(name, pa.repeat(pa.scalar(value, kind), len(table)))
    return table


def _letters(found: Sifted, kept: int, most: int) -> tuple[pa.Table, int]:
    """Return dead letters as a table, and how many bytes of contents were kept by now."""
    rows = []
    for message, why in found.letters:
        content = message.content if kept < most else None
        kept += len(content or b"")
        arrived = None if message.arrived is None else microseconds(message.arrived)
        rows.append((arrived, int(message.partition), message.position[0], why, content))
    names = [name for name, _ in _LETTER_FIELDS]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], pa.schema(_LETTER_FIELDS)), kept


class TopicStreaming(SparkStreaming):
    """`SparkStreaming` from a topic, whose coder is a `TopicCoder`: messages that hold no event are kept apart."""

    _coder: TopicCoder

    def _write(self, frame: Any, batch: int) -> None:
        sifted = self._coder.sifted(frame).persist()
        try:
            self._engine.files.replace(f"{_LETTERS}/batch-{batch:010d}", self._coder.letters(sifted))
            super()._write(sifted, batch)
        finally:
            sifted.unpersist()
