"""The public side of selection: the projection that makes the score monotone, and the tree it plans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phdstream as phd
from phdstream.streams.paper.counters import Simple
from phdstream.streams.paper.model.nodes import NodeStore
from phdstream.streams.paper.model.selection import Level, TreePlan, project

amounts = st.floats(-1e9, 1e9)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_families_are_the_distinct_parents(parents: list[int]) -> None:
    parent = np.sort(np.array(parents))
    distinct, family = np.unique(parent, return_inverse=True)
    found = Level(parent, parent, parent > 0).families()
    assert [part.tolist() for part in found] == [distinct.tolist(), family.tolist()]


@given(st.lists(st.tuples(st.floats(0, 1e12), st.lists(amounts, min_size=1, max_size=5)), min_size=1, max_size=5))
def test_no_child_is_projected_above_its_parent_also_after_rounding(families: list[tuple[float, list[float]]]) -> None:
    """What the mechanism checks, and the proof needs: whatever was released, however negative."""
    mass = np.array([mass for mass, _ in families])
    sizes = [len(children) for _, children in families]
    parent = np.repeat(np.arange(mass.size), sizes)
    released = np.concatenate([children for _, children in families])
    share = np.repeat([1 / size for size in sizes], sizes)
    projected = project(mass, released, parent, share)
    assert (projected >= 0).all()
    assert (np.floor(projected) <= np.floor(mass)[parent]).all()
    np.testing.assert_allclose(np.bincount(parent, weights=projected), mass, rtol=1e-9, atol=1e-300)
    positive = np.bincount(parent, weights=np.maximum(released, 0))[parent] > 0
    assert (projected[positive & (released <= 0)] == 0).all()


def planned(max_nodes: int, *outcomes: list[bool]) -> TreePlan:
    plan = TreePlan(NodeStore(phd.Box([(0, 1)], depth=3), Simple(1.0)), max_nodes)
    for splits in outcomes:
        plan.split(np.array(splits))
    return plan


def test_the_next_level_is_the_children_of_what_split() -> None:
    plan = planned(100, [True], [False, True])
    assert (plan.nodes.tolist(), plan.bits) == ([6, 7], 2)
    plan.split(np.array([True, False]))
    assert plan.nodes.size == 0  # the last level is not tested: it cannot split
    assert [level.leaf.tolist() for level in plan.levels] == [[False], [True, False], [False, True], [True, True]]


@pytest.mark.parametrize(("max_nodes", "levels"), [(2, 1), (3, 2), (6, 2), (7, 3), (15, 4)])
def test_a_level_that_would_be_too_many_is_left_out(max_nodes: int, levels: int) -> None:
    plan = planned(max_nodes)
    while plan.nodes.size:
        plan.split(np.ones(plan.nodes.size, dtype=bool))
    assert len(plan.levels) == levels
    assert sum(level.rows.size for level in plan.levels) <= max_nodes
    assert plan.levels[-1].leaf.all()
