"""Constrained inference: the least squares counts of a complete tree from noisy counts of all its nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phdstream.arrays import Floats

__all__ = ["consistent_leaves"]


def consistent_leaves(noisy: Sequence[Floats], variances: Sequence[float], fanout: int) -> Floats:
    """Return the leaves' counts that fit best, in two passes, for one variance a level (Hay et al. 2010, weighted).

    ``noisy`` are the levels from the root down, (nodes, ...), each with ``fanout`` children of each node above, in
    order; further axes are several trees of the same noise. A level that was not counted has an infinite variance.
    """
    best, spread = [noisy[-1]], [variances[-1]]
    for own, variance in zip(noisy[-2::-1], variances[-2::-1], strict=True):
        sums, of_sums = _sums(best[-1], fanout), fanout * spread[-1]
        weight = 1.0 if np.isinf(variance) else variance / (variance + of_sums)  # of the children
        best.append(weight * sums + (1 - weight) * own)
        spread.append(weight * of_sums)
    found = best[-1]
    for below in best[-2::-1]:
        found = below + np.repeat((found - _sums(below, fanout)) / fanout, fanout, axis=0)
    return found


def _sums(children: Floats, fanout: int) -> Floats:
    return children.reshape(-1, fanout, *children.shape[1:]).sum(axis=1)
