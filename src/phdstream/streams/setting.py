"""What fixes a stream before it sees any data, whatever its method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from phdstream.domains import Domain
from phdstream.errors import InputError, check_whole, shown
from phdstream.privacy import ExactNoise, Noise, Unit
from phdstream.privacy.proved import check_ours, check_proved

__all__ = ["Setting", "checked_noise"]

_LONGEST_WINDOW = 10_000_000
"""Ticks; something is kept for each."""


@dataclass(frozen=True)
class Setting:
    """Where points can be, to whom ε is promised, how long records live, when releases begin, how much is remembered.

    The parameters of `phdstream.PHDStream` and `phdstream.TrackingStream` say what each means.
    """

    domain: Domain
    unit: Unit
    window: int | None
    insert_only: bool
    start_after: int
    max_nodes: int

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise InputError(f"domain must be a Box, a Cube or another Domain, not {type(self.domain).__name__}.")
        if isinstance(self.unit, type) or not isinstance(self.unit, Unit):
            raise InputError(
                "unit must say to whom ε is promised: Event(), Record() or User(inserts=..., deletes=...)."
            )
        check_ours("unit of privacy", self.unit)
        for what, part in self.parts:
            check_proved(what, part)
        check_whole("start_after", self.start_after)
        check_whole("max_nodes", self.max_nodes, least=self.domain.fanout + 1)
        if self.window is not None:
            check_whole("window", self.window, most=_LONGEST_WINDOW)
        if not isinstance(self.insert_only, bool | np.bool_):
            raise InputError(f"insert_only must be True or False, not {shown(self.insert_only)}.")
        plain = {"start_after": int(self.start_after), "max_nodes": int(self.max_nodes)}  # also if NumPy's came
        plain |= {"insert_only": bool(self.insert_only)}
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if self.window is not None:
            object.__setattr__(self, "window", int(self.window))

    @property
    def parts(self) -> list[tuple[str, object]]:
        """The domain and what it is made of, each with what it is: all of them say which code a point has."""
        place = self.domain.location
        more: list[tuple[str, object]] = [] if place is self.domain else [("place", place)]
        return [("domain", self.domain), *more, *(("attribute", each) for each in self.domain.attributes)]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The domain as every release states it: found once, for a large domain has much to sum up."""
        return self.domain.summary()

    @property
    def deletes(self) -> bool:
        """Whether deletes are taken."""
        return not self.insert_only and self.window is None

    def to_dict(self) -> dict[str, Any]:
        """Return the setting as plain data."""
        return {
            "domain": self.domain.to_dict(),
            "unit": self.unit.to_dict(),
            "window": self.window,
            "insert_only": self.insert_only,
            "start_after": self.start_after,
            "max_nodes": self.max_nodes,
        }


def checked_noise(noise: Noise | None) -> Noise:
    """Return the source of noise that was asked for; exact noise if none was."""
    if noise is None:
        return ExactNoise()
    if isinstance(noise, type) or not isinstance(noise, Noise):
        raise InputError(
            f"noise must be left out, for exact noise, or be Simulation(seed=...), for experiments, not {shown(noise)}."
        )
    if noise.private:
        check_proved("source of noise", noise)
    return noise
