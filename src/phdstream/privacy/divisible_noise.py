"""Divisible noise: count coarsely, refine the count where it is worth it, and pay once.

Whoever wants fine counts only where there is something must first ask where that is, and a noisy query usually costs.
Not if its noise is *the sum of the noise of the counts to come*. A node that may later be divided into up to m pieces
is given m **parts** of noise, each independent discrete Laplace of scale 1/ε. Its count is released with the sum of
its parts. If it is then divided, its pieces share its parts out among them; a piece that has more parts than it needs
drops some. In the end every piece has one part: its count has noise of scale 1/ε and no more, however often it, or
what it was a piece of, was counted before. (Akin to the gradual release of one count of Koufogiannis, Han and Pappas,
2015; here what is refined is also divided.)

**Why it costs ε.** Fix everything that is released. That fixes how nodes were divided and which parts went where, for
both are functions of what was released before. Let o(v) be the value released of a final piece v, and x(v) the true
one: its part is ``o(v) - x(v)``. A node that was counted earlier is a union of final pieces, and its parts are
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

__all__ = ["DivisibleNoise"]


class DivisibleNoise:
    """Independent parts of noise, in one row; a node has a run of them. Made by `Noise.divisible`.

    **Private**: never saved, and forgotten when the final counts are made.

    >>> noise = DivisibleNoise(np.array([2, -1]))
    >>> whole = noise.add(np.array([10]), first=np.array([0]), parts=np.array([2]), at=np.array([1]))
    >>> halves = noise.add(np.array([6, 4]), first=np.array([0, 1]), parts=np.array([1, 1]), at=np.array([2, 3]))
    >>> whole.tolist(), halves.tolist()
    ([11], [8, 3])
    """

    def __init__(self, parts: Ints) -> None:
        self._upto = np.concatenate([np.zeros(1, np.int64), np.cumsum(parts)])

    def add(self, values: Ints, first: Ints, parts: Ints, at: Ints) -> Ints:
        """Return the true counts of the nodes ``at`` plus the parts each has: so many of them, from ``first`` on."""
        noisy: Ints = values + self._upto[first + parts] - self._upto[first]
        return noisy
