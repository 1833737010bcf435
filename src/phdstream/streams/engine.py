"""Who holds private events and counts them: an engine. The mechanism asks, the engine answers exactly.

A mechanism only ever asks "how many events lie in each of these disjoint nodes?". Whatever answers that exactly is an
engine: by default NumPy in this process (`phdstream.streams.code_counts`), or a cluster that holds the events as parts
under names of its own (`phdstream.engines.spark`). Which engine answers changes no bit of a release.

An engine's answers are **private**: only `phdstream.streams.private_codes` asks, after it has charged the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phdstream.arrays import Ints
from phdstream.errors import StateError
from phdstream.privacy.proved import check_ours
from phdstream.streams.code_counts import CodeCounts

__all__ = ["Engine", "ExactCounts", "HeldEvents", "LocalEngine", "close_engine", "engine_named", "open_engine"]

_OPEN: dict[str, Engine] = {}
"""The engines of this process, by name: a saved state names the engine that holds its open block."""


class ExactCounts(Protocol):
    """Exact numbers of events, to which noise must be added. Private."""

    def within(self, nodes: Ints, bits: int | None = None) -> Ints:
        """Return how many events lie in each node; quicker if all nodes are of one given length."""
        ...


class Engine(Protocol):
    """Holds events in parts, each of one kind, and counts them. All it does is private."""

    @property
    def name(self) -> str:
        """Where the parts are, for ever: a saved state finds them by it."""
        ...

    def hold(self, part: str, codes: Ints) -> HeldEvents:
        """Take over some events as a part; one of the same name is replaced."""
        ...

    def counts(self, parts: Sequence[str], total_bits: int) -> ExactCounts:
        """Return exact counts of all events of some parts together."""
        ...

    def keep_only(self, parts: Iterable[str]) -> None:
        """Forget all parts but these, for good."""
        ...


@dataclass(frozen=True)
class HeldEvents:
    """Events of one kind that an engine holds, already placed on the domain's tree; `Stream.update` takes them.

    ``bound`` is how many events of one user, over the whole stream, the engine has let through; None if it did not look
    at users. Nothing of the events is in here.
    """

    engine: str
    parts: tuple[str, ...]
    bound: int | None = None

    def __len__(self) -> int:
        return len(self.parts)


class LocalEngine:
    """Holds parts in this process, as codes, and counts them with NumPy.

    >>> engine = LocalEngine("here")
    >>> engine.hold("a", np.array([0, 1, 5]))
    HeldEvents(engine='here', parts=('a',), bound=None)
    >>> engine.counts(["a"], total_bits=3).within(np.array([1, 2, 3]))
    array([3, 2, 1])
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._parts: dict[str, Ints] = {}

    def hold(self, part: str, codes: Ints) -> HeldEvents:
        """Take over some events as a part; one of the same name is replaced."""
        self._parts[part] = codes
        return HeldEvents(self.name, (part,))

    def counts(self, parts: Sequence[str], total_bits: int) -> ExactCounts:
        """Return exact counts of all events of some parts together."""
        codes = [self._parts[part] for part in parts]
        return CodeCounts(np.concatenate(codes) if codes else np.zeros(0, np.int64), total_bits)

    def keep_only(self, parts: Iterable[str]) -> None:
        """Forget all parts but these."""
        kept = set(parts)
        self._parts = {name: codes for name, codes in self._parts.items() if name in kept}


def open_engine(engine: Engine) -> None:
    """Let streams of this process find an engine by its name. One of one's own is refused: its answers are trusted."""
    check_ours("engine", engine)
    _OPEN[engine.name] = engine


def close_engine(engine: Engine) -> None:
    """Undo `open_engine`."""
    _OPEN.pop(engine.name, None)


def engine_named(name: str) -> Engine:
    """Return the engine that holds parts, if it is open."""
    if name not in _OPEN:
        raise StateError(
            f"events of this stream's open block are held by another engine ({name}), which is not open here: go on "
            "with the [engine] it was run with."
        )
    return _OPEN[name]
