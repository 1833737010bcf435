"""Noise in equal parts: count coarsely, look, divide where it is worth it, and pay once.

Whoever wants fine counts only where there is something must first look where that is, and a look usually costs. Not if
its noise is *the sum of the noise of the counts to come*. A node that may later be divided into up to m pieces is
given m **parts** of noise, each independent discrete Laplace of scale 1/ε. Its count is released with the sum of
its parts. If it is then divided, its pieces share its parts out among them; a piece that holds more parts
than it needs drops some. In the end every piece holds one part: its count has noise of scale 1/ε and no more, however
often it, or what it was a piece of, was looked at before. (Akin to the gradual release of one count of Koufogiannis,
Han and Pappas, 2015; here what is refined is also divided.)

**Why it costs ε.** Fix everything that is released. That fixes how nodes were divided and which parts went where, for
both are functions of what was released before. Let o(v) be the value released of a final piece v, and x(v) the true
one: its part is ``o(v) - x(v)``. A node that was looked at earlier is a union of final pieces, and its parts are
theirs and those dropped below it, so its released value is ``Σ o(v) + (dropped parts)``: **given the final values it
does not depend on the data**. So the probability of the whole output is

    Π over final pieces v of P(part = o(v) - x(v))  ·  P(dropped parts are as the earlier values say),

and the second factor is the same for all data. One event more or less changes one x(v) by 1, and the first product
by a factor of at most e^ε. (`tests/privacy/test_divisible_noise.py` adds up the probabilities of all
outputs by brute force.)
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Ints
from phdstream.privacy.noise import Noise

__all__ = ["SharedNoise"]


class SharedNoise:
    """The parts of noise of some disjoint nodes, in one row; a node holds a run of them.

    ``held`` says how many parts each of the nodes ``at`` is given to begin with: the first ones to the first node.
    **Private**: never saved, and forgotten when the final counts are made.

    >>> from phdstream.privacy import Simulation
    >>> shared = SharedNoise(Simulation(seed=1), scale=1.0, held=np.array([2]), at=np.array([1]))
    >>> whole = shared.add(np.array([10]), first=np.array([0]), held=np.array([2]), at=np.array([1]))
    >>> halves = shared.add(np.array([6, 4]), first=np.array([0, 1]), held=np.array([1, 1]), at=np.array([2, 3]))
    >>> bool(whole[0] == halves.sum())
    True
    """

    def __init__(self, noise: Noise, scale: float, held: Ints, at: Ints) -> None:
        parts = noise.add(np.zeros(int(held.sum()), dtype=np.int64), scale, at=np.repeat(at, held))
        self._upto = np.concatenate([np.zeros(1, np.int64), np.cumsum(parts)])

    def add(self, values: Ints, first: Ints, held: Ints, at: Ints) -> Ints:
        """Return the true counts of the nodes ``at`` plus the parts each holds: ``held`` of them, from ``first`` on."""
        noisy: Ints = values + self._upto[first + held] - self._upto[first]
        return noisy
