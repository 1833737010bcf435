"""What tracking knows: how many points there are, how they divide, and what is released of that. Public.

Everything here is computed from noisy counts. So it may fail, and be replaced by something plainer, at no privacy cost
(see `phdstream.release.soundness`): a tick whose noise has been drawn is released in any case. If learning fails, what
was known stays; splits that are not sound are mended; if the view fails, the splits are released as they are; if that
fails, the noisy total alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree
from phdstream.release.estimate import Estimate
from phdstream.release.soundness import Fallback, total_alone
from phdstream.streams.state import Arrays, nest, unnest
from phdstream.streams.tracking.model.descent import masses
from phdstream.streams.tracking.model.emptiness import Emptiness
from phdstream.streams.tracking.model.estimate import to_estimate
from phdstream.streams.tracking.model.expiry import Expiring, without
from phdstream.streams.tracking.model.kalman import Learning, kalman_follow, kalman_update
from phdstream.streams.tracking.model.learning import learnt
from phdstream.streams.tracking.model.least_squares import Layer, NoisyCounts, count_variance, weighted_least_squares
from phdstream.streams.tracking.model.open_block import OpenBlock
from phdstream.streams.tracking.model.policy import (
    Spending,
    Zoning,
    block_length,
    choose_zones,
    due_threshold,
    expected_in_block,
    learning_from,
    places_in_use,
    split_budget,
)
from phdstream.streams.tracking.model.refinement import ExpectedCounts, Refinement
from phdstream.streams.tracking.model.regularize import regularize
from phdstream.streams.tracking.model.split_tree import UNIFORM, SplitTree
from phdstream.streams.tracking.model.start import StartModel
from phdstream.streams.tracking.model.totals import Totals
from phdstream.streams.tracking.parameters import TrackingParameters
from phdstream.streams.tracking.pieces import RefinedCounts

__all__ = ["Model"]


class Model:
    """Totals, splits, the view of them that is released, and the open block (first of inserts, then of deletes)."""

    def __init__(
        self, parameters: TrackingParameters, tree: BinaryTree, window: int | None, limit: int, deletes: bool
    ) -> None:
        self.parameters, self._tree, self._window, self._limit = parameters, tree, window, limit
        self._signs = (1, -1) if deletes else (1,)
        self.fallback = Fallback()
        self.totals, self.splits = Totals(window), SplitTree.empty()
        self.drift_scores = [0.0, 0.0]
        self.viewed_at, self.view = 0.0, SplitTree.empty()
        self._emptiness = Emptiness.untold(parameters.empty_halves)
        self._view_is_plain = False
        self.blocks: list[OpenBlock] = []
        self._length, self._expiring = 0.0, Expiring.nothing()
        self._opened, self._gone = self.splits, list[tuple[SplitTree, float, float]]()

    def start(self, prior: SplitTree | None = None) -> StartModel:
        """Return what learns from the counts of the start; `begin` takes what it has learnt."""
        return StartModel(self.parameters, self._tree, self._limit, self.fallback, prior)

    def begin(self, splits: SplitTree, root: Layer, ticks: int) -> None:
        """Take what the start has learnt."""
        self.splits = splits
        self.totals.settle([1.0] * ticks, max(float(root.value[0]), 0.0), float(root.total_variance[0]))
        known = splits.variance < self.parameters.empty_halves.well_known
        self._remember(ticks, splits.only(known))
        self.forget()

    def pass_tick(self) -> None:
        """Let a tick pass: with a window, what came a window ago is gone, and its part of the splits with it."""
        before = self.totals.value
        self.totals.pass_tick()
        if self._window is not None and self.blocks:
            gone = self._expiring.pass_tick(self._window - 1 - len(self.blocks[0].by_tick))
            if gone.node.size:
                self._take_off(gone, before, before - self.totals.value)

    def _take_off(self, gone: SplitTree, mass: float, amount: float) -> None:
        """Take what expired off the splits and the view."""
        rule = self.parameters.expiry

        def left(splits: SplitTree) -> SplitTree:
            return self.fallback.first_sound(
                [lambda: without(rule, self._tree, splits, gone, mass, amount), lambda: splits], SplitTree.sound
            )

        self._gone.append((gone, mass, amount))
        self.splits, self.view = left(self.splits), left(self.view)

    def _remember(self, ticks: int, splits: SplitTree) -> None:
        """Remember how a block divided, with a window, until it expires."""
        rule = self.parameters.expiry
        if self._window is not None and rule.on:
            known = splits if splits.sound() else SplitTree.empty()
            self._expiring.add(min(ticks, self._window), known, int(max(rule.nodes / self._window, rule.least)))

    def budget_parts(self, epsilon: float) -> Spending:
        """Return how the budget of the next block's events is to be divided: total, zone, fine count."""
        return split_budget(self.parameters.budget, self.totals.value, epsilon)

    def open_block(self, spending: Spending) -> None:
        """Choose the zones, and how much must happen until the next fine count; refresh the view."""
        total = self.totals.value
        places = self.fallback.first_sound([self._places, lambda: math.inf], lambda found: found >= 0)
        self._length = block_length(self.parameters.block_length, total, spending.fine_count, places)
        zoning = self._choose_zones(self.parameters.zones.fill / spending.zones)
        variances = count_variance(spending.total), count_variance(spending.zones)
        self.blocks = [OpenBlock(sign, zoning, *variances) for sign in self._signs]
        self._opened, self._gone = self.splits, []
        self.refresh_view(total)

    def _places(self) -> float:
        return places_in_use(self._tree, self.splits, self.totals.value, self.parameters.thin)

    def _choose_zones(self, most: float) -> Zoning:
        def chosen() -> Zoning:
            return choose_zones(self._tree, self.splits, self.totals.value, most, int(self.parameters.zones.bits))

        return self.fallback.first_sound(
            [chosen, Zoning.whole], lambda zoning: bool(np.isfinite(zoning.expected).all())
        )

    def zones_due(self, block: OpenBlock, for_zones: float) -> bool:
        """Whether so many events came that it is worth counting the zones: more than the noise of doing so."""
        return block.batch_total >= self.parameters.zones.batch_noise * block.zones.size / for_zones

    def block_due(self) -> bool:
        """Whether enough has happened to count the block finely: a function of noisy counts and the tick."""
        if self._window is not None and len(self.blocks[0].by_tick) >= max(1, self._window // 2):
            return True  # before any of it expires
        score = max(*self.drift_scores, *map(self._score, self.blocks))
        happened = sum(block.number[0] for block in self.blocks)
        rules = self.parameters.block_length, self.parameters.drift
        return happened >= due_threshold(*rules, self._length, score) * self.totals.value

    def _score(self, block: OpenBlock) -> float:
        """Return the drift score of the open block so far."""
        if not self.parameters.drift.while_open:
            return 0.0
        return self.fallback.first_sound([block.drift_score, lambda: 0.0], math.isfinite)

    def refinement(self, block: OpenBlock, epsilon: float) -> Refinement:
        """Return where to count a block's events finely: where they are expected."""
        rules = self.parameters

        def where_points_are() -> ExpectedCounts:
            anywhere = rules.exploration.inserts if block.sign > 0 else rules.exploration.deletes
            return expected_in_block(self._tree, self.view, block.zones, block.zone_totals, block.number[0], anywhere)

        root, number = np.array([ROOT]), np.array([[block.number[0]], [1.0]])
        evenly = ExpectedCounts(self._tree, root, number, (UNIFORM, UNIFORM))
        expected = self.fallback.first_sound(
            [where_points_are, lambda: evenly], lambda found: bool((found.amounts >= 0).all())
        )
        return Refinement(rules.fine_counts, expected, rules.fine_counts.stages, epsilon, self._limit)

    def learn(self, block: OpenBlock, rule: Refinement, counted: RefinedCounts) -> None:
        """Let the totals and the splits follow a block's fine count."""
        fine, (number, variance) = rule.outcome(counted), block.number
        signed = NoisyCounts(fine.node, block.sign * fine.value, fine.variance, fine.loading)
        every = NoisyCounts.concat(signed, block.zones_as_counts(), block.total_as_count())
        alone = [_root(block.sign * number, variance)]
        layers = self.fallback.first_sound([lambda: weighted_least_squares(every), lambda: alone], _finite)
        change = block.sign * max(block.sign * float(layers[0].value[0]), 0.0)
        score = self.fallback.first_sound([lambda: block.drift_score(layers), lambda: 0.0], math.isfinite)
        self.drift_scores[block.sign < 0] = score
        self.totals.settle(block.by_tick, change, float(layers[0].total_variance[0]))
        before, mass, drifted = self.splits, self.totals.value, max(self.drift_scores[: 1 if block.sign > 0 else 2])

        own = SplitTree.empty()

        def followed() -> SplitTree:
            nonlocal own
            learning = learning_from(self.parameters, block.sign, drifted, self._emptiness)
            after, own = kalman_follow(self._tree, before, layers, mass, change, learning)
            return after

        self.splits = learnt(self._tree, self.fallback, followed, before)
        self._remember(len(block.by_tick), own)

    def forget(self) -> None:
        """Keep no more nodes than allowed: forget those that hold the fewest points."""
        splits = self.splits
        if splits.node.size > self._limit:
            mass = self.fallback.first_sound(
                [lambda: masses(splits, self.totals.value), lambda: -splits.node.astype(np.float64)],
                lambda found: bool(np.isfinite(found).all()),
            )
            kept = np.zeros(splits.node.size, dtype=bool)
            kept[np.argsort(-mass, kind="stable")[: self._limit]] = True  # of equals the higher up
            self.splits = splits.only(kept)

    def refresh_view(self, total: float) -> None:
        """Make the view of the splits that is released until the next block."""
        plain, rule = Fallback(), self.parameters.empty_halves
        self.viewed_at = total
        self._emptiness = plain.first_sound(
            [lambda: Emptiness.seen_in(rule, self.splits, total), lambda: Emptiness.untold(rule)],
            lambda _: True,
        )
        self.view = plain.first_sound(
            [
                lambda: regularize(self.parameters, self._tree, self.splits, total, self._emptiness, self._limit),
                lambda: self.splits,
            ],
            SplitTree.sound,
        )
        self._view_is_plain = plain.taken

    def estimates(self, key: int) -> list[Callable[[], Estimate]]:
        """Return the ways to estimate what there is now, with the open block's zones for now: the best first."""
        self.fallback.taken |= self._view_is_plain
        now, variance, recent = self.totals.value, self.totals.variance, 0.0
        for block in self.blocks:
            number, noise = block.number
            now, variance, recent = now + block.sign * number, variance + noise, recent + number
        now, thin = max(now, 0.0), self.parameters.thin
        return [
            lambda: to_estimate(self._tree, self._with_zones(), now, variance, key, thin, recent),
            lambda: to_estimate(self._tree, self.splits, now, variance, key, thin, recent),
            lambda: total_alone(now, variance, key),
        ]

    def _with_zones(self) -> SplitTree:
        """Return the view as the zones' changes would have it, and as uncertain; nothing is kept of that."""
        splits, total, rule = self.view, self.totals.value, self.parameters.zones
        for block in self.blocks:
            seen = block.sign * max(block.in_zones[0], 0.0)
            total = max(total + seen, 0.0)
            if block.zone_counts and rule.on:
                layers = weighted_least_squares(block.zones_as_counts())
                learning = Learning(self.parameters.filter, rule.drift)
                splits = kalman_update(self._tree, splits, layers, total, seen, learning)
        return splits

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return what is known as plain data and arrays: splits as the block began, and what expired since."""
        own: dict[str, Any] = {"length": self._length, "drift_scores": list(self.drift_scores), "blocks": []}
        own["viewed_at"] = self.viewed_at
        arrays = nest("splits", self._opened.to_arrays()) | {"totals": self.totals.to_array()}
        own["gone"] = [[mass, amount] for _, mass, amount in self._gone]
        for i, (gone, _, _) in enumerate(self._gone):
            arrays |= nest(f"gone{i}", gone.to_arrays())
        arrays |= nest("expiring", self._expiring.to_arrays())
        for i, block in enumerate(self.blocks):
            numbers, columns = block.to_state()
            own["blocks"].append(numbers)
            arrays |= nest(f"block{i}", columns)
        return own, arrays

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Take back what `to_state` described."""
        self.splits = self._opened = SplitTree(**unnest("splits", arrays))
        self.totals.restore(arrays["totals"])
        self.blocks = [
            OpenBlock.from_state(numbers, unnest(f"block{i}", arrays)) for i, numbers in enumerate(own["blocks"])
        ]
        self._length, self.drift_scores = own["length"], list(own["drift_scores"])
        self._expiring = Expiring.from_arrays(unnest("expiring", arrays))
        self.refresh_view(own["viewed_at"])
        for i, (mass, amount) in enumerate(own.get("gone", [])):
            self._take_off(SplitTree(**unnest(f"gone{i}", arrays)), mass, amount)


def _root(value: float, variance: float) -> Layer:
    return Layer(np.array([ROOT]), np.array([value]), np.array([variance]), np.zeros((0, 1)), np.zeros(1, dtype=bool))


def _finite(layers: list[Layer]) -> bool:
    return all(bool(np.isfinite(layer.value).all() and np.isfinite(layer.variance).all()) for layer in layers)
