"""`PHDStream` is an instance of selective counting: PrivTree selects, the counters of its leaves count."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.counters import BinaryTree, Block, Simple
from phdstream.streams.paper.selective_counting import Selection, SelectiveCounting
from tests.dense import DenseStream, SimpleCounter
from tests.noises import FrozenNoise
from tests.streams.paper.test_dense import place, random_codes

DOMAIN = phd.Box([(0, 1), (0, 1)], depth=5)
COUNTERS: dict[str, Any] = {"simple": Simple, "block": partial(Block, size=3), "binary": partial(BinaryTree, horizon=4)}
Tick = tuple[list[int], list[int]]


class TreeSelector:
    """PrivTree as a selector: from this tick's inserts and the public history alone."""

    def __init__(self, stream: phd.PHDStream) -> None:
        self.epsilon = stream.rule.loss
        self.rule = stream.rule

    def __call__(self, value: Tick, history: Sequence[Selection], noise: Any) -> Sequence[Hashable]:
        dense = DenseStream(DOMAIN, self.rule, partial(SimpleCounter, 1.0), noise)
        before: dict[Hashable, int] = {}
        for selection in history:
            totals = dict(zip(selection.labels, selection.totals, strict=True))
            dense._add({int(v): total - before.get(v, 0) for v, total in totals.items()}, +1)  # type: ignore[call-overload]
            before |= totals
        return dense._priv_tree(dense.projection(), value[0])


def net_counts(tick: Tick, leaves: Sequence[Hashable]) -> np.ndarray:
    first, past = DOMAIN.code_range(np.array(leaves, dtype=np.int64))
    inside = [(np.array(codes)[:, None] >= first) & (np.array(codes)[:, None] < past) for codes in tick]
    return inside[0].sum(axis=0) - inside[1].sum(axis=0)


class ByLabel(FrozenNoise):
    """Frozen noise in which a counter's noise belongs to its label, not to its row in the bank."""

    counting: SelectiveCounting[Tick]
    split_scale: float

    def add(self, values: np.ndarray, scale: float, at: np.ndarray) -> np.ndarray:
        if scale != self.split_scale:
            labels = list(self.counting._row)
            at = np.array([labels[row] for row in at], dtype=np.int64)
        return super().add(values, scale, at)


@pytest.mark.slow
@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_stream_equals_selective_counting(counter: Any, seed: int) -> None:
    stream = phd.PHDStream(DOMAIN, 2.0, phd.Event(), counter=counter, noise=FrozenNoise(seed))
    noise = ByLabel(seed)
    counting: SelectiveCounting[Tick] = SelectiveCounting(stream.counter, TreeSelector(stream), net_counts, noise=noise)
    noise.counting, noise.split_scale = counting, stream.rule.scale
    assert counting.epsilon <= 2.0
    rng = np.random.default_rng(seed)
    for _ in range(5):
        come, gone = random_codes(rng, DOMAIN, 60), random_codes(rng, DOMAIN, 20)
        release = stream.update(place(DOMAIN, come), place(DOMAIN, gone))
        selection = counting.step((come.tolist(), gone.tolist()))
        assert sorted(selection.labels) == sorted(release.leaves.tolist())  # type: ignore[type-var]
        store = stream._paper._store
        rows, outputs = {int(node): row for row, node in enumerate(store["node"])}, store["counted"]
        assert list(selection.totals) == [int(outputs[rows[v]]) for v in selection.labels]  # type: ignore[index]
