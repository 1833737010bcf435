"""Codes: bits spread and collected, hashes that look random, counts divided among children."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from phdstream.domains import divide_among_children, hash_uniform
from phdstream.domains.codes import MAX_BITS, compress_bits, spread_bits

FALSE_ALARM = 1e-6


@st.composite
def bits_and_stride(draw):
    stride = draw(st.integers(1, 70))
    return draw(st.integers(1, (MAX_BITS - 1) // stride + 1)), stride


@settings(deadline=None)
@given(bits_and_stride(), st.lists(st.integers(0, 2**MAX_BITS - 1), max_size=20))
def test_compress_undoes_spread(layout, values):
    bits, stride = layout
    values = np.array(values, dtype=np.int64) & ((1 << bits) - 1)
    assert compress_bits(spread_bits(values, bits, stride), bits, stride).tolist() == values.tolist()


@settings(deadline=None)
@given(bits_and_stride(), st.integers(0, 2**MAX_BITS - 1))
def test_bit_i_goes_to_position_i_times_stride(layout, value):
    bits, stride = layout
    value &= (1 << bits) - 1
    expected = sum(((value >> i) & 1) << (i * stride) for i in range(bits))
    assert spread_bits(np.array([value]), bits, stride).tolist() == [expected]


def test_only_the_lowest_bits_are_spread():
    assert spread_bits(np.array([0b11111]), bits=3, stride=2).tolist() == [0b10101]


def test_compress_ignores_the_bits_in_between():
    assert compress_bits(np.array([0b11111111]), bits=4, stride=2).tolist() == [0b1111]


# --- hashes ---


@pytest.mark.statistical
@pytest.mark.parametrize("key", [0, 1, 2**62 - 1])
@pytest.mark.parametrize("start", [0, 2**61])
def test_hashes_of_consecutive_ids_are_uniform(key, start):
    u = hash_uniform(key, np.arange(start, start + 100_000))
    assert u.min() >= 0
    assert u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("step", [1, 2, 3, 1 << 20, 1 << 40])
def test_hashes_of_neighbouring_ids_are_uncorrelated(step):
    ids = np.arange(100_000)
    assert uncorrelated(hash_uniform(9, ids), hash_uniform(9, ids + step))


@pytest.mark.statistical
def test_hashes_under_other_keys_and_salts_are_uncorrelated():
    ids = np.arange(100_000)
    plain = hash_uniform(9, ids)
    for other in (hash_uniform(10, ids), hash_uniform(9, ids, 1), hash_uniform(9, ids, ids), hash_uniform(2**40, ids)):
        assert uncorrelated(plain, other)


@pytest.mark.statistical
def test_pairs_of_hashes_fill_the_unit_square():
    u = hash_uniform(4, np.arange(200_001))
    cells = np.histogram2d(u[:-1], u[1:], bins=20, range=[(0, 1), (0, 1)])[0]
    assert stats.chisquare(cells.ravel()).pvalue > FALSE_ALARM


def test_the_hashes_of_the_next_key_are_not_those_of_the_next_ids():
    ids = np.arange(1000)
    assert (hash_uniform(10, ids) != hash_uniform(9, ids + 1)).all()


def test_a_hash_depends_on_nothing_but_key_node_and_salt():
    ids = np.array([5, 7, 11])
    assert (hash_uniform(3, ids)[::-1] == hash_uniform(3, ids[::-1])).all()
    assert (hash_uniform(3, ids, 2) == hash_uniform(3, ids, np.full(3, 2))).all()


def uncorrelated(x, y):
    return abs(np.corrcoef(x, y)[0, 1]) < 5 / np.sqrt(x.size)


# --- counts divided among children ---


@st.composite
def families(draw):
    """Counts of parents; for each child its parent and its share; a node for each parent; a key."""
    weights = draw(st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=9), min_size=1, max_size=6))
    weights = [w if sum(w) else [1, *w] for w in weights]
    counts = draw(st.lists(st.integers(0, 10**6), min_size=len(weights), max_size=len(weights)))
    parent = np.repeat(np.arange(len(weights)), [len(w) for w in weights])
    share = np.concatenate([np.array(w) / sum(w) for w in weights])
    nodes = draw(st.integers(1, 2**40)) + np.arange(len(weights))
    return np.array(counts), parent, share, nodes, draw(st.integers(0, 2**62 - 1))


@settings(deadline=None)
@given(families())
def test_each_family_adds_up_to_its_parent(family):
    counts, parent, *_ = family
    dealt = divide_among_children(*family)
    assert (dealt >= 0).all()
    assert np.bincount(parent, weights=dealt).tolist() == counts.tolist()


@settings(deadline=None)
@given(families())
def test_each_child_is_within_one_per_halving_of_its_share(family):
    counts, parent, share, *_ = family
    halvings = np.ceil(np.log2(np.bincount(parent)))[parent]
    assert (np.abs(divide_among_children(*family) - counts[parent] * share) <= halvings + 1e-6).all()


@settings(deadline=None)
@given(families())
def test_a_child_without_a_share_gets_nothing(family):
    _, _, share, *_ = family
    assert (divide_among_children(*family)[share == 0] == 0).all()


@settings(deadline=None)
@given(families())
def test_one_more_to_divide_is_one_more_for_exactly_one_child(family):
    counts, *rest = family
    more = divide_among_children(counts + 1, *rest) - divide_among_children(counts, *rest)
    assert set(more.tolist()) <= {0, 1}
    assert np.bincount(rest[0], weights=more).tolist() == [1] * counts.size


@settings(deadline=None)
@given(families())
def test_a_family_is_divided_alike_whatever_families_stand_beside_it(family):
    counts, parent, share, nodes, key = family
    alone = [
        divide_among_children(counts[[i]], np.zeros((parent == i).sum(), int), share[parent == i], nodes[[i]], key)
        for i in range(counts.size)
    ]
    assert np.concatenate(alone).tolist() == divide_among_children(*family).tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("weights", [[1, 1], [1, 1, 1, 1], [1] * 8, [3, 1], [1, 2, 4], [5, 0, 1, 1, 90]])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_expectation_is_the_share(weights, count):
    many, share = 20_000, np.array(weights) / sum(weights)
    parent, nodes = np.repeat(np.arange(many), len(weights)), np.arange(1, many + 1)
    dealt = divide_among_children(np.full(many, count), parent, np.tile(share, many), nodes, key=77)
    error = dealt.reshape(many, -1).mean(axis=0) - count * share
    assert (np.abs(error) < 5.5 * np.sqrt(count * share * (1 - share) / many) + 1e-12).all()


@pytest.mark.parametrize("offset", [0.0, 0.5, float(np.nextafter(1, 0))])
@pytest.mark.parametrize("count", [1, 3, 1000, 10**6, 10**12, 10**15])
def test_a_family_adds_up_at_any_rounding(monkeypatch, offset, count):
    monkeypatch.setattr("phdstream.domains.apportion.hash_uniform", lambda key, nodes: np.full(np.shape(nodes), offset))
    for children in (1, 2, 3, 8):
        family = np.zeros(children, int), np.full(children, 1 / children)
        dealt = divide_among_children(np.array([count]), *family, np.array([1]), key=1)
        assert dealt.sum() == count
        assert (dealt >= 0).all()


def test_no_families_no_counts():
    nothing = np.zeros(0, dtype=np.int64)
    assert divide_among_children(nothing, nothing, np.zeros(0), nothing, key=1).size == 0
