"""Variants that only benchmarks run: PHDStream with the paper's score alone, and windows for deletes."""

from __future__ import annotations

from typing import Any

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.baselines import Releaser
from phdstream.domains import Domain
from phdstream.privacy import Event, Noise
from phdstream.release import Release
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.guarantee import metadata
from phdstream.streams.intake import Intake
from phdstream.streams.paper.counters import CounterBank
from phdstream.streams.paper.model.estimation import estimate
from phdstream.streams.paper.model.nodes import NodeStore
from phdstream.streams.paper.model.selection import Level
from phdstream.streams.paper.stream import PHDStream

__all__ = ["PublishedScoreNotPrivate", "WithoutDeletes"]


class PublishedScoreNotPrivate:
    """PHDStream with the paper's score ``G(v, t-1) + ∇F(v, t)`` for choosing the tree. **Not private.**

    G can be negative and ∇F too, so a child's score can exceed its parent's, which PrivTree's proof forbids
    (`phdstream.streams.paper.model.selection` says what the repair is). Budget, noise, counters and estimates are those
    of `PHDStream`, so that the two differ in the score alone.

    >>> import phdstream as phd
    >>> published = PublishedScoreNotPrivate(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, noise=phd.Simulation(seed=1))
    >>> published.update([(0.5, 0.5)] * 100).privacy
    'not private: the score as published, for comparison only'
    """

    def __init__(self, domain: Domain, epsilon: float, *, noise: Noise) -> None:
        repaired = PHDStream(domain, epsilon, Event(), noise=noise)
        claim = {"privacy": "not private: the score as published, for comparison only", "method": "published"}
        self._domain, self._noise, self._metadata = domain, noise, metadata(repaired.setting, repaired._method) | claim
        self._rule, self._key = repaired.rule, noise.key()
        self._intake = Intake(domain, Event(), True, repaired.budget)
        self._store, self._bank = NodeStore(domain, repaired.counter), CounterBank(repaired.counter)
        self._tick, self._before = 0, (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and return its release."""
        bits = self._domain.total_bits
        come, gone = (CodeCounts(codes, bits) for codes in self._intake.codes(inserts, deletes))
        self._tick += 1
        tree = self._select(come, gone)
        leaves = np.concatenate([level.rows[level.leaf] for level in tree])
        nodes = self._store["node"][leaves]
        self._bank.extend(self._store.size - self._bank.state.shape[0])
        totals = self._bank.step(leaves, come.within(nodes) - gone.within(nodes), self._noise, at=nodes)
        self._store.record(leaves, totals, self._bank.counter.steps(self._bank.state[leaves]))
        published = estimate(self._store, tree, self._key)
        release = Release(self._domain, self._tick, published, self._key, self._metadata, *self._before)
        self._before = release.leaves, release.points
        return release

    def _select(self, come: CodeCounts, gone: CodeCounts) -> list[Level]:
        """Return the tick's tree, level by level: PrivTree on the published score."""
        rows, parent, above = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1)
        levels: list[Level] = []
        for depth in range(self._domain.depth):
            splits = self._splits(rows, above, depth, come, gone)
            levels.append(Level(rows, parent, ~splits))
            if not splits.any():
                return levels
            above = (above + self._store["own"][rows])[splits]
            rows, family = self._store.children_of(rows[splits])
            above, parent = self._store["share"][rows] * above[family], np.flatnonzero(splits)[family]
        return [*levels, Level(rows, parent, np.ones(rows.size, dtype=bool))]

    def _splits(self, rows: Ints, above: Floats, depth: int, come: CodeCounts, gone: CodeCounts) -> Any:
        nodes, rule = self._store["node"][rows], self._rule
        released = np.floor(above + self._store["own"][rows] + self._store["below"][rows]).astype(np.int64)
        score = released + come.within(nodes) - gone.within(nodes)
        biased = np.maximum(score - depth * rule.bias, rule.floor)
        return self._noise.add(biased, rule.scale, at=nodes) > rule.threshold


class WithoutDeletes:
    """A method that is not told of deletes, because records expire by themselves in it (``window``)."""

    def __init__(self, method: Releaser) -> None:
        self._method = method

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's inserts and return its release."""
        return self._method.update(inserts)
