"""Which halves are empty: decided from how often halves are, in what is already known. All public.

Check-ins of a whole world are sparse: most nodes have a half with nothing in it, and noise that stays there adds up
over large areas. Pickups in a city are not: a half that seems nearly empty is just thin. So the prior is learnt: of
the nodes whose lean is well known, in which part ``p`` is one half (nearly) empty? A half whose share x of the node was
measured with standard deviation s is then empty with odds ``p/(1-p)`` times the density of x if it is (normal around 0)
over that if it is not (even between 0 and 1/2). It is taken to be empty if the odds exceed 1:
``x < s·sqrt(2·log(p/(1-p) / (2·s·sqrt(2π))))``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.shares import UNKNOWN, Shares, masses

__all__ = ["Emptiness", "least_and_most", "limit"]

_WELL_KNOWN, _NEARLY_EMPTY, _ENOUGH = 0.06, 0.05, 20
"""The standard deviation of a share that is well known, the share that is next to nothing, how many nodes tell."""
_UNTOLD, _LEAST, _MOST = 0.2, 0.02, 0.95
_AT_MOST = 2.0
"""No half of more standard deviations than this is taken to be empty."""


@dataclass(frozen=True)
class Emptiness:
    """The ``part`` of nodes with an empty half; at a ``strength`` below 1, less is taken to be empty.

    >>> Emptiness(part=0.8).decide(np.array([0.9, 0.2]), np.array([0.04, 0.04])).tolist()
    [1.0, 0.2]
    >>> Emptiness(part=0.1).decide(np.array([0.9, 0.2]), np.array([0.04, 0.04])).tolist()
    [0.9, 0.2]
    """

    part: float = _UNTOLD
    strength: float = 1.0

    @classmethod
    def seen_in(cls, halves: Halves, shares: Shares, total: float, strength: float = 1.0) -> Emptiness:
        """Return the emptiness of what is known so far."""
        known = (np.sqrt(shares.doubt) / 2 < _WELL_KNOWN) & (masses(halves, shares, total) > 0)
        if known.sum() < _ENOUGH:
            return cls(strength=strength)
        part = float((_smaller(shares.lean[known]) < _NEARLY_EMPTY).mean())
        return cls(least_and_most(part), strength)

    @property
    def new_doubt(self) -> float:
        """The doubt of a lean about which nothing is known yet.

        About 1 where leans are moderate. Where they are all or nothing it is larger, so that the first count decides
        and is not drawn towards even halves, which would spill points into empty ones.
        """
        return min(1 / ((1 - self.part) * (1 - self.part)), UNKNOWN)

    def decide(self, lean: Floats, doubt: Floats) -> Floats:
        """Return the leans with halves that are likely empty taken to be."""
        return np.where(self.likely(lean, doubt), np.sign(lean), lean)

    def likely(self, lean: Floats, doubt: Floats) -> Bools:
        """Return which nodes have a half that is likely empty."""
        deviation = np.sqrt(np.maximum(doubt, 1e-12)) / 2
        small: Bools = _smaller(lean) < limit(self.part, 1 / (2 * deviation), self.strength) * deviation
        return small


def limit(part: float, width: Floats, strength: float = 1.0) -> Floats:
    """Return up to how many standard deviations a half is likely empty.

    ``part`` of halves are; what the others hold is even between 0 and ``width`` standard deviations.
    """
    odds = part / (1 - part) * width / np.sqrt(2 * np.pi)
    most: Floats = np.minimum(strength * np.sqrt(2 * np.log(np.maximum(odds, 1.0))), _AT_MOST)
    return most


def least_and_most(part: float) -> float:
    """Return a part that is neither 0 nor 1: few halves tell only so much."""
    return min(max(part, _LEAST), _MOST)


def _smaller(lean: Floats) -> Floats:
    return (1 - np.abs(lean)) / 2
