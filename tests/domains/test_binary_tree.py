"""The binary view of a domain's tree, and prefixes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phdstream as phd
from phdstream.domains import ROOT, Domain
from phdstream.domains.binary_tree import BinaryTree
from phdstream.domains.prefixes import are_disjoint, code_range, prefix_length
from tests.domains.test_every_domain import DOMAINS


@pytest.mark.parametrize("make", DOMAINS.values(), ids=DOMAINS)
def test_halves_have_the_domains_measure(make: Callable[[], Domain]) -> None:
    """Sums over the binary view, down to the domain's second level, are the domain's own measures."""
    domain = make()
    tree, nodes, part = BinaryTree(domain), np.array([ROOT]), np.ones(1)
    last = int(domain.bits_through[min(2, domain.depth)])
    for bits in range(last):
        assert tree.is_level(bits) == (bits in domain.bits_through)
        first = tree.first_share(nodes, bits)
        part = np.stack([part * first, part * (1 - first)], axis=1).ravel()
        nodes = np.stack([2 * nodes, 2 * nodes + 1], axis=1).ravel()
        nodes, part = nodes[part > 0], part[part > 0]
    np.testing.assert_allclose(part, domain.measure(nodes) / domain.measure(np.array([ROOT]))[0], rtol=1e-6)


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


@given(st.integers(0, 61), st.lists(st.integers(0, 2**61), min_size=1, max_size=8))
def test_a_prefix_is_as_long_as_its_bits(bits: int, numbers: list[int]) -> None:
    nodes = np.array([(1 << bits) | (number % (1 << bits)) for number in numbers], dtype=np.int64)
    assert prefix_length(nodes).tolist() == [bits] * nodes.size
    first, past = code_range(nodes, 61)
    assert [ends.tolist() for ends in code_range(nodes, 61, bits)] == [first.tolist(), past.tolist()]
    assert (past - first).tolist() == [1 << (61 - bits)] * nodes.size
    assert ((1 << bits) | (first >> (61 - bits))).tolist() == nodes.tolist()
