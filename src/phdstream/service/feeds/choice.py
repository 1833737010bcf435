"""Which source a configuration means, as something that can be followed."""

from __future__ import annotations

from pathlib import Path

from phdstream.service.feeds.consumer import Consumer
from phdstream.service.feeds.dead_letters import DeadLetters
from phdstream.service.feeds.kafka import KafkaFeed
from phdstream.service.feeds.postgresql import PostgresFeed
from phdstream.service.feeds.protocol import Feed
from phdstream.service.feeds.redis_streams import RedisFeed
from phdstream.service.feeds.settings import KafkaSettings, PostgresSettings, RedisSettings, SourceSettings
from phdstream.service.feeds.sifting import Read
from phdstream.service.journal import Journal
from phdstream.service.schedule import Schedule

__all__ = ["consumer_of", "feed_of"]


def feed_of(settings: SourceSettings) -> Feed:
    """Return the source, not yet connected."""
    if isinstance(settings, KafkaSettings):
        return KafkaFeed(settings)
    if isinstance(settings, RedisSettings):
        return RedisFeed(settings)
    assert isinstance(settings, PostgresSettings)
    return PostgresFeed(settings)


def consumer_of(settings: SourceSettings, folder: Path, journal: Journal, read: Read, schedule: Schedule) -> Consumer:
    """Return a consumer of the source that keeps its dead letters in a private folder."""
    feed = feed_of(settings)
    letters = DeadLetters(folder, journal.letters, settings.dead_letters)
    return Consumer(feed, journal, read, schedule, letters, settings.settle)
