"""PHDStream with everything as the paper has it: score, noise, consistency and points. **Not private.**

The paper's Algorithm "Compute efficient PHDStream" with its subroutine "Modified PrivTree", to the letter but for one
number. The paper says in three places that a leaf's count gets noise of scale 2/ε (Algorithm 1, the Simple counter
with budget ε/2, the text on C_n), and in that subroutine 2/ε' with ε' = ε/2, which is 4/ε. ``count_noise`` is that
number over 1/ε: 2 is the reading that favours the paper, 4 its subroutine to the letter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.reproduction.random_points import AtRandom
from phdstream.arrays import Floats
from phdstream.domains import Domain
from phdstream.privacy import Budget, Event, Noise
from phdstream.release import Release
from phdstream.release.estimate import Estimate
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.intake import Intake
from phdstream.streams.paper.counters import Simple
from phdstream.streams.paper.model.nodes import NodeStore
from phdstream.streams.paper.model.selection import Level

__all__ = ["AsPublishedNotPrivate"]

_CLAIM = "not private: as published, for comparison only"
_THRESHOLD = 0.0


class AsPublishedNotPrivate:
    """The paper's method as it is printed, with its Simple counter and θ = 0. **Not private.**

    - **score** ``b(v) = G(v, t-1) + ∇F(v, t) - depth · δ``, at least θ - δ: not monotone (`PublishedScoreNotPrivate`);
    - **noise**: Laplace on real numbers, ``λ = (2β - 1)/(β - 1) · 2/ε`` with ``δ = λ ln β`` for the tree, and
      ``count_noise``/ε for the counts;
    - **consistency**: a node passes its count on in equal parts (1/β), whatever the measure of its children;
    - **points**: ⌈G(v)⌉ in each leaf, none if G is negative, at random by measure.

    >>> import phdstream as phd
    >>> published = AsPublishedNotPrivate(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, noise=phd.Simulation(seed=1))
    >>> published.update([(0.5, 0.5)] * 100).privacy
    'not private: as published, for comparison only'
    """

    def __init__(self, domain: Domain, epsilon: float, *, noise: Noise, count_noise: float = 2.0) -> None:
        self._domain, self._key = domain, noise.key()
        self._metadata = {"privacy": _CLAIM, "epsilon": epsilon, "method": "as published", "domain": domain.summary()}
        self._scale = (2 * domain.fanout - 1) / (domain.fanout - 1) * 2 / epsilon
        self._bias, self._count_scale = self._scale * math.log(domain.fanout), count_noise / epsilon
        self._random = np.random.default_rng(noise.key())
        self._intake = Intake(domain, Event(), True, Budget.per_event(epsilon, Event()))
        self._store = NodeStore(domain, Simple(epsilon))
        self._tick, self._before = 0, (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and return its release."""
        bits = self._domain.total_bits
        come, gone = (CodeCounts(codes, bits) for codes in self._intake.codes(inserts, deletes))
        self._tick += 1
        levels, above = self._select(come, gone)
        self._count(np.concatenate([level.rows[level.leaf] for level in levels]), come, gone)
        estimate = self._estimate(levels, above)
        release = AtRandom(self._domain, self._tick, estimate, self._key, self._metadata, *self._before)
        self._before = release.leaves, release.points
        return release

    def _select(self, come: CodeCounts, gone: CodeCounts) -> tuple[list[Level], list[Floats]]:
        """Return the tick's tree level by level, and what each node has from above: the paper's C_a."""
        store, rows, parent, above = self._store, np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1)
        levels: list[Level] = []
        passed: list[Floats] = []
        for depth in range(self._domain.depth + 1):
            nodes = store["node"][rows]
            score = above + store["own"][rows] + store["below"][rows] + come.within(nodes) - gone.within(nodes)
            biased = np.maximum(score - depth * self._bias, _THRESHOLD - self._bias)
            splits = biased + self._random.laplace(0, self._scale, rows.size) > _THRESHOLD
            splits &= depth < self._domain.depth
            levels.append(Level(rows, parent, ~splits))
            passed.append(above)
            if not splits.any():
                break
            down = (above + store["own"][rows])[splits]
            rows, family = store.children_of(rows[splits])
            above, parent = (down / np.bincount(family))[family], np.flatnonzero(splits)[family]
        return levels, passed

    def _count(self, leaves: Any, come: CodeCounts, gone: CodeCounts) -> None:
        """Add the leaves' noisy changes to their own counts, the paper's C_n, and to C_d of those above."""
        nodes = self._store["node"][leaves]
        noisy = come.within(nodes) - gone.within(nodes) + self._random.laplace(0, self._count_scale, leaves.size)
        variance = np.full(leaves.size, 2 * self._count_scale**2)
        self._store.expire(leaves, -noisy, np.zeros_like(leaves), -variance)

    def _estimate(self, levels: list[Level], above: list[Floats]) -> Estimate:
        """Return G of all nodes; the variance is that of their own noise, without what they have from above."""
        store, rows = self._store, np.concatenate([level.rows for level in levels])
        unbiased: Floats = np.concatenate(above) + store["own"][rows] + store["below"][rows]
        variance = store["own_variance"][rows] + store["below_variance"][rows]
        count = np.maximum(unbiased, 0)
        leaf = np.concatenate([level.leaf for level in levels])
        points = np.ceil(count).astype(np.int64)
        return Estimate(store["node"][rows], leaf, count, unbiased, variance, variance, points)
