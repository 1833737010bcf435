"""What every private stream does the same way: take a tick, hold until the start, release, save, load.

How a tick's events become a release is the stream's method (`phdstream.streams.method`); it alone draws noise, and its
module says why that is private.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from phdstream.domains import Domain, domain_from_dict
from phdstream.errors import StateError
from phdstream.privacy import Budget, Noise, Unit, noise_from_dict, unit_from_dict
from phdstream.privacy.proved import check_ours
from phdstream.release import Release
from phdstream.release.estimate import Estimate
from phdstream.release.shown import card_html
from phdstream.release.soundness import Fallback
from phdstream.streams.guarantee import describe, facts, metadata, parameters
from phdstream.streams.intake import Intake, PrivateTally
from phdstream.streams.method import Method
from phdstream.streams.private_codes import TickEvents, held_parts
from phdstream.streams.setting import Setting
from phdstream.streams.state import Arrays, nest, read_state, unnest, write_state

__all__ = ["Stream"]


class Stream:
    """A private synthetic stream: `update` takes one tick's events and returns its `Release`.

    Made by `phdstream.PHDStream` or `phdstream.TrackingStream`, which differ in their method alone.
    """

    method: ClassVar[str]

    def __init__(self, setting: Setting, method: Method) -> None:
        check_ours("method", method)
        self.setting, self._method = setting, method
        self.tick = 0
        self._key = method.noise.key()
        self._intake = Intake(setting.domain, setting.unit, setting.deletes, method.budget)
        self._waiting: list[TickEvents] = []
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
        if self.setting.window:
            self._waiting = self._waiting[-self.setting.window :]  # the rest has expired before it was ever counted
        self._release = self._hold() if self.tick < self.setting.start_after else self._count()
        self._broken = False
        return self._release

    def _hold(self) -> Release:
        """Wait for the start: the events are kept (private state), nothing is released."""
        empty, about = np.zeros(0, np.int64), metadata(self.setting, self._method)
        return Release(self.domain, self.tick, Estimate.nothing(), self._key, about, empty, empty, held=True)

    def _count(self) -> Release:
        """Count what waits, with noise, and return the release; it says so if a step of the model failed."""
        waiting, self._waiting = self._waiting, []
        fallback = Fallback()
        estimate = self._method.release_tick(waiting, self._key, fallback)
        before, empty = self._release, np.zeros(0, np.int64)
        nodes, points = (before.leaves, before.points) if before else (empty, empty)
        about = metadata(self.setting, self._method) | ({"fallback": True} if fallback.taken else {})
        return Release(self.domain, self.tick, estimate, self._key, about, nodes, points)

    @property
    def domain(self) -> Domain:
        """Where points can be."""
        return self.setting.domain

    @property
    def unit(self) -> Unit:
        """To whom ε is promised."""
        return self.setting.unit

    @property
    def start_after(self) -> int:
        """The tick of the first release."""
        return self.setting.start_after

    @property
    def deletes(self) -> bool:
        """Whether deletes are taken."""
        return self.setting.deletes

    @property
    def budget(self) -> Budget:
        """What an insert and a delete may cost."""
        return self._method.budget

    @property
    def noise(self) -> Noise:
        """The source of noise."""
        return self._method.noise

    @noise.setter
    def noise(self, noise: Noise) -> None:
        if self.tick and noise.private and not self.noise.private:
            raise StateError(
                "this stream has released simulated ticks: with exact noise from now on it would not be private."
            )
        self._method.noise = noise

    @property
    def nodes(self) -> int:
        """How many nodes the stream remembers."""
        return self._method.nodes

    @property
    def release(self) -> Release | None:
        """The latest release, or None before the first tick."""
        return self._release

    @property
    def private_tally(self) -> PrivateTally:
        """What was dropped so far, for the operator. **Private: do not publish.**"""
        return self._intake.tally

    def held_parts(self, engine: str) -> set[str]:
        """Return the parts that an engine must still hold for this stream: those of its open block."""
        return held_parts(self.to_state()[1], engine)

    @property
    def parameters(self) -> dict[str, Any]:
        """All that fixes the stream before it sees data; two streams that agree here are the same stream."""
        return parameters(self.setting, self._method)

    def describe(self) -> str:
        """Return the guarantee, the budget and the noise in plain words."""
        return describe(self.setting, self._method, type(self).__name__)

    def plot(self, what: str = "points", axes: Any = None) -> Any:
        """Draw the latest release: see `Release.plot`."""
        if self._release is None:
            raise StateError("there is nothing to draw before the first tick: call update(...).")
        return self._release.plot(what, axes)

    def card(self, kind: str = "") -> str:
        """Return what a notebook shows of the stream; ``kind`` comes before what it is called."""
        hint = "describe() says more; what it holds is private, its releases are public"
        return card_html(f"{kind}{type(self).__name__} {self._age}", facts(self.setting, self._method), hint)

    @property
    def _age(self) -> str:
        return "after 1 tick" if self.tick == 1 else f"after {self.tick} ticks"

    def _repr_html_(self) -> str:
        return self.card()

    def __repr__(self) -> str:
        promise = metadata(self.setting, self._method)["privacy"]
        return f"<{type(self).__name__} on {self.domain!r}, {self._age}; {promise}>"

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
        own, arrays = self._method.to_state()
        meta = {"parameters": self.parameters, "tick": self.tick, "key": self._key, "noise": self.noise.to_dict()}
        meta |= {"tally": self._intake.tally.to_dict(), "released": self._release is not None, "own": own}
        arrays |= nest("intake", self._intake.to_arrays()) | nest("waiting", TickEvents.many_to_arrays(self._waiting))
        if self._release:
            meta |= {"metadata": self._release.metadata, "held": self._release.held}
            arrays |= nest("release", self._release.to_arrays())
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: Arrays) -> Self:
        """Return the stream that `to_state` described."""
        fixed = dict(meta["parameters"])
        if fixed.pop("method", None) != cls.method:
            raise StateError(f"this state is of the method {meta['parameters'].get('method')!r}, not {cls.method!r}.")
        domain, unit = domain_from_dict(fixed.pop("domain")), unit_from_dict(fixed.pop("unit"))
        del fixed["private_noise"]
        make: Any = cls  # a stream is made of its parameters; those of a method are its own
        stream: Self = make(domain, unit=unit, noise=noise_from_dict(meta["noise"]), **fixed)
        stream.noise = noise_from_dict(meta["noise"])  # anew: making the stream drew a key from the first
        stream.tick, stream._key = meta["tick"], meta["key"]
        stream._intake.restore(unnest("intake", arrays), meta["tally"])
        stream._waiting = TickEvents.many_from_arrays(domain.total_bits, unnest("waiting", arrays))
        stream._method.restore(meta["own"], arrays)
        if meta["released"]:
            public, about = unnest("release", arrays), (stream.tick, stream._key, meta["metadata"])
            stream._release = Release.from_arrays(domain, *about, public, meta["held"])
        return stream
