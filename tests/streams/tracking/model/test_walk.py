"""The one walk over the binary tree, against plain recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phdstream as phd
from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.split_tree import UNIFORM, by_contrast
from phdstream.streams.tracking.model.walk import leaves_of

LINE = BinaryTree(phd.Box([(0, 1)], depth=6))
EVENLY = by_contrast(LINE, (UNIFORM,))


@pytest.mark.parametrize("begin", [{1: 1000.0}, {2: 100.0, 6: 0.0, 7: 900.0}], ids=["the root", "several nodes"])
def test_no_more_are_opened_than_allowed(begin: dict[int, float]) -> None:
    start, held = np.array(list(begin)), np.array([list(begin.values())])
    for limit in (1, 2, 3, 5, 33):
        nodes, _ = leaves_of(6, start, held, lambda _, amounts, __: amounts[0] > 10, EVENLY, limit)
        assert nodes.size <= max(limit, start.size)
        first, past = (np.sort(ends) for ends in LINE.code_range(nodes))
        np.testing.assert_array_equal(first[1:], past[:-1])


def plainly(node: int, amount: float, opened: set[int], shares: dict[int, float]) -> dict[int, float]:
    """Return the unopened nodes below a node, and their amounts, one node at a time."""
    if node not in opened or node >= 64:
        return {node: amount}
    share = shares[node]
    return plainly(2 * node, amount * share, opened, shares) | plainly(
        2 * node + 1, amount * (1 - share), opened, shares
    )


@given(seed=st.integers(0, 10_000), often=st.floats(0.1, 1), begin=st.sampled_from([(1,), (3, 2), (2, 7, 12, 13)]))
def test_it_is_recursion_level_by_level(seed: int, often: float, begin: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    opened = set(np.flatnonzero(rng.random(128) < often).tolist())
    shares = dict(enumerate(rng.random(128)))
    amounts = rng.random((1, len(begin)))

    def opens(nodes: Ints, amounts: Floats, bits: int) -> Bools:
        assert (np.diff(nodes) > 0).all()
        assert (LINE.bits(nodes) == bits).all()
        assert amounts.shape == (1, nodes.size)
        return np.array([node in opened for node in nodes.tolist()], dtype=bool)

    def halve(nodes: Ints, amounts: Floats, bits: int) -> Floats:
        first = amounts * np.array([shares[node] for node in nodes.tolist()])
        return np.stack([first, amounts - first], axis=2)

    nodes, found = leaves_of(6, np.array(begin), amounts, opens, halve)
    expected: dict[int, float] = {}
    for node, amount in zip(begin, amounts[0], strict=True):
        expected |= plainly(node, float(amount), opened, shares)
    assert nodes.tolist() == sorted(expected, key=lambda node: (node.bit_length(), node))
    np.testing.assert_allclose(found[0], [expected[node] for node in nodes.tolist()])
