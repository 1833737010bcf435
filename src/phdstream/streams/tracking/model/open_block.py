"""The open block, as the public sees it: what was counted of it roughly, tick by tick, before it is counted finely.

Since the last fine count, a block has gathered for each kind of event (appears, disappears) a noisy total of every tick
and noisy counts of the zones. The zones are counted not at every tick but when enough has come since they last were (a
*batch*), so that quiet ticks do not each pay for noise. The events themselves are the mechanism's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.domains import ROOT
from phdstream.streams.state import Arrays
from phdstream.streams.tracking.model.least_squares import Layer, NoisyCounts
from phdstream.streams.tracking.model.policy import Zoning, drift_score

__all__ = ["OpenBlock"]

_NUMBERS = ("sign", "tick_variance", "zone_variance", "total", "ticks", "batch_total", "batch_ticks", "zone_counts")


@dataclass
class OpenBlock:
    """One kind of events in the open block: what came (+1) or went (-1); noisy numbers only."""

    sign: int
    zoning: Zoning
    tick_variance: float
    zone_variance: float
    total: float = 0.0
    ticks: int = 0
    batch_total: float = 0.0
    batch_ticks: int = 0
    zone_counts: int = 0
    by_tick: list[float] = field(default_factory=list)
    zone_totals: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not self.zone_totals.size:
            self.zone_totals = np.zeros(self.zones.size)

    @property
    def zones(self) -> Ints:
        """The zones that are counted."""
        return self.zoning.zones

    def add_tick(self, noisy_total: int) -> None:
        """Add a tick's noisy number of events."""
        self.by_tick.append(float(noisy_total))
        self.batch_total += float(noisy_total)
        self.batch_ticks += 1

    def add_zones(self, noisy_counts: Ints) -> None:
        """Add the noisy counts of the batch by zone, and begin a new batch."""
        self.zone_totals = self.zone_totals + noisy_counts
        self.zone_counts += 1
        self.total, self.ticks = self.total + self.batch_total, self.ticks + self.batch_ticks
        self.batch_total, self.batch_ticks = 0.0, 0

    @property
    def in_zones(self) -> tuple[float, float]:
        """How many events the zones have seen, from zones and tick totals together, and the variance of that."""
        if not self.zone_counts:
            return 0.0, 0.0
        by_ticks, by_zones = self.ticks * self.tick_variance, self.zone_counts * self.zones.size * self.zone_variance
        weight = by_zones / (by_ticks + by_zones)
        return weight * self.total + (1 - weight) * float(self.zone_totals.sum()), weight * by_ticks

    @property
    def number(self) -> tuple[float, float]:
        """How many events there were in the block, never negative, and the variance of that."""
        seen, variance = self.in_zones
        return max(seen + self.batch_total, 0.0), variance + self.batch_ticks * self.tick_variance

    def drift_score(self, layers: list[Layer] | None = None) -> float:
        """Return how much the zones' changes differ from those expected: as counted so far, or as finally estimated."""
        if layers is None:
            if not self.zone_counts or self.zone_totals.sum() <= 0:
                return 0.0
            noise = np.full(self.zones.size, self.zone_counts * self.zone_variance)
            return drift_score(self.zone_totals, noise, self.zoning.expected)
        nodes = np.concatenate([layer.node for layer in layers])
        values, variances = (np.concatenate([getattr(at, name) for at in layers]) for name in ("value", "variance"))
        at = np.searchsorted(nodes, self.zones)
        return drift_score(self.sign * values[at], variances[at], self.zoning.expected)

    def zones_as_counts(self) -> NoisyCounts:
        """Return the zone totals as signed changes; the rest of the domain, of measure zero, does not change."""
        variance = np.full(self.zones.size, self.zone_counts * self.zone_variance)
        counted = NoisyCounts(self.zones, self.sign * self.zone_totals, variance)
        return NoisyCounts.concat(counted, NoisyCounts.known_empty(self.zoning.empty))

    def total_as_count(self) -> NoisyCounts:
        """Return the sum of the tick totals as a signed change of the root."""
        return NoisyCounts(
            np.array([ROOT]), np.array([self.sign * self.total]), np.array([self.ticks * self.tick_variance])
        )

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the block as plain data and arrays."""
        arrays = vars(self.zoning) | {"zone_totals": self.zone_totals, "by_tick": np.array(self.by_tick)}
        return {name: getattr(self, name) for name in _NUMBERS}, arrays

    @classmethod
    def from_state(cls, numbers: dict[str, Any], arrays: Arrays) -> OpenBlock:
        """Return the block that `to_state` described."""
        zoning = Zoning(*(arrays[name] for name in ("zones", "empty", "expected")))
        return cls(zoning=zoning, zone_totals=arrays["zone_totals"], by_tick=arrays["by_tick"].tolist(), **numbers)
