"""The methods that experiments compare, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from phdstream.baselines import (
    FixedPartition,
    Method,
    OfflineEachTickNotPrivate,
    OfflineOnChangesNotPrivate,
    TrackingEachTickNotPrivate,
)
from phdstream.domains import Domain
from phdstream.errors import ConfigError, did_you_mean
from phdstream.evaluation.variants import LongerTicks, PointsAsInPaper, PublishedScoreNotPrivate, WithoutDeletes
from phdstream.privacy import Event, Noise, Record
from phdstream.streams.paper.counters import Block, CounterChoice
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.tracking import TrackingStream

__all__ = ["METHODS", "Contender", "contender"]


@dataclass(frozen=True)
class Contender:
    """A method as an experiment runs it.

    ``fanout`` replaces the domain's; ``memoryless`` says that a release depends on the data at that tick alone, so
    that ticks nobody measures need not be released.
    """

    label: str
    make: Callable[[Domain, float, Noise], Method]
    private: bool = True
    fanout: int | None = None
    memoryless: bool = False


def _stream(counter: CounterChoice) -> Callable[[Domain, float, Noise], Method]:
    return lambda domain, epsilon, noise: PHDStream(domain, epsilon, Event(), counter=counter, noise=noise)


def _block(size: int) -> Contender:
    return Contender(f"PHDStream, Block {size} counter", _stream(lambda epsilon: Block(epsilon, size=size)))


def _tracking(**options: Any) -> Callable[[Domain, float, Noise], Method]:
    return lambda domain, epsilon, noise: TrackingStream(domain, epsilon, Event(), noise=noise, **options)


METHODS: dict[str, Contender] = {
    "tracking": Contender("Tracking", _tracking()),
    "tracking-insert-only": Contender("Tracking, declared insert-only", _tracking(insert_only=True)),
    "tracking-window-30": Contender(
        "Tracking, window of 30 ticks",
        lambda domain, epsilon, noise: WithoutDeletes(_tracking(window=30)(domain, epsilon, noise)),
    ),
    "oracle": Contender(
        "Offline oracle (not private over time)",
        lambda domain, epsilon, noise: TrackingEachTickNotPrivate(domain, epsilon, noise=noise),
        private=False,
        memoryless=True,
    ),
    "phdstream": Contender("PHDStream", _stream("simple")),
    "phdstream-window-30": Contender(
        "PHDStream, window of 30 ticks",
        lambda domain, epsilon, noise: WithoutDeletes(PHDStream(domain, epsilon, Event(), window=30, noise=noise)),
    ),
    "phdstream-as-in-paper": Contender(
        "PHDStream, points as in the paper",
        lambda domain, epsilon, noise: PointsAsInPaper(PHDStream(domain, epsilon, Event(), noise=noise)),
    ),
    "phdstream-block": Contender("PHDStream, Block 8 counter", _stream("block")),
    "phdstream-block-2": _block(2),
    "phdstream-block-4": _block(4),
    "phdstream-block-16": _block(16),
    "phdstream-block-32": _block(32),
    "phdstream-4": Contender("PHDStream, fanout 4", _stream("simple"), fanout=4),
    "phdstream-record": Contender(
        "PHDStream, per record (sensitivity 2)",
        lambda domain, epsilon, noise: PHDStream(domain, epsilon, Record(), noise=noise),
    ),
    "phdstream-4-ticks": Contender(
        "PHDStream, ticks 4 times as long",
        lambda domain, epsilon, noise: LongerTicks(PHDStream(domain, epsilon, Event(), noise=noise), 4),
    ),
    "phdstream-published-not-private": Contender(
        "PHDStream, score as published (not private)",
        lambda domain, epsilon, noise: PublishedScoreNotPrivate(domain, epsilon, noise=noise),
        private=False,
    ),
    "baseline-1": Contender(
        "Baseline 1 (not private over time)",
        lambda domain, epsilon, noise: OfflineEachTickNotPrivate(domain, epsilon, noise=noise),
        private=False,
        memoryless=True,
    ),
    "baseline-2": Contender(
        "Baseline 2 (exact scaling, not private)",
        lambda domain, epsilon, noise: OfflineOnChangesNotPrivate(domain, epsilon, noise=noise),
        private=False,
    ),
    "baseline-3": Contender("Baseline 3", lambda domain, epsilon, noise: FixedPartition(domain, epsilon, noise=noise)),
}
"""All methods by the name that an experiment gives them. Every one is run with the data up to t0 as its first tick."""


def contender(name: str) -> Contender:
    """Return the method of that name.

    >>> contender("baseline-1").private
    False
    """
    if name not in METHODS:
        raise ConfigError(f"unknown method {name!r}: {did_you_mean(str(name), METHODS)}")
    return METHODS[name]
