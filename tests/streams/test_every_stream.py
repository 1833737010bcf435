"""One suite, every stream: what a stream promises whatever its method, its counter and its options.

The first part runs on every stream of `STREAMS`, the second, on what is taken in and how states are kept, on one stream
of each method. What only one method does is tested in its own room.
"""

from __future__ import annotations

import copy
import io
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import phdstream as phd
from phdstream.arrays import Ints
from phdstream.errors import BudgetError, InputError, StateError
from phdstream.privacy import DivisibleNoise, Ledger, Noise, user_ids
from phdstream.release.soundness import faults
from phdstream.streams.intake import EncodedEvents
from phdstream.streams.state import Arrays, decode_state, encode_state
from phdstream.streams.stream import Stream
from tests.noises import KnownNoise, RecordingNoise

SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": 3},
    "start": {"start_after": 3},
    "few nodes": {"max_nodes": 60},
    "users": {"unit": phd.User(inserts=3, deletes=2)},
    "insert only": {"insert_only": True},
    "records": {"unit": phd.Record()},
    "window and start": {"window": 4, "start_after": 3},
}
Make = Callable[..., Stream]
State = tuple[dict[str, Any], Arrays]


def maker(method: type[Stream], options: dict[str, Any]) -> Make:
    def make(noise: Noise | None = None, seed: int = 1, **others: Any) -> Stream:
        defaults: dict[str, Any] = {"domain": SQUARE, "epsilon": 1.0, "unit": phd.Event()}
        return method(**(defaults | options | others), noise=noise or phd.Simulation(seed))  # type: ignore[call-arg]

    return make


COUNTERS = ("simple", "block", "binary", "hybrid")
ALL_STREAMS: dict[str, Make] = (
    {f"tracking, {name}": maker(phd.TrackingStream, options) for name, options in OPTIONS.items()}
    | {
        f"{counter}, {name}": maker(phd.PHDStream, {"counter": counter} | options)
        for counter in COUNTERS
        for name, options in OPTIONS.items()
    }
    | {
        "tracking, changed": maker(phd.TrackingStream, {"parameters": {"smoothing": {"on": False}}}),
        "simple, coarse": maker(phd.PHDStream, {"threshold": 30, "tree_share": 0.3}),
    }
)
METHODS: dict[str, Make] = {name: ALL_STREAMS[name] for name in ("tracking, plain", "simple, plain")}
STREAMS: dict[str, Make] = {
    name: make
    for name, make in ALL_STREAMS.items()
    if name.startswith(("tracking", "simple")) or name.endswith(("plain", "window", "few nodes"))
}
"""Which counter it is shows in few ways: all others are tried with all options where states are kept."""

every_stream_and_counter = pytest.mark.parametrize("make", ALL_STREAMS.values(), ids=ALL_STREAMS)
every_stream = pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
every_method = pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)


def points(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(1, 3, (n, 2))


def events(stream: Stream, tick: int, n: int = 60) -> dict[str, Any]:
    """Return what a tick brings: points, some of them deleted at once if that may be, and users."""
    come, users = points(n, tick), np.random.default_rng(tick).integers(0, 60, n)
    taken = {"inserts": come, "users": users}
    return taken | ({"deletes": come[: n // 4], "delete_users": users[: n // 4]} if stream.deletes else {})


def run(stream: Stream, ticks: range) -> list[phd.Release]:
    return [stream.update(**events(stream, tick)) for tick in ticks]


TICKS = 6


@cache
def ran(make: Make) -> tuple[Stream, list[phd.Release]]:
    """Return a stream after so many ticks, and its releases: what others, treated otherwise, must agree with."""
    stream = make()
    return stream, run(stream, range(TICKS))


def assert_same_arrays(first: Arrays, second: Arrays) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def assert_same_state(first: State, second: State) -> None:
    assert first[0] == second[0]
    assert_same_arrays(first[1], second[1])


def loaded(stream: Stream) -> Stream:
    """Return the stream as it would be after a restart."""
    return type(stream).from_state(*decode_state(encode_state(*stream.to_state()), Path("state.npz")))


def assert_same_release(first: phd.Release | None, second: phd.Release | None) -> None:
    """Everything that a release says follows from its arrays and these few facts."""
    assert first is not None
    assert second is not None
    about = [(one.tick, one.key, one.held, one.metadata, one.domain.to_dict()) for one in (first, second)]
    assert about[0] == about[1]
    assert_same_arrays(first.to_arrays(), second.to_arrays())


def bag(rows: np.ndarray) -> Counter[tuple[float, ...]]:
    return Counter(map(tuple, rows.tolist()))


# --- intervals ---


@every_stream
def test_intervals_are_nested_and_grow_with_confidence(make: Make) -> None:
    corners = np.sort(np.random.default_rng(8).random((40, 2, 2)), axis=1).reshape(40, 4)
    for release in ran(make)[1]:
        narrow, wide = (release.count(corners, confidence) for confidence in (0.8, 0.95))
        for answer in (narrow, wide):
            ends = (answer.low, answer.noise_low, answer.value, answer.noise_high, answer.high)
            assert all((less <= more).all() for less, more in pairwise(ends))
        assert (wide.low <= narrow.low).all()
        assert (wide.high >= narrow.high).all()


# --- ticks ---


@pytest.mark.slow
@every_stream
def test_the_same_seed_gives_the_same_stream_and_another_another(make: Make) -> None:
    stream, other = make(), make(seed=4)
    for tick, expected in enumerate(ran(make)[1]):
        release = stream.update(**events(stream, tick))
        assert_same_release(release, expected)
        assert stream.release is release
        assert stream.tick == release.tick == tick + 1
    assert stream.nodes <= stream.setting.max_nodes
    start = range(stream.start_after)
    assert run(other, start)[-1].estimate.unbiased.tolist() != ran(make)[1][start[-1]].estimate.unbiased.tolist()


@every_stream
def test_exact_noise_differs_each_time(make: Make) -> None:
    totals = set()
    for _ in range(4):
        stream = make(noise=phd.privacy.ExactNoise())
        totals.add(run(stream, range(stream.start_after))[-1].estimate.unbiased.tobytes())
    assert len(totals) > 1


@every_stream
def test_releases_are_whole_and_changes_in_order_give_the_sample(make: Make) -> None:
    held = bag(np.zeros((0, 2)))
    for release in ran(make)[1]:
        assert release.held or faults(release.domain, release.estimate) == []
        assert "fallback" not in release.metadata
        changes = release.changes()
        gone = bag(changes.deletes)
        assert all(held[point] >= number for point, number in gone.items())  # only what is there can disappear
        held = held - gone + bag(changes.inserts)
        assert held == bag(release.sample())
        assert SQUARE.encode(release.sample())[1].all()


@every_stream
def test_without_noise_the_total_is_exact(make: Make) -> None:
    stream = make(noise=KnownNoise(), unit=phd.Event())
    window = stream.setting.window or 99
    totals = [release.total for release in run(stream, range(7))]
    live = 45 if stream.deletes else 60
    expected = [0 if t + 1 < stream.start_after else live * min(t + 1, window) for t in range(7)]
    assert totals == pytest.approx(expected, abs=1e-3)


@every_stream
def test_a_tick_may_be_empty_or_of_one_point_or_of_many(make: Make) -> None:
    stream = make(unit=phd.Event(), epsilon=2.0)
    for tick, number in enumerate((0, 1, 0, 1, 20_000, 0, 1)):
        release = stream.update(points(number, tick) if number else None)
        assert release.held or faults(SQUARE, release.estimate) == []
        assert release.tick == tick + 1
        assert release.sample().shape[1] == 2
    assert release.total == pytest.approx(20_000, rel=0.02)


@every_stream
def test_whether_a_tick_was_empty_does_not_show(make: Make) -> None:
    """It is released with noise as any other."""
    stream, totals = make(), set()
    run(stream, range(stream.start_after))
    state = stream.to_state()
    for seed in range(8):
        again = type(stream).from_state(*state)
        again.noise = phd.Simulation(seed)
        totals.add(again.update().estimate.unbiased[0])
    assert len(totals) > 2


@pytest.mark.parametrize("name", [name for name in STREAMS if not name.endswith("users")])
def test_the_order_of_events_in_a_tick_does_not_show(name: str) -> None:
    """But for users, of whose events the first ones are taken."""
    make = STREAMS[name]
    stream = make()
    for tick, expected in enumerate(ran(make)[1]):
        backwards = {name: values[::-1] for name, values in events(stream, tick).items()}
        assert_same_release(stream.update(**backwards), expected)


@every_stream
def test_nothing_is_released_before_the_start(make: Make) -> None:
    """Nor is any noise drawn, or any event counted."""
    noise = RecordingNoise()
    stream = make(noise=noise)
    for tick in range(1, stream.start_after):
        release = stream.update(**events(stream, tick))
        assert release.held
        assert (release.total, len(release.sample()), release.leaves.size) == (0, 0, 0)
        assert len(release.changes().inserts) == len(release.changes().deletes) == 0
        assert release.metadata["privacy"] in stream.describe()
        assert noise.draws == []
    assert not stream.update(**events(stream, 9)).held
    assert noise.draws


@every_stream
def test_a_window_forgets(make: Make) -> None:
    stream = make(noise=KnownNoise(), unit=phd.Event())
    window = stream.setting.window
    run(stream, range(5))
    for _ in range(window or 3):
        release = stream.update()
    if window:
        assert release.total == pytest.approx(0, abs=1e-6)
        np.testing.assert_allclose(release.estimate.count, 0, atol=1e-6)
        assert len(release.sample()) == 0
    else:
        assert release.total >= 225 - 1e-6


# --- what is promised, and what is spent ---


@every_stream
@pytest.mark.parametrize("exact", [False, True], ids=["simulated", "exact"])
def test_the_guarantee_is_stated_alike_everywhere(make: Make, exact: bool) -> None:
    stream = make(noise=phd.privacy.ExactNoise() if exact else None)
    release = run(stream, range(stream.start_after))[-1]
    claim = release.privacy
    if exact:
        assert claim == f"1-differentially private for {stream.unit.guarantee}, over the whole stream"
    else:
        assert claim == "simulated, not private"
    assert f"Promise: {claim}." in stream.describe()
    assert type(stream).__name__ in stream.describe()
    assert claim in repr(release)
    assert release.count([[0, 0, 1, 1]]).privacy == claim
    for table in (release.cells(), release.changes().to_table()):
        assert table.schema.metadata[b"privacy"].decode() == claim
    stated, fixed = release.metadata, stream.parameters
    assert (stated["epsilon"], stated["unit"], stated["window"]) == (fixed["epsilon"], fixed["unit"], fixed["window"])
    assert stated["method"] == fixed["method"] == type(stream).method
    assert fixed["private_noise"] == exact


class SpiedLedger(Ledger):
    """Every account that was ever charged."""

    accounts: list[Ledger] = []  # noqa: RUF012

    def charge(self, epsilon: float) -> None:
        """Charge, and be remembered."""
        super().charge(epsilon)
        if not any(self is account for account in self.accounts):
            self.accounts.append(self)


@every_stream
def test_events_are_charged_all_of_their_budget_and_no_more(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phdstream.streams.private_codes.Ledger", SpiedLedger)
    monkeypatch.setattr(SpiedLedger, "accounts", [])
    stream = make()
    run(stream, range(TICKS))
    limits = {stream.budget.of_insert} | ({stream.budget.of_delete} if stream.deletes else set())
    limits |= {account.limit for account in SpiedLedger.accounts}
    assert limits <= {stream.budget.of_insert, stream.budget.of_delete}
    for limit in {stream.budget.of_insert} | ({stream.budget.of_delete} if stream.deletes else set()):
        spent = max(account.spent for account in SpiedLedger.accounts if account.limit == limit)
        assert limit * Fraction(999_999, 1_000_000) <= spent <= limit


@every_stream
def test_nothing_private_is_shown(make: Make) -> None:
    """One event stands alone in a corner: neither its code, nor its place, nor its user is in any representation."""
    deep = phd.Box([(0, 1), (0, 1)], depth=40)  # codes of twelve digits, which nothing else shows by chance
    stream = make(domain=deep, unit=phd.User(inserts=50), start_after=9)
    place = np.array([[0.987654321, 0.0123456789]])
    code = str(int(deep.encode(place)[0][0]))
    for _ in range(3):
        stream.update(np.repeat(place, 3, axis=0), users=[987654321] * 3)
    mechanism = getattr(stream._method, "_mechanism")  # noqa: B009
    shown = [stream, stream._waiting, stream._method, mechanism, *vars(stream).values(), *vars(mechanism).values()]
    shown += [stream._intake.admit(place, None, [987654321], None), stream.describe(), stream.parameters]
    text = " ".join(map(repr, shown))
    for secret in (code, "0.98765", "0.01234", "987654321"):
        assert secret not in text, secret


# --- what goes wrong ---


BAD_POINTS: list[Any] = [[["a", "b"]], [[1.0]], [[1, 2, 3]], [1.0, 2.0], np.zeros((2, 2, 2)), "somewhere", 3]


@every_stream
def test_bad_input_is_refused_before_anything_changes(make: Make) -> None:
    """After it the stream is what it was, to the bit, and goes on as one that met with none of it."""
    stream = make()
    run(stream, range(3))
    good, before = events(stream, 3), copy.deepcopy(stream.to_state())
    bad = [{**good, "inserts": what} for what in BAD_POINTS] + [{**good, "deletes": what} for what in BAD_POINTS]
    if not stream.deletes:
        bad = [*bad[: len(BAD_POINTS)], {**good, "deletes": points(1), "delete_users": [1]}]
    if isinstance(stream.unit, phd.User):
        bad += [{**good, "users": users} for users in (None, [1], good["users"][:, None], good["users"] + 0.5)]
        bad += [{**good, "delete_users": users} for users in (None, [1], list("abcdefghijklmno"))]
    for given in bad:
        with pytest.raises(InputError):
            stream.update(**given)
        assert_same_state(stream.to_state(), before)
    for tick in range(3, TICKS):
        assert_same_release(stream.update(**events(stream, tick)), ran(make)[1][tick])


@every_stream
def test_deletes_where_none_were_declared_are_refused(make: Make) -> None:
    stream = make(unit=phd.Event())
    if stream.deletes:
        assert stream.update(points(3), deletes=points(1)).tick == 1
        return
    with pytest.raises(InputError, match="declared without deletes"):
        stream.update(points(3), deletes=points(1))
    assert stream.tick == 0


class Failing(phd.Simulation):
    """Fails at one call, before it draws."""

    def __init__(self, fails_at: int) -> None:
        super().__init__(seed=1)
        self.calls, self.fails_at = 0, fails_at

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise MemoryError

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return noisy values."""
        self._call()
        return super().add(values, scale, at)

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return noise to be divided."""
        self._call()
        self.calls -= 1  # it is drawn by `add`
        return super().divisible(scale, parts, at)


@pytest.mark.slow
@every_stream
def test_after_an_update_that_failed_half_way_a_stream_is_broken(make: Make, tmp_path: Path) -> None:
    """At whichever draw of a tick it failed: it neither goes on nor can be saved; its last state can."""
    for before in (0, 3):
        counting = Failing(fails_at=-1)
        stream = make(noise=counting)
        run(stream, range(stream.start_after - 1 + before))
        drawn = counting.calls
        stream.update(**events(stream, 7))
        for call in sorted({drawn + 1, (drawn + counting.calls + 1) // 2, counting.calls}):
            stream = make(noise=Failing(call))
            run(stream, range(stream.start_after - 1 + before))
            state = copy.deepcopy(stream.to_state())
            with pytest.raises(MemoryError):
                stream.update(**events(stream, 7))
            with pytest.raises(StateError, match="half-way"):
                stream.update(**events(stream, 8))
            with pytest.raises(StateError, match="must not be saved"):
                stream.save(tmp_path / "broken.npz")
            assert not (tmp_path / "broken.npz").exists()
        assert type(stream).from_state(*state).update(**events(stream, 7)).tick == stream.tick


# --- saved and loaded ---


@pytest.mark.slow
@every_stream_and_counter
def test_restarted_at_every_tick_it_goes_on_to_the_bit(make: Make) -> None:
    """And restarted once, in the middle."""
    stream, (never, releases) = make(), ran(make)
    for tick, expected in enumerate(releases):
        stream = loaded(stream)
        assert_same_release(stream.update(**events(stream, tick)), expected)
        if tick == 1:
            once = loaded(stream)
        elif tick > 1:
            assert_same_release(once.update(**events(once, tick)), expected)
    for other in (stream, once):
        assert_same_state(other.to_state(), never.to_state())
        assert other.describe() == never.describe()
        assert other.parameters == never.parameters
        assert other.private_tally == never.private_tally
        assert other.nodes == never.nodes


@every_stream
def test_what_was_saved_is_loaded(make: Make, tmp_path: Path) -> None:
    never, _ = ran(make)
    never.save(tmp_path / "state.npz")
    again = type(never).load(tmp_path / "state.npz")
    assert_same_state(again.to_state(), never.to_state())
    assert_same_release(again.release, never.release)


@every_stream
def test_a_stream_made_from_a_state_at_hand_shares_nothing_with_the_first(make: Make) -> None:
    stream = make()
    run(stream, range(3))
    state = stream.to_state()
    plain, twin = copy.deepcopy(state[0]), type(stream).from_state(*state)
    for tick in range(3, TICKS):  # in turns
        for one in (stream, twin):
            assert_same_release(one.update(**events(one, tick)), ran(make)[1][tick])
    assert state[0] == plain


@every_method
def test_another_methods_state_is_refused(make: Make, tmp_path: Path) -> None:
    stream = make()
    stream.save(tmp_path / "state.npz")
    other: Any = phd.TrackingStream if isinstance(stream, phd.PHDStream) else phd.PHDStream
    with pytest.raises(StateError, match=stream.method):
        other.load(tmp_path / "state.npz")


@every_method
def test_the_release_comes_back_bit_for_bit(make: Make, tmp_path: Path) -> None:
    stream = make(noise=phd.privacy.ExactNoise())
    release = run(stream, range(2))[-1]
    stream.save(tmp_path / "state.npz")
    again = type(stream).load(tmp_path / "state.npz").release
    assert_same_release(again, release)
    assert again is not None
    assert again.cells().equals(release.cells())
    np.testing.assert_array_equal(again.sample(), release.sample())
    for kind in ("inserts", "deletes"):
        np.testing.assert_array_equal(getattr(again.changes(), kind), getattr(release.changes(), kind))


@every_method
def test_there_is_no_pickle_in_a_state_and_it_is_for_its_owner_only(make: Make, tmp_path: Path) -> None:
    stream = make()
    run(stream, range(2))
    stream.save(tmp_path / "state.npz")
    assert (tmp_path / "state.npz").stat().st_mode & 0o077 == 0
    _, content = (tmp_path / "state.npz").read_bytes().split(b"\n", 1)
    with np.load(io.BytesIO(content), allow_pickle=False) as saved:
        assert all(saved[name].dtype != object for name in saved.files)


@every_method
def test_a_damaged_or_missing_file_is_refused(make: Make, tmp_path: Path) -> None:
    stream, path = make(), tmp_path / "state.npz"
    stream.save(path)
    content = path.read_bytes()
    for part in (0.0, 0.01, 0.1, 0.5, 0.9, 0.999):
        path.write_bytes(content[: int(part * len(content))])
        with pytest.raises(StateError, match="not a whole"):
            type(stream).load(path)
    with pytest.raises(StateError, match="no saved state"):
        type(stream).load(tmp_path / "nothing.npz")


@every_method
def test_a_directory_owns_it(make: Make, tmp_path: Path) -> None:
    with phd.durable(tmp_path / "d", make()) as stream:
        first = stream.update(points(500))
    with phd.durable(tmp_path / "d", make()) as stream:
        assert_same_release(stream.release, first)
        stream.update(points(100, 1))
    (other,) = set(METHODS.values()) - {make}
    with pytest.raises(StateError, match="method"):
        phd.durable(tmp_path / "d", other())


# --- what is taken in ---


@every_method
@pytest.mark.parametrize("kind", ["list", "arrow", "pandas", "polars", "geoseries"])
def test_all_kinds_of_points_count_the_same(make: Make, kind: str) -> None:
    array = points(200)
    table = pa.table({"x": array[:, 0], "y": array[:, 1]})
    given: Any = {
        "list": array.tolist,
        "arrow": lambda: table,
        "pandas": table.to_pandas,
        "polars": lambda: pytest.importorskip("polars").DataFrame(table.to_pydict()),
        "geoseries": lambda: pytest.importorskip("geopandas").GeoSeries.from_xy(*array.T),
    }[kind]()
    assert_same_release(make().update(given), make().update(array))


@every_stream
def test_events_placed_on_the_tree_already_count_the_same(make: Make) -> None:
    stream, (other, releases) = make(), ran(make)
    for tick, expected in enumerate(releases):
        given = events(stream, tick)
        placed = {
            kind: EncodedEvents(SQUARE.encode(given[kind])[0], user_ids(given[users], len(given[kind]), kind))
            for kind, users in (("inserts", "users"), ("deletes", "delete_users"))
            if kind in given
        }
        assert_same_release(stream.update(**placed), expected)
    assert stream.private_tally == other.private_tally


@every_method
def test_what_is_given_is_not_changed(make: Make) -> None:
    stream = make()
    for tick in range(3):
        given = events(stream, tick)
        before = copy.deepcopy(given)
        stream.update(**given)
        for name, values in given.items():
            np.testing.assert_array_equal(values, before[name])


@every_method
def test_points_outside_and_no_numbers_are_dropped_and_counted_for_the_operator(make: Make) -> None:
    stream = make(noise=KnownNoise())
    bad = [[np.nan, 0.5], [0.5, np.inf], [-np.inf, 0.5], [1.5, 0.5], [0.5, -0.1]]
    assert stream.update([*bad, [0.5, 0.5]]).total == pytest.approx(1)
    assert stream.private_tally.outside == 5


@every_method
def test_unmatched_deletes_are_counted_and_reported(make: Make) -> None:
    stream = make(noise=KnownNoise())
    stream.update(points(10))
    release = stream.update([[0.9, 0.9]], deletes=[[0.9, 0.1], [0.9, 0.9]])
    assert stream.private_tally.unmatched_deletes == 1
    assert release.total == pytest.approx(9)


@every_method
class TestUsers:
    def test_what_is_beyond_the_bound_is_dropped_over_the_whole_stream(self, make: Make) -> None:
        stream = make(noise=KnownNoise(), unit=phd.User(inserts=2, deletes=1))
        assert stream.update(points(3), users=["ann", "ann", "ann"]).total == pytest.approx(2)
        assert stream.update(points(2), users=["ann", "bob"]).total == pytest.approx(3)
        assert stream.update(deletes=points(2), delete_users=["ann", "ann"]).total == pytest.approx(2)
        assert stream.private_tally.over_bound == 3

    def test_how_many_were_dropped_is_not_said_in_public(self, make: Make) -> None:
        streams = [make(noise=KnownNoise(), unit=phd.User(inserts=2, deletes=1)) for _ in range(2)]
        one, other = (s.update(points(n), users=["ann"] * n) for s, n in zip(streams, (2, 5), strict=True))
        assert one.metadata == other.metadata
        assert streams[0].describe() == streams[1].describe()

    def test_the_bound_survives_a_restart(self, make: Make, tmp_path: Path) -> None:
        stream = make(unit=phd.User(inserts=1))
        stream.update(points(1), users=[7])
        stream.save(tmp_path / "s.npz")
        again = type(stream).load(tmp_path / "s.npz")
        again.update(points(1), users=[7])
        assert again.private_tally.over_bound == 1

    def test_points_outside_do_not_use_up_the_bound(self, make: Make) -> None:
        stream = make(noise=KnownNoise(), unit=phd.User(inserts=1))
        assert stream.update([[5, 5], [0.5, 0.5]], users=[1, 1]).total == pytest.approx(1)

    @pytest.mark.parametrize("users", [None, [1], [[1], [2]], [1.5, 2.5], ["a", None]])
    def test_users_must_be_named(self, make: Make, users: Any) -> None:
        stream = make(unit=phd.User(inserts=1))
        with pytest.raises(InputError, match="user"):
            stream.update(points(2), users=users)
        assert stream.tick == 0

    def test_other_units_ignore_users(self, make: Make) -> None:
        assert make(noise=KnownNoise()).update(points(2), users=["x"]).total == pytest.approx(2)

    def test_mixed_forms_are_refused_before_anything_changes(self, make: Make) -> None:
        stream = make(noise=KnownNoise(), unit=phd.User(inserts=1, deletes=1))
        stream.update(points(1), users=[1])
        with pytest.raises(InputError, match="one form"):
            stream.update(points(1), users=[2], deletes=points(1), delete_users=["x"])
        assert stream.update(points(1), users=[2]).total == pytest.approx(2)


# --- what it is made of ---


@every_method
@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_an_epsilon_that_promises_nothing_is_refused(make: Make, epsilon: Any) -> None:
    with pytest.raises(BudgetError):
        make(epsilon=epsilon)


@every_method
@pytest.mark.parametrize(
    "options",
    [
        {"domain": "land"},
        {"domain": None},
        {"unit": "event"},
        {"unit": phd.Event},
        {"window": 0},
        {"window": 1.5},
        {"start_after": 0},
        {"start_after": True},
        {"max_nodes": 2},
        {"insert_only": "yes"},
        {"noise": "exact"},
        {"noise": phd.Simulation},
    ],
    ids=str,
)
def test_bad_options_are_refused(make: Make, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        make(**options)


@every_method
def test_a_window_makes_a_record_as_cheap_as_an_event(make: Make) -> None:
    assert make(window=3, unit=phd.Record()).budget == make(unit=phd.Event()).budget
    assert make(insert_only=True, unit=phd.Record()).budget == make(unit=phd.Event()).budget


@every_method
def test_cost_follows_the_nodes_touched_not_the_tree(make: Make) -> None:
    """A complete tree of depth 60 has 10^18 nodes."""
    stream = make(domain=phd.Box([(0, 1), (0, 1)], depth=60), epsilon=20.0)
    for seed in range(3):
        stream.update(points(1000, seed))
    assert stream.nodes < 200_000


@pytest.mark.slow
@every_method
def test_a_million_events_in_a_tick(make: Make) -> None:
    release = make(domain=phd.Box([(0, 1), (0, 1)])).update(points(1_000_000))
    assert release.total == pytest.approx(1_000_000, rel=0.01)


@pytest.mark.slow
@every_method
def test_an_endless_stream_runs_in_bounded_memory(make: Make) -> None:
    stream = make(domain=phd.Box([(0, 1), (0, 1)]), epsilon=4.0, max_nodes=600)
    rng = np.random.default_rng(3)
    for _ in range(40):  # a crowd that moves about
        stream.update(np.clip(rng.random(2) + rng.normal(0, 0.01, (200, 2)), 0, 1))
        assert stream.nodes <= 600


@every_method
def test_a_simulated_stream_never_becomes_private(make: Make) -> None:
    stream = make(noise=phd.Simulation(seed=1))
    stream.noise = phd.Simulation(seed=2)
    stream.update(points(50))
    with pytest.raises(StateError, match="simulated"):
        stream.noise = phd.privacy.ExactNoise()
    assert "simulated" in stream.update(points(50)).privacy
