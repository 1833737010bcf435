"""The paper's baselines 1 and 2, for comparison only. **Neither is private over a stream**, and their names say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains import Domain, hash_uniform
from phdstream.intake import Intake
from phdstream.privacy import Event, Noise
from phdstream.release import Release
from phdstream.stream import PHDStream
from phdstream.tree import Estimate

__all__ = ["Method", "OfflineEachTickNotPrivate", "OfflineOnChangesNotPrivate"]

_NOT_PRIVATE = "not private over the stream: for comparison only"


class Method(Protocol):
    """Anything that takes a tick's events and gives a release: `PHDStream`, and the baselines it is compared with."""

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and return its release."""
        ...


class _Baseline:
    """Keeps the exact data, which a private method must not, and starts over at every tick."""

    method: str

    def __init__(self, domain: Domain, epsilon: float, *, noise: Noise | None = None) -> None:
        self.domain, self.epsilon, self.noise = domain, epsilon, noise
        self.tick, self._size = 0, 0
        self._intake = Intake(domain, Event(), deletes=True)

    def _offline(self, inserts: Any, deletes: Any = None) -> Release:
        """Run offline PrivTree + Counting once, with the whole ε."""
        release = PHDStream(self.domain, self.epsilon, Event(), noise=self.noise).update(inserts, deletes)
        facts = release.facts | {"privacy": _NOT_PRIVATE, "method": self.method}
        return replace(release, tick=self.tick, facts=facts)


class OfflineEachTickNotPrivate(_Baseline):
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
        come, gone = self._intake.admit(inserts, deletes, None, None)
        self.tick += 1
        self._codes = _without(np.concatenate([self._codes, come]), gone)
        return self._offline(self.domain.place(self._codes, np.zeros_like(self._codes), key=0))


class OfflineOnChangesNotPrivate(_Baseline):
    """Baseline 2: the one-shot algorithm on each tick's changes alone, scaled up to the size of the data.

    The factor |f|/|∇f| uses the exact sizes, which is not private.
    """

    method = "baseline 2"

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and release them, scaled."""
        come, gone = self._intake.admit(inserts, deletes, None, None)
        self.tick += 1
        self._size += come.size - gone.size
        return _scaled(self._offline(inserts, deletes), self._size / max(1, come.size + gone.size))


def _without(codes: Ints, gone: Ints) -> Ints:
    """Return a multiset of codes less another."""
    values, counts = np.unique(codes, return_counts=True)
    at = np.searchsorted(values, gone)
    known = (at < values.size) & (values[np.minimum(at, values.size - 1)] == gone) if values.size else at < 0
    np.subtract.at(counts, at[known], 1)
    return np.repeat(values, np.maximum(counts, 0))


def _scaled(release: Release, factor: float) -> Release:
    e = release.estimate
    count = e.count * factor
    points = np.floor(count + hash_uniform(release.key, e.node)).astype(np.int64)
    variance, own_variance = e.variance * factor**2, e.own_variance * factor**2
    scaled = Estimate(e.node, e.leaf, count, e.unbiased * factor, variance, own_variance, points)
    return replace(release, estimate=scaled)
