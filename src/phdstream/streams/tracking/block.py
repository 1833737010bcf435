"""The open block: events that were counted roughly, tick by tick, and wait to be counted finely.

Since the last fine count, a block has gathered for each kind of event (appears, vanishes) a noisy total of every tick
and noisy totals of a few **zones**, large parts of the domain. The zones are counted not at every tick but
when enough has come since they last were (a *batch*), so that quiet ticks do not each pay for noise.

**Private** are the codes of the block's events, those of the batch among them, and nothing else; they
are forgotten when they have been counted. The totals are noisy and public.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.domains import ROOT
from phdstream.streams.code_counts import Tree
from phdstream.streams.state import Arrays, nest, unnest
from phdstream.streams.tracking.buffer import Buffer
from phdstream.streams.tracking.choosing import surprise
from phdstream.streams.tracking.measuring import Layer, Measured

__all__ = ["Tide"]

_NUMBERS = ("sign", "tick_variance", "zone_variance", "total", "ticks", "batch_total", "batch_ticks", "zone_counts")

_ARRAYS = ("zones", "empty", "expected", "zone_totals")


@dataclass
class Tide:
    """One kind of events in the open block: what came (+1) or went (-1).

    ``zones`` and ``empty`` together tile the tree; ``empty`` are places without measure, where nothing can be.
    ``expected`` is the part of all points that each zone held when the block began.
    """

    sign: int
    zones: Ints
    empty: Ints
    expected: Floats
    tick_variance: float
    zone_variance: float
    codes: Buffer
    batch: Buffer
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

    def take(self, codes: Ints, noisy_total: int) -> None:
        """Add a tick: its events, and their noisy number."""
        self.codes.add(codes)
        self.batch.add(codes)
        self.by_tick.append(float(noisy_total))
        self.batch_total += float(noisy_total)
        self.batch_ticks += 1

    def add_zones(self, noisy_counts: Ints) -> None:
        """Add the noisy counts of the batch by zone, and begin a new batch."""
        self.zone_totals = self.zone_totals + noisy_counts
        self.zone_counts += 1
        self.total, self.ticks = self.total + self.batch_total, self.ticks + self.batch_ticks
        self.batch, self.batch_total, self.batch_ticks = self.batch.emptied(), 0.0, 0

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

    def surprise(self, layers: list[Layer] | None = None) -> float:
        """Return how much the zones' changes differ from those expected: as counted so far, or as finally estimated."""
        if layers is None:
            if not self.zone_counts or self.zone_totals.sum() <= 0:
                return 0.0
            noise = np.full(self.zones.size, self.zone_counts * self.zone_variance)
            return surprise(self.zone_totals, noise, self.expected)
        nodes, values, variances = (
            np.concatenate([getattr(layer, name) for layer in layers]) for name in ("node", "value", "variance")
        )
        at = np.searchsorted(nodes, self.zones)
        return surprise(self.sign * values[at], variances[at], self.expected)

    def measured_zones(self) -> Measured:
        """Return the zone totals as signed changes; the rest of the domain, without measure, does not change."""
        variance = np.full(self.zones.size, self.zone_counts * self.zone_variance)
        counted = Measured(self.zones, self.sign * self.zone_totals, variance)
        return Measured.both(counted, Measured.empty(self.empty))

    def measured_total(self) -> Measured:
        """Return the sum of the tick totals as a signed change of the root."""
        return Measured(
            np.array([ROOT]), np.array([self.sign * self.total]), np.array([self.ticks * self.tick_variance])
        )

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the tide as plain data and arrays. **Private.**"""
        arrays = {name: getattr(self, name) for name in _ARRAYS} | {"by_tick": np.array(self.by_tick)}
        arrays |= nest("codes", self.codes.to_arrays()) | nest("batch", self.batch.to_arrays())
        return {name: getattr(self, name) for name in _NUMBERS}, arrays

    @classmethod
    def from_state(cls, tree: Tree, numbers: dict[str, Any], arrays: Arrays) -> Tide:
        """Return the tide that `to_state` described."""
        parts: dict[str, Any] = {name: arrays[name] for name in _ARRAYS} | {"by_tick": arrays["by_tick"].tolist()}
        parts |= {name: Buffer.from_arrays(tree, unnest(name, arrays)) for name in ("codes", "batch")}
        return cls(**numbers, **parts)
