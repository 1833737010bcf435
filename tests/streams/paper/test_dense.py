"""The compute-efficient stream and the paper's dense algorithm agree exactly under the same noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.counters import BinaryTree, Block
from tests.dense import BinaryTreeCounter, BlockCounter, DenseStream, SimpleCounter
from tests.noises import FrozenNoise

pytestmark = pytest.mark.slow

DOMAINS = {
    "binary": phd.Box([(0, 1), (0, 1)], depth=5),
    "quad": phd.Box([(0, 1), (0, 1)], fanout=4, depth=3),
    "cube": phd.Cube(4),
}
COUNTERS: dict[str, tuple[Any, Any]] = {
    "simple": ("simple", SimpleCounter),
    "block": (partial(Block, size=3), partial(BlockCounter, size=3)),
    "binary": (partial(BinaryTree, horizon=4), partial(BinaryTreeCounter, horizon=4)),
    "hybrid": ("hybrid", partial(BinaryTreeCounter, horizon=1)),
}


def random_codes(rng: np.random.Generator, domain: phd.Domain, most: int) -> np.ndarray:
    """Codes that crowd near zero, so that the tree is deep in places."""
    cells = 1 << (domain.total_bits)
    return np.minimum(rng.geometric(4 / cells, rng.integers(most + 1)) - 1, cells - 1)


def place(domain: phd.Domain, codes: np.ndarray) -> np.ndarray:
    return domain.place(codes, np.zeros_like(codes), key=0)


def assert_same(release: phd.Release, dense: DenseStream, leaves: list[int]) -> None:
    e = release.estimate
    assert sorted(e.node[e.leaf].tolist()) == sorted(leaves)
    assert {int(v): g for v, g in zip(e.node, e.unbiased, strict=True)} == {int(v): dense.G[int(v)] for v in e.node}
    P = dense.projection()
    np.testing.assert_allclose(e.count, [P[int(v)] for v in e.node], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("counter", COUNTERS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), epsilon=st.sampled_from([0.5, 2.0, 8.0]), ticks=st.integers(1, 8))
def test_turnstile(domain: phd.Domain, counter: str, seed: int, epsilon: float, ticks: int) -> None:
    fast_counter, dense_counter = COUNTERS[counter]
    stream = phd.PHDStream(domain, epsilon, phd.Event(), counter=fast_counter, noise=FrozenNoise(seed))
    dense = DenseStream(domain, stream.rule, partial(dense_counter, stream.budget.count), FrozenNoise(seed))
    rng = np.random.default_rng(seed)
    for _ in range(ticks):
        come, gone = random_codes(rng, domain, 60), random_codes(rng, domain, 20)
        release = stream.update(place(domain, come), place(domain, gone))
        assert_same(release, dense, dense.update(come.tolist(), gone.tolist()))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), window=st.integers(1, 4), counter=st.sampled_from(list(COUNTERS)))
def test_window_subtracts_what_was_released(seed: int, window: int, counter: str) -> None:
    domain = DOMAINS["binary"]
    fast_counter, dense_counter = COUNTERS[counter]
    stream = phd.PHDStream(domain, 2.0, phd.Event(), counter=fast_counter, window=window, noise=FrozenNoise(seed))
    dense = DenseStream(domain, stream.rule, partial(dense_counter, stream.budget.count), FrozenNoise(seed))
    rng = np.random.default_rng(seed)
    for tick in range(9):
        come = random_codes(rng, domain, 60)
        if tick >= window:
            dense.expire(tick - window)
        release = stream.update(place(domain, come))
        assert_same(release, dense, dense.update(come.tolist(), []))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), start=st.integers(2, 5))
def test_start_counts_everything_up_to_it_as_one_tick(seed: int, start: int) -> None:
    """A is every insert up to t0, deleted since or not."""
    domain = DOMAINS["binary"]
    stream = phd.PHDStream(domain, 2.0, phd.Event(), start_after=start, noise=FrozenNoise(seed))
    dense = DenseStream(domain, stream.rule, partial(SimpleCounter, stream.budget.count), FrozenNoise(seed))
    rng = np.random.default_rng(seed)
    held: tuple[list[int], list[int]] = ([], [])
    for tick in range(1, start + 3):
        come, gone = random_codes(rng, domain, 60), random_codes(rng, domain, 20)
        release = stream.update(place(domain, come), place(domain, gone))
        held[0].extend(come.tolist())
        held[1].extend(gone.tolist())
        assert release.held == (tick < start)
        if tick >= start:
            assert_same(release, dense, dense.update(*held))
            held = ([], [])
