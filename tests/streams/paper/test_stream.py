"""What is `PHDStream`'s own, beside what every stream does (`tests/streams/test_every_stream.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.errors import BudgetError, InputError, StateError
from phdstream.streams.state import read_state, write_state
from tests.noises import KnownNoise

SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)


def simulated(seed: int = 1, **options: Any) -> phd.PHDStream:
    defaults: dict[str, Any] = {"domain": SQUARE, "epsilon": 1.0, "unit": phd.Event(), "noise": phd.Simulation(seed)}
    return phd.PHDStream(**(defaults | options))


def noiseless(**options: Any) -> phd.PHDStream:
    """A stream that adds no noise, so that what is counted can be seen."""
    return simulated(noise=KnownNoise(), **options)


def points(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(1, 3, (n, 2))


class TestTicks:
    def test_threshold_makes_the_tree_coarser(self) -> None:
        sizes = [noiseless(threshold=t).update(points(5000)).leaves.size for t in (0, 50, 1000)]
        assert sizes[0] > sizes[1] > sizes[2]


class TestInputKinds:
    def test_unmatched_deletes_are_counted_and_reported(self) -> None:
        stream = noiseless()
        release = stream.update([[0.1, 0.1]], deletes=[[0.9, 0.9], [0.1, 0.1]])
        assert stream.private_tally.unmatched_deletes == 1
        assert release.estimate.unbiased[0] == -1
        assert release.total == 0


class TestWindow:
    def test_everything_expires(self) -> None:
        stream = noiseless(window=3)
        totals = [stream.update(points(100, t) if t < 4 else None).total for t in range(8)]
        assert totals == [100, 200, 300, 300, 200, 100, 0, 0]

    def test_the_noise_of_expired_ticks_is_gone(self) -> None:
        """Simple counters: after W ticks the variance stops growing, and it is that of the last W ticks."""
        stream = noiseless(window=5, threshold=10_000)  # the root alone; variances are what noise would have
        variances = [stream.update(points(10)).estimate.variance[0] for _ in range(12)]
        assert variances[:5] == pytest.approx(np.arange(1, 6) * variances[0])
        assert variances[4:] == pytest.approx([variances[4]] * 8)

    def test_start_in_a_window_expires_in_equal_parts(self) -> None:
        stream = noiseless(window=4, start_after=3)
        totals = [stream.update(points(30, t) if t < 3 else None).total for t in range(8)]
        assert totals[-2:] == [0, 0]
        assert totals == pytest.approx([0, 0, 90, 90, 60, 30, 0, 0], abs=0.01)

    def test_a_start_longer_than_the_window_counts_the_window_only(self) -> None:
        stream = noiseless(window=2, start_after=4)
        totals = [stream.update(points(30, t) if t < 4 else None).total for t in range(7)]
        assert totals == [0, 0, 0, 60, 30, 0, 0]


class TestMemory:
    def test_folding_keeps_every_count(self) -> None:
        rng = np.random.default_rng(4)
        stream, free = noiseless(max_nodes=60), noiseless()
        for t in range(20):
            crowd = np.clip(rng.random(2) * 0.8 + rng.random((50, 2)) * 0.1, 0, 1)
            assert stream.update(crowd).total == free.update(crowd).total == 50 * (t + 1)
        assert stream.nodes <= 60 < free.nodes

    def test_folding_in_a_window_still_expires_everything(self) -> None:
        rng = np.random.default_rng(5)
        stream = noiseless(max_nodes=40, window=6)
        for _ in range(25):
            stream.update(np.clip(rng.random(2) * 0.8 + rng.random((50, 2)) * 0.1, 0, 1))
        assert stream.release is not None
        assert stream.release.total == 300
        for _ in range(6):
            release = stream.update()
        assert release.total == 0
        np.testing.assert_allclose(release.estimate.unbiased, 0, atol=1e-9)

    def test_folded_variance_expires_too(self) -> None:
        rng = np.random.default_rng(6)
        stream = simulated(max_nodes=40, window=4)
        variances = [
            stream.update(np.clip(rng.random(2) * 0.8 + rng.random((80, 2)) * 0.1, 0, 1)).estimate.variance[0]
            for _ in range(80)
        ]
        assert np.max(variances[40:]) < 3 * np.max(variances[:40])
        assert np.min(variances) >= 0


class TestBadParameters:
    @pytest.mark.parametrize(
        "options",
        [
            {"counter": "simpel"},
            {"threshold": 1.5},
            {"threshold": -1},
            {"tree_share": 1.0},
        ],
    )
    def test_options(self, options: dict[str, Any]) -> None:
        with pytest.raises((InputError, BudgetError)):
            simulated(**options)

    def test_a_counter_with_more_than_its_budget(self) -> None:
        with pytest.raises(BudgetError, match="more budget"):
            simulated(counter=lambda epsilon: phd.counters.Simple(2 * epsilon))


class TestState:
    def test_a_newer_format_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "state.npz"
        simulated().save(path)
        meta, arrays = read_state(path)
        import phdstream.streams.state as module

        original, module.FORMAT = module.FORMAT, 99
        try:
            write_state(path, meta, arrays)
        finally:
            module.FORMAT = original
        with pytest.raises(StateError, match="format 99"):
            phd.PHDStream.load(path)


def test_describe_says_it_in_words() -> None:
    text = phd.PHDStream(SQUARE, 0.5, phd.User(3, 1), counter="block", start_after=5).describe()
    for words in ("0.5-differentially private", "3 appearances and 1 disappearance", "exact partial sums", "waiting"):
        assert words in text


def test_privtree_is_the_first_tick_of_a_stream() -> None:
    tree = phd.PrivTree(SQUARE, 1.0, noise=phd.Simulation(3)).release(points(500))
    assert tree.total == pytest.approx(500, abs=150)
    with pytest.raises(BudgetError):
        phd.PrivTree(SQUARE, 0.0)
