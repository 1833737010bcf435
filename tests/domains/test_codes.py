"""Codes: children named, bits spread and collected, hashes as good as random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from phdstream.arrays import Floats
from phdstream.domains import hash_uniform
from phdstream.domains.codes import MAX_BITS, compress_bits, spread_bits
from tests import plain

FALSE_ALARM = 1e-6


@st.composite
def bits_and_stride(draw: st.DrawFn) -> tuple[int, int]:
    stride = draw(st.integers(1, 70))
    return draw(st.integers(1, (MAX_BITS - 1) // stride + 1)), stride


@given(bits_and_stride(), st.lists(st.integers(0, 2**MAX_BITS - 1), max_size=20))
def test_compress_undoes_spread(layout: tuple[int, int], values: Any) -> None:
    bits, stride = layout
    values = np.array(values, dtype=np.int64) & ((1 << bits) - 1)
    assert compress_bits(spread_bits(values, bits, stride), bits, stride).tolist() == values.tolist()


@given(bits_and_stride(), st.integers(0, 2**MAX_BITS - 1))
def test_bit_i_goes_to_position_i_times_stride(layout: tuple[int, int], value: int) -> None:
    bits, stride = layout
    value &= (1 << bits) - 1
    expected = sum(((value >> i) & 1) << (i * stride) for i in range(bits))
    assert spread_bits(np.array([value]), bits, stride).tolist() == [expected]


def test_only_the_lowest_bits_are_spread() -> None:
    assert spread_bits(np.array([0b11111]), bits=3, stride=2).tolist() == [0b10101]


def test_compress_ignores_the_bits_in_between() -> None:
    assert compress_bits(np.array([0b11111111]), bits=4, stride=2).tolist() == [0b1111]


# --- hashes ---


@pytest.mark.statistical
@pytest.mark.parametrize("key", [0, 1, 2**62 - 1])
@pytest.mark.parametrize("start", [0, 2**61])
def test_hashes_of_consecutive_ids_are_uniform(key: int, start: int) -> None:
    u = hash_uniform(key, np.arange(start, start + 100_000))
    assert u.min() >= 0
    assert u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("step", [1, 2, 3, 1 << 20, 1 << 40])
def test_hashes_of_neighbouring_ids_are_uncorrelated(step: int) -> None:
    ids = np.arange(100_000)
    assert uncorrelated(hash_uniform(9, ids), hash_uniform(9, ids + step))


@pytest.mark.statistical
def test_hashes_under_other_keys_and_salts_are_uncorrelated() -> None:
    ids = np.arange(100_000)
    plain = hash_uniform(9, ids)
    for other in (hash_uniform(10, ids), hash_uniform(9, ids, 1), hash_uniform(9, ids, ids), hash_uniform(2**40, ids)):
        assert uncorrelated(plain, other)


@pytest.mark.statistical
def test_pairs_of_hashes_fill_the_unit_square() -> None:
    u = hash_uniform(4, np.arange(200_001))
    cells = np.histogram2d(u[:-1], u[1:], bins=20, range=[(0, 1), (0, 1)])[0]
    assert stats.chisquare(cells.ravel()).pvalue > FALSE_ALARM


def test_the_hashes_of_the_next_key_are_not_those_of_the_next_ids() -> None:
    ids = np.arange(1000)
    assert (hash_uniform(10, ids) != hash_uniform(9, ids + 1)).all()


def test_a_hash_depends_on_nothing_but_key_node_and_salt() -> None:
    ids = np.array([5, 7, 11])
    assert (hash_uniform(3, ids)[::-1] == hash_uniform(3, ids[::-1])).all()
    assert (hash_uniform(3, ids, 2) == hash_uniform(3, ids, np.full(3, 2))).all()


def uncorrelated(x: Floats, y: Floats) -> bool:
    return abs(np.corrcoef(x, y)[0, 1]) < 5 / np.sqrt(x.size)


@given(st.integers(0, 2**62), st.lists(st.integers(0, 2**62), min_size=1), st.integers(0, 2**40))
def test_hashes_are_splitmix(key: int, nodes: list[int], salt: int) -> None:
    array = np.array(nodes)
    expected = [plain.hash_uniform(key, node, salt) for node in nodes]
    assert hash_uniform(key, array, salt).tolist() == expected
    assert hash_uniform(key, array, np.full(array.size, salt)).tolist() == expected
    assert array.tolist() == nodes
