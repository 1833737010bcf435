"""Whether an estimate is whole, and what to do where a step of the model fails. All public.

A release is whole or is not made: its numbers are finite, its counts and points are not negative and add up, its cells
tile what has measure. `faults` says what of that does not hold. `Fallback` takes the plain answer where the better one
fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Ints
from phdstream.domains import ROOT, Domain, hash_uniform
from phdstream.domains.codes import child_nodes
from phdstream.errors import StateError
from phdstream.release.estimate import Estimate

__all__ = ["Fallback", "faults", "first_whole", "total_alone"]

T = TypeVar("T")

_ROUNDING = 1e-9
"""By how much, relative to a count (or to 1), the counts of its parts may miss it."""
_NARROW = 16
"""Families of up to this many are added up column by column."""
_NOTHING = 1e-12
"""A part with less than this share of its parent's measure may be left out of the tree: rounding hides it."""


class Fallback:
    """Takes the first of several ways to compute something that works, and remembers whether that was not the first.

    The ways are steps of the public model: they see noisy values only. So whether one fails is a function of noisy
    values, what comes instead is too, and no noise is drawn again: taking the fallback, and saying so, costs no
    privacy. Memory that runs out is not caught, for that may depend on the private events at hand.
    """

    def __init__(self) -> None:
        self.taken = False

    def first_sound(self, ways: list[Callable[[], T]], sound: Callable[[T], bool]) -> T:
        """Return what the first way gives that does not fail and is ``sound``; the last one is trusted.

        >>> Fallback().first_sound([lambda: 1 / 0, lambda: -1.0, lambda: 2.0], lambda number: number > 0)
        2.0
        """
        for way in ways[:-1]:
            try:
                result = way()
                if sound(result):
                    return result
            except MemoryError:
                raise
            except Exception:  # whatever it is: a tick whose noise is drawn must be released
                pass
            self.taken = True
        return ways[-1]()


def first_whole(domain: Domain, fallback: Fallback, ways: list[Callable[[], Estimate]]) -> Estimate:
    """Return the first whole release that some ways to estimate give, from noisy values that were drawn already.

    The ways see nothing but noisy values, so which one it is tells nothing more; a release that is not by the first
    way says ``fallback`` in its metadata. No noise is drawn again.
    """
    estimate = fallback.first_sound(ways, lambda estimate: not faults(domain, estimate))
    if wrong := faults(domain, estimate) if fallback.taken else []:
        raise StateError(f"this tick cannot be published: {', '.join(wrong)}. Please report that as a bug.")
    return estimate


def total_alone(total: float, variance: float, key: int) -> Estimate:
    """Return the estimate that knows a noisy total and nothing else: the root, over which points spread by measure."""
    unbiased, variances, count = np.array([total]), np.array([variance]), np.array([max(total, 0.0)])
    points = np.floor(count + hash_uniform(key, np.zeros(1, np.int64))).astype(np.int64)
    return Estimate(np.array([ROOT]), np.ones(1, dtype=bool), count, unbiased, variances, variances, points)


def faults(domain: Domain, e: Estimate) -> list[str]:
    """Return, in words, what keeps an estimate from being a whole release of the domain; nothing if it is one.

    >>> import phdstream as phd
    >>> box, half = phd.Box([(0, 1)]), total_alone(10.0, 2.0, key=1)
    >>> faults(box, half)
    []
    >>> half.count[0] = -1.0
    >>> faults(box, half)
    ['a count is negative']
    """
    n, numbers = e.node.size, (e.count, e.variance, e.own_variance, e.share_variance, e.uncounted)
    if any(column.shape != (n,) for column in vars(e).values()) or not n or e.node[0] != ROOT:
        return ["its columns do not belong to one tree"]
    if (e.node[1:] <= e.node[:-1]).any() or e.node[-1] >= ROOT << domain.total_bits + 1:
        return ["its nodes are not in order, each once"]
    tests = {
        "a number is not finite": not all(np.isfinite([c.min(), c.max()]).all() for c in (e.unbiased, e.own, *numbers)),
        "a count is negative": bool(e.count.min() < 0),
        "a variance is negative": any(variance.min() < 0 for variance in numbers[1:4]),
        "a number of uncounted points is negative": bool(e.uncounted.min() < 0),
        "a number of points is negative or not whole": e.points.dtype != np.int64 or bool(e.points.min() < 0),
    }
    return [what for what, found in tests.items() if found] or _faults_of_tree(domain, e)


def _faults_of_tree(domain: Domain, e: Estimate) -> list[str]:
    """Return what is wrong with the families: children of one parent stand together, in the order of their parents."""
    inner = np.flatnonzero(~e.leaf)
    first = _families(domain, e.node, inner)
    if first is None:
        return ["its cells do not tile the domain"]
    found = []
    if first.size:
        count, points = (_family_sums(column, first) for column in (e.count, e.points))
        if (np.abs(count - e.count[inner]) > _ROUNDING * np.maximum(count, 1)).any():
            found.append("counts do not add up")
        if (points != e.points[inner]).any():
            found.append("points do not add up")
        if _leaves_out(domain, e.node, inner, first):
            found.append("its cells leave out a place that has measure")
    if not domain.even and not domain.has_measure(e.node[e.leaf & ((e.count > 0) | (e.points > 0))]).all():
        found.append("there are points in a place without measure")
    return found


def _families(domain: Domain, nodes: Ints, inner: Ints) -> Ints | None:
    """Return where the children of each inner node begin; None if one has none, or a node's parent is not one."""
    bits = domain.level_bits[0]
    if len(set(domain.level_bits)) == 1 and inner.size << bits == nodes.size - 1:  # as many as if all were whole
        parent, width = nodes[inner], 1 << bits
        whole = (nodes[1::width] == parent << bits).all() and (nodes[width::width] == ((parent + 1) << bits) - 1).all()
        return np.arange(1, nodes.size, width) if whole else None  # nodes are in order: the first and last tell
    of_level = np.diff(np.searchsorted(nodes, domain.first_nodes), append=nodes.size)
    above = nodes[1:] >> np.repeat([0, *domain.level_bits], of_level)[1:]
    begins = np.flatnonzero(np.diff(above, prepend=0))
    return begins + 1 if np.array_equal(above[begins], nodes[inner]) else None


def _family_sums(column: NDArray[Any], first: Ints) -> NDArray[Any]:
    """Return the sum over each family; quicker if all are of one size."""
    width, rest = divmod(column.size - 1, first.size)
    if rest == 0 and width <= _NARROW and first[-1] == column.size - width and (np.diff(first) == width).all():
        return np.asarray(sum(column[1 + i :: width] for i in range(width)))
    return np.asarray(np.add.reduceat(column, first))


def _leaves_out(domain: Domain, nodes: Ints, inner: Ints, first: Ints) -> bool:
    """Return whether any inner node lacks a child that has measure."""
    children = np.diff(first, append=nodes.size)
    if children.min() == 1 << max(domain.level_bits):
        return False
    bits = np.array([*domain.level_bits, 0])[domain.levels(nodes[inner])]
    lacking = children < np.int64(1) << bits
    for width in np.unique(bits[lacking]).tolist():
        parents = nodes[inner[lacking & (bits == width)]]
        family = child_nodes(parents, width).ravel()
        absent = nodes[np.minimum(np.searchsorted(nodes, family), nodes.size - 1)] != family
        missing, of = family[absent], np.repeat(parents, 1 << width)[absent]
        there = domain.has_measure(missing)
        if there.any() and (domain.measure(missing[there]) > _NOTHING * domain.measure(of[there])).any():
            return True
    return False
