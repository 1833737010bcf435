"""Names for the array types that pass between rooms, and what is often done with them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Ints", "distinct", "found_in", "positions", "ragged"]

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


def positions(chosen: Bools) -> Ints:
    """Return where a row of truths holds: as `numpy.flatnonzero`, which takes longer to begin.

    To take elements by positions is quicker than by the truths themselves, and so is to put them.

    >>> positions(np.array([True, False, True])).tolist()
    [0, 2]
    """
    return chosen.nonzero()[0]


def ragged(counts: Ints) -> tuple[Ints, Ints]:
    """Return the owner of each element of a ragged array, and the element's position within its owner.

    >>> [a.tolist() for a in ragged(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)


def distinct(nodes: Ints) -> tuple[Ints, Ints]:
    """Return the different nodes in order, and where each of the given ones stands among them.

    As `numpy.unique`, but quick for what comes here: a few runs of nodes, each in order already.

    >>> [found.tolist() for found in distinct(np.array([4, 6, 4, 5]))]
    [[4, 5, 6], [0, 2, 0, 1]]
    """
    order = np.argsort(nodes, kind="stable")
    ordered = nodes[order]
    new = np.ones(nodes.size, dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    which = np.empty(nodes.size, dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return ordered[new], which


def found_in(ordered: Ints, numbers: Ints) -> Bools:
    """Return which numbers are among others that stand in order.

    >>> found_in(np.array([2, 5, 7]), np.array([5, 6, 9])).tolist()
    [True, False, False]
    """
    if not ordered.size:
        return np.zeros(numbers.size, dtype=bool)
    at = np.minimum(np.searchsorted(ordered, numbers), ordered.size - 1)
    return np.asarray(ordered[at] == numbers)
