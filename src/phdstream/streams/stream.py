"""What every private stream does the same way: take a tick, hold until the start, release, save, load.

A method (`phdstream.streams.paper`, `phdstream.streams.tracking`) adds how a tick's events become a release;
it alone draws noise, and its module says why that is private.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains import Domain
from phdstream.errors import InputError, StateError, check_whole, shown
from phdstream.privacy import Budget, ExactNoise, Noise, Unit, noise_from_dict
from phdstream.release import Release
from phdstream.release.estimate import Estimate
from phdstream.release.soundness import Fallback, faults
from phdstream.streams.guarantee import describe, metadata, parameters
from phdstream.streams.intake import Intake, PrivateTally
from phdstream.streams.state import Arrays, nest, read_state, unnest, write_state

__all__ = ["Events", "Stream"]

Events = tuple[Ints, Ints]
"""The codes of a tick's inserts, and of its deletes. Private."""
_LONGEST_WINDOW = 10_000_000
"""Ticks; something is kept for each."""
_NOISE = ("private", "add", "key", "to_dict")


class Stream(ABC):
    """A private synthetic stream: `update` takes one tick's events and returns its `Release`."""

    method: ClassVar[str]
    budget: Budget

    def __init__(
        self,
        domain: Domain,
        unit: Unit,
        *,
        window: int | None,
        insert_only: bool,
        start_after: int,
        max_nodes: int,
        noise: Noise | None,
    ) -> None:
        _check(domain, unit, window, start_after, max_nodes)
        _check_noise(noise, insert_only)
        self.domain, self.unit, self.insert_only = domain, unit, bool(insert_only)
        self.window = None if window is None else int(window)
        self.start_after, self.max_nodes = int(start_after), int(max_nodes)  # plain numbers, also if NumPy's came
        self.deletes = not insert_only and window is None
        self.noise: Noise = ExactNoise() if noise is None else noise
        self.tick = 0
        self._key = self.noise.key()
        self._intake = Intake(domain, unit, self.deletes)
        self._waiting: list[Events] = []
        self._release: Release | None = None
        self._broken = False
        self._fallback = Fallback()

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
        self._fallback.taken = False
        self.tick += 1
        self._waiting.append(events)
        if self.window:
            self._waiting = self._waiting[-self.window :]  # the rest has expired before it was ever counted
        self._release = self._hold() if self.tick < self.start_after else self._publish()
        self._broken = False
        return self._release

    def _hold(self) -> Release:
        """Wait for the start: the events are kept (private state), nothing is released."""
        empty = np.zeros(0, np.int64)
        return Release(self.domain, self.tick, Estimate.nothing(), self._key, metadata(self), empty, empty, held=True)

    def _publish(self) -> Release:
        waiting, self._waiting = self._waiting, []
        published = self._release_tick(waiting)
        before, empty = self._release, np.zeros(0, np.int64)
        nodes, points = (before.leaves, before.points) if before else (empty, empty)
        about = metadata(self) | ({"fallback": True} if self._fallback.taken else {})
        return Release(self.domain, self.tick, published, self._key, about, nodes, points)

    @abstractmethod
    def _release_tick(self, waiting: list[Events]) -> Estimate:
        """Count the events of a tick (at the start, of all ticks up to it) with noise, and say what to publish."""

    def _first_sound(self, ways: list[Callable[[], Estimate]]) -> Estimate:
        """Return the first whole release that some ways to publish give, from noisy values that were drawn already.

        The ways see nothing but noisy values, so which one it is tells nothing more (`phdstream.release.soundness`); a
        release that is not by the first way says ``fallback`` in its metadata. No noise is drawn again.
        """
        published = self._fallback.first_sound(ways, lambda estimate: not faults(self.domain, estimate))
        if wrong := faults(self.domain, published) if self._fallback.taken else []:
            raise StateError(f"this tick cannot be published: {', '.join(wrong)}. Please report that as a bug.")
        return published

    @property
    def release(self) -> Release | None:
        """The latest release, or None before the first tick."""
        return self._release

    @property
    def private_tally(self) -> PrivateTally:
        """What was dropped so far, for the operator. **Private: do not publish.**"""
        return self._intake.tally

    @property
    @abstractmethod
    def nodes(self) -> int:
        """How many nodes the stream remembers."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Return the method's own parameters: plain data, fixed before any data is seen."""

    @abstractmethod
    def method_metadata(self) -> dict[str, Any]:
        """Return what a release states of the method."""

    @abstractmethod
    def method_lines(self) -> list[str]:
        """Return how the method spends its budget, in plain words."""

    @abstractmethod
    def private_parts(self) -> list[str]:
        """Return what of the method's saved state is private, in plain words."""

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
    def load(cls, path: str | Path) -> Self:
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
        own, arrays = self._own_state()
        meta = {"parameters": parameters(self), "tick": self.tick, "key": self._key, "noise": self.noise.to_dict()}
        meta |= {"tally": self._intake.tally.to_dict(), "released": self._release is not None, "own": own}
        arrays |= nest("intake", self._intake.to_arrays()) | nest("waiting", events_to_arrays(self._waiting))
        if self._release:
            meta |= {"metadata": self._release.metadata, "held": self._release.held}
            arrays |= nest("release", self._release.to_arrays())
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: Arrays) -> Self:
        """Return the stream that `to_state` described."""
        if meta["parameters"].get("method") != cls.method:
            raise StateError(f"this state is of the method {meta['parameters'].get('method')!r}, not {cls.method!r}.")
        stream = cls._remake(dict(meta["parameters"]), noise_from_dict(meta["noise"]))
        stream.noise = noise_from_dict(meta["noise"])  # anew: making the stream drew a key from the first
        stream.tick, stream._key = meta["tick"], meta["key"]
        stream._intake.restore(unnest("intake", arrays), meta["tally"])
        stream._waiting = events_from_arrays(unnest("waiting", arrays))
        stream._restore_own(meta["own"], arrays)
        if meta["released"]:
            public, about = unnest("release", arrays), (stream.tick, stream._key, meta["metadata"])
            stream._release = Release.from_arrays(stream.domain, *about, public, meta["held"])
        return stream

    @classmethod
    @abstractmethod
    def _remake(cls, fixed: dict[str, Any], noise: Noise) -> Self:
        """Return a new stream with saved parameters."""

    @abstractmethod
    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the method's own state."""

    @abstractmethod
    def _restore_own(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Take the method's own state back."""


def events_to_arrays(ticks: list[Events]) -> Arrays:
    """Return ticks of events as plain arrays. Private."""
    arrays: Arrays = {}
    for i, name in enumerate(("inserts", "deletes")):
        codes = [events[i] for events in ticks]
        arrays[name] = np.concatenate(codes) if codes else np.zeros(0, np.int64)
        arrays[f"{name}_per_tick"] = np.array([c.size for c in codes], dtype=np.int64)
    return arrays


def events_from_arrays(arrays: Arrays) -> list[Events]:
    """Return the ticks of events that `events_to_arrays` described."""
    parts = [np.split(arrays[n], np.cumsum(arrays[f"{n}_per_tick"])[:-1]) for n in ("inserts", "deletes")]
    return list(zip(*parts, strict=True)) if arrays["inserts_per_tick"].size else []


def _check(domain: Domain, unit: Unit, window: int | None, start_after: int, max_nodes: int) -> None:
    if not isinstance(domain, Domain):
        raise InputError(f"domain must be a Box, a Cube or another Domain, not {type(domain).__name__}.")
    if isinstance(unit, type) or not hasattr(unit, "worst_cases"):
        raise InputError("unit must say to whom ε is promised: Event(), Record() or User(inserts=..., deletes=...).")
    check_whole("start_after", start_after)
    check_whole("max_nodes", max_nodes, least=domain.fanout + 1)
    if window is not None:
        check_whole("window", window, most=_LONGEST_WINDOW)


def _check_noise(noise: Noise | None, insert_only: bool) -> None:
    if noise is not None and (isinstance(noise, type) or not all(hasattr(noise, part) for part in _NOISE)):
        raise InputError(
            f"noise must be left out, for exact noise, or be Simulation(seed=...), for experiments, not {shown(noise)}."
        )
    if not isinstance(insert_only, bool | np.bool_):
        raise InputError(f"insert_only must be True or False, not {shown(insert_only)}.")
