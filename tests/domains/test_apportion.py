"""Whole counts apportioned to children: they add up, without bias, always the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phdstream.arrays import Floats, Ints
from phdstream.domains import divide_among_children


@st.composite
def families(draw: st.DrawFn) -> tuple[Ints, Ints, Floats, Ints, int]:
    """Counts of parents; for each child its parent and its share; a node for each parent; a key."""
    weights = draw(st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=9), min_size=1, max_size=6))
    weights = [w if sum(w) else [1, *w] for w in weights]
    counts = draw(st.lists(st.integers(0, 10**6), min_size=len(weights), max_size=len(weights)))
    parent = np.repeat(np.arange(len(weights)), [len(w) for w in weights])
    share = np.concatenate([np.array(w) / sum(w) for w in weights])
    nodes = draw(st.integers(1, 2**40)) + np.arange(len(weights))
    return np.array(counts), parent, share, nodes, draw(st.integers(0, 2**62 - 1))


@given(families())
def test_each_family_adds_up_to_its_parent(family: Any) -> None:
    counts, parent, *_ = family
    divided = divide_among_children(*family)
    assert (divided >= 0).all()
    assert np.bincount(parent, weights=divided).tolist() == counts.tolist()


@given(families())
def test_each_child_is_within_one_per_halving_of_its_share(family: Any) -> None:
    counts, parent, share, *_ = family
    halvings = np.ceil(np.log2(np.bincount(parent)))[parent]
    assert (np.abs(divide_among_children(*family) - counts[parent] * share) <= halvings + 1e-6).all()


@given(families())
def test_a_child_without_a_share_gets_nothing(family: Any) -> None:
    _, _, share, *_ = family
    assert (divide_among_children(*family)[share == 0] == 0).all()


@given(families())
def test_one_more_to_divide_is_one_more_for_exactly_one_child(family: Any) -> None:
    counts, *rest = family
    more = divide_among_children(counts + 1, *rest) - divide_among_children(counts, *rest)
    assert set(more.tolist()) <= {0, 1}
    assert np.bincount(rest[0], weights=more).tolist() == [1] * counts.size


@given(families())
def test_a_family_is_divided_alike_whatever_families_stand_beside_it(family: Any) -> None:
    counts, parent, share, nodes, key = family
    alone = [
        divide_among_children(counts[[i]], np.zeros((parent == i).sum(), int), share[parent == i], nodes[[i]], key)
        for i in range(counts.size)
    ]
    assert np.concatenate(alone).tolist() == divide_among_children(*family).tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("weights", [[1, 1], [1, 1, 1, 1], [1] * 8, [3, 1], [1, 2, 4], [5, 0, 1, 1, 90]])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_expectation_is_the_share(weights: list[int], count: int) -> None:
    many, share = 20_000, np.array(weights) / sum(weights)
    parent, nodes = np.repeat(np.arange(many), len(weights)), np.arange(1, many + 1)
    divided = divide_among_children(np.full(many, count), parent, np.tile(share, many), nodes, key=77)
    error = divided.reshape(many, -1).mean(axis=0) - count * share
    assert (np.abs(error) < 5.5 * np.sqrt(count * share * (1 - share) / many) + 1e-12).all()


@pytest.mark.parametrize("offset", [0.0, 0.5, float(np.nextafter(1, 0))])
@pytest.mark.parametrize("count", [1, 3, 1000, 10**6, 10**12, 10**15])
def test_a_family_adds_up_at_any_rounding(monkeypatch: pytest.MonkeyPatch, offset: float, count: int) -> None:
    monkeypatch.setattr("phdstream.domains.apportion.hash_uniform", lambda key, nodes: np.full(np.shape(nodes), offset))
    for children in (1, 2, 3, 8):
        family = np.zeros(children, int), np.full(children, 1 / children)
        divided = divide_among_children(np.array([count]), *family, np.array([1]), key=1)
        assert divided.sum() == count
        assert (divided >= 0).all()


def test_no_families_no_counts() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert divide_among_children(nothing, nothing, np.zeros(0), nothing, key=1).size == 0
