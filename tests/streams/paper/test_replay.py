"""Record and replay: neighbouring streams under the same noise, and what each noise call sees of the one event."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.audit.forcing import ForcedNoise, random_choices
from phdstream.counters import BinaryTree, Block, Hybrid, Simple, by_level
from tests.noises import FrozenNoise

pytestmark = pytest.mark.slow

DOMAIN = phd.Box([(0, 1), (0, 1)], depth=8)
COUNTERS: dict[str, Any] = {
    "simple": Simple,
    "block": partial(Block, size=3),
    "binary": partial(BinaryTree, horizon=4),
    "hybrid": Hybrid,
    "by level": by_level({0: "hybrid", 2: "block", 4: partial(BinaryTree, horizon=4), 6: "simple"}),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": 3},
    "start": {"start_after": 3},
    "fold": {"max_nodes": 25},
}


def random_tick(rng: np.random.Generator, deletes: bool) -> tuple[np.ndarray, np.ndarray]:
    return rng.beta(1, 4, (rng.integers(80), 2)), rng.beta(1, 4, (rng.integers(20) if deletes else 0, 2))


def path_of(point: np.ndarray) -> set[int]:
    """The nodes that hold a point, from the root down."""
    code = int(DOMAIN.encode(point[None])[0][0])
    finest = (1 << (DOMAIN.total_bits)) | code
    return {finest >> (DOMAIN.level_bits[0] * i) for i in range(DOMAIN.depth + 1)}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 100_000), sign=st.sampled_from([1, -1]), epsilon=st.sampled_from([0.5, 2.0]))
def test_away_from_the_events_path_nothing_changes(seed: int, sign: int, epsilon: float) -> None:
    """Frozen noise: the neighbour's tree and counts are the same wherever both trees have the node's parent split."""
    rng = np.random.default_rng(seed)
    event = rng.random((1, 2))
    ticks = [random_tick(rng, deletes=True) for _ in range(4)]
    streams = [phd.PHDStream(DOMAIN, epsilon, phd.Event(), noise=FrozenNoise(seed)) for _ in range(2)]
    for come, gone in ticks[:-1]:
        for stream in streams:
            stream.update(come, gone)
    come, gone = ticks[-1]
    more = (np.concatenate([come, event]), gone) if sign > 0 else (come, np.concatenate([gone, event]))
    first, second = streams[0].update(come, gone).estimate, streams[1].update(*more).estimate
    path = path_of(event[0])
    both = np.intersect1d(first.node, second.node)
    away = np.array([v for v in both if int(v) not in path], dtype=np.int64)
    at_first, at_second = (np.searchsorted(e.node, away) for e in (first, second))
    np.testing.assert_array_equal(first.leaf[at_first], second.leaf[at_second])
    np.testing.assert_array_equal(first.unbiased[at_first], second.unbiased[at_second])
    only_one = np.setxor1d(first.node, second.node)
    assert all(int(v) >> DOMAIN.level_bits[0] in path or _has_ancestor(int(v), only_one) for v in only_one)
    if sign < 0:
        assert only_one.size == 0  # deletes do not enter the selection at all


def _has_ancestor(node: int, nodes: np.ndarray) -> bool:
    return bool((nodes == node >> DOMAIN.level_bits[0]).any())


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("counter", COUNTERS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 100_000), sign=st.sampled_from([1, -1]))
def test_every_noise_call_sees_at_most_what_was_declared(
    counter: str, options: dict[str, Any], seed: int, sign: int
) -> None:
    """Given the same outputs, the inputs of all noise calls, for ever, differ by the event's declared share only.

    Outputs are forced to be the same (at random), so the two streams stay in step; each call's private inputs are
    compared. A split call may differ by 1 in total (one node of the path); noisy sums, weighted by 1/scale, by ε_count.
    """
    if sign < 0 and "window" in options:
        return
    rng = np.random.default_rng(seed)
    event, tau = rng.random((1, 2)), int(rng.integers(7))
    ticks = [random_tick(rng, deletes="window" not in options) for _ in range(7)]
    calls = []
    for with_event in (False, True):
        stream = phd.PHDStream(DOMAIN, 1.0, phd.Event(), counter=COUNTERS[counter], **options)
        noise = stream.noise = ForcedNoise(stream.rule, random_choices(seed), sums=(-4, 0, 3, 30))
        for t, (come, gone) in enumerate(ticks):
            if with_event and t == tau:
                come, gone = (np.r_[come, event], gone) if sign > 0 else (come, np.r_[gone, event])
            stream.update(come, gone)
        calls.append(noise.calls)
    assert len(calls[0]) == len(calls[1])
    spent = 0.0
    for (scale, at, values), (scale_2, at_2, values_2) in zip(*calls, strict=True):
        assert scale == scale_2
        np.testing.assert_array_equal(at, at_2)  # what is asked about is public
        difference = np.abs(values - values_2).sum()
        assert difference <= 1
        if scale == stream.rule.scale:
            assert sign > 0 or difference == 0
        else:
            spent += difference / scale
    assert spent <= stream.budget.count + 1e-12


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_asked_never_depends_on_the_data(options: dict[str, Any], seed: int) -> None:
    """Any two streams forced to the same outputs, one of few events and one of many: all questions are the same.

    One event seldom tips a threshold, so neighbours would hardly show that an exact number decides.
    """
    asked = []
    for number in (2, 200):
        rng = np.random.default_rng(seed)
        stream = phd.PHDStream(DOMAIN, 1.0, phd.Event(), **options)
        noise = stream.noise = ForcedNoise(stream.rule, random_choices(seed), sums=(-4, 0, 3, 30))
        for _ in range(7):
            stream.update(rng.random((number, 2)), rng.random((number // 3, 2)) if stream.deletes else None)
        asked.append([(scale, at.tolist()) for scale, at, _ in noise.calls])
    assert asked[0] == asked[1]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_biased_counts_fall_by_the_bias_along_every_path(seed: int) -> None:
    """What PrivTree's proof needs, measured on the real calls: with negative releases, deletes, any past."""
    rng = np.random.default_rng(seed)
    stream = phd.PHDStream(DOMAIN, 1.0, phd.Event())
    for _ in range(5):
        noise = stream.noise = ForcedNoise(stream.rule, random_choices(int(rng.integers(1 << 30))), sums=(-40, 0, 60))
        stream.update(*random_tick(rng, deletes=True))
        seen = {
            int(node): int(value)
            for scale, at, values in noise.calls
            if scale == stream.rule.scale
            for node, value in zip(at, values, strict=True)
        }
        for node, value in seen.items():
            if node > 1 and value > stream.rule.floor:
                assert value <= seen[node >> DOMAIN.level_bits[0]] - stream.rule.bias
