"""`PHDStream`: one tick, read top to bottom like the paper's "PHDStreamTree with counters" in its
compute-efficient form.

**Why it is private.** Per tick the data is used twice: by the tree's selection, which sees the tick's inserts
and costs an insert at most ``budget.tree`` (`phdstream.streams.paper.selection`, `phdstream.privacy.calibration`), and
by the counters of the selected leaves, which are disjoint, so that an event enters exactly one of them and
costs at most ``budget.count`` (`phdstream.streams.paper.counters.counter`). Selection and counting compose adaptively
(`phdstream.streams.paper.selective_counting`): an insert costs ``tree + count`` and a delete ``count``, over the whole
stream, because an event belongs to one tick. A unit's events add up to at most ε
(`phdstream.privacy.budget`). Everything else here is computed from what was released.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from phdstream.domains import Domain, domain_from_dict
from phdstream.errors import BudgetError, check_whole
from phdstream.privacy import Budget, Noise, Unit, calibrate_split, noise_variance, unit_from_dict
from phdstream.release.estimate import Estimate
from phdstream.release.soundness import total_alone
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.paper.counters import CounterChoice, counter_from_dict, make_counter
from phdstream.streams.paper.estimation import estimate
from phdstream.streams.paper.nodes import NodeStore
from phdstream.streams.paper.selection import Level, select_tree
from phdstream.streams.paper.window import Window
from phdstream.streams.state import Arrays, nest, unnest
from phdstream.streams.stream import Events, Stream

__all__ = ["PHDStream"]

_LARGEST_THRESHOLD = 1 << 53
"""Points; with the bias taken off it must fit into 64 bits."""


class PHDStream(Stream):
    """A private synthetic stream by the paper's method, repaired where it was not private.

    Parameters
    ----------
    domain: where points can be; fixed before any data is seen.
    epsilon, unit: the promise: ε-differential privacy for each `Event`, `Record` or `User`, over the whole stream.
    counter: ``"simple"``, ``"block"``, ``"binary"``, ``"hybrid"``, or a function from a budget to a counter.
    threshold: θ, the biased count above which a node is split.
    window: records live this many ticks and then expire, at no privacy cost. No deletes are taken.
    insert_only: declares that there are no deletes, which makes a `Record` as cheap as an `Event`.
    start_after: t0, the tick of the first release; everything up to it is counted as one tick.
    tree_share: the part of an insert's budget that goes to choosing the tree.
    max_nodes: nodes kept; beyond it the least recently used subtrees are folded into their roots.
    noise: leave it out for exact noise; `Simulation` (seed) is for experiments and marks every release.

    >>> import phdstream as phd
    >>> stream = phd.PHDStream(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, unit=phd.Event())
    >>> release = stream.update(inserts=[(0.2, 0.7), (0.2, 0.8)])
    >>> release = stream.update(inserts=[(0.9, 0.1)], deletes=[(0.2, 0.7)])
    >>> release.tick
    2
    """

    method = "phdstream"

    def __init__(
        self,
        domain: Domain,
        epsilon: float,
        unit: Unit,
        *,
        counter: CounterChoice = "simple",
        threshold: int = 0,
        window: int | None = None,
        insert_only: bool = False,
        start_after: int = 1,
        tree_share: float = 0.5,
        max_nodes: int = 1_000_000,
        noise: Noise | None = None,
    ) -> None:
        super().__init__(
            domain, unit, window=window, insert_only=insert_only, start_after=start_after, max_nodes=max_nodes,
            noise=noise,
        )  # fmt: skip
        check_whole("threshold", threshold, least=0, most=_LARGEST_THRESHOLD)
        self.tree_share = tree_share
        self.budget = Budget.solve(epsilon, unit, deletes=self.deletes, tree_share=tree_share)
        self.rule = calibrate_split(self.budget.tree, domain.fanout, int(threshold))
        self.counter = make_counter(counter, self.budget.count)
        if self.counter.epsilon > self.budget.count:
            raise BudgetError("the counter was built with more budget than it was given: use the budget passed to it.")
        self._store = NodeStore(domain, self.counter)
        self._expiring = Window(window) if window else None

    def _release_tick(self, waiting: list[Events]) -> Estimate:
        """Select the tree, count its leaves, publish."""
        inserts, deletes = (CodeCounts(self.domain, np.concatenate(codes)) for codes in zip(*waiting, strict=True))
        if self._expiring:
            self._expiring.expire(self._store)
        tree = select_tree(self._store, inserts, self.rule, self.noise, self.max_nodes)  # costs budget.tree
        self._count_leaves(tree, inserts, deletes, len(waiting))  # costs budget.count
        published = self._first_sound([lambda: estimate(self._store, tree, self._key), self._total_alone])
        self._remember(tree)
        return published

    def _count_leaves(self, tree: list[Level], inserts: CodeCounts, deletes: CodeCounts, ticks: int) -> None:
        leaves = np.concatenate([level.rows[level.leaf] for level in tree])
        nodes = self._store["node"][leaves]
        change = self._store.count(leaves, inserts.within(nodes) - deletes.within(nodes), self.noise)
        if self._expiring:
            self._expiring.record(leaves, change, spread_over=ticks)

    def _total_alone(self) -> Estimate:
        """Return what was released about the root, and nothing else."""
        total, variance = (
            float(self._store[f"own{part}"][0] + self._store[f"below{part}"][0]) for part in ("", "_variance")
        )
        return total_alone(total, max(variance, 0.0), self._key)

    def _remember(self, tree: list[Level]) -> None:
        """Note which nodes were used, and fold the least recently used ones if there are too many."""
        for level in tree:
            self._store["last_visit"][level.rows] = self.tick
        if self._store.size > self.max_nodes:
            moves = self._store.fold(keep=max(1, self.max_nodes * 3 // 4))
            if self._expiring:
                self._expiring.fold(*moves)

    @property
    def nodes(self) -> int:
        """How many nodes the stream remembers."""
        return self._store.size

    def options(self) -> dict[str, Any]:
        """Return the method's own parameters."""
        return {"counter": self.counter.to_dict(), "threshold": self.rule.threshold, "tree_share": self.tree_share}

    def method_metadata(self) -> dict[str, Any]:
        """Return the counter, which a release states."""
        return {"counter": self.counter.to_dict()}

    def method_lines(self) -> list[str]:
        """Return how the budget is spent, in plain words."""
        budget, rule, counter = self.budget, self.rule, self.counter
        deviation = float(np.sqrt(noise_variance(counter.scales(1)[0])))
        return [
            f"Budget: an insert costs {budget.tree:.4g} for choosing the tree and {budget.count:.4g} for counting; "
            + (f"a delete costs {budget.count:.4g}." if self.deletes else "a delete costs nothing here."),
            f"Choosing the tree: noise of scale {rule.scale:.4g}, {rule.bias} off per level, threshold "
            f"{rule.threshold}; its exact worst-case loss is {rule.loss:.4g}.",
            f"Counting: {type(counter).__name__} counters; the first count of a cell is off by {deviation:.3g} "
            f"(standard deviation), by at most {counter.accuracy(1, 0.05):.3g} with 95% probability.",
        ]

    def private_parts(self) -> list[str]:
        """Return what of the saved state is private besides what every stream holds."""
        return ["the exact partial sums of the counters"] if self.counter.private_columns else []

    @classmethod
    def _remake(cls, fixed: dict[str, Any], noise: Noise) -> Self:
        domain, unit = domain_from_dict(fixed.pop("domain")), unit_from_dict(fixed.pop("unit"))
        counter = counter_from_dict(fixed.pop("counter"))
        del fixed["private_noise"], fixed["method"]
        return cls(domain, unit=unit, counter=lambda _: counter, noise=noise, **fixed)

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        window = nest("window", self._expiring.to_arrays()) if self._expiring else {}
        return {}, nest("nodes", self._store.to_arrays()) | window

    def _restore_own(self, own: dict[str, Any], arrays: Arrays) -> None:
        self._store = NodeStore.from_arrays(self.domain, self.counter, unnest("nodes", arrays))
        if self.window:
            self._expiring = Window.from_arrays(unnest("window", arrays))
