"""`PHDStream` as its users meet it: ticks of all kinds, units, windows, memory, bad input, state."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    def test_without_noise_the_total_is_exact(self) -> None:
        stream = noiseless()
        stream.update(points(1000))
        release = stream.update(points(100, 1), deletes=points(1000)[:300])
        assert release.total == release.estimate.unbiased[0] == 800
        assert release.estimate.points[release.estimate.leaf].sum() == 800

    def test_empty_ticks_still_release_noise(self) -> None:
        """Whether a tick was empty must not show."""
        stream = simulated()
        totals = {stream.update().estimate.unbiased[0] for _ in range(20)}
        assert len(totals) > 3
        assert stream.tick == 20

    def test_a_million_events_in_a_tick(self) -> None:
        release = simulated(domain=phd.Box([(0, 1), (0, 1)])).update(points(1_000_000))
        assert release.total == pytest.approx(1_000_000, rel=0.01)

    def test_cost_follows_the_visited_nodes_not_the_tree(self) -> None:
        """A complete tree of depth 60 has 10^18 nodes."""
        stream = simulated(domain=phd.Box([(0, 1), (0, 1)], depth=60), epsilon=20.0)
        for seed in range(3):
            stream.update(points(1000, seed))
        assert stream.nodes < 200_000

    def test_the_same_seed_gives_the_same_stream(self) -> None:
        first, second = (simulated(seed=5) for _ in range(2))
        for seed in range(3):
            np.testing.assert_array_equal(
                first.update(points(300, seed)).sample(), second.update(points(300, seed)).sample()
            )

    def test_exact_noise_differs_each_time(self) -> None:
        streams = [phd.PHDStream(SQUARE, 1.0, phd.Event()) for _ in range(2)]
        first, second = (stream.update(points(500)).estimate for stream in streams)
        assert first.unbiased.tolist() != second.unbiased.tolist()

    def test_simulation_is_marked_in_every_output(self) -> None:
        release = simulated().update(points(100))
        mark = "simulated, not private"
        assert release.privacy == mark
        assert mark in repr(release)
        assert mark in release.count([[0, 0, 1, 1]]).privacy
        assert release.cells().schema.metadata[b"privacy"].decode() == mark
        assert release.changes().to_table().schema.metadata[b"privacy"].decode() == mark
        assert mark in simulated().describe()

    def test_threshold_makes_the_tree_coarser(self) -> None:
        sizes = [noiseless(threshold=t).update(points(5000)).leaves.size for t in (0, 50, 1000)]
        assert sizes[0] > sizes[1] > sizes[2]


class TestInputKinds:
    @pytest.mark.parametrize("kind", ["list", "array", "arrow", "pandas", "polars"])
    def test_all_kinds_count_the_same(self, kind: str) -> None:
        array = points(200)
        given_points: Any = {
            "list": lambda: array.tolist(),
            "array": lambda: array,
            "arrow": lambda: pa.table({"x": array[:, 0], "y": array[:, 1]}),
            "pandas": lambda: pa.table({"x": array[:, 0], "y": array[:, 1]}).to_pandas(),
            "polars": lambda: _polars(array),
        }[kind]()
        np.testing.assert_array_equal(noiseless().update(given_points).sample(), noiseless().update(array).sample())

    def test_geoseries(self) -> None:
        geopandas = pytest.importorskip("geopandas")
        assert noiseless().update(geopandas.GeoSeries.from_xy(*points(50).T)).total == 50

    @pytest.mark.parametrize("bad", [[["a", "b"]], [[1.0]], [[1, 2, 3]], [1.0, 2.0], np.zeros((2, 2, 2))])
    def test_other_things_are_refused_and_nothing_changes(self, bad: Any) -> None:
        stream = noiseless()
        with pytest.raises(InputError, match=r"points must"):
            stream.update(bad)
        assert stream.tick == 0
        assert stream.update(points(10)).total == 10

    def test_outside_nan_and_infinite_points_are_dropped_and_counted_for_the_operator(self) -> None:
        stream = noiseless()
        bad = [[np.nan, 0.5], [0.5, np.inf], [-np.inf, 0.5], [1.5, 0.5], [0.5, -0.1]]
        assert stream.update([*bad, [0.5, 0.5]]).total == 1
        assert stream.private_tally.outside == 5

    def test_unmatched_deletes_are_counted_and_reported(self) -> None:
        stream = noiseless()
        release = stream.update([[0.1, 0.1]], deletes=[[0.9, 0.9], [0.1, 0.1]])
        assert stream.private_tally.unmatched_deletes == 1
        assert release.estimate.unbiased[0] == -1
        assert release.total == 0

    @pytest.mark.parametrize("options", [{"insert_only": True}, {"window": 3}])
    def test_deletes_where_none_were_declared(self, options: dict[str, Any]) -> None:
        with pytest.raises(InputError, match="declared without deletes"):
            noiseless(**options).update(points(3), deletes=points(1))


def _polars(array: np.ndarray) -> Any:
    import polars as pl

    return pl.DataFrame({"x": array[:, 0], "y": array[:, 1]})


class TestUsers:
    def test_what_is_beyond_the_bound_is_dropped_over_the_whole_stream(self) -> None:
        stream = noiseless(unit=phd.User(inserts=2, deletes=1))
        assert stream.update(points(3), users=["ann", "ann", "ann"]).total == 2
        assert stream.update(points(2), users=["ann", "bob"]).total == 3
        assert stream.update(deletes=points(2), delete_users=["ann", "ann"]).total == 2
        assert stream.private_tally.over_bound == 3

    def test_the_bound_survives_a_restart(self, tmp_path: Path) -> None:
        stream = simulated(unit=phd.User(inserts=1))
        stream.update(points(1), users=[7])
        stream.save(tmp_path / "s.npz")
        again = phd.PHDStream.load(tmp_path / "s.npz")
        again.update(points(1), users=[7])
        assert again.private_tally.over_bound == 1

    def test_points_outside_do_not_use_up_the_bound(self) -> None:
        stream = noiseless(unit=phd.User(inserts=1))
        assert stream.update([[5, 5], [0.5, 0.5]], users=[1, 1]).total == 1

    @pytest.mark.parametrize("users", [None, [1], [[1], [2]], [1.5, 2.5], ["a", None]])
    def test_users_must_be_named(self, users: Any) -> None:
        stream = noiseless(unit=phd.User(inserts=1))
        with pytest.raises(InputError, match="user"):
            stream.update(points(2), users=users)
        assert stream.tick == 0

    def test_other_units_ignore_users(self) -> None:
        assert noiseless().update(points(2), users=["x"]).total == 2

    def test_mixed_forms_are_refused_before_anything_changes(self) -> None:
        stream = noiseless(unit=phd.User(inserts=1, deletes=1))
        stream.update(points(1), users=[1])
        with pytest.raises(InputError, match="one form"):
            stream.update(points(1), users=[2], deletes=points(1), delete_users=["x"])
        assert stream.update(points(1), users=[2]).total == 2


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

    def test_a_window_makes_a_record_as_cheap_as_an_event(self) -> None:
        assert simulated(window=3, unit=phd.Record()).budget == simulated(unit=phd.Event()).budget

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
    def test_an_endless_stream_runs_in_bounded_memory(self) -> None:
        stream = simulated(domain=phd.Box([(0, 1), (0, 1)]), epsilon=4.0, max_nodes=600)
        rng = np.random.default_rng(3)
        for _ in range(60):  # a crowd that moves about
            stream.update(np.clip(rng.random(2) + rng.normal(0, 0.01, (200, 2)), 0, 1))
            assert stream.nodes <= 600

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
    @pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1", None])
    def test_epsilon(self, epsilon: Any) -> None:
        with pytest.raises(BudgetError):
            simulated(epsilon=epsilon)

    @pytest.mark.parametrize(
        "options",
        [
            {"domain": "land"},
            {"unit": "event"},
            {"counter": "simpel"},
            {"threshold": 1.5},
            {"threshold": -1},
            {"window": 0},
            {"start_after": 0},
            {"max_nodes": 2},
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
    @pytest.mark.parametrize("counter", ["simple", "block", "binary", "hybrid"])
    @pytest.mark.parametrize(
        "options",
        [{}, {"window": 3}, {"start_after": 4}, {"max_nodes": 60}, {"unit": phd.User(inserts=2, deletes=2)}],
        ids=["plain", "window", "start", "fold", "user"],
    )
    def test_a_loaded_stream_goes_on_exactly_as_the_original(
        self, counter: str, options: dict[str, Any], tmp_path: Path
    ) -> None:
        stream = simulated(counter=counter, **options)
        for t in range(3):
            stream.update(points(100, t), users=np.arange(100))
        stream.save(tmp_path / "state.npz")
        loaded = phd.PHDStream.load(tmp_path / "state.npz")
        assert loaded.describe() == stream.describe()
        for t in range(3, 8):
            first, second = (s.update(points(100, t), users=np.arange(50, 150)) for s in (stream, loaded))
            np.testing.assert_array_equal(first.sample(), second.sample())
            np.testing.assert_array_equal(first.changes().inserts, second.changes().inserts)
            assert first.cells().equals(second.cells())

    def test_the_release_comes_back_bit_for_bit(self, tmp_path: Path) -> None:
        stream = phd.PHDStream(SQUARE, 1.0, phd.Event())
        stream.update(points(300))
        release = stream.update(points(300, 1))
        stream.save(tmp_path / "state.npz")
        again = phd.PHDStream.load(tmp_path / "state.npz").release
        assert again is not None
        assert again.cells().equals(release.cells())
        np.testing.assert_array_equal(again.sample(), release.sample())
        np.testing.assert_array_equal(again.changes().deletes, release.changes().deletes)

    def test_no_pickle_inside(self, tmp_path: Path) -> None:
        simulated().save(tmp_path / "state.npz")
        _, content = (tmp_path / "state.npz").read_bytes().split(b"\n", 1)
        with np.load(io.BytesIO(content), allow_pickle=False) as saved:
            assert all(saved[name].dtype != object for name in saved.files)

    def test_the_file_is_for_its_owner_only(self, tmp_path: Path) -> None:
        simulated().save(tmp_path / "state.npz")
        assert (tmp_path / "state.npz").stat().st_mode & 0o077 == 0

    @settings(max_examples=20, deadline=None)
    @given(cut=st.floats(0, 0.999))
    def test_a_damaged_file_is_refused(self, cut: float, tmp_path_factory: pytest.TempPathFactory) -> None:
        path = tmp_path_factory.mktemp("state") / "state.npz"
        simulated().save(path)
        path.write_bytes(path.read_bytes()[: int(cut * path.stat().st_size)])
        with pytest.raises(StateError, match="not a whole"):
            phd.PHDStream.load(path)

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

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(StateError, match="no saved state"):
            phd.PHDStream.load(tmp_path / "nothing.npz")

    def test_a_stream_that_failed_half_way_can_neither_go_on_nor_be_saved(self, tmp_path: Path) -> None:
        class Failing(KnownNoise):
            def add(self, values: Any, scale: float, at: Any) -> Any:
                raise MemoryError

        stream = simulated(noise=Failing())
        with pytest.raises(MemoryError):
            stream.update(points(10))
        with pytest.raises(StateError, match="half-way"):
            stream.update(points(10))
        with pytest.raises(StateError, match="must not be saved"):
            stream.save(tmp_path / "state.npz")


def test_describe_says_it_in_words() -> None:
    text = phd.PHDStream(SQUARE, 0.5, phd.User(3, 1), counter="block", start_after=5).describe()
    for words in ("0.5-differentially private", "3 appearances and 1 disappearance", "exact partial sums", "waiting"):
        assert words in text


def test_privtree_is_the_first_tick_of_a_stream() -> None:
    tree = phd.PrivTree(SQUARE, 1.0, noise=phd.Simulation(3)).release(points(500))
    assert tree.total == pytest.approx(500, abs=150)
    with pytest.raises(BudgetError):
        phd.PrivTree(SQUARE, 0.0)
