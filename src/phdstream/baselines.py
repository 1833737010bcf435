"""The paper's three baselines, for comparison. **The first two are not private over a stream**: see their names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.domains import Domain, hash_uniform
from phdstream.privacy import Budget, Event, Noise
from phdstream.release import Release
from phdstream.release.estimate import Estimate
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.intake import Intake
from phdstream.streams.paper.counters import CounterBank, CounterChoice, make_counter
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.tracking import TrackingStream

__all__ = [
    "FixedPartition",
    "OfflineEachTickNotPrivate",
    "OfflineOnChangesNotPrivate",
    "Releaser",
    "TrackingEachTickNotPrivate",
]

_NOT_PRIVATE = "not private over the stream: for comparison only"


class Releaser(Protocol):
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
        self._intake = Intake(domain, Event(), True, Budget.per_event(epsilon, Event()))

    def _offline(self, inserts: Any, deletes: Any = None) -> Release:
        """Run offline PrivTree + Counting once, with the whole ε."""
        release = PHDStream(self.domain, self.epsilon, Event(), noise=self.noise).update(inserts, deletes)
        metadata = release.metadata | {"privacy": _NOT_PRIVATE, "method": self.method}
        return replace(release, tick=self.tick, metadata=metadata)


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
        come, gone = self._intake.codes(inserts, deletes)
        self.tick += 1
        self._codes = _without(np.concatenate([self._codes, come]), gone)
        return self._offline(self.domain.place(self._codes, np.zeros_like(self._codes), key=0))


class TrackingEachTickNotPrivate(OfflineEachTickNotPrivate):
    """The offline oracle: the start of `TrackingStream` on all data at every tick. Each tick spends ε again.

    What tracking could at best hope for, if looking back cost nothing.
    """

    method = "offline oracle"

    def _offline(self, inserts: Any, deletes: Any = None) -> Release:
        release = TrackingStream(self.domain, self.epsilon, Event(), noise=self.noise).update(inserts, deletes)
        return replace(
            release, tick=self.tick, metadata=release.metadata | {"privacy": _NOT_PRIVATE, "method": self.method}
        )


class OfflineOnChangesNotPrivate(_Baseline):
    """Baseline 2: the one-shot algorithm on each tick's changes alone, scaled up to the size of the data.

    The factor |f|/|∇f| uses the exact sizes, which is not private.
    """

    method = "baseline 2"

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and release them, scaled."""
        come, gone = self._intake.codes(inserts, deletes)
        self.tick += 1
        self._size += come.size - gone.size
        return _scaled(self._offline(inserts, deletes), self._size / max(1, come.size + gone.size))


class FixedPartition:
    """Baseline 3: PrivTree and counting once, at the start; after that the same cells are counted with the whole ε.

    ε-differentially private for each event: one up to the start costs ε/2 for the tree and ε/2 for its count,
    a later one enters one counter of budget ε. It cannot follow points to where there were none before.

    >>> import phdstream as phd
    >>> fixed = FixedPartition(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, noise=phd.Simulation(seed=1))
    >>> cells = fixed.update([(0.5, 0.5)] * 100).leaves
    >>> bool((fixed.update([(0.1, 0.1)] * 100).leaves == cells).all())
    True
    """

    def __init__(
        self,
        domain: Domain,
        epsilon: float,
        *,
        start_after: int = 1,
        counter: CounterChoice = "simple",
        noise: Noise | None = None,
    ) -> None:
        self._start = PHDStream(domain, epsilon, Event(), start_after=start_after, noise=noise)
        self._bank = CounterBank(make_counter(counter, epsilon))
        self._intake = Intake(domain, Event(), True, Budget.per_event(epsilon, Event()))
        self._first: Release | None = None
        self._last: Release | None = None

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and return its release."""
        if self._first is None:
            release = self._start.update(inserts, deletes)
            self._first = None if release.held else release
            self._bank.extend(release.leaves.size)
        else:
            release = self._count(*self._intake.codes(inserts, deletes))
        self._last = replace(release, metadata=release.metadata | {"method": "baseline 3"})
        return self._last

    def _count(self, come: Ints, gone: Ints) -> Release:
        assert self._first is not None
        assert self._last is not None
        domain, nodes = self._first.domain, self._first.leaves
        come, gone = (CodeCounts(codes, domain.total_bits).within(nodes) for codes in (come, gone))
        totals = self._bank.step(np.arange(nodes.size), come - gone, self._start.noise, at=nodes)
        steps = self._bank.counter.steps(self._bank.state)
        variance = self._first.leaf_variance + self._bank.counter.variance(np.zeros_like(steps), steps)
        estimate = _on_tree(self._first, self._first.leaf_unbiased + totals, variance)
        before = self._last
        return replace(
            self._first,
            tick=before.tick + 1,
            estimate=estimate,
            previous_nodes=before.leaves,
            previous_points=before.points,
        )


def _on_tree(first: Release, unbiased: Floats, variance: Floats) -> Estimate:
    """Return new amounts for the cells of a release, in code order, and their sums for all nodes above them."""
    count = np.maximum(unbiased, 0)
    upto = np.floor(np.cumsum(count) + hash_uniform(first.key, np.zeros(1, np.int64)))
    points = np.diff(upto, prepend=0).astype(np.int64)
    e, starts = first.estimate, first.domain.code_range(first.leaves)[0]
    begin, end = (np.searchsorted(starts, codes) for codes in first.domain.code_range(e.node))
    counts, raw, variances, numbers = (
        np.concatenate([[0], np.cumsum(cells)])[end] - np.concatenate([[0], np.cumsum(cells)])[begin]
        for cells in (count, unbiased, variance, points)
    )
    counts = np.maximum(counts, 0)  # rounding may leave a hair below
    return Estimate(e.node, e.leaf, counts, raw, variances, np.where(e.leaf, variances, 0.0), numbers)


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
