"""Points at random in their cells, as the paper has them, on every domain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from phdstream.arrays import Floats, Ints, ragged
from phdstream.baselines import Releaser
from phdstream.domains import Domain
from phdstream.release import Release

__all__ = ["AtRandom", "PointsAsInPaper"]


class AtRandom(Release):
    """A release whose points lie at random in their cells, independent of each other, by the domain's measure."""

    def sample(self, to: str | None = None) -> Floats:
        """Return the synthetic points, an array (n, d): the same each time for one release."""
        random = np.random.default_rng([self.key, self.tick])
        codes = _finest(self.domain, self.leaves, self.points, random)
        return self.domain.place(codes, np.arange(codes.size), self.key)


def _finest(domain: Domain, nodes: Ints, counts: Ints, random: np.random.Generator) -> Ints:
    """Return a finest node's code for each point: level by level, every point falls to a child by its share."""
    if domain.even:
        first, end = (np.repeat(codes, counts) for codes in domain.code_range(nodes))
        return random.integers(first, end)
    levels = domain.levels(nodes)
    here, number = nodes[levels == 0], counts[levels == 0]
    for level in range(1, domain.depth + 1):
        here, number = here[number > 0], number[number > 0]
        children, parent, share = domain.children(here)
        here = np.concatenate([children, nodes[levels == level]])
        number = np.concatenate([_fallen(number, parent, share, random), counts[levels == level]])
    return np.repeat(domain.code_range(here)[0], number)


def _fallen(counts: Ints, parent: Ints, share: Floats, random: np.random.Generator) -> Ints:
    """Return how many of each parent's points fall to each child: a multinomial draw for every family."""
    _, within = ragged(np.bincount(parent, minlength=counts.size))
    shares = np.zeros((counts.size, int(within.max(initial=0)) + 1))
    shares[parent, within] = share
    drawn: Ints = random.multinomial(counts, shares / shares.sum(axis=1, keepdims=True))
    return drawn[parent, within]


class PointsAsInPaper:
    """A method whose cells get ⌈G⌉ points, or none if G is negative, at random in the cell, as in the paper.

    G is the sum of all that was released. `PHDStream` publishes a projection of G instead, which adds up and favours no
    side, and spreads a cell's points evenly. Both are computed from the same noisy counts.

    >>> import phdstream as phd
    >>> stream = phd.PHDStream(phd.Box([(0, 1)]), 1.0, phd.Event(), noise=phd.Simulation(seed=1))
    >>> release = PointsAsInPaper(stream).update([(0.5,)] * 100)
    >>> len(release.sample()) >= release.total  # never fewer: what is negative elsewhere is not made up for
    True
    """

    def __init__(self, method: Releaser) -> None:
        self._method = method

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events and return its release."""
        release = self._method.update(inserts, deletes)
        points = np.ceil(np.maximum(release.estimate.unbiased, 0)).astype(np.int64)
        return AtRandom(**vars(release) | {"estimate": replace(release.estimate, points=points)})
