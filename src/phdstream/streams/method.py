"""What a method is: how a tick's private events become a release. A stream is made of one, and of what all have alike.

A method has two sides. Its **mechanism** alone is given private events; it draws noise, charges the events for it, and
answers public plans (which disjoint nodes to count, with which budget) with noisy counts. Its **model** sees noisy
counts only, and decides what to ask next and what to release. The method joins the two.
"""

from __future__ import annotations

from typing import Any, Protocol

from phdstream.privacy import Budget, Noise
from phdstream.release.estimate import Estimate
from phdstream.release.soundness import Fallback
from phdstream.streams.private_codes import TickEvents
from phdstream.streams.state import Arrays

__all__ = ["Method"]


class Method(Protocol):
    """A way to count ticks of events with noise, and to say what is to be released of that."""

    @property
    def name(self) -> str:
        """The method's name in releases and saved states."""
        ...

    @property
    def budget(self) -> Budget:
        """What an insert and a delete may cost."""
        ...

    @property
    def noise(self) -> Noise:
        """The source of noise; it can be replaced, for tests and for a loaded stream."""
        ...

    @noise.setter
    def noise(self, noise: Noise) -> None: ...

    @property
    def nodes(self) -> int:
        """How many nodes are remembered."""
        ...

    def release_tick(self, waiting: list[TickEvents], key: int, fallback: Fallback) -> Estimate:
        """Count the events of a tick (at the start, of all ticks up to it) with noise, and say what to release.

        ``key`` fixes where whole points fall; ``fallback`` notes whether a step of the model failed.
        """
        ...

    def options(self) -> dict[str, Any]:
        """Return the method's own parameters: plain data, fixed before any data is seen."""
        ...

    def metadata(self) -> dict[str, Any]:
        """Return what a release states of the method besides its name."""
        ...

    def describe(self) -> list[str]:
        """Return how the budget is spent, in plain words."""
        ...

    def private_parts(self) -> list[str]:
        """Return what of the method's saved state is private, in plain words."""
        ...

    def unproved(self) -> list[str]:
        """Return what of the method itself is not proved here, and who vouches for it; see `privacy.proved`."""
        ...

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the method's own state as plain data and arrays. Private."""
        ...

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Take the method's own state back."""
        ...
