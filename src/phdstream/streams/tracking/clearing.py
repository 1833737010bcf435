"""Halves that hold next to nothing, judged by the other halves of their length and by their neighbours. All public.

`Emptiness` judges a half by its node alone: is its share within noise? Two things more tell. Where halves that are not
empty hold hundreds of points, one that seems to hold ten within its noise is likely empty; where many hold ten it is
not. And what is empty lies together (water, desert, the inside of a ring): a half whose neighbours hold little (the
one on the other side from its sibling, and those on either side of it along the next coordinate) is far more often
empty than one whose neighbours hold much.

So level by level, from the root down, among the halves whose node holds enough to tell, apart for each number of
neighbours with little: which **part** is empty follows from how many hold less than half their standard deviation, and
how much the others **typically** hold from those that stand out. A half is then empty with odds ``part/(1-part)`` times
the density of its count if it is (normal around 0) over that if it is not (``1/typical``). If they exceed 1, its points
are taken to be in the other half. (The part of a small group is drawn towards that of all.) Nothing is cleared where
few halves stand out, nor ever the larger half.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT
from phdstream.streams.tracking.emptiness import least_and_most, limit
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.shares import Shares

__all__ = ["cleared"]

_THIN, _VISIBLE, _STANDS_OUT, _ENOUGH = 0.2, 0.9, 3.0, 10
"""Nodes with fewer points are left as they are; half a node must hold this many of its deviations to be judged, and
that many to stand out; how many halves tell of a level."""
_LITTLE = 0.15
"""A neighbour holds little if it holds less than this part of what the node, or half of it, does."""
_LOW, _EMPTY_IS_LOW = 0.5, 0.69
"""A count below this many deviations is low; how often that of an empty half is, by the normal distribution."""


def cleared(halves: Halves, shares: Shares, total: float, emptied: Bools) -> tuple[Shares, Bools]:
    """Return the shares with halves taken to be empty where that is likely, and at which nodes one is.

    ``emptied`` says at which nodes the smaller half was decided to be empty already.
    """
    lean, emptied = np.where(emptied, np.sign(shares.lean), shares.lean), emptied.copy()
    node, mass, variance = np.array([ROOT]), np.array([total]), np.zeros(1)
    for bits in range(halves.total_bits):
        at, known = shares.find(node)
        here = known & (mass > _THIN)
        if not here.any():
            break
        node, mass, variance, at = node[here], mass[here], variance[here], at[here]
        tilt = lean[at]
        variances = _shares_of(tilt) ** 2 * variance[:, None] + (mass**2 * np.minimum(shares.doubt[at], 1) / 4)[:, None]
        nothing = _next_to_nothing(halves, node, bits, (mass, tilt), np.sqrt(np.maximum(variances, 1e-9)))
        emptied[at] |= nothing
        lean[at] = tilt = np.where(nothing, np.sign(tilt), tilt)
        node = np.stack([2 * node, 2 * node + 1], axis=1).ravel()
        mass, variance = (_shares_of(tilt) * mass[:, None]).ravel(), variances.ravel()
    return Shares(shares.node, lean, shares.doubt), emptied


def _next_to_nothing(halves: Halves, nodes: Ints, bits: int, held: tuple[Floats, Floats], deviation: Floats) -> Bools:
    """Return which nodes' smaller half is likely empty; ``held`` are the nodes' masses and leans."""
    mass, lean = held
    inside = _shares_of(lean) * mass[:, None]
    told = (mass / 2 > _VISIBLE * deviation.max(axis=1))[:, None] & _possible(halves, nodes, bits)
    solid = inside[told & (inside > _STANDS_OUT * deviation)]
    empty = np.zeros(inside.shape, dtype=bool)
    if solid.size < _ENOUGH:
        return empty[:, 0]
    count, width = inside / deviation, float(np.median(solid)) / deviation
    bare, overall = _bare_sides(halves, nodes, bits, (mass, inside)), _part_empty(count[told], width[told])
    for sides in range(bare.max() + 1):
        group = told & (bare == sides)
        if (size := int(group.sum())) > 0:
            part = (size * _part_empty(count[group], width[group]) + _ENOUGH * overall) / (size + _ENOUGH)
            empty[group] = count[group] < limit(part, width[group])
    first, second = empty.T
    smaller: Bools = np.where(lean > 0, second & ~first, first & ~second & (lean < 0))
    return smaller


def _shares_of(lean: Floats) -> Floats:
    both: Floats = np.stack([(1 + lean) / 2, (1 - lean) / 2], axis=1)
    return both


def _part_empty(count: Floats, width: Floats) -> float:
    """Return which part of some halves is empty, from their counts and how much others hold, in deviations.

    >>> rng = np.random.default_rng(1)
    >>> counts = np.concatenate([np.maximum(rng.normal(size=600), 0), rng.uniform(0, 100, 400)])
    >>> round(_part_empty(counts, np.full(1000, 50.0)), 1)
    0.6
    """
    others = float(np.minimum(_LOW / width, 1).mean())
    low = float((count < _LOW).mean())
    return least_and_most((low - others) / (_EMPTY_IS_LOW - others) if others < _EMPTY_IS_LOW else 0.0)


def _possible(halves: Halves, nodes: Ints, bits: int) -> Bools:
    """Return which halves have a measure, and so can hold points."""
    if halves.even:
        return np.ones((nodes.size, 2), dtype=bool)
    first = halves.first_share(nodes, bits)
    return np.stack([first > 0, first < 1], axis=1)


def _bare_sides(halves: Halves, nodes: Ints, bits: int, held: tuple[Floats, Floats]) -> Ints:
    """Return how many neighbours of each half hold little, or are not divided; ``held`` are nodes' and halves' masses.

    A half's neighbours are its node's, on its side, along the coordinate halved here, and, of the half's own length,
    both along the coordinate halved next.
    """
    mass, inside = held
    bare = np.zeros(inside.shape, dtype=np.int64)
    if not halves.axes:
        return bare
    little = _LITTLE * mass
    for side, beside in enumerate(_beside(halves, nodes, bits, mass)):
        bare[:, side] += beside < little
    if halves.axes > 1 and bits + 1 < halves.total_bits:
        parts = np.stack([2 * nodes, 2 * nodes + 1], axis=1).ravel()
        for beside in _beside(halves, parts, bits + 1, inside.ravel()):
            bare += beside.reshape(inside.shape) < little[:, None] / 2
    return bare


def _beside(halves: Halves, nodes: Ints, bits: int, mass: Floats) -> list[Floats]:
    """Return what the neighbours before and after each node hold; nothing if they are not among the nodes."""
    found = []
    for neighbours, there in halves.beside(nodes, bits):
        at = np.minimum(np.searchsorted(nodes, neighbours), nodes.size - 1)
        found.append(np.where(there & (nodes[at] == neighbours), mass[at], 0.0))
    return found
