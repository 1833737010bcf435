"""The paper's method: one tick, read top to bottom like the paper's "PHDStreamTree with counters" in its
compute-efficient form.

The mechanism (`phdstream.streams.paper.mechanism`) says why it is private; everything else here is post-processing of
what it releases.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phdstream.errors import BudgetError, check_whole
from phdstream.privacy import Budget, Noise, SplitRule, calibrate_split, noise_variance
from phdstream.privacy.proved import vouched_for
from phdstream.release.estimate import Estimate
from phdstream.release.soundness import Fallback, first_whole, total_alone
from phdstream.streams.paper.counters import ByLevel, Counter, CounterChoice, make_counter
from phdstream.streams.paper.mechanism import Mechanism, one_tick
from phdstream.streams.paper.model.estimation import estimate
from phdstream.streams.paper.model.nodes import NodeStore
from phdstream.streams.paper.model.selection import Level, TreePlan
from phdstream.streams.paper.model.window import Window
from phdstream.streams.private_codes import TickEvents
from phdstream.streams.setting import Setting
from phdstream.streams.state import Arrays, nest, unnest

__all__ = ["NAME", "PaperMethod"]

NAME = "phdstream"
_LARGEST_THRESHOLD = 1 << 53
"""Points; with the bias taken off it must fit into 64 bits."""


class PaperMethod:
    """Selects a tree at every tick, and counts its leaves with counters that go on. A `Method`."""

    name = NAME

    def __init__(
        self,
        setting: Setting,
        budget: Budget,
        noise: Noise,
        counter: CounterChoice | dict[str, Any],
        threshold: int,
        tree_share: float,
    ) -> None:
        check_whole("threshold", threshold, least=0, most=_LARGEST_THRESHOLD)
        self._setting, self.budget, self._tree_share = setting, budget, tree_share
        self.rule: SplitRule = calibrate_split(budget.tree, setting.domain.fanout, int(threshold))
        self.counter: Counter = make_counter(counter, budget.count, setting.domain.first_nodes)
        if self.counter.epsilon > budget.count:
            raise BudgetError("the counter was built with more budget than it was given: use the budget passed to it.")
        self._mechanism = Mechanism(budget, self.rule, self.counter, setting.domain.total_bits, noise)
        self._store = NodeStore(setting.domain, self.counter)
        self._window = Window(setting.window) if setting.window else None
        self._ticks = 0

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
        return self._store.size

    def release_tick(self, waiting: list[TickEvents], key: int, fallback: Fallback) -> Estimate:
        """Select the tree, count its leaves, and say what to release."""
        events, self._ticks = one_tick(waiting), self._ticks + len(waiting)
        if self._window:
            self._window.expire(self._store)
        plan = TreePlan(self._store, self._setting.max_nodes)
        self._mechanism.select(events.inserts, plan)  # costs budget.tree
        self._count_leaves(plan.levels, events, len(waiting))  # costs budget.count
        ways = [lambda: estimate(self._store, plan.levels, key), lambda: self._total_alone(key)]
        released = first_whole(self._setting.domain, fallback, ways)
        self._remember(plan.levels)
        return released

    def _count_leaves(self, tree: list[Level], events: TickEvents, ticks: int) -> None:
        rows = np.concatenate([level.rows[level.leaf] for level in tree])
        totals, steps = self._mechanism.count(events, rows, self._store["node"][rows])
        change = self._store.record(rows, totals, steps)
        if self._window:
            self._window.record(rows, change, spread_over=ticks)

    def _total_alone(self, key: int) -> Estimate:
        """Return what was released about the root, and nothing else."""
        total, variance = (
            float(self._store[f"own{part}"][0] + self._store[f"below{part}"][0]) for part in ("", "_variance")
        )
        return total_alone(total, max(variance, 0.0), key)

    def _remember(self, tree: list[Level]) -> None:
        """Note which nodes were used, and fold the least recently used ones if there are too many."""
        for level in tree:
            self._store["last_visit"][level.rows] = self._ticks
        if self._store.size > self._setting.max_nodes:
            moves = self._store.fold(keep=max(1, self._setting.max_nodes * 3 // 4))
            self._mechanism.keep(np.flatnonzero(moves[1]))
            if self._window:
                self._window.fold(*moves)

    def options(self) -> dict[str, Any]:
        """Return the method's own parameters."""
        return {"counter": self.counter.to_dict(), "threshold": self.rule.threshold, "tree_share": self._tree_share}

    def metadata(self) -> dict[str, Any]:
        """Return the counter, which a release states."""
        return {"counter": self.counter.to_dict()}

    def describe(self) -> list[str]:
        """Return how the budget is spent, in plain words."""
        budget, rule, counter = self.budget, self.rule, self.counter
        deviation = float(np.sqrt(noise_variance(counter.scales(1)[0])))
        return [
            f"Budget: an insert costs {budget.tree:.4g} for choosing the tree and {budget.count:.4g} for counting; "
            + (f"a delete costs {budget.count:.4g}." if self._setting.deletes else "a delete costs nothing here."),
            f"Choosing the tree: noise of scale {rule.scale:.4g}, {rule.bias} off per level, threshold "
            f"{rule.threshold}; its exact worst-case loss is {rule.loss:.4g}.",
            f"Counting: {counter} counters; the first count of a cell is off by {deviation:.3g} "
            f"(standard deviation), by at most {counter.accuracy(1, 0.05):.3g} with 95% probability.",
        ]

    def private_parts(self) -> list[str]:
        """Return what of the saved state is private besides what every stream holds."""
        return ["the exact partial sums of the counters"] if self.counter.private_columns else []

    def unproved(self) -> list[str]:
        """Return the counters of one's own, and who vouches for them."""
        kinds = self.counter.kinds if isinstance(self.counter, ByLevel) else (self.counter,)
        return list(filter(None, (vouched_for("counter", kind) for kind in kinds)))

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the nodes, the counters and the window. Private if the counters are."""
        window = nest("window", self._window.to_arrays()) if self._window else {}
        arrays = nest("nodes", self._store.to_arrays()) | {"counters": self._mechanism.to_array()} | window
        return {"ticks": self._ticks}, arrays

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Take them back."""
        self._ticks = own["ticks"]
        self._store = NodeStore.from_arrays(self._setting.domain, self.counter, unnest("nodes", arrays))
        self._mechanism.restore(arrays["counters"])
        if self._window:
            self._window = Window.from_arrays(unnest("window", arrays))
