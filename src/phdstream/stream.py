"""`PHDStream`: one tick, read top to bottom like the paper's "PHDStreamTree with counters" in its
compute-efficient form.

**Why it is private.** Per tick the data is used twice: by the tree's selection, which sees the tick's inserts
and costs an insert at most ``budget.tree`` (`phdstream.tree.selection`, `phdstream.privacy.calibration`), and
by the counters of the selected leaves, which are disjoint, so that an event enters exactly one of them and
costs at most ``budget.count`` (`phdstream.counting.counters`). Selection and counting compose adaptively
(`phdstream.counting.selective`): an insert costs ``tree + count`` and a delete ``count``, over the whole
stream, because an event belongs to one tick. A unit's events add up to at most ε
(`phdstream.privacy.budget`). Everything else here is computed from what was released.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from phdstream.arrays import Ints
from phdstream.counting import CounterChoice, check_whole, counter_from_dict, make_counter
from phdstream.domains import Domain, domain_from_dict
from phdstream.errors import BudgetError, InputError, StateError
from phdstream.intake import Intake, PrivateTally
from phdstream.privacy import (
    Budget,
    ExactNoise,
    Noise,
    Unit,
    calibrate_split,
    noise_from_dict,
    unit_from_dict,
)
from phdstream.promise import describe, facts, parameters
from phdstream.release import Release
from phdstream.state import Arrays, nest, read_state, unnest, write_state
from phdstream.tree import CodeCounts, Estimate, Level, NodeStore, Window, estimate, select_tree

__all__ = ["PHDStream"]


class PHDStream:
    """A private synthetic stream by the paper's method, repaired where it was not private.

    Parameters
    ----------
    domain: where points can be; fixed before any data is seen.
    epsilon, unit: the promise: ε-differential privacy for each `Event`, `Record` or `User`, over the whole stream.
    counter: ``"simple"``, ``"block"``, ``"binary"``, ``"hybrid"``, or a function from a budget to a counter.
    threshold: θ, the biased count above which a node is split.
    window: records live this many ticks and then expire, at no privacy cost. No deletes are taken.
    insert_only: declares that there are no deletes, which makes a `Record` as cheap as an `Event`.
    start_after: t0, the tick of the first release; everything up to it is counted as one tick.
    tree_share: the part of an insert's budget that goes to choosing the tree.
    max_nodes: nodes kept; beyond it the least recently used subtrees are folded into their roots.
    noise: leave it out for exact noise; `Simulation` (seed) is for experiments and marks every release.

    >>> import phdstream as phd
    >>> stream = phd.PHDStream(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, unit=phd.Event())
    >>> release = stream.update(inserts=[(0.2, 0.7), (0.2, 0.8)])
    >>> release = stream.update(inserts=[(0.9, 0.1)], deletes=[(0.2, 0.7)])
    >>> release.tick
    2
    """

    def __init__(
        self,
        domain: Domain,
        epsilon: float,
        unit: Unit,
        *,
        counter: CounterChoice = "simple",
        threshold: int = 0,
        window: int | None = None,
        insert_only: bool = False,
        start_after: int = 1,
        tree_share: float = 0.5,
        max_nodes: int = 1_000_000,
        noise: Noise | None = None,
    ) -> None:
        _check(domain, unit, threshold, window, start_after, max_nodes)
        deletes = not insert_only and window is None
        self.domain, self.unit, self.insert_only, self.tree_share = domain, unit, insert_only, tree_share
        self.window, self.start_after, self.max_nodes = window, start_after, max_nodes
        self.budget = Budget.solve(epsilon, unit, deletes=deletes, tree_share=tree_share)
        self.rule = calibrate_split(self.budget.tree, domain.fanout, threshold)
        self.counter = make_counter(counter, self.budget.count)
        if self.counter.epsilon > self.budget.count:
            raise BudgetError("the counter was built with more budget than it was given: use the budget passed to it.")
        self.noise: Noise = ExactNoise() if noise is None else noise
        self.tick = 0
        self._key = self.noise.key()
        self._intake = Intake(domain, unit, deletes)
        self._store = NodeStore(domain, self.counter)
        self._expiring = Window(window) if window else None
        self._waiting: list[tuple[Ints, Ints]] = []
        self._release: Release | None = None
        self._broken = False

    def update(self, inserts: Any = None, deletes: Any = None, users: Any = None, delete_users: Any = None) -> Release:
        """Take one tick's events and return its release.

        Points are arrays (n, d), frames or Arrow tables of coordinates, or a GeoSeries. ``users`` and
        ``delete_users`` name each event's user; they are needed with `User`, whose bound drops what is beyond
        it, and ignored otherwise.
        """
        if self._broken:
            raise StateError(
                "an earlier update failed half-way, so this stream can no longer tell what was counted. "
                "Load its last saved state."
            )
        events = self._intake.admit(inserts, deletes, users, delete_users)
        self._broken = True  # until the tick is done: its noise must not be drawn twice
        self.tick += 1
        self._waiting.append(events)
        if self.window:
            self._waiting = self._waiting[-self.window :]  # the rest has expired before it was ever counted
        self._release = self._hold() if self.tick < self.start_after else self._release_tick()
        self._broken = False
        return self._release

    def _hold(self) -> Release:
        """Wait for the start: the events are kept (private state), nothing is released."""
        none, empty = np.zeros(0), np.zeros(0, np.int64)
        nothing = Estimate(empty, empty.astype(bool), none, none, none, none, empty)
        return Release(self.domain, self.tick, nothing, self._key, facts(self), empty, empty, held=True)

    def _release_tick(self) -> Release:
        """Select the tree, count its leaves, publish."""
        inserts, deletes = (
            CodeCounts(self.domain, np.concatenate(codes)) for codes in zip(*self._waiting, strict=True)
        )
        if self._expiring:
            self._expiring.expire(self._store)
        tree = select_tree(self._store, inserts, self.rule, self.noise, self.max_nodes)  # costs budget.tree
        self._count_leaves(tree, inserts, deletes)  # costs budget.count
        self._waiting = []
        published = estimate(self._store, tree, self._key)
        self._remember(tree)
        before = self._release
        nodes, points = (before.leaves, before.points) if before else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        return Release(self.domain, self.tick, published, self._key, facts(self), nodes, points)

    def _count_leaves(self, tree: list[Level], inserts: CodeCounts, deletes: CodeCounts) -> None:
        leaves = np.concatenate([level.rows[level.leaf] for level in tree])
        nodes = self._store["node"][leaves]
        change = self._store.count(leaves, inserts.within(nodes) - deletes.within(nodes), self.noise)
        if self._expiring:
            self._expiring.record(leaves, change, spread_over=len(self._waiting))

    def _remember(self, tree: list[Level]) -> None:
        """Note which nodes were used, and fold the least recently used ones if there are too many."""
        for level in tree:
            self._store["last_visit"][level.rows] = self.tick
        if self._store.size > self.max_nodes:
            moves = self._store.fold(keep=max(1, self.max_nodes * 3 // 4))
            if self._expiring:
                self._expiring.fold(*moves)

    @property
    def release(self) -> Release | None:
        """The latest release, or None before the first tick."""
        return self._release

    @property
    def private_tally(self) -> PrivateTally:
        """What was dropped so far, for the operator. **Private: do not publish.**"""
        return self._intake.tally

    @property
    def nodes(self) -> int:
        """How many nodes the stream remembers."""
        return self._store.size

    def describe(self) -> str:
        """Return the promise, the budget and the noise in plain words."""
        return describe(self)

    def save(self, path: str | Path) -> None:
        """Save the state to a file. **The file is private**: `describe` says what it holds.

        A loaded stream goes on exactly as this one would. Releasing a tick from two copies of one state would
        publish it twice with different noise, which breaks the promise: for anything but experiments let
        `durable` own the state.
        """
        write_state(Path(path), *self.to_state())

    @classmethod
    def load(cls, path: str | Path) -> PHDStream:
        """Load a stream that was saved with `save`."""
        meta, arrays = read_state(Path(path))
        if meta.get("owner"):
            raise StateError(
                f"{path} belongs to a directory that keeps ticks from being released twice: open that with durable()."
            )
        return cls.from_state(meta, arrays)

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the state as plain data and arrays. Private."""
        if self._broken:
            raise StateError("an update failed half-way: this state must not be saved. Load the last saved one.")
        meta = {
            "parameters": parameters(self),
            "tick": self.tick,
            "key": self._key,
            "noise": self.noise.to_dict(),
        }
        meta |= {"tally": self._intake.tally.to_dict(), "released": self._release is not None}
        arrays = nest("intake", self._intake.to_arrays()) | nest("nodes", self._store.to_arrays())
        arrays |= nest("waiting", _waiting_to_arrays(self._waiting))
        arrays |= nest("window", self._expiring.to_arrays()) if self._expiring else {}
        if self._release:
            meta |= {"facts": self._release.facts, "held": self._release.held}
            arrays |= nest("release", self._release.to_arrays())
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: Arrays) -> PHDStream:
        """Return the stream that `to_state` described."""
        fixed = dict(meta["parameters"])
        domain, unit = domain_from_dict(fixed.pop("domain")), unit_from_dict(fixed.pop("unit"))
        counter = counter_from_dict(fixed.pop("counter"))
        fixed.pop("private_noise")
        stream = cls(domain, unit=unit, counter=lambda _: counter, noise=noise_from_dict(meta["noise"]), **fixed)
        stream.noise = noise_from_dict(meta["noise"])  # anew: making the stream drew a key from the first
        stream.tick, stream._key = meta["tick"], meta["key"]
        stream._intake.restore(unnest("intake", arrays), meta["tally"])
        stream._store = NodeStore.from_arrays(domain, counter, unnest("nodes", arrays))
        stream._waiting = _waiting_from_arrays(unnest("waiting", arrays))
        if stream.window:
            stream._expiring = Window.from_arrays(unnest("window", arrays))
        if meta["released"]:
            public = unnest("release", arrays)
            stream._release = Release.from_arrays(domain, stream.tick, stream._key, meta["facts"], public, meta["held"])
        return stream


def _waiting_to_arrays(waiting: list[tuple[Ints, Ints]]) -> Arrays:
    arrays: Arrays = {}
    for i, name in enumerate(("inserts", "deletes")):
        codes = [events[i] for events in waiting]
        arrays[name] = np.concatenate(codes) if codes else np.zeros(0, np.int64)
        arrays[f"{name}_per_tick"] = np.array([c.size for c in codes], dtype=np.int64)
    return arrays


def _waiting_from_arrays(arrays: Arrays) -> list[tuple[Ints, Ints]]:
    parts = [np.split(arrays[n], np.cumsum(arrays[f"{n}_per_tick"])[:-1]) for n in ("inserts", "deletes")]
    return list(zip(*parts, strict=True)) if arrays["inserts_per_tick"].size else []


def _check(domain: Domain, unit: Unit, threshold: int, window: int | None, start_after: int, max_nodes: int) -> None:
    if not isinstance(domain, Domain):
        raise InputError(f"domain must be a Box, a Cube or another Domain, not {type(domain).__name__}.")
    if not hasattr(unit, "worst_cases"):
        raise InputError("unit must say to whom ε is promised: Event(), Record() or User(inserts=..., deletes=...).")
    check_whole("threshold", threshold, least=0)
    check_whole("start_after", start_after)
    check_whole("max_nodes", max_nodes, least=domain.fanout + 1)
    if window is not None:
        check_whole("window", window)
