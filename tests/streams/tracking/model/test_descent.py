"""Walks by links, against searching."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phdstream.arrays import Bools, Floats, Ints
from phdstream.streams.tracking.model.descent import Places, masses
from phdstream.streams.tracking.model.links import Links
from phdstream.streams.tracking.model.split_tree import SplitTree
from phdstream.streams.tracking.model.walk import walk


def test_masses_fall_from_the_root() -> None:
    splits = SplitTree(np.array([1, 2, 5]), np.array([0.6, -0.2, 0.9]), np.array([0.1, 0.1, 0.1]))
    np.testing.assert_allclose(masses(splits, 100.0), [100, 80, 48])


def at_random(seed: int, often: float, closed: bool) -> SplitTree:
    """Return a tree of random nodes; a closed one has their parents too."""
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(rng.random(64) < often)
    nodes = np.unique(np.concatenate([chosen >> i for i in range(6)])) if closed else chosen
    nodes = nodes[nodes > 0]
    return SplitTree(nodes, rng.uniform(-1, 1, nodes.size), rng.random(nodes.size))


@given(seed=st.integers(0, 10_000), often=st.floats(0, 1), closed=st.booleans())
def test_links_find_what_a_search_finds(seed: int, often: float, closed: bool) -> None:
    splits = at_random(seed, often, closed)
    nodes = splits.node.tolist()
    expected = [[nodes.index(half) if half in nodes else len(nodes) for half in (2 * n, 2 * n + 1)] for n in nodes]
    assert splits.links.halves.tolist() == [*expected, [len(nodes)] * 2]
    assert splits.links.closed == all(node == 1 or node >> 1 in nodes for node in nodes)


@given(seed=st.integers(0, 10_000), often=st.floats(0, 1), closed=st.booleans(), opened=st.floats(0.3, 1))
def test_places_follow_any_walk_from_the_root(seed: int, often: float, closed: bool, opened: float) -> None:
    splits, rng = at_random(seed, often, closed), np.random.default_rng(seed + 1)
    places = Places(splits)

    def opens(nodes: Ints, amounts: Floats, bits: int) -> Bools:
        at, found = splits.find(nodes)
        np.testing.assert_array_equal(places.go_on(nodes), found)
        np.testing.assert_array_equal(places.at, np.where(found, at, splits.node.size))
        chosen: Bools = rng.random(nodes.size) < opened
        np.testing.assert_array_equal(places.open(np.flatnonzero(chosen)), places.at[chosen])
        return chosen

    walk(6, np.array([1]), np.ones((1, 1)), opens, lambda _, amounts, __: np.stack([amounts, amounts], axis=2))


def test_a_walk_gives_its_nodes_links() -> None:
    nodes, slots = np.array([1, 2, 3, 5, 6, 10]), np.array([0, 1, 3, 4, 6])
    links = Links.of_walk(nodes, slots)
    np.testing.assert_array_equal(links.halves, Links(nodes).halves)
    assert links.closed


def test_masses_stop_where_a_node_is_not_known() -> None:
    splits = SplitTree(np.array([1, 2, 6]), np.array([0.5, 0.0, 0.5]), np.full(3, 0.1))
    assert masses(splits, 8.0).tolist() == [8, 6, 0]
