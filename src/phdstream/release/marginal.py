"""The release of a `Product` as one of places alone, for maps: the same counts, whatever the attributes. Public.

The places of all cells, divided until none lies inside another, are a tree of the place. Each of its nodes gets the
estimate that the release answers for it, so its counts are the ones that `Release.count` would give, and so is its
noise where there are points enough to show; in smaller nodes it is that of their cells, as if each had its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints, distinct
from phdstream.domains import ROOT, Domain, divide_among_children
from phdstream.domains.prefixes import code_range
from phdstream.domains.product import Attribute, Product
from phdstream.errors import InputError
from phdstream.release.answering import answer_by_descent
from phdstream.release.estimate import Estimate

__all__ = ["marginal_estimate", "marginal_points"]

_FEWEST, _CELLS = 20.0, 1500
"""Nodes with fewer points, or less than such a part of all, are drawn by nobody (`phdstream.page.coarse`)."""


def marginal_estimate(domain: Product, e: Estimate, key: int) -> Estimate:
    """Return what an estimate of rows says of places."""
    place = domain.parts[0]
    if isinstance(place, Attribute):
        raise InputError("these places are names, not on a map: table([...]) counts by them.")
    if not e.node.size:
        return Estimate.nothing()
    own = domain.part_nodes(e.node, 0)
    tree = _tree(place, distinct(own[e.leaf])[0])
    leaf = ~np.isin(tree, _above(place, tree))
    measure, at_tree = place.measure(tree), np.searchsorted(tree, own)

    def covered(nodes: Ints, at: Ints, exact: Bools) -> Floats:
        """Return the share of nodes' places that is inside the tree's nodes beside them."""
        of = at_tree[np.searchsorted(e.node, nodes)]
        (first, past), (low, high) = (code_range(tree[which], place.total_bits) for which in (of, at))
        part = np.minimum(measure[at] / measure[of], 1 - 1e-12)
        return np.where((low <= first) & (past <= high), 1.0, np.where((first <= low) & (high <= past), part, 0.0))

    share = _Sharing(place, tree, leaf)
    cells = distinct(own[e.leaf])
    value, unbiased = (share.down(_sums(tree, cells, column[e.leaf])) for column in (e.count, e.unbiased))
    noise = share.down(_sums(tree, cells, e.variance[e.leaf]), power=2)
    worth = np.flatnonzero((value >= max(_FEWEST, value[0] / _CELLS)) | (tree == ROOT))
    noise[worth] = answer_by_descent(domain, e, worth, covered)[2]
    points = share.points(_sums(tree, cells, e.points[e.leaf]), key)
    recent = value * (e.uncounted[0] / max(e.count[0], 1.0))
    if e.share_variance.any():
        return Estimate(tree, leaf, value, unbiased, noise, 0 * noise, points, share.variances(value, noise), recent)
    return Estimate(tree, leaf, value, unbiased, noise, share.own(noise), points, uncounted=recent)


def marginal_points(domain: Product, nodes: Ints, points: Ints, key: int) -> tuple[Ints, Ints]:
    """Return the cells of the marginal of an earlier release, given its cells, and how many points each has."""
    if not nodes.size:
        return nodes, points
    place, own = domain.parts[0], distinct(domain.part_nodes(nodes, 0))
    tree = _tree(place, own[0])
    leaf = ~np.isin(tree, _above(place, tree))
    found = _Sharing(place, tree, leaf).points(_sums(tree, own, points), key)[leaf]
    order = np.argsort(place.code_range(tree[leaf])[0], kind="stable")
    return tree[leaf][order], found[order]


def _above(place: Domain, nodes: Ints) -> Ints:
    """Return the parents of nodes, each once."""
    below_root = nodes[nodes != ROOT]
    bits = np.array([0, *place.level_bits])[place.levels(below_root)]
    return np.unique(below_root >> bits)


def _tree(place: Domain, nodes: Ints) -> Ints:
    """Return the smallest tree in which all these are nodes: the root, and whole families below it."""
    inner, step = [np.zeros(0, np.int64)], nodes
    while (step := _above(place, step)).size:
        inner.append(step)
    opened = np.unique(np.concatenate(inner))
    levels = place.levels(opened)
    families = [place.children(opened[levels == level])[0] for level in np.unique(levels)]
    return np.sort(np.concatenate([np.array([ROOT]), *families]))


def _sums(tree: Ints, cells: tuple[Ints, Ints], column: NDArray[Any]) -> NDArray[Any]:
    """Return what the tree's nodes have, given that of cells: the different nodes they lie in, and which each is in."""
    of_nodes = np.zeros(cells[0].size, dtype=column.dtype)
    np.add.at(of_nodes, cells[1], column)
    whole = np.zeros(tree.size, dtype=column.dtype)
    whole[np.searchsorted(tree, cells[0])] = of_nodes
    return whole


class _Sharing:
    """Hands what nodes have as a whole down to the leaves, by measure, and adds up again."""

    def __init__(self, place: Domain, tree: Ints, leaf: Bools) -> None:
        self._tree, self._levels = tree, list[tuple[Ints, Ints, Ints, Floats]]()
        levels = place.levels(tree)
        for level in range(place.depth):
            opened = np.flatnonzero((levels == level) & ~leaf)
            if opened.size:
                children, parent, share = place.children(tree[opened])
                self._levels.append((opened, np.searchsorted(tree, children), parent, share))

    def down(self, amounts: Floats, power: int = 1) -> Floats:
        """Return the amounts of all nodes, those inside them included; variances are shared by the square."""
        for opened, at, parent, share in self._levels:
            amounts[at] += amounts[opened][parent] * share**power
        return self._added(amounts)

    def points(self, number: Ints, key: int) -> Ints:
        """Return the same of whole points."""
        for opened, at, parent, share in self._levels:
            number[at] += divide_among_children(number[opened], parent, share, self._tree[opened], key)
        return self._added(number)

    def _added(self, amounts: NDArray[Any]) -> NDArray[Any]:
        for opened, at, parent, _ in reversed(self._levels):
            amounts[opened] = 0
            np.add.at(amounts, opened[parent], amounts[at])
        return amounts

    def own(self, noise: Floats) -> Floats:
        """Return the part of each node's noise that is not its children's."""
        own = noise.copy()
        for opened, at, parent, _ in self._levels:
            own[opened] = np.maximum(noise[opened] - np.bincount(parent, noise[at], opened.size), 0)
        return own

    def variances(self, count: Floats, noise: Floats) -> Floats:
        """Return variances of shares such that each node's noise follows from its parent's and its own."""
        variance: Floats = np.zeros(count.size)
        variance[0] = noise[0]
        for opened, at, parent, _ in self._levels:
            above, siblings = opened[parent], np.bincount(parent)[parent]
            part = np.divide(count[at], count[above], out=np.zeros(at.size), where=count[above] > 0)
            own = np.maximum(noise[at] - part**2 * noise[above], 0)
            variance[at] = own * siblings / np.maximum(siblings - 1, 1)
        return variance
