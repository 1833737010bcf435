"""What a public prior is worth, learnt from the noisy counts it should explain: empirical Bayes. Public.

A prior says how nodes divide (`phdstream.priors`); nobody knows how far to believe it. The model: a node's contrast is
``c + ρ·(p - c)``, with p the prior's and c the measure's, up to a random deviation of standard deviation
``κ·(1 - p² + room)`` besides chance. The **reliability** ρ and the **drift** κ of each level of the tree are estimated
from what the counts of the start say there: ρ by weighted least squares of the measured contrasts (minus c) on
``p - c``, κ² by what is left of their squares when noise, chance and the prior's own variance are taken away. A level's
estimate is drawn towards that of the level above; below the last level that was counted, the last one's is taken. The
**worth** w of a level's prior is the part of how contrasts vary that it explains: ``ρ²·Σ(p - c)²`` over that plus what
it leaves. As far as it explains nothing, nodes are free to differ: ``(1 - w)²`` is added to κ². So a fitting prior gets
ρ near 1 and a small κ, and its shape inside the leaves is released; one that is wrong, or says no more than the
measure, is worth next to nothing, and the start goes on as without any.

Everything here is computed from noisy counts and from what was public before: it costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.domains.binary_tree import BinaryTree
from phdstream.domains.prefixes import prefix_length
from phdstream.streams.tracking.model.kalman import measured_difference
from phdstream.streams.tracking.model.least_squares import Layer
from phdstream.streams.tracking.model.split_tree import UNIFORM, SplitTree
from phdstream.streams.tracking.parameters import Prior, TrackingParameters

__all__ = ["PriorDensity"]

_TINY = 1e-12
_TIMES = 3
"""How often ρ and κ² are estimated in turn: then they hardly change."""


@dataclass(frozen=True)
class PriorDensity:
    """A prior's contrasts, believed as far as the counts so far say; a `Density`.

    ``reliability`` and ``drift`` are ρ and κ² of each level; ``free`` is κ² of what the prior says nothing of.
    """

    splits: SplitTree
    rule: Prior
    free: float
    reliability: Floats
    drift: Floats

    @classmethod
    def unseen(cls, parameters: TrackingParameters, tree: BinaryTree, splits: SplitTree) -> PriorDensity:
        """Return the prior before anything was counted: as it is."""
        free, bits = parameters.start.drift**2, tree.total_bits
        return cls(splits, parameters.prior, free, np.ones(bits), np.full(bits, free))

    @property
    def worth_counting(self) -> Floats:
        """For each level, κ² of what is expected of it."""
        return np.maximum(self.drift, self.rule.curiosity)

    def believed(self, tree: BinaryTree) -> SplitTree:
        """Return the prior's nodes with their contrasts as far as they are believed; those of no level that is not."""
        lengths = prefix_length(self.splits.node)
        parts = []
        for bits in np.flatnonzero(self.reliability).tolist():
            nodes = self.splits.node[lengths == bits]
            parts.append((nodes, *self.of(tree, nodes, bits)))
        return SplitTree(*(np.concatenate(column) for column in zip(*parts, strict=True))) if parts else UNIFORM

    def of(self, tree: BinaryTree, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the contrasts, and their variances, of nodes of one length, in order and all different."""
        contrast, variance = UNIFORM.of(tree, nodes, bits)[0], np.full(nodes.size, self.free)
        at, known = self.splits.find(nodes)
        at, own = at[known], contrast[known]
        reliability, drift = float(self.reliability[bits]), float(self.drift[bits])
        contrast[known] = believed = own + reliability * (self.splits.contrast[at] - own)
        spread = drift * self._vary(believed, drift) ** 2 + reliability**2 * self.splits.variance[at]
        variance[known] = np.minimum(spread, self.free)
        return contrast, variance

    def _vary(self, contrast: Floats, drift: float = 0.0) -> Floats:
        """Return how far contrasts can vary: less where they are uneven, unless the prior is not believed anyhow."""
        vary: Floats = np.minimum(1 - contrast**2 + max(self.rule.room, drift), 1)
        return vary

    def learnt(self, tree: BinaryTree, layers: list[Layer]) -> PriorDensity:
        """Return the prior as far as counts bear it out."""
        rule, reliability, drift = self.rule, np.zeros(tree.total_bits), np.full(tree.total_bits, self.free)
        sums = _Sums(
            rule.hesitation * np.array([0.5, 1.0]), rule.hesitation * np.array([self.free, 1.0, self.free, self.free])
        )
        for bits in range(tree.total_bits):
            if bits + 1 < len(layers):
                seen = self._seen(tree, layers[bits], layers[bits + 1], bits)
                sums = seen.added(_Sums(rule.kinship * sums.fit, rule.kinship * sums.spread), rule.least)
            worth = sums.worth
            if worth >= rule.worth:
                reliability[bits] = sums.reliability
                drift[bits] = min(max(sums.drift, rule.least) + (1 - worth) ** 2 * self.free, self.free)
        return PriorDensity(self.splits, rule, self.free, reliability, drift)

    def _seen(self, tree: BinaryTree, layer: Layer, below: Layer, bits: int) -> _Seen:
        """Return what counts say of a level's nodes that the prior divides and that hold enough to tell."""
        nodes, mass = layer.node[layer.inner], layer.value[layer.inner]
        observed, noise = measured_difference(below, mass)
        at, known = self.splits.find(nodes)
        told = known & (mass > 0) & (mass**2 > self.rule.visible**2 * noise)
        at, mass, measure = at[told], mass[told], UNIFORM.of(tree, nodes, bits)[0][told]
        prior = self.splits.contrast[at]
        vary = self._vary(prior)
        error = noise[told] / mass**2 + vary / mass + self.splits.variance[at]
        return _Seen(observed[told] / mass - measure, prior - measure, error, vary)


@dataclass(frozen=True)
class _Sums:
    """What ρ is the ratio of; and what κ² is, then the squares that the prior leaves, and its own."""

    fit: Floats
    spread: Floats

    @property
    def reliability(self) -> float:
        return float(min(max(self.fit[0] / self.fit[1], 0.0), 1.0))

    @property
    def drift(self) -> float:
        return float(self.spread[0] / self.spread[1])

    @property
    def worth(self) -> float:
        """Which part of how contrasts vary the prior explains."""
        explained = self.reliability**2 * float(self.spread[3])
        return explained / (explained + max(float(self.spread[2]), _TINY))


@dataclass(frozen=True)
class _Seen:
    """A level's measured contrasts and the prior's, both minus the measure's; the variance of errors; and 1 - p²."""

    measured: Floats
    prior: Floats
    error: Floats
    vary: Floats

    def added(self, sums: _Sums, least: float) -> _Sums:
        """Add the level to the sums of those above."""
        new = sums
        for _ in range(_TIMES):
            process = max(new.drift, least) * self.vary**2
            weight = 1 / (self.error + process)
            fit = sums.fit + np.array([weight @ (self.measured * self.prior), weight @ self.prior**2])
            fitted = _Sums(fit, sums.spread).reliability * self.prior
            told, left = (process * weight) ** 2, (self.measured - fitted) ** 2 - self.error
            spread = [told @ (left / self.vary**2), told.sum(), told @ left, told @ self.prior**2]
            new = _Sums(fit, sums.spread + np.array(spread))
        return new
