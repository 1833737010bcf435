"""What a tracking stream knows: how many points there are, how they divide, and what is published of that. All public.

Everything here is computed from noisy counts (of an open block only its totals are looked at, never its events). So
it may fail, and be replaced by something plainer, at no privacy cost (see `phdstream.release.soundness`): a tick
whose noise has been drawn is published in any case. If learning fails, what was known stays; shares that are no
shares are mended; if the view fails, the shares are published as they are; if that fails, the noisy total alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.domains import ROOT
from phdstream.release.estimate import Estimate
from phdstream.release.soundness import Fallback, total_alone
from phdstream.streams.tracking.adapting import elsewhere, tuning
from phdstream.streams.tracking.block import Tide
from phdstream.streams.tracking.choosing import cut, expect, parts_of
from phdstream.streams.tracking.emptiness import Emptiness
from phdstream.streams.tracking.filtering import Tuning, drift_seen, follow
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.measuring import Layer, Measured, best_estimates
from phdstream.streams.tracking.publishing import publish
from phdstream.streams.tracking.shares import Shares, masses
from phdstream.streams.tracking.smoothing import view
from phdstream.streams.tracking.staging import Expected
from phdstream.streams.tracking.totals import Totals

__all__ = ["Model", "learnt"]

_BETWEEN, _AS_SURPRISE = Tuning(drift=0.03), 1.5
"""How the shares follow the zones; how many times the drift seen in the cells is what zones would call surprise."""


def learnt(halves: Halves, fallback: Fallback, learn: Callable[[], Shares], before: Shares) -> Shares:
    """Return the shares that ``learn`` gives, mended where they are no shares; those from ``before`` if it fails."""
    shares = fallback.first_sound([learn, lambda: before], lambda _: True)
    return fallback.first_sound([lambda: shares, lambda: shares.mended(halves)], Shares.sound)


class Model:
    """Totals, shares and the view of them that is published; ``surprises`` are those of what came and what went."""

    def __init__(self, halves: Halves, window: int | None, at_most: int, fallback: Fallback) -> None:
        self._halves, self._at_most, self._fallback = halves, at_most, fallback
        self.totals, self.shares = Totals(window), Shares.none()
        self.surprises = [0.0, 0.0]
        self.viewed_at, self.emptiness, self.view = 0.0, Emptiness(), Shares.none()
        self._view_is_plain = False

    def begin(self, shares: Shares, root: Layer, ticks: int) -> None:
        """Take what the start counted."""
        self.shares = shares
        self.totals.settle([1.0] * ticks, max(float(root.value[0]), 0.0), float(root.variance[0]))
        self.forget()

    def learn(self, tide: Tide, counted: Measured) -> None:
        """Let the totals and the shares follow a block's fine count."""
        number, variance = tide.number
        fine = Measured(counted.node, tide.sign * counted.value, counted.variance)
        every = Measured.both(fine, tide.measured_zones(), tide.measured_total())
        alone = [_root(tide.sign * number, variance)]
        layers = self._fallback.first_sound([lambda: best_estimates(self._halves, every), lambda: alone], _finite)
        change = tide.sign * max(tide.sign * float(layers[0].value[0]), 0.0)
        surprise = self._fallback.first_sound([lambda: self._surprise(tide, layers), lambda: 0.0], math.isfinite)
        self.surprises[tide.sign < 0] = surprise
        self.totals.settle(tide.by_tick, change, float(layers[0].variance[0]))
        before, mass, surprised = self.shares, self.totals.value, max(self.surprises[: 1 if tide.sign > 0 else 2])

        def followed() -> Shares:
            trust = tuning(tide.sign, surprised, self.emptiness)
            return follow(self._halves, before, layers, mass, change, trust)

        self.shares = learnt(self._halves, self._fallback, followed, before)

    def _surprise(self, tide: Tide, layers: list[Layer]) -> float:
        return max(tide.surprise(layers), _AS_SURPRISE * drift_seen(self._halves, self.shares, layers))

    def forget(self) -> None:
        """Keep no more nodes than allowed: forget those that hold the fewest points."""
        shares = self.shares
        if shares.node.size > self._at_most:
            held = self._fallback.first_sound(
                [lambda: masses(self._halves, shares, self.totals.value), lambda: -shares.node.astype(np.float64)],
                lambda found: bool(np.isfinite(found).all()),
            )
            kept = np.zeros(shares.node.size, dtype=bool)
            kept[np.argsort(-held, kind="stable")[: self._at_most]] = True  # of equals the higher up
            self.shares = shares.only(kept)

    def look(self, total: float) -> None:
        """Make the view of the shares that is published until the next block."""
        plain = Fallback()
        self.viewed_at = total
        self.emptiness = plain.first_sound(
            [lambda: Emptiness.seen_in(self._halves, self.shares, total), lambda: Emptiness()], lambda _: True
        )
        self.view = plain.first_sound(
            [
                lambda: view(self._halves, self.shares, total, self.emptiness, self._at_most),
                lambda: self.shares,
            ],
            Shares.sound,
        )
        self._view_is_plain = plain.taken

    def zones(self, most: float, bits: int) -> tuple[Ints, Ints, Floats]:
        """Return zones of at most so many points, places without measure beside them, and the zones' parts of all."""

        def chosen() -> tuple[Ints, Ints, Floats]:
            zones, empty = cut(self._halves, self.shares, self.totals.value, most, bits)
            return zones, empty, parts_of(self._halves, self.shares, zones)[0]

        whole = np.array([ROOT]), np.zeros(0, np.int64), np.ones(1)
        return self._fallback.first_sound([chosen, lambda: whole], lambda found: bool(np.isfinite(found[2]).all()))

    def expected(self, tide: Tide) -> Expected:
        """Return where a block's events are expected."""

        def where_points_are() -> Expected:
            anywhere = elsewhere(tide.sign, max(self.surprises[tide.sign < 0], self.surprise_of(tide)))
            return expect(self._halves, self.view, tide.zones, tide.zone_totals, tide.number[0], anywhere)

        evenly = Expected(np.array([ROOT]), np.array([[tide.number[0]], [1.0]]), (Shares.none(), Shares.none()))
        return self._fallback.first_sound(
            [where_points_are, lambda: evenly], lambda found: bool((found.amounts >= 0).all())
        )

    def surprise_of(self, tide: Tide) -> float:
        """Return how much the open block's zones surprise so far."""
        return self._fallback.first_sound([tide.surprise, lambda: 0.0], math.isfinite)

    def ways(self, tides: list[Tide], key: int) -> list[Callable[[], Estimate]]:
        """Return the ways to publish what is known now, with the open block's zones for now: the best first."""
        self._fallback.taken |= self._view_is_plain
        now, variance = self.totals.value, self.totals.variance
        for tide in tides:
            number, noise = tide.number
            now, variance = now + tide.sign * number, variance + noise
        now = max(now, 0.0)
        return [
            lambda: publish(self._halves, self._with_zones(tides), now, variance, key),
            lambda: publish(self._halves, self.shares, now, variance, key),
            lambda: total_alone(now, variance, key),
        ]

    def _with_zones(self, tides: list[Tide]) -> Shares:
        """Return the view as the zones' changes would have it; nothing is kept of that."""
        shares, total = self.view, self.totals.value
        for tide in tides:
            seen = tide.sign * max(tide.in_zones[0], 0.0)
            total = max(total + seen, 0.0)
            if tide.zone_counts:
                layers = best_estimates(self._halves, tide.measured_zones())
                shares = follow(self._halves, shares, layers, total, seen, _BETWEEN)
        return shares


def _root(value: float, variance: float) -> Layer:
    return Layer(np.array([ROOT]), np.array([value]), np.array([variance]), np.zeros(1, dtype=bool))


def _finite(layers: list[Layer]) -> bool:
    return all(bool(np.isfinite(layer.value).all() and np.isfinite(layer.variance).all()) for layer in layers)
