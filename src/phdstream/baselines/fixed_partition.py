"""Baseline 3: a partition chosen once, and counted ever after."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from phdstream.arrays import Ints
from phdstream.baselines.releaser import recounted
from phdstream.domains import Domain
from phdstream.privacy import Budget, Event, Noise
from phdstream.release import Release
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.intake import Intake
from phdstream.streams.paper.counters import CounterBank, CounterChoice, make_counter
from phdstream.streams.paper.stream import PHDStream

__all__ = ["FixedPartition"]


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
        self._bank = CounterBank(make_counter(counter, epsilon, domain.first_nodes))
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
        variance = self._first.leaf_variance + self._bank.counter.variance_at(nodes, np.zeros_like(steps), steps)
        estimate = recounted(self._first, self._first.leaf_unbiased + totals, variance)
        before = self._last
        return replace(
            self._first,
            tick=before.tick + 1,
            estimate=estimate,
            previous_nodes=before.leaves,
            previous_points=before.points,
        )
