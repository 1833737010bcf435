"""What is published of the shares: emptiness decided, and the rest smoothed where neighbours say more. All public.

A density that changes little from cell to cell can be told from the neighbours. If the densities of the cells before
and after a cell, along the coordinate in which it is halved, are a and b and its own is c, the parabola with these
three means gives the first half ``c + (a - b)/8``: a lean of ``(a - b)/8c``. (Where the halves differ in measure, the
odds that this gives multiply those of the measure: see `_tilted`.) How far leans of a level deviate from that beyond
noise and chance is learnt from those that were measured (a variance k); a measured lean with doubt w is then moved
towards the neighbours' by ``w/(w + k + 1/mass)``, nearly all the way where the density is smooth and counts are noisy,
and not at all where it is rugged. A half that was decided to be empty stays so. Cells that were not divided are divided
twice more in the same way, with doubt ``k + 1/mass``. This is done from the root down, so neighbours are already
smooth, and only on domains whose codes halve coordinates in turn (boxes, regions). What is known is not changed: this
is a view of it.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT
from phdstream.streams.tracking.clearing import cleared
from phdstream.streams.tracking.emptiness import Emptiness
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.shares import Shares, descend

__all__ = ["view"]

_THIN, _WORTH_DIVIDING, _FINER = 0.2, 0.5, 2
"""Measured nodes with fewer points are left whole, unmeasured ones too; those with more are halved this often."""
_STEEPEST = 0.9
_FAINT = 1e-200
"""With less of the measure than this a place tells no density: dividing by it could overflow."""
_SOFTEN, _CAUTION = 0.1, 2.0
"""Well measured leans tell more of the ruggedness; it is taken to be this many standard errors above its estimate."""


def view(halves: Halves, shares: Shares, total: float, emptiness: Emptiness, at_most: int) -> Shares:
    """Return the shares to publish; if they would be more than ``at_most``, not smoothed."""
    decided, emptied = cleared(halves, shares, total, emptiness.likely(shares.lean, shares.doubt))
    if not halves.axes or 2 ** (_FINER + 1) * shares.node.size > at_most:
        return decided
    smoother = _Smoother(decided, emptied)
    descend(halves, (smoother, Shares.none()), np.array([ROOT]), np.array([[total], [1.0]]), smoother.opens)
    return smoother.result()


class _Smoother:
    """Walks down the tree level by level; gives each node that is opened its smoothed lean."""

    def __init__(self, shares: Shares, emptied: Bools) -> None:
        self._shares, self._emptied = shares, emptied
        self._ended: tuple[Ints, Floats] = np.zeros(0, np.int64), np.zeros(0)
        self._here: Ints = np.zeros(0, np.int64)
        self._mass: Floats = np.zeros(0)
        self._measure: Floats = np.zeros(0)
        self._found: Ints = np.zeros(0, np.int64)
        self._measured: Bools = np.zeros(0, dtype=bool)
        self._ruggedness = 1.0
        self._parts: list[tuple[Ints, Floats, Floats]] = []

    def result(self) -> Shares:
        """Return all smoothed leans."""
        if not self._parts:
            return self._shares
        node, lean, doubt = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        return Shares(node, lean, doubt)

    def opens(self, nodes: Ints, amounts: Floats, bits: int) -> Bools:
        """Say which nodes to halve, and remember the level."""
        self._here, (self._mass, self._measure) = nodes, amounts
        self._found, self._measured = self._shares.find(nodes)
        near = self._shares.knows(nodes >> _FINER)
        opened: Bools = (self._measured & (self._mass > _THIN)) | (near & (self._mass > _WORTH_DIVIDING))
        return opened

    def of(self, halves: Halves, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the smoothed leans and doubts of the opened nodes of this level."""
        at = np.searchsorted(self._here, nodes)
        mass, prior = self._mass[at], 2 * halves.first_share(nodes, bits) - 1
        prior = _tilted(prior, self._slope(halves, nodes, at, bits))
        found, measured = self._found[at], self._measured[at]
        lean, doubt = self._shares.lean[found], self._shares.doubt[found]  # where measured
        chance = 1 / np.maximum(mass, _THIN)
        if measured.any():
            self._learn((lean - prior)[measured], (doubt + chance)[measured])
        spread = chance + self._ruggedness
        gain = np.where(measured & self._emptied[found], 1.0, spread / (spread + doubt))
        lean = np.clip(np.where(measured, prior + gain * (lean - prior), prior), -1, 1)  # rounding must not leave that
        doubt = np.where(measured, gain * doubt, np.minimum(spread, 1.0))
        self._parts.append((nodes, lean, doubt))
        self._end(halves, np.delete(np.arange(self._here.size), at), bits)
        return lean, doubt

    def _learn(self, deviation: Floats, explained: Floats) -> None:
        """Estimate the level's ruggedness: the variance of leans around the neighbours' that is not explained."""
        weight = (explained + _SOFTEN) ** -2.0
        weight /= weight.sum()
        rugged = max(float(weight @ (deviation**2 - explained)), 0.0)
        error = np.sqrt(2 * ((weight * (explained + rugged)) ** 2).sum())
        self._ruggedness = rugged + _CAUTION * float(error)

    def _slope(self, halves: Halves, nodes: Ints, at: Ints, bits: int) -> Floats:
        """Return the leans that the densities of the neighbours suggest."""
        density = self._density()
        starts, densities = self._ended
        starts = np.concatenate([starts, halves.code_range(self._here, bits)[0]])
        order = np.argsort(starts, kind="stable")
        starts, densities = starts[order], np.concatenate([densities, density])[order]
        own = density[at]
        before, after = (
            np.where(there, densities[np.searchsorted(starts, halves.code_range(beside, bits)[0], "right") - 1], np.nan)
            for beside, there in halves.beside(nodes, bits)
        )
        before, after = (np.where(np.isnan(density), own, density) for density in (before, after))
        slope = np.divide(before - after, 8 * own, out=np.zeros(own.size), where=own > 0)
        limited: Floats = np.clip(slope, -_STEEPEST, _STEEPEST)
        return limited

    def _density(self) -> Floats:
        """Return the densities of the level's nodes; NaN where there is no measure, and so nothing to tell."""
        unknown: Floats = np.full(self._mass.size, np.nan)
        return np.divide(self._mass, self._measure, out=unknown, where=self._measure > _FAINT)

    def _end(self, halves: Halves, ended: Ints, bits: int) -> None:
        """Remember the densities of nodes that are not halved."""
        starts, densities = self._ended
        first = halves.code_range(self._here[ended], bits)[0]
        self._ended = np.concatenate([starts, first]), np.concatenate([densities, self._density()[ended]])


def _tilted(prior: Floats, slope: Floats) -> Floats:
    """Return the leans of halves whose measures lean as ``prior`` and whose densities as ``slope``.

    With odds ``(1 + lean)/(1 - lean)`` of the first half, those of the two multiply; so the result lies between -1 and
    1 as they do, and a half without measure stays empty. (Steep slopes end at `_STEEPEST`, so it is never 0/0.)

    >>> _tilted(np.array([0.0, 1.0, -0.5]), np.array([0.5, -0.9, 0.5])).tolist()
    [0.5, 1.0, 0.0]
    """
    tilted: Floats = np.clip((prior + slope) / (1 + prior * slope), -1, 1)
    return tilted
