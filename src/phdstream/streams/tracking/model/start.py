"""The start, as the model sees it: what to count in each round, and what is learnt of it. Public.

Everything up to t0 is counted as one tick on finer and finer trees. Each round's tree is chosen from the noisy counts
of the rounds before it and of its own first stages, so choosing costs nothing.

The noise of a large area is that of all its cells. Many points fill many cells, so with many the rounds before the last
are coarser: of K rounds the k-th counts about (n·ε)^((k+1)/(K+1)) cells, not n·ε. Large areas are known by the first
round, small ones by the last.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree
from phdstream.release.soundness import Fallback
from phdstream.streams.tracking.model.emptiness import Emptiness
from phdstream.streams.tracking.model.kalman import Learning, kalman_update
from phdstream.streams.tracking.model.learning import learnt
from phdstream.streams.tracking.model.least_squares import Layer, NoisyCounts, count_variance, weighted_least_squares
from phdstream.streams.tracking.model.policy import prior_variance
from phdstream.streams.tracking.model.prior import PriorDensity
from phdstream.streams.tracking.model.refinement import Deeper, ExpectedCounts, Refinement
from phdstream.streams.tracking.model.split_tree import UNIFORM, UNKNOWN, Density, SplitTree
from phdstream.streams.tracking.parameters import Stages, TrackingParameters
from phdstream.streams.tracking.pieces import RefinedCounts

__all__ = ["StartModel"]


class StartModel:
    """What is known during the start: all counts so far, and the splits that follow from them.

    Where learning from a round fails, what was known before it stays (see `phdstream.streams.tracking.model`).
    """

    def __init__(
        self,
        parameters: TrackingParameters,
        tree: BinaryTree,
        limit: int,
        fallback: Fallback,
        prior: SplitTree | None = None,
    ) -> None:
        self._parameters, self._tree, self._limit, self._fallback = parameters, tree, limit, fallback
        self.splits, self._total = SplitTree.empty(), 0.0
        self._prior = None if prior is None else PriorDensity.unseen(parameters, tree, prior)
        self._counts = NoisyCounts(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        self._layers: list[Layer] = []

    def add_total(self, noisy: int, epsilon: float) -> None:
        """Take the noisy total."""
        self._counts = NoisyCounts(np.array([ROOT]), np.array([float(noisy)]), np.array([count_variance(epsilon)]))
        self._total = max(float(noisy), 0.0)

    def refinement(self, at: int, epsilon: float) -> Refinement:
        """Return what to count in a round, the first of which is 0."""
        amounts = np.array([[self._total], [1.0]])
        densities: tuple[Density, ...] = (self.splits, UNIFORM)
        if self._prior is not None and not self._layers:  # nothing tells yet how far to believe it
            trust = self._parameters.prior.trust
            amounts = np.array([[trust * self._total], [(1 - trust) * self._total], [1.0]])
            densities = (self._prior, UNIFORM, UNIFORM)
        expected = ExpectedCounts(self._tree, np.array([ROOT]), amounts, densities)
        drift = None if self._prior is None else self._prior.worth_counting
        rules, start = self._parameters.fine_counts, self._parameters.start
        deeper = Deeper(start.deeper, start.parts) if self._layers else None  # the first round tells of large areas
        return Refinement(rules, expected, self._stages(at, epsilon), epsilon, self._limit, drift, deeper)

    def _stages(self, at: int, epsilon: float) -> Stages:
        """Return a round's stages: coarser before the last round, if there are many points."""
        start = self._parameters.start
        share, stages = start.rounds[at]
        above, left, rounds = self._total * epsilon / share / start.many, len(start.rounds) - 1 - at, len(start.rounds)
        coarser = max(above, 1.0) ** (left / (rounds + 1))
        return tuple((fill * coarser, levels) for fill, levels in stages)

    def learn(self, rule: Refinement, counted: RefinedCounts) -> None:
        """Take a round's counts, and estimate everything anew from all counts so far."""
        self._counts = NoisyCounts.concat(self._counts, rule.outcome(counted))
        self._layers = weighted_least_squares(self._counts)
        self._total = max(float(self._layers[0].value[0]), 0.0)
        self.splits = learnt(self._tree, self._fallback, partial(self._estimate, UNKNOWN), self.splits)

    def finish(self) -> tuple[SplitTree, Layer]:
        """Return the final splits, with a prior from how often halves are empty, and the best estimate of the total."""
        rule = self._parameters.empty_halves

        def with_prior() -> SplitTree:
            emptiness = Emptiness.seen_in(rule, self.splits, self._total)
            return self._estimate(prior_variance(self._parameters.filter, emptiness))

        return learnt(self._tree, self._fallback, with_prior, self.splits), self._layers[0]

    def _estimate(self, new_variance: float) -> SplitTree:
        if self._prior is not None:
            self._prior = self._prior.learnt(self._tree, self._layers)
            return self._from_prior(self._prior)
        learning = Learning(self._parameters.filter, self._parameters.start.drift, new_variance=new_variance)
        return kalman_update(self._tree, UNIFORM, self._layers, self._total, self._total, learning)

    def _from_prior(self, prior: PriorDensity) -> SplitTree:
        """Return what counts and prior together say; below what was counted, the prior as far as it is believed."""
        learning = Learning(self._parameters.filter, 0.0, expected=True)
        believed = prior.believed(self._tree)
        return kalman_update(self._tree, believed, self._layers, self._total, self._total, learning, before=prior)
