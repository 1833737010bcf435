"""Neighbours by pointers, against the arithmetic of codes (`BinaryTree.neighbours`)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phdstream as phd
from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import Domain
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.neighbours import Neighbours
from phdstream.streams.tracking.model.walk import walk

DOMAINS = {
    "line": phd.Box([(0, 1)], depth=7),
    "plane": phd.Box([(0, 1), (0, 1)], depth=8),
    "plane by quarters": phd.Box([(0, 1), (0, 1)], fanout=4, depth=4),
    "space": phd.Box([(0, 1)] * 3, depth=9),
    "with attributes": phd.Product(phd.Box([(0, 1), (0, 1)], depth=6), phd.Category("kind", ["a", "b", "c"])),
}


class Walker:
    """Opens nodes at random; compares what lies beside them with what arithmetic and a search say."""

    def __init__(self, tree: BinaryTree, rng: np.random.Generator, often: float) -> None:
        self._tree, self._rng, self._often = tree, rng, often
        self._neighbours = Neighbours(tree)
        self._cells: dict[int, tuple[int, int]] = {}
        self.compared = 0

    def opens(self, nodes: Ints, amounts: Floats, bits: int) -> Bools:
        opened: Bools = self._rng.random(nodes.size) < self._often
        first = self._neighbours.go_on(nodes.size, np.flatnonzero(opened))
        self._cells |= {first + i: (int(node), bits) for i, node in enumerate(nodes)}
        return opened

    def halve(self, nodes: Ints, amounts: Floats, bits: int) -> Floats:
        axis = self._tree.axes[bits]
        expected = self._tree.neighbours(nodes, bits)
        cells, among = self._neighbours.cells(axis), self._neighbours.among_opened(axis)
        for (beside, there), numbers, at in zip(expected, cells, among, strict=True):
            for i in range(nodes.size):
                self.compared += 1
                if not there[i]:
                    assert (numbers[i], at[i]) == (0, -1)
                    continue
                node, length = self._cells[int(numbers[i])]
                assert node == beside[i] >> (bits - length)  # the node itself, or the cell that ended there
                assert at[i] == (nodes.tolist().index(beside[i]) if beside[i] in nodes else -1)
        return np.stack([amounts, amounts], axis=2)


@pytest.mark.parametrize("name", DOMAINS)
@given(seed=st.integers(0, 10_000), often=st.floats(0.6, 1))
def test_they_are_those_of_the_codes(name: str, seed: int, often: float) -> None:
    domain: Domain = DOMAINS[name]
    tree = BinaryTree(domain)
    walker = Walker(tree, np.random.default_rng(seed), often)
    walk(min(tree.total_bits, 7), np.array([1]), np.ones((1, 1)), walker.opens, walker.halve)


def test_where_all_are_opened_all_inner_nodes_have_two() -> None:
    walker = Walker(BinaryTree(DOMAINS["plane"]), np.random.default_rng(1), 1.1)
    walk(6, np.array([1]), np.ones((1, 1)), walker.opens, walker.halve)
    assert walker.compared == 2 * 63
