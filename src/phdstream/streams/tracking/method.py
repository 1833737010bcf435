"""Tracking, tick by tick: all budget goes to counting; where to count is chosen from what was already released.

The mechanism (`phdstream.streams.tracking.mechanism`) says why it is private; the model decides, from its noisy counts
alone, what it is to count next and what is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phdstream.domains.binary_tree import BinaryTree
from phdstream.privacy import Budget, Noise, noise_variance, scale_for
from phdstream.release.estimate import Estimate
from phdstream.release.soundness import Fallback, first_whole
from phdstream.streams.private_codes import TickEvents
from phdstream.streams.setting import Setting
from phdstream.streams.state import Arrays, nest, unnest
from phdstream.streams.tracking.beginning import Beginning
from phdstream.streams.tracking.mechanism import Mechanism
from phdstream.streams.tracking.model import Model
from phdstream.streams.tracking.model.policy import Spending
from phdstream.streams.tracking.parameters import TrackingParameters

__all__ = ["NAME", "TrackingMethod"]

NAME = "tracking"


class TrackingMethod:
    """Counts ticks roughly and blocks of ticks finely. A `Method`."""

    name = NAME

    def __init__(
        self,
        setting: Setting,
        budget: Budget,
        noise: Noise,
        parameters: TrackingParameters,
        beginning: Beginning,
    ) -> None:
        self._beginning = beginning
        self._setting, self.budget, self.parameters = setting, budget, parameters
        tree = BinaryTree(setting.domain)
        self._mechanism = Mechanism(budget, tree.total_bits, noise)
        self._model = Model(parameters, tree, setting.window, setting.max_nodes, setting.deletes)
        self._divide_budget(self._model.budget_parts(budget.count))

    def _divide_budget(self, parts: Sequence[float]) -> None:
        """Fix what is spent on what by the events of a block, until it ends: they spend as they come."""
        self._parts = list(parts)
        self._spending = Spending(*self.budget.divide_count(parts))

    @property
    def noise(self) -> Noise:
        """The source of noise."""
        return self._mechanism.noise

    @noise.setter
    def noise(self, noise: Noise) -> None:
        self._mechanism.noise = noise

    @property
    def nodes(self) -> int:
        """How many nodes are remembered."""
        return self._model.splits.node.size

    def release_tick(self, waiting: list[TickEvents], key: int, fallback: Fallback) -> Estimate:
        """Count the tick roughly; if the block is due, count it finely; say what to release."""
        model, self._model.fallback = self._model, fallback
        model.pass_tick()
        if not model.blocks:
            self._start(waiting)
        else:
            (events,) = waiting
            if self._count_roughly(events):
                self._close_block()
        return first_whole(self._setting.domain, fallback, model.estimates(key))

    def _start(self, waiting: list[TickEvents]) -> None:
        """Count everything up to now, round by round, and open the first block. Costs ``budget.count`` in all."""
        rule, start = self.parameters.start, self._model.start(self._beginning.splits)
        shares = [rule.total, *((1 - rule.total) * share for share, _ in rule.rounds)]
        for_total, *for_rounds = self.budget.divide_count(shares)
        self._mechanism.take_start(waiting)
        start.add_total(self._mechanism.count_start_total(for_total), for_total)
        for at, epsilon in enumerate(for_rounds):
            plan = start.refinement(at, epsilon)
            start.learn(plan, self._mechanism.count_start(plan, epsilon))
        self._mechanism.end_start()
        self._model.begin(*start.finish(), ticks=len(waiting))
        self._beginning = self._beginning.begun()
        self._open_block()

    def _open_block(self) -> None:
        self._divide_budget(self._model.budget_parts(self.budget.count))
        self._model.open_block(self._spending)

    def _count_roughly(self, events: TickEvents) -> bool:
        """Count the tick's total, and the zones if it is worth it; return whether the block is due."""
        model = self._model
        for kind, block in enumerate(model.blocks):  # without deletes there is one
            block.add_tick(self._mechanism.take_tick(kind, events[kind], self._spending.total))
        due = model.block_due()
        for kind, block in enumerate(model.blocks):
            if due or model.zones_due(block, self._spending.zones):
                block.add_zones(self._mechanism.count_zones(kind, block.zones, self._spending.zones))
        return due

    def _close_block(self) -> None:
        """Count the block's events finely, where they are expected; learn from that; begin a new block."""
        for kind, block in enumerate(self._model.blocks):
            plan = self._model.refinement(block, self._spending.fine_count)
            self._model.learn(block, plan, self._mechanism.count_block(kind, plan, self._spending.fine_count))
        self._model.forget()
        self._open_block()

    def options(self) -> dict[str, Any]:
        """Return the method's own parameters."""
        return {"parameters": self.parameters.to_dict(), "prior": self._beginning.to_dict()}

    def metadata(self) -> dict[str, Any]:
        """Return what a release states of the method besides its name: what it started from, if anything."""
        return {"prior": self._beginning.about} if self._beginning.digest else {}

    def describe(self) -> list[str]:
        """Return how the budget is spent, in plain words."""
        deviation = float(np.sqrt(noise_variance(scale_for(self._spending.fine_count))))
        total, zones, fine_count = self._spending
        about = self._beginning.about
        return [
            *([f"Prior: starts from what is public: {about}. It costs no privacy."] if about else []),
            f"Budget: an event costs {self.budget.count:.4g}, whether it inserts or deletes: {total:.3g} for "
            f"its tick's total, {zones:.3g} for its zone, {fine_count:.3g} for its cell at present; "
            "the more points there are, the more for the cell.",
            "Choosing the cells costs nothing: they are chosen from what was released before.",
            f"Counting: a block of ticks is counted once, when enough has happened; a cell's count is off by "
            f"{deviation:.3g} (standard deviation), and then filtered.",
        ]

    def private_parts(self) -> list[str]:
        """Return what of the saved state is private besides what every stream holds."""
        return ["the events of the open block, until they are counted"]

    def unproved(self) -> list[str]:
        """Return what is not proved: nothing, unless the prior is no release but a simulation of one.

        Parameters and a prior are of the model, which is post-processing.
        """
        return (
            ["the stream started from a simulated release, which is not private"] if self._beginning.simulated else []
        )

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the model's state, which is public, and the mechanism's, which is private."""
        own, arrays = self._model.to_state()
        arrays |= nest("mechanism", self._mechanism.to_arrays()) | self._beginning.to_arrays()
        return own | {"budget_parts": self._parts}, arrays

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Take them back."""
        self._divide_budget(own["budget_parts"])
        self._mechanism.restore(unnest("mechanism", arrays))
        self._model.restore(own, arrays)
        self._beginning = self._beginning.restored(arrays)
