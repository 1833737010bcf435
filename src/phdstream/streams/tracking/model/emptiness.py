"""Which halves are empty: a likelihood ratio test, with a prior learnt from what is already known. Public.

Check-ins of a whole world are sparse: most nodes have a half with nothing in it, and noise that stays there adds up
over large areas. Pickups in a city are not: a half that seems nearly empty is just thin. So the prior is learnt: of
the nodes whose contrast is well known, in which part ``p`` is one half (nearly) empty? A half whose share x of the node
was measured with standard deviation s is then empty with odds ``p/(1-p)`` times the density of x if it is (normal
around 0) over that if it is not (even between 0 and 1/2). It is taken to be empty if the odds exceed 1:
``x < s·sqrt(2·log(p/(1-p) / (2·s·sqrt(2π))))``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats
from phdstream.streams.tracking.model.descent import masses
from phdstream.streams.tracking.model.split_tree import UNKNOWN, SplitTree
from phdstream.streams.tracking.parameters import EmptyHalves

__all__ = ["Emptiness"]


@dataclass(frozen=True)
class Emptiness:
    """``prior_empty`` is the part of nodes with an empty half.

    >>> contrast, variance = np.array([0.9, 0.2]), np.array([0.04, 0.04])
    >>> Emptiness(EmptyHalves(), prior_empty=0.8).likely(contrast, variance).tolist()
    [True, False]
    >>> Emptiness(EmptyHalves(), prior_empty=0.1).likely(contrast, variance).tolist()
    [False, False]
    """

    rule: EmptyHalves
    prior_empty: float

    @classmethod
    def untold(cls, rule: EmptyHalves) -> Emptiness:
        """Return what to take if too few nodes tell."""
        return cls(rule, rule.untold)

    @classmethod
    def seen_in(cls, rule: EmptyHalves, splits: SplitTree, total: float) -> Emptiness:
        """Return the emptiness of what is known so far."""
        known = (np.sqrt(splits.variance) / 2 < rule.well_known) & (masses(splits, total) > 0)
        if known.sum() < rule.enough:
            return cls.untold(rule)
        part = float((_smaller(splits.contrast[known]) < rule.nearly_empty).mean())
        return cls(rule, within_limits(rule, part))

    @property
    def new_variance(self) -> float:
        """The contrast variance of a node about which nothing is known yet.

        About 1 where contrasts are moderate. Where they are all or nothing it is larger, so that the first count
        decides and is not drawn towards even halves, which would spill points into empty ones.
        """
        return min(1 / ((1 - self.prior_empty) * (1 - self.prior_empty)), UNKNOWN)

    def likely(self, contrast: Floats, variance: Floats) -> Bools:
        """Return which nodes have a half that is likely empty."""
        deviation = np.sqrt(np.maximum(variance, 1e-12)) / 2
        small: Bools = _smaller(contrast) < limit(self.rule, self.prior_empty, 1 / (2 * deviation)) * deviation
        return small


def limit(rule: EmptyHalves, prior_empty: float, width: Floats) -> Floats:
    """Return up to how many standard deviations a half is likely empty.

    ``prior_empty`` of halves are; what the others hold is even between 0 and ``width`` standard deviations.
    """
    odds = prior_empty / (1 - prior_empty) * width / np.sqrt(2 * np.pi)
    most: Floats = np.minimum(np.sqrt(2 * np.log(np.maximum(odds, 1.0))), rule.deviations)
    return most


def within_limits(rule: EmptyHalves, part: float) -> float:
    """Return a part that is neither 0 nor 1: few halves tell only so much."""
    return min(max(part, rule.least), rule.most)


def _smaller(contrast: Floats) -> Floats:
    return (1 - np.abs(contrast)) / 2
