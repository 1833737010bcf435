"""The binary view of a domain's tree, and prefixes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.domains.binary_tree import BinaryTree
from phdstream.domains.prefixes import are_disjoint, code_range


@settings(max_examples=60, deadline=None)
@given(dimension=st.integers(1, 3), bits=st.integers(0, 9), seed=st.integers(0, 999))
def test_neighbours_touch_along_the_coordinate_halved_next(dimension: int, bits: int, seed: int) -> None:
    box = phd.Box([(0, 1)] * dimension, depth=12)
    nodes = np.unique(np.random.default_rng(seed).integers(1 << bits, 2 << bits, 8))
    axis, mine = bits % dimension, box.bounds(nodes)
    others = [i for i in range(2 * dimension) if i % dimension != axis]
    for side, (beside, there) in enumerate(BinaryTree(box).neighbours(nodes, bits)):
        edge, its = ((axis, dimension + axis), (dimension + axis, axis))[side]
        np.testing.assert_array_equal(there, mine[:, edge] != side)
        found = box.bounds(beside[there])
        np.testing.assert_array_equal(found[:, its], mine[there, edge])
        np.testing.assert_array_equal(found[:, others], mine[there][:, others])


@given(st.lists(st.integers(1, 127), min_size=1, max_size=8))
def test_disjoint_means_that_no_code_lies_in_two(nodes: list[int]) -> None:
    first, past = code_range(np.array(nodes), 6)
    inside = [sum(int(a <= code < b) for a, b in zip(first, past, strict=True)) for code in range(64)]
    assert are_disjoint(np.array(nodes), 6) == (max(inside) <= 1)
