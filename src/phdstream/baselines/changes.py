"""Baseline 2: the one-shot algorithm on each tick's changes alone, scaled up to the size of the data. Not private.

The paper runs "PrivTree + Counting" on ∇f(·, t), discards what was released before, and scales the synthetic data by
``|f(·, t)| / |∇f(·, t)|``. With deletes ∇f is negative in places, and there are two readings. Both use exact sizes,
which is not private.

- `OfflineOnChangesNotPrivate`, the letter of it: every cell's noisy count of ∇f, inserts less deletes, is scaled, with
  ``|∇f|`` the number of events; a cell gets as many points, and none if its count is negative. (Counts may not be
  projected to add up to the tick's total, as those of a whole data set are: that total is about 0 when as many points
  go as come, and nothing would be left.)
- `OfflineOnInsertsNotPrivate`, what the authors' script does: the tick's inserts alone, scaled so that there are
  ``|f|`` synthetic points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from phdstream.baselines.offline import OneShot
from phdstream.baselines.releaser import recounted
from phdstream.domains import Domain
from phdstream.privacy import Noise
from phdstream.release import Release

__all__ = ["OfflineOnChangesNotPrivate", "OfflineOnInsertsNotPrivate"]


class _Scaled(OneShot):
    """Knows the exact size of the data."""

    def __init__(self, domain: Domain, epsilon: float, *, noise: Noise | None = None) -> None:
        super().__init__(domain, epsilon, noise=noise)
        self._size = 0

    def skip(self, inserts: Any = None, deletes: Any = None) -> int:
        """Take a tick's events, of which no release is needed; return how many they are."""
        come, gone = self._intake.codes(inserts, deletes)
        self.tick += 1
        self._size = max(self._size + come.size - gone.size, 0)
        return int(come.size + gone.size)


class OfflineOnChangesNotPrivate(_Scaled):
    """Baseline 2 to the letter: cells' noisy changes, scaled by ``|f| / |∇f|``, where they are positive.

    >>> import phdstream as phd
    >>> literal = OfflineOnChangesNotPrivate(phd.Box([(0, 1)]), epsilon=4.0, noise=phd.Simulation(seed=1))
    >>> here, there = [(0.1,)] * 1000, [(0.9,)] * 500
    >>> [round(literal.update(come, gone).total, -2) for come, gone in ((here, None), (there, here[:500]))]
    [1000.0, 500.0]
    """

    method = "baseline 2"

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and release them, scaled."""
        events = self.skip(inserts, deletes)
        release, factor = self._offline(inserts, deletes), self._size / max(1, events)
        estimate = recounted(release, release.leaf_unbiased * factor, release.leaf_variance * factor**2)
        return replace(release, estimate=estimate)


class OfflineOnInsertsNotPrivate(_Scaled):
    """Baseline 2 as the authors ran it: the tick's inserts alone, scaled to as many synthetic points as there are true.

    >>> import phdstream as phd
    >>> theirs = OfflineOnInsertsNotPrivate(phd.Box([(0, 1)]), epsilon=4.0, noise=phd.Simulation(seed=1))
    >>> here, there = [(0.1,)] * 1000, [(0.9,)] * 500
    >>> [round(theirs.update(come, gone).total, -2) for come, gone in ((here, None), (there, here[:500]))]
    [1000.0, 1000.0]
    """

    method = "baseline 2, inserts alone"

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and release its inserts, scaled."""
        self.skip(inserts, deletes)
        release = self._offline(inserts)
        count = np.maximum(release.leaf_unbiased, 0)
        factor = self._size / max(1.0, count.sum())
        return replace(release, estimate=recounted(release, count * factor, release.leaf_variance * factor**2))
