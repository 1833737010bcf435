"""How far a true count may be from its estimate, besides noise: places inside cells, recent points, modest variances.

All of it is told by the estimate itself, which is public.

**Cells cut by a query's edge.** Of a cell with n points, a query that covers the share c of it is said to hold
``c·n``. How far off that is depends on how uneven points are inside cells, and the nodes above tell: unevenness is much
the same from level to level (a self-similar cascade). If halving a node gives shares ``(1 ± s)/2``, then k halvings
give a part of share ``c = 2^-k`` the mean square share ``((1 + s²)/4)^k = c^(2 - a)``, with the **clustering**
``a = log2(1 + s²)``: 0 if points lie evenly, 1 if all of a cell's are in one spot. So the variance is
``E[n²]·(c^(2-a) - c²)``, plus ``n·c·(1 - c)`` for chance. As ``E[n²] = count² + variance``, a cell released as empty
has some, too. Nodes that were counted as a whole before they were divided add the same for what was counted then.

**Borders that people drew** follow shores, rivers and streets, and so does the density: the cells that such a border
cuts all err to one side, where those cut by a rectangle put anywhere err to both. So for polygons the
deviations of cut cells are added up, too, as far as they are *alike*.

**Cells of rows** (a `Product`'s) that lie in one place have the same shape there, and the same hour is busy in many
places: cells that a query cuts err together, whether it cuts their places or their values.

**Recent points.** Where points came or went since the last fine count is guessed: as those that are there. That is off
by a relative deviation κ at every division (as in `phdstream.streams.tracking.model.kalman`).

**Modest variances.** Those of shares and of the total are a filter's own. It knows its noise, but not all that is wrong
with its model: emptiness decided wrongly, places that change. So they are multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.release.estimate import Estimate

__all__ = ["ALIKE", "ROWS_ALIKE", "Unevenness", "clustering"]

_SHARES = 1.2
"""Contrasts' squared errors, over their variance: 1.2 to 1.6 on average in nodes of up to 4,000 points. Of 0.8 to 1.5
the one with which intervals held best on the streams that chose it (docs/research/tracking-diary.md)."""
ALIKE = 0.55
"""How much cells cut by a drawn border err together: chosen on boroughs, whose thin ones came out low by a quarter."""
ROWS_ALIKE = 0.25
"""The same for cells of rows, whatever cuts them: chosen on the three streams of docs/attributes.md, where without it
large rectangles of rows were covered 6 times in 10 by 90% intervals."""
_RECENT = 0.13
"""κ: how far points that come divide otherwise than those that are there."""
_UNTOLD = 0.5
"""The clustering if no cell tells."""
_TELLING = 1.0
"""Nodes with fewer points tell nothing of it."""
_STANDS_OUT = 2.0
"""Nor do nodes whose count is not above so many standard deviations of its noise."""


@dataclass(frozen=True)
class Unevenness:
    """What adds to the noise of an estimate: for nodes that are cut, and for the shares of nodes."""

    square: Floats
    count: Floats
    shares: Floats
    clustering: float

    @classmethod
    def of(cls, e: Estimate, parent: Ints) -> Unevenness:
        """Return an estimate's, given where each node's parent stands in it."""
        own = np.maximum(e.own, 0.0)
        variance = np.where(e.leaf, e.variance, e.own_variance)
        return cls(own**2 + variance, own, _share_variance(e, parent), clustering(e, parent))

    def of_cut(self, at: Ints, share: Floats) -> Floats:
        """Return the variance of what lies in the covered shares of some nodes.

        >>> even, one_spot = (Unevenness(np.array([100.0]), np.array([10.0]), np.zeros(1), a) for a in (0.0, 1.0))
        >>> [float(u.of_cut(np.zeros(1, int), np.array([0.5]))[0]) for u in (even, one_spot)]
        [2.5, 27.5]
        """
        less = np.minimum(share, 1 - share)
        lumps = self.square[at] * (less ** (2 - self.clustering) - less**2)
        variance: Floats = lumps + self.count[at] * less * (1 - less)
        return variance


def clustering(e: Estimate, parent: Ints) -> float:
    """Return how clustered the points of cells are, told by the families that cells belong to: from 0 to 1.

    Of a family with shares p the mean square share, relative to an even one, is ``β Σ p²``, and somewhat more as the
    shares are not all known; per halving it is the root of that by the number of halvings. What was counted before the
    family was divided tells nothing of it.
    """
    of, nodes = parent[1:], e.node.size
    mass, noise = (_with_all_below(column, e.node, parent) for column in (np.maximum(e.own, 0), e.own_variance))
    siblings = np.bincount(of, minlength=nodes)
    inside = np.bincount(of, mass[1:], nodes)
    telling = (
        (siblings > 1) & (np.bincount(of, e.leaf[1:], nodes) > 0) & (inside > _TELLING + _STANDS_OUT * np.sqrt(noise))
    )
    if not telling.any():
        return _UNTOLD
    squares = np.bincount(of, mass[1:] ** 2, nodes) * siblings
    unknown = np.bincount(of, e.share_variance[1:], nodes) * (siblings - 1)
    inside, halvings = inside[telling], np.log2(siblings[telling])
    gain = ((squares + unknown)[telling] / inside**2) ** (1 / halvings)
    return float(np.log2(np.average(np.clip(gain, 1, 2), weights=inside)))


def _with_all_below(own: Floats, node: Ints, parent: Ints) -> Floats:
    """Return each node's amount with those of all nodes below it, level by level from the last."""
    total, starts = own.copy(), np.flatnonzero(np.diff(np.frexp(node)[1], prepend=0))
    if not own.any():
        return total
    for start, end in reversed(list(pairwise([*starts.tolist(), node.size]))[1:]):
        np.add.at(total, parent[start:end], total[start:end])
    return total


def _share_variance(e: Estimate, parent: Ints) -> Floats:
    """Return the variance of each node's part of its parent's points, before that of its siblings is known."""
    variance = _SHARES * e.share_variance
    if e.uncounted[0] > 0:
        siblings = np.bincount(parent[1:], minlength=e.node.size)[parent]
        above = e.count[parent]
        part = np.divide(e.count, above, out=np.zeros(above.size), where=above > 0)
        spread = part * (1 - part) * siblings / np.maximum(siblings - 1, 1)
        variance += (_RECENT * e.uncounted[parent]) ** 2 * spread
    return variance
