"""What a method is to those who compare methods, and releases with new amounts in the cells of an earlier one."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from phdstream.arrays import Floats, Ints
from phdstream.domains import hash_uniform
from phdstream.privacy import UserIds
from phdstream.release import Release
from phdstream.release.estimate import Estimate
from phdstream.streams.intake import EncodedEvents

__all__ = ["NOT_PRIVATE", "Releaser", "Skips", "encoded", "recounted"]

NOT_PRIVATE = "not private over the stream: for comparison only"


class Releaser(Protocol):
    """Anything that takes a tick's events and gives a release: `PHDStream`, and the baselines it is compared with."""

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and return its release."""
        ...


@runtime_checkable
class Skips(Protocol):
    """A method whose releases do not depend on earlier ones, so that those nobody looks at need not be made."""

    def skip(self, inserts: Any = None, deletes: Any = None) -> Any:
        """Take one tick's events and release nothing."""
        ...


def encoded(codes: Ints) -> EncodedEvents:
    """Return events that are known by their codes, and belong to nobody. Private."""
    return EncodedEvents(codes, UserIds("text", pa.array([], pa.large_binary())))


def recounted(first: Release, unbiased: Floats, variance: Floats) -> Estimate:
    """Return new amounts for the cells of a release, in code order, and their sums for all nodes above them.

    A cell's count is its amount, or nothing if that is negative; no cell pays for another's negative amount.
    """
    count = np.maximum(unbiased, 0)
    upto = np.floor(np.cumsum(count) + hash_uniform(first.key, np.zeros(1, np.int64)))
    points = np.diff(upto, prepend=0).astype(np.int64)
    e, starts = first.estimate, first.domain.code_range(first.leaves)[0]
    begin, end = (np.searchsorted(starts, codes) for codes in first.domain.code_range(e.node))
    counts, raw, variances, numbers = (
        np.concatenate([[0], np.cumsum(cells)])[end] - np.concatenate([[0], np.cumsum(cells)])[begin]
        for cells in (count, unbiased, variance, points)
    )
    counts = np.maximum(counts, 0)  # rounding may leave a hair below
    return Estimate(e.node, e.leaf, counts, raw, variances, np.where(e.leaf, variances, 0.0), numbers)
