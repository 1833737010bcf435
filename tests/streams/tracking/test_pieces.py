"""Pieces of a fine count: every part of noise belongs to one piece, and none is divided that is not there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phdstream.arrays import Ints
from phdstream.domains.prefixes import are_disjoint, prefix_length
from phdstream.errors import StateError
from phdstream.streams.tracking.pieces import Pieces

BITS = 5


def inside(node: int, other: int) -> bool:
    return node >= other and node >> (node.bit_length() - other.bit_length()) == other


def halved(node: int, times: int) -> list[int]:
    return [(node << times) + i for i in range(1 << times)]


@st.composite
def divisions(draw: st.DrawFn) -> list[tuple[list[int], int]]:
    """Stages of a fine count: nodes to begin with, then what they are divided into, with fewer and fewer halvings."""
    first = draw(st.sampled_from([[1], [2, 3], [3, 4, 10], [9, 5, 7]]))
    levels = draw(st.integers(0, 4))
    stages, left = [(first, levels)], {node: min(levels, BITS - node.bit_length() + 1) for node in first}
    for _ in range(draw(st.integers(1, 3))):
        after: dict[int, int] = {}
        more = draw(st.integers(0, 3))
        for node, may in left.items():
            kept, now = [node], draw(st.integers(0, may))
            for _ in range(now):  # divide some of the pieces, not all
                kept = [half for piece in kept for half in (halved(piece, 1) if draw(st.booleans()) else [piece])]
            for piece in kept:
                after[piece] = min(may - (piece.bit_length() - node.bit_length()), more)
        stages.append((list(after), more))
        left = after
    return stages


@given(divisions())
def test_every_part_of_noise_belongs_to_one_piece(stages: list[tuple[list[int], int]]) -> None:
    """And a piece's parts are among those of the piece it was cut from: that is what the proof needs."""
    (nodes, levels), *later = stages
    pieces = Pieces.whole(BITS, np.array(nodes), levels)
    total = int(pieces.parts.sum())
    owners = runs(pieces)
    assert sorted(part for run in owners.values() for part in run) == list(range(total))
    for nodes, levels in later:
        pieces = pieces.divided(np.array(nodes), levels)
        after = runs(pieces)
        assert sum(map(len, after.values())) == len({part for run in after.values() for part in run})  # each once
        for node, run in after.items():
            (parent,) = [other for other in owners if inside(node, other)]
            assert set(run) <= set(owners[parent])
        owners = after
        assert (pieces.levels <= levels).all()
        assert are_disjoint(pieces.node, BITS)


def runs(pieces: Pieces) -> dict[int, range]:
    return {
        node: range(first, first + parts)
        for node, first, parts in zip(pieces.node.tolist(), pieces.first.tolist(), pieces.parts.tolist(), strict=True)
    }


@given(divisions(), st.integers(0, BITS))
def test_what_may_be_halved_can_be_and_nothing_else(stages: list[tuple[list[int], int]], bits: int) -> None:
    pieces = Pieces.whole(BITS, np.array(stages[0][0]), stages[0][1])
    level = np.array([n for n in range(1 << bits, 2 << bits) if any(inside(n, other) for other in stages[0][0])])
    if not level.size:
        return
    may = pieces.may_halve(level, bits)
    for node, halvable in zip(level.tolist(), may.tolist(), strict=True):
        halves = np.array(halved(node, 1))
        (piece,) = [other for other in stages[0][0] if inside(node, other)]
        times = node.bit_length() - piece.bit_length()
        assert halvable == (times < min(stages[0][1], BITS - piece.bit_length() + 1))
        if bits < BITS:
            if halvable:
                pieces.divided(halves, 0)
            else:
                with pytest.raises(StateError, match="not there"):
                    pieces.divided(halves, 0)


@pytest.mark.parametrize("nodes", [[1, 2], [2, 2], [3, 7], [5, 2], [4, 5, 6, 7, 13]], ids=str)
def test_overlapping_nodes_are_refused(nodes: list[int]) -> None:
    with pytest.raises(StateError, match="twice"):
        Pieces.whole(BITS, np.array(nodes), 1)
    with pytest.raises(StateError, match="twice"):
        Pieces.whole(BITS, np.array([1]), 4).divided(np.array(nodes), 0)


def test_nodes_below_the_tree_are_refused() -> None:
    with pytest.raises(StateError, match="twice"):
        Pieces.whole(BITS, np.array([1 << (BITS + 1)]), 0)


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([6], "beside"),
        ([4, 3], "beside, among others"),
        ([1], "above"),
        ([32], "finer than there is noise"),
        ([8, 9, 40], "one finer than there is noise"),
        ([16], "one halving too many"),
    ],
)
def test_pieces_outside_their_parent_or_finer_than_the_noise_are_refused(nodes: list[int], why: str) -> None:
    pieces = Pieces.whole(BITS, np.array([4, 5]), 1)
    with pytest.raises(StateError, match=r"not there|twice"):
        pieces.divided(np.array(nodes), 0)


def test_noise_that_was_dropped_is_not_there_any_more() -> None:
    """A piece that was to be halved once more, and dropped the rest, cannot be halved twice later."""
    pieces = Pieces.whole(BITS, np.array([1]), 3).divided(np.array([2, 3]), 1)
    assert pieces.parts.tolist() == [2, 2]
    assert pieces.divided(np.array([4, 5, 3]), 0).parts.tolist() == [1, 1, 1]
    with pytest.raises(StateError, match="not there"):
        pieces.divided(np.array([8, 9, 5, 3]), 0)


def test_no_node_may_be_halved_beyond_the_tree() -> None:
    nodes: Ints = np.array([2, 12, 56, 63])
    pieces = Pieces.whole(BITS, nodes, 4)
    assert pieces.levels.tolist() == [4, 2, 0, 0]
    assert (prefix_length(nodes) + pieces.levels <= BITS).all()
    with pytest.raises(StateError):
        Pieces(BITS, nodes, pieces.first, pieces.levels - 1)


def test_pieces_of_uneven_depth_share_no_noise() -> None:
    """Two of them with one part of noise between them would give away their difference."""
    pieces = Pieces.whole(3, np.array([1]), 3).divided(np.array([4, 5, 3]), 0)
    assert pieces.first.tolist() == [0, 2, 4]
    assert pieces.parts.tolist() == [1, 1, 1]
