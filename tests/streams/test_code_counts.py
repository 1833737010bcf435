"""Counts of codes in nodes: those of prefixes, in whatever order they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.streams import code_counts
from phdstream.streams.code_counts import CodeCounts
from tests import plain
from tests.thorough import cases


@pytest.mark.parametrize("few", [0, 1 << 11])
@pytest.mark.parametrize("leading", [2, 5, 20])
@settings(max_examples=cases(25, 200))
@given(data=st.data())
def test_counts_are_those_of_prefixes_in_any_order_of_asking(few: int, leading: int, data: st.DataObject) -> None:
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
            few_nodes = np.arange(1 << level, min(2 << level, (1 << level) + 50))
            assert counts.within(few_nodes, level).tolist() == counts.within(few_nodes).tolist()


def test_only_events_where_nodes_are_asked_for_are_sorted() -> None:
    codes = np.r_[0, np.random.default_rng(1).integers(1 << 30, size=100_000)]
    counts = CodeCounts(codes, total_bits=30)
    assert counts.within(np.arange(1 << 12, 1 << 13)).sum() == codes.size
    assert counts._sorted.size == 0
    deep = np.array([1 << 25])
    assert counts.within(deep)[0] == (codes >> 5 == 0).sum()
    assert 0 < counts._sorted.size < 10
