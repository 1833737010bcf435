"""`PrivTree`: one private release of one data set (tree and counting), as Zhang et al. (2016) and the paper use it."""

from __future__ import annotations

from typing import Any

from phdstream.domains import Domain
from phdstream.privacy import Event, Noise
from phdstream.release import Release
from phdstream.streams.paper.stream import PHDStream

__all__ = ["PrivTree"]


class PrivTree:
    """Offline PrivTree + Counting: an adaptive partition of the domain with noisy counts.

    Each call of `release` is ε-differentially private for one point of its data, and **each call spends ε anew**: for
    data that changes over time use `PHDStream`, which spends it once. It is the first tick of such a stream.

    >>> import numpy as np, phdstream as phd
    >>> tree = phd.PrivTree(phd.Box([(0, 1), (0, 1)]), epsilon=1.0)
    >>> tree.release(np.full((2000, 2), 0.1)).cells().num_rows > 1
    True
    """

    def __init__(
        self,
        domain: Domain,
        epsilon: float,
        *,
        threshold: int = 0,
        tree_share: float = 0.5,
        noise: Noise | None = None,
    ) -> None:
        self.domain, self.epsilon = domain, epsilon
        self._options = {"threshold": threshold, "tree_share": tree_share, "noise": noise}
        self._stream()  # refuses bad parameters now

    def _stream(self) -> PHDStream:
        return PHDStream(self.domain, self.epsilon, Event(), insert_only=True, **self._options)  # type: ignore[arg-type]

    def release(self, points: Any) -> Release:
        """Return a private release of these points."""
        return self._stream().update(points)

    def describe(self) -> str:
        """Return the promise and the noise in plain words; it is the promise of one call."""
        return self._stream().describe()
