"""`phdstream run` of a Kafka topic on Spark: events arrive by Structured Streaming, ticks close by the schedule.

It reads what the topic holds, releases every tick that is over, and ends; with ``follow`` it goes on until it is
stopped. Stop it at any instant and run it again: what was read is in the engine's storage, under the numbers of Spark's
batches, and no tick is released twice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from phdstream.app.config import Config
from phdstream.app.run import RunReport, bring_sinks_up, publish, report_of
from phdstream.app.serve import open_stream
from phdstream.engines.spark.gathering import open_spark
from phdstream.errors import ConfigError
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.service.feeds.settings import KafkaSettings
from phdstream.service.feeds.spark_topic import TopicCoder, TopicStreaming, read_topic
from phdstream.streams.durable.stream import DurableStream
from phdstream.streams.engine import close_engine

__all__ = ["run_topic"]

_LOOK = 0.5
"""Seconds between two looks at the clock."""


def _now() -> datetime:
    return datetime.now(UTC)


def run_topic(
    config: Config,
    progress: Callable[[int, int | None], None] = lambda tick, total: None,
    *,
    follow: bool = False,
    new_folder: bool = False,
    now: Callable[[], datetime] = _now,
) -> RunReport:
    """Run the configured stream from its topic, up to the last tick that is over, or on and on.

    A tick is released ``settle`` after it is over. ``progress`` is told of every release: public.
    """
    stream, folder = open_stream(config, new_folder)
    with folder, stream:
        first = stream.tick + 1
        with _reading(config, stream, folder, now, follow) as live:
            while True:
                released = live.release_due()
                for tick in released:
                    progress(tick, None)
                if released:
                    bring_sinks_up(config)
                if not follow or (config.clock and stream.tick == config.clock.count):
                    break
                time.sleep(_LOOK)
        return report_of(config, stream, folder, first)


@contextlib.contextmanager
def _reading(
    config: Config, stream: DurableStream, folder: ReleaseFolder, now: Callable[[], datetime], follow: bool
) -> Iterator[TopicStreaming]:
    """Give a stream that is fed from its topic, or was, with all that the topic held."""
    source, clock, rule = config.source, config.clock, config.service
    if not isinstance(source, KafkaSettings) or clock is None or config.engine is None:
        raise ConfigError('a stream from a topic on Spark needs [source] type = "kafka" and [engine] type = "spark".')
    given = config.input
    coder = TopicCoder(
        config.domain, clock, given.columns, given.reading, "arrived", ahead=rule.ahead, most=source.dead_letters
    )
    engine = open_spark(config.engine)
    try:
        live = TopicStreaming(
            stream, engine, coder, late=rule.late, ahead=rule.ahead,
            publish=lambda release: publish(stream, folder), now=lambda: now() - source.settle,
        )  # fmt: skip
        try:
            topic = read_topic(engine.session, source)
            if follow:
                live.start(topic)
            else:
                live.start(topic, availableNow=True).awaitTermination()
            yield live
        finally:
            live.stop()
    finally:
        close_engine(engine)
