"""Names for the array types that pass between rooms, and ranges of different lengths in one array."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Ints", "ragged"]

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


def ragged(counts: Ints) -> tuple[Ints, Ints]:
    """Return the owner of each element of a ragged array, and the element's position within its owner.

    >>> [a.tolist() for a in ragged(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
