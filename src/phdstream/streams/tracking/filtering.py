"""Following the shares: a Kalman filter for each split of the tree, from the root down. All public.

A node held ``old`` points and now holds ``mass = old + change``; ``change`` is the net number that came in this block,
as known so far. Its halves' part of the change was measured, with variances. What is sought is the new lean of
the node. The model: the points that come (or go) lean as those that are there, up to a random deviation of variance
``r·|change| + (r·κ·change)²`` (chance, and drift κ), with ``r = 1 - lean²``: the more uneven the halves, the less the
difference can vary, as for a coin that nearly always shows one side. So the difference of the halves' changes is
predicted as ``lean · change``, its measurement corrects both the prediction and, where the old lean was doubtful, the
old lean too. With L the difference of the halves' masses this is the Kalman filter for L with the observation
``y = (difference of the changes) + noise``.

In the thin half of an uneven node noise thus changes little. Points that suddenly come there would change as little,
so `_ROOM` is added to r (up to 1), and a measurement more than √`_FAR` standard deviations from its prediction
is taken to show that the variance was larger by as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.streams.tracking.emptiness import Emptiness
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.measuring import KNOWN_EMPTY, Layer
from phdstream.streams.tracking.shares import UNKNOWN, Shares

__all__ = ["Tuning", "drift_seen", "follow"]

_TINY = 1e-12
_ROOM, _FAR = 0.05, 8.0


@dataclass(frozen=True)
class Tuning:
    """How much a block may change the shares.

    ``drift`` is κ. ``kinship`` says how far points that come or go tell where the old ones are: with 1 a surprise
    corrects the old lean too, with 0 it does not. With ``emptiness``, a half that is likely empty is taken to be, so
    that noise does not leak into empty places.
    """

    drift: float
    kinship: float = 1.0
    emptiness: Emptiness | None = None


def follow(
    halves: Halves,
    shares: Shares,
    layers: list[Layer],
    mass: float,
    change: float,
    tuning: Tuning,
) -> Shares:
    """Return the shares after a block; ``mass`` is the root's new mass, of which ``change`` is new.

    A node that was not measured keeps its lean.
    """
    here, new = np.array([mass]), np.array([change])
    learnt: list[tuple[Ints, Floats, Floats]] = []
    for bits, (layer, below) in enumerate(pairwise(layers)):
        here, new, nodes = here[layer.inner], new[layer.inner], layer.node[layer.inner]
        lean, doubt = shares.of(halves, nodes, bits)
        if tuning.emptiness:
            doubt = np.minimum(doubt, tuning.emptiness.new_doubt)
        doubt = np.where(here - new > 0, doubt, 0.0)  # nobody was here: there is no old lean to correct
        lean, doubt, difference = _update(lean, doubt, here, new, below, tuning)
        learnt.append((nodes, lean, doubt))
        here = np.stack([here * (1 + lean) / 2, here * (1 - lean) / 2], axis=1).ravel()
        new = np.stack([(new + difference) / 2, (new - difference) / 2], axis=1).ravel()
    if not learnt:
        return shares
    return shares.learn(*(np.concatenate(column) for column in zip(*learnt, strict=True)))


def _update(
    lean: Floats, doubt: Floats, mass: Floats, change: Floats, below: Layer, tuning: Tuning
) -> tuple[Floats, Floats, Floats]:
    """Return the new leans and doubts, and the difference of the halves' changes."""
    observed, noise = _difference(below, change)
    old = mass - change
    vary = np.where(old > 0, np.minimum(1 - lean**2 + _ROOM, 1), 1.0)
    predicted, spread = lean * change, doubt * change**2 + vary * np.abs(change) + (vary * tuning.drift * change) ** 2
    surprise = observed - predicted
    spread = spread + np.where(old > 0, np.maximum(surprise**2 / _FAR - spread - noise, 0), 0.0)
    trust = spread + noise
    common = tuning.kinship * doubt * change * old
    gain = (common + spread) / trust
    difference = predicted + spread / trust * surprise
    safe = np.maximum(mass, _TINY)
    new_lean = np.clip((lean * mass + gain * surprise) / safe, -1, 1)
    left = doubt * old**2 + 2 * common + spread - gain * (common + spread)
    new_doubt = np.clip(left / safe**2, 0, UNKNOWN)
    if tuning.emptiness:
        new_lean = tuning.emptiness.decide(new_lean, new_doubt)
    return _keep_out(below, new_lean), new_doubt, difference


def drift_seen(halves: Halves, shares: Shares, layers: list[Layer]) -> float:
    """Return the drift κ that a block shows, at all scales: 0 unless more than noise, chance and doubt explain.

    The difference of two halves' changes deviates from what the node's lean predicts by a variance that noise, chance
    (``|change|``) and doubt explain, plus ``κ²·change²``. So κ² is estimated from all nodes whose change stands out
    from its noise, each weighted by what it tells, and taken one standard error lower. It is relative to the node's
    whole change, as the surprise of zones is, however uneven the halves: by it the two are compared.
    """
    parts = [_deviations(halves, shares, *pair, bits) for bits, pair in enumerate(pairwise(layers))]
    if not parts:
        return 0.0
    deviation, explained, change = (np.concatenate(column) for column in zip(*parts, strict=True))
    square = change**2
    weight = square / np.maximum(explained + square / 4, _TINY) ** 2
    weight = weight / max(float(weight @ square), _TINY)
    drift = float(weight @ (deviation**2 - explained))
    error = np.sqrt(2 * ((weight * (explained + max(drift, 0.0) * square)) ** 2).sum())
    return float(np.sqrt(max(drift - error, 0.0)))


def _deviations(halves: Halves, shares: Shares, layer: Layer, below: Layer, bits: int) -> tuple[Floats, Floats, Floats]:
    """Return, for a layer's nodes, how far the halves' changes deviate, what of the square is explained, the change."""
    (first, second), (noise, other) = ((column[0::2], column[1::2]) for column in (below.value, below.variance))
    lean, doubt = shares.of(halves, layer.node[layer.inner], bits)
    change = first + second
    explained = (1 - lean) ** 2 * noise + (1 + lean) ** 2 * other + np.abs(change) + doubt * change**2
    told = change**2 > 4 * (noise + other)
    return (first - second - lean * change)[told], explained[told], change[told]


def _keep_out(below: Layer, lean: Floats) -> Floats:
    """Return the leans with nothing in halves that have no measure."""
    first, second = (below.variance[i::2] < KNOWN_EMPTY for i in (0, 1))
    return np.where(second & ~first, 1.0, np.where(first & ~second, -1.0, lean))


def _difference(below: Layer, change: Floats) -> tuple[Floats, Floats]:
    """Return the measured difference of the halves' changes, given that they add up to ``change``, and its variance."""
    (first, second), (noise, other) = ((column[0::2], column[1::2]) for column in (below.value, below.variance))
    share = noise / (noise + other)
    observed: Floats = 2 * (first + (change - first - second) * share) - change
    return observed, 4 * other * share
