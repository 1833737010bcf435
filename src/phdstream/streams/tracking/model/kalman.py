"""A Kalman filter for every split contrast, from the root down. Public.

A node held ``old`` points and now holds ``mass = old + change``; ``change`` is the net number that came in this block,
as known so far. Its halves' part of the change was measured, with variances. What is sought is the new contrast of
the node. The model: the points that come (or go) divide as those that are there, up to a random deviation of variance
``r·|change| + (r·κ·change)²`` (chance, and drift κ), with ``r = 1 - contrast²``: the more uneven the halves, the less
the difference can vary, as for a coin that nearly always shows one side. So the difference of the halves' changes is
predicted as ``contrast · change``; the **innovation** (what was measured minus that) corrects both the prediction and,
where the old contrast was uncertain, the old contrast too. With L the difference of the halves' masses this is the
Kalman filter for L with the observation ``y = (difference of the changes) + noise``; names are those of the textbooks
(Anderson and Moore 1979): process variance, innovation variance, cross-covariance, gain.

In the thin half of an uneven node noise thus changes little. Points that suddenly come there would change as little,
so some ``room`` is added to r (up to 1), and an innovation more than √``outlier`` standard deviations from 0 is taken
to show that the process variance was larger by as much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats, Ints, positions
from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.least_squares import KNOWN_EMPTY, Layer
from phdstream.streams.tracking.model.split_tree import UNKNOWN, Density, SplitTree
from phdstream.streams.tracking.model.walk import walk
from phdstream.streams.tracking.parameters import Filter

__all__ = ["Learning", "kalman_follow", "kalman_update", "measured_difference"]

_TINY = 1e-12
_BELIEVED = 0.5
"""A node is measured by a block whose innovation there is believed by more than this."""


@dataclass(frozen=True)
class Learning:
    """How much a block may change the splits.

    ``drift`` is κ. ``kinship`` says how far points that come or go tell where the old ones are: with 1 an innovation
    corrects the old contrast too, with 0 it does not. ``new_variance`` is the contrast variance of a node that was not
    measured before. ``expected`` says that the splits were expected of what comes, with their variances, though nothing
    was there before (the start from a prior).
    """

    rule: Filter
    drift: float
    kinship: float = 1.0
    new_variance: float = UNKNOWN
    expected: bool = False


def kalman_update(
    tree: BinaryTree,
    splits: SplitTree,
    layers: list[Layer],
    mass: float,
    change: float,
    learning: Learning,
    before: Density | None = None,
) -> SplitTree:
    """Return the splits after a block; ``mass`` is the root's new mass, of which ``change`` is new.

    A node that was not measured keeps its contrast. ``before`` says what was known, if that is not the splits.
    """
    return kalman_follow(tree, splits, layers, mass, change, learning, before)[0]


def kalman_follow(
    tree: BinaryTree,
    splits: SplitTree,
    layers: list[Layer],
    mass: float,
    change: float,
    learning: Learning,
    before: Density | None = None,
) -> tuple[SplitTree, SplitTree]:
    """Return what `kalman_update` does, and how the block itself divided: the nodes that its counts measured.

    Their variances are of noise and of chance.
    """
    update = _Update(tree, before or splits, layers, learning)
    walk(tree.total_bits, np.array([ROOT]), np.array([[mass], [change]]), update.opens, update.halve)
    if not update.learnt:
        return splits, SplitTree.empty()
    own = SplitTree(*(np.concatenate(column) for column in zip(*update.measured, strict=True)))
    return splits.updated(*(np.concatenate(column) for column in zip(*update.learnt, strict=True))), own


class _Update:
    """Walks down the layers of counts; the rows of amounts are the new masses and what of them is new."""

    def __init__(self, tree: BinaryTree, splits: Density, layers: list[Layer], learning: Learning) -> None:
        self._tree, self._splits, self._layers, self._learning = tree, splits, layers, learning
        self.learnt: list[tuple[Ints, Floats, Floats]] = []
        self.measured: list[tuple[Ints, Floats, Floats]] = []

    def opens(self, nodes: Ints, amounts: Floats, bits: int) -> Bools:
        """Open the nodes whose halves were measured; the layer's nodes are those of the walk."""
        return self._layers[bits].inner

    def halve(self, nodes: Ints, amounts: Floats, bits: int) -> Floats:
        """Filter the contrasts of a layer's nodes, and return the halves' masses and changes."""
        mass, change = amounts
        contrast, variance = self._splits.of(self._tree, nodes, bits)
        variance = np.minimum(variance, self._learning.new_variance)
        if not self._learning.expected:
            variance = np.where(mass - change > 0, variance, 0.0)  # nobody was here: no old contrast to correct
        contrast, variance, difference, believed, noise = _filter(
            contrast, variance, mass, change, self._layers[bits + 1], self._learning
        )
        self.learnt.append((nodes, contrast, variance))
        told = positions((believed > _BELIEVED) & (change > 0))
        amount = change[told]
        own = np.clip(difference[told] / amount, -1, 1)
        own_variance = (believed * noise)[told] / amount**2 + (1 - own**2) / amount
        self.measured.append((nodes[told], own, np.minimum(own_variance, UNKNOWN)))
        masses = np.stack([mass * (1 + contrast) / 2, mass * (1 - contrast) / 2], axis=1)
        changes = np.stack([(change + difference) / 2, (change - difference) / 2], axis=1)
        return np.stack([masses, changes])


def _filter(
    contrast: Floats, variance: Floats, mass: Floats, change: Floats, below: Layer, learning: Learning
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the new contrasts and variances, the difference of the halves' changes, how far its innovation is believed
    (0 to 1), and its noise.
    """
    rule = learning.rule
    observed, noise = measured_difference(below, change)
    old = mass - change
    vary, told = np.ones(old.size), (old > 0) | learning.expected
    if rule.uneven_vary_less:
        vary = np.where(told, np.minimum(1 - contrast**2 + rule.room, 1), 1.0)
    predicted = contrast * change
    process_variance = variance * change**2 + vary * np.abs(change) + (vary * learning.drift * change) ** 2
    innovation = observed - predicted
    beyond = np.maximum(innovation**2 / rule.outlier - process_variance - noise, 0)
    process_variance = process_variance + np.where(told, beyond, 0.0)
    innovation_variance = process_variance + noise
    cross_covariance = learning.kinship * variance * change * old
    gain = (cross_covariance + process_variance) / innovation_variance
    believed = process_variance / innovation_variance
    difference = predicted + believed * innovation
    safe = np.maximum(mass, _TINY)
    new_contrast = np.clip((contrast * mass + gain * innovation) / safe, -1, 1)
    left = variance * old**2 + 2 * cross_covariance + process_variance - gain * (cross_covariance + process_variance)
    new_variance = np.clip(left / safe**2, 0, UNKNOWN)
    return _keep_out(below, new_contrast), new_variance, difference, believed, noise


def _keep_out(below: Layer, contrast: Floats) -> Floats:
    """Return the contrasts with nothing in zero-measure halves."""
    first, second = (below.variance[i::2] < KNOWN_EMPTY for i in (0, 1))
    return np.where(second & ~first, 1.0, np.where(first & ~second, -1.0, contrast))


def measured_difference(below: Layer, change: Floats) -> tuple[Floats, Floats]:
    """Return the measured difference of the halves' changes, given that they add up to ``change``, and its variance."""
    (first, second), (noise, other) = ((column[0::2], column[1::2]) for column in (below.value, below.variance))
    share = noise / (noise + other)
    observed: Floats = 2 * (first + (change - first - second) * share) - change
    return observed, 4 * other * share
