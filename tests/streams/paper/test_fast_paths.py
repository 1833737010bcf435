"""Fast code gives the same results, to the bit, as the plain code of `tests.plain`: for any sizes, cuts and threads."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.domains import chunks, divide_among_children, hash_uniform
from phdstream.release.changes import difference as _difference
from phdstream.streams import code_counts
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.paper.model.selection import Level
from tests import plain

BOXES = [
    phd.Box([(0, 1), (0, 1)]),
    phd.Box([(0, 1), (0, 1)], depth=27),
    phd.Box([(-74.3, -73.7), (40.5, 41.0)], fanout=4, depth=9),
    phd.Box([(-1e-3, 7.0)], depth=14),
    phd.Box([(0, 3), (-5, 5), (1e6, 1e6 + 1)], fanout=8, depth=4),
    phd.Box([(0, 3), (-5, 5), (0, 1)], depth=4),
]
every_box = pytest.mark.parametrize("box", BOXES, ids=repr)


def on_and_off_the_edges(box: phd.Box, rng: np.random.Generator, number: int) -> np.ndarray:
    """Points anywhere, on dividing lines, the least step beside them, outside, and not numbers at all."""
    points = np.empty((number, box.dimension))
    for axis in range(box.dimension):
        edges = box.edges(axis)
        kind = rng.integers(5, size=number)
        x = rng.uniform(edges[0], edges[-1], number)
        on = rng.choice(edges, number)
        x = np.choose(kind, [x, on, np.nextafter(on, -np.inf), np.nextafter(on, np.inf), x])
        points[:, axis] = x
    points[rng.random(points.shape) < 0.01] = np.nan
    points[rng.random(points.shape) < 0.01] = -np.inf
    return points


@every_box
def test_codes_are_those_of_halving_step_by_step(box: Any) -> None:
    points = on_and_off_the_edges(box, np.random.default_rng(1), 2000)
    codes, inside = box.encode(points)
    assert list(zip(codes.tolist(), inside.tolist(), strict=True)) == [plain.encode(box, tuple(p)) for p in points]


@every_box
def test_neither_cuts_nor_threads_show_in_codes(box: Any, monkeypatch: Any) -> None:
    points = on_and_off_the_edges(box, np.random.default_rng(2), 5000)
    whole = box.encode(points)
    monkeypatch.setattr(chunks, "_ROWS", 37)
    monkeypatch.setattr(chunks, "_WORTH_THREADS", 10)
    for rows in (5000, 4999, 11, 1, 0):
        for part, all_of_it in zip(box.encode(points[:rows]), whole, strict=True):
            np.testing.assert_array_equal(part, all_of_it[:rows])


def test_an_error_in_a_thread_is_not_lost(monkeypatch: Any) -> None:
    monkeypatch.setattr(chunks, "_WORTH_THREADS", 1)

    def fail(rows: Any) -> None:
        if rows.stop == 100:
            raise ValueError("at the end")

    with pytest.raises(ValueError, match="at the end"):
        chunks.in_chunks(fail, 100)


# --- counting ---


@pytest.mark.parametrize("few", [0, 1 << 11])
@pytest.mark.parametrize("leading", [2, 5, 20])
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_counts_are_those_of_prefixes_in_any_order_of_asking(few: Any, leading: Any, data: Any) -> None:
    box = phd.Box([(0, 1), (0, 1)], depth=data.draw(st.integers(1, 9)))
    codes = data.draw(st.lists(st.integers(0, (1 << box.total_bits) - 1), max_size=40))
    asked = data.draw(st.lists(st.lists(st.integers(1, (2 << box.total_bits) - 1), min_size=1, max_size=6), max_size=6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_counts, "_FEW", few)
        patch.setattr(code_counts, "_LEADING_BITS", (leading, leading))
        counts = CodeCounts(np.array(codes, dtype=np.int64), box.total_bits)
        for nodes in asked:
            assert counts.within(np.array(nodes)).tolist() == [plain.count(box, codes, node) for node in nodes]
        for level in range(box.depth + 1):
            nodes = np.arange(1 << level, min(2 << level, (1 << level) + 50))
            assert counts.within(nodes, level).tolist() == counts.within(nodes).tolist()


def test_only_events_where_nodes_are_asked_for_are_sorted() -> None:
    box = phd.Box([(0, 1), (0, 1)], depth=30)
    codes = np.r_[0, np.random.default_rng(1).integers(1 << 30, size=100_000)]
    counts = CodeCounts(codes, box.total_bits)
    assert counts.within(np.arange(1 << 12, 1 << 13)).sum() == codes.size
    assert counts._sorted.size == 0
    deep = np.array([1 << 25])
    assert counts.within(deep)[0] == (codes >> 5 == 0).sum()
    assert 0 < counts._sorted.size < 10


# --- the tree ---


@settings(deadline=None)
@given(st.data(), st.integers(0, 2**62), st.booleans())
def test_points_are_dealt_as_by_halving_each_family(data: Any, key: Any, same_size: Any) -> None:
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
def test_dealing_has_no_bias_for_any_of_several_kin(share: Any) -> None:
    nodes, counts, parent = np.arange(64, 68), np.array([1, 3, 1, 10]), np.repeat(np.arange(4), 2)
    shares = np.tile([share, 1 - share], 4)
    dealt = [divide_among_children(counts, parent, shares, nodes, key)[::2] for key in range(4000)]
    np.testing.assert_allclose(np.mean(dealt, axis=0), share * counts, atol=0.04)


@pytest.mark.parametrize("top", [1, 5, 64, 12345])
def test_dealing_has_no_bias_over_several_levels(top: Any) -> None:
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


@given(st.integers(0, 2**62), st.lists(st.integers(0, 2**62), min_size=1), st.integers(0, 2**40))
def test_hashes_are_splitmix(key: Any, nodes: Any, salt: Any) -> None:
    array = np.array(nodes)
    expected = [plain.hash_uniform(key, node, salt) for node in nodes]
    assert hash_uniform(key, array, salt).tolist() == expected
    assert hash_uniform(key, array, np.full(array.size, salt)).tolist() == expected
    assert array.tolist() == nodes


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_families_are_the_distinct_parents(parents: Any) -> None:
    parent = np.sort(np.array(parents))
    distinct, family = np.unique(parent, return_inverse=True)
    found = Level(parent, parent, parent > 0).families()
    assert [part.tolist() for part in found] == [distinct.tolist(), family.tolist()]


# --- changes ---


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30))
def test_the_difference_of_rows_counts_repeats(come: Any, gone: Any) -> None:
    rows = np.array([[0.5, -1.0], [0.5, 2.0], [-3.0, 0.0], [-3.0, -0.5]])
    new, old = _difference(rows[come], rows[gone])
    assert new.shape[1] == old.shape[1] == 2
    assert Counter(map(tuple, new)) == Counter(map(tuple, rows[come])) - Counter(map(tuple, rows[gone]))
    assert Counter(map(tuple, old)) == Counter(map(tuple, rows[gone])) - Counter(map(tuple, rows[come]))
    assert new.tolist() == sorted(new.tolist())
