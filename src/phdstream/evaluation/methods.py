"""The methods that an evaluation compares, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from phdstream.baselines import (
    FixedPartition,
    Nothing,
    OfflineEachTickNotPrivate,
    OfflineOnChangesNotPrivate,
    OfflineOnInsertsNotPrivate,
    Releaser,
    TrackingEachTickNotPrivate,
    UniformTotal,
)
from phdstream.baselines.releaser import encoded
from phdstream.domains import Domain
from phdstream.privacy import Event, Noise
from phdstream.release import Release
from phdstream.streams.intake import EncodedEvents
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.tracking import TrackingStream

__all__ = ["LongerTicks", "Make", "MethodSpec", "MethodTable", "phdstream_with", "standard_methods", "tracking_with"]

Make: TypeAlias = Callable[[Domain, float, Noise], Releaser]
"""A new method on a domain, with an ε and a source of noise."""


@dataclass(frozen=True)
class MethodSpec:
    """A method as a trial runs it, and how its line is drawn (colour, dashes, marker).

    ``fanout`` replaces the domain's; ``memoryless`` says that a release depends on the data at that tick alone, so
    that ticks nobody measures need not be released; ``floor`` that it is there to be beaten, not to be chosen.
    """

    label: str
    make: Make
    private: bool = True
    fanout: int | None = None
    memoryless: bool = False
    floor: bool = False
    style: tuple[str, str, str] | None = None


MethodTable: TypeAlias = Callable[[], Mapping[str, MethodSpec]]
"""A function, defined at the top of a module, that returns methods by name. Other processes find it by its own name."""


def standard_methods() -> Mapping[str, MethodSpec]:
    """Return the methods that every evaluation can name. Each is run with the data up to t0 as its first tick.

    >>> standard_methods()["baseline-1"].private
    False
    """
    return _STANDARD


class LongerTicks:
    """A method that is given several ticks at once, after the last of them, and shows its last release until then.

    What longer ticks would be worth, by the same queries at the same moments: less noise, but an older picture.
    """

    def __init__(self, method: Releaser, ticks: int) -> None:
        self._method, self._ticks = method, ticks
        self._waiting: list[tuple[Any, Any]] = []
        self._release: Release | None = None

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events; release when there are enough ticks of them, and at the start."""
        self._waiting.append((inserts, deletes))
        if self._release is None or len(self._waiting) == self._ticks:
            come, gone = (_together(events) for events in zip(*self._waiting, strict=True))
            self._release, self._waiting = self._method.update(come, gone), []
        return self._release


def _together(events: Sequence[Any]) -> Any:
    """Return the events of several ticks as those of one."""
    if all(isinstance(tick, EncodedEvents) for tick in events):
        return encoded(np.concatenate([tick.codes for tick in events]))
    return np.concatenate(events)


def phdstream_with(**options: Any) -> Make:
    """Return what makes the paper's method, for one event, with options."""
    return lambda domain, epsilon, noise: PHDStream(domain, epsilon, Event(), noise=noise, **options)


def tracking_with(**options: Any) -> Make:
    """Return what makes tracking, for one event, with options."""
    return lambda domain, epsilon, noise: TrackingStream(domain, epsilon, Event(), noise=noise, **options)


_STANDARD: dict[str, MethodSpec] = {  # lines are told apart in grey too: by dashes and marker
    "tracking": MethodSpec("Tracking", tracking_with(), style=("#111111", "-", "o")),
    "tracking-insert-only": MethodSpec(
        "Tracking, declared insert-only", tracking_with(insert_only=True), style=("#111111", "-", "o")
    ),
    "tracking-4-ticks": MethodSpec(
        "Tracking, ticks 4 times as long",
        lambda domain, epsilon, noise: LongerTicks(tracking_with()(domain, epsilon, noise), 4),
        style=("#111111", "-.", ">"),
    ),
    "tracking-insert-only-4-ticks": MethodSpec(
        "Tracking, declared insert-only, ticks 4 times as long",
        lambda domain, epsilon, noise: LongerTicks(tracking_with(insert_only=True)(domain, epsilon, noise), 4),
        style=("#111111", "-.", ">"),
    ),
    "phdstream": MethodSpec("PHDStream", phdstream_with(), style=("#0b62c4", "-", "o")),
    "phdstream-block": MethodSpec(
        "PHDStream, Block 8 counter", phdstream_with(counter="block"), style=("#5a9bd8", "--", "v")
    ),
    "phdstream-4": MethodSpec("PHDStream, fanout 4", phdstream_with(), fanout=4, style=("#0a7d62", "-.", "D")),
    "phdstream-4-ticks": MethodSpec(
        "PHDStream, ticks 4 times as long",
        lambda domain, epsilon, noise: LongerTicks(phdstream_with()(domain, epsilon, noise), 4),
        style=("#5a9bd8", ":", ">"),
    ),
    "baseline-1": MethodSpec(
        "Baseline 1 (not private over time)",
        lambda domain, epsilon, noise: OfflineEachTickNotPrivate(domain, epsilon, noise=noise),
        private=False,
        memoryless=True,
        style=("#6b6b6b", "--", "s"),
    ),
    "baseline-2": MethodSpec(
        "Baseline 2 (exact scaling, not private)",
        lambda domain, epsilon, noise: OfflineOnChangesNotPrivate(domain, epsilon, noise=noise),
        private=False,
        style=("#a4262c", ":", "x"),
    ),
    "baseline-2-authors": MethodSpec(
        "Baseline 2, inserts alone (as the authors ran it, not private)",
        lambda domain, epsilon, noise: OfflineOnInsertsNotPrivate(domain, epsilon, noise=noise),
        private=False,
        style=("#a4262c", "--", "+"),
    ),
    "baseline-3": MethodSpec(
        "Baseline 3",
        lambda domain, epsilon, noise: FixedPartition(domain, epsilon, noise=noise),
        style=("#d1690e", ":", "^"),
    ),
    "oracle": MethodSpec(
        "Offline oracle (not private over time)",
        lambda domain, epsilon, noise: TrackingEachTickNotPrivate(domain, epsilon, noise=noise),
        private=False,
        memoryless=True,
        style=("#9a9a9a", "-.", "s"),
    ),
    "nothing": MethodSpec(
        "Nothing (no points at all)",
        lambda domain, epsilon, noise: Nothing(domain, epsilon, noise=noise),
        memoryless=True,
        floor=True,
        style=("#b8860b", "-", ""),
    ),
    "uniform": MethodSpec(
        "Uniform (the noisy total alone)",
        lambda domain, epsilon, noise: UniformTotal(domain, epsilon, noise=noise),
        floor=True,
        style=("#b8860b", "-.", ""),
    ),
}
