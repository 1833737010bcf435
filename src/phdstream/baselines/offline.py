"""Baseline 1 and the offline oracle: a one-shot algorithm run anew at every tick. Not private over a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from phdstream.arrays import Ints
from phdstream.baselines.releaser import NOT_PRIVATE, encoded
from phdstream.domains import Domain
from phdstream.privacy import Budget, Event, Noise
from phdstream.release import Release
from phdstream.streams.intake import Intake
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.tracking import TrackingStream

__all__ = ["OfflineEachTickNotPrivate", "OneShot", "TrackingEachTickNotPrivate"]


class OneShot:
    """Knows the exact data, which a private method must not, and runs offline PrivTree + Counting at every tick."""

    method: str
    kind: type[PHDStream] | type[TrackingStream] = PHDStream

    def __init__(self, domain: Domain, epsilon: float, *, noise: Noise | None = None) -> None:
        self.domain, self.epsilon, self.noise = domain, epsilon, noise
        self.tick = 0
        self._intake = Intake(domain, Event(), True, Budget.per_event(epsilon, Event()))

    def _offline(self, inserts: Any, deletes: Any = None) -> Release:
        """Run the offline algorithm once, with the whole ε."""
        release = self.kind(self.domain, self.epsilon, Event(), noise=self.noise).update(inserts, deletes)
        metadata = release.metadata | {"privacy": NOT_PRIVATE, "method": self.method}
        return replace(release, tick=self.tick, metadata=metadata)


class OfflineEachTickNotPrivate(OneShot):
    """Baseline 1: re-run a one-shot algorithm on all data at every tick, as is often done. Each tick spends ε again.

    >>> import phdstream as phd
    >>> rerun = OfflineEachTickNotPrivate(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, noise=phd.Simulation(seed=1))
    >>> rerun.update([(0.5, 0.5)] * 100).privacy
    'not private over the stream: for comparison only'
    """

    method = "baseline 1"

    def __init__(self, domain: Domain, epsilon: float, *, noise: Noise | None = None) -> None:
        super().__init__(domain, epsilon, noise=noise)
        self._codes: Ints = np.zeros(0, np.int64)

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and release all data anew."""
        come, gone = self._intake.codes(inserts, deletes)
        self.tick += 1
        self._codes = _without(np.concatenate([self._codes, come]), gone)
        return self._offline(encoded(self._codes))


class TrackingEachTickNotPrivate(OfflineEachTickNotPrivate):
    """The offline oracle: the start of `TrackingStream` on all data at every tick. Each tick spends ε again.

    What tracking could at best hope for, if looking back cost nothing.
    """

    method, kind = "offline oracle", TrackingStream


def _without(codes: Ints, gone: Ints) -> Ints:
    """Return a multiset of codes less another."""
    values, counts = np.unique(codes, return_counts=True)
    at = np.searchsorted(values, gone)
    known = (at < values.size) & (values[np.minimum(at, values.size - 1)] == gone) if values.size else at < 0
    np.subtract.at(counts, at[known], 1)
    return np.repeat(values, np.maximum(counts, 0))
