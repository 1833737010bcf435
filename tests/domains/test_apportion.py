"""Whole counts apportioned to children: they add up, without bias, always the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phdstream.arrays import Floats, Ints
from phdstream.domains import divide_among_children
from tests import plain


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


@given(st.data(), st.integers(0, 2**62), st.booleans())
def test_points_are_dealt_as_by_halving_each_family(data: st.DataObject, key: int, same_size: bool) -> None:
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    sizes = [sizes[0]] * len(sizes) if same_size else sizes
    share = st.one_of(st.just(0.0), st.floats(0, 1e3))
    shares = [data.draw(st.lists(share, min_size=n, max_size=n).filter(any)) for n in sizes]
    counts = data.draw(st.lists(st.integers(0, 10**6), min_size=len(sizes), max_size=len(sizes)))
    nodes = data.draw(st.lists(st.integers(1, 2**55), min_size=len(sizes), max_size=len(sizes)))
    parent = np.repeat(np.arange(len(sizes)), sizes)
    dealt = divide_among_children(np.array(counts), parent, np.concatenate(shares), np.array(nodes), key)
    expected = [plain.deal(c, s, n, key) for c, s, n in zip(counts, shares, nodes, strict=True)]
    assert dealt.tolist() == [number for family in expected for number in family]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.77])
def test_dealing_has_no_bias_for_any_of_several_kin(share: float) -> None:
    nodes, counts, parent = np.arange(64, 68), np.array([1, 3, 1, 10]), np.repeat(np.arange(4), 2)
    shares = np.tile([share, 1 - share], 4)
    dealt = [divide_among_children(counts, parent, shares, nodes, key)[::2] for key in range(4000)]
    np.testing.assert_allclose(np.mean(dealt, axis=0), share * counts, atol=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("top", [1, 5, 64, 12345])
def test_dealing_has_no_bias_over_several_levels(top: int) -> None:
    """Offsets of a part and of those it lies in are independent: the expectation is the product of the shares."""
    first_shares, count = (0.77, 0.3, 0.5), 2
    dealt = np.zeros((4000, 8))
    for key in range(4000):
        nodes, counts = np.array([top]), np.array([count])
        for share in first_shares:
            parent = np.repeat(np.arange(nodes.size), 2)
            counts = divide_among_children(counts, parent, np.tile([share, 1 - share], nodes.size), nodes, key)
            nodes = np.stack([2 * nodes, 2 * nodes + 1], axis=1).ravel()
        dealt[key] = counts
    expected = count * np.array([1.0])
    for share in first_shares:
        expected = np.outer(expected, [share, 1 - share]).ravel()
    np.testing.assert_allclose(dealt.mean(axis=0), expected, atol=0.04)
