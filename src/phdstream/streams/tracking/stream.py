"""`TrackingStream`: all budget goes to counting; where to count is chosen from what was already released.

**Why it is private.** Data is used in these ways only, each an exact count plus discrete Laplace noise:

- *at the start* (everything up to t0 as one tick): the total, and, round by round, a fine count.
- *after the start*, inserts and deletes apart: the tick's total (budget ``e0``), the zones' counts of a batch
  (``e1``), a fine count of a block (``e2``). Zones are disjoint. A batch is a run of ticks, and a block a run of
  batches; when they end, which zones there are and where the fine count begins, all are functions of counts released
  before, and so is, for each block anew, how ``budget.count`` is divided into ``e0 + e1 + e2``. An event belongs to
  one tick, one batch and one block: it costs ``budget.count``.

A *fine count* with budget e may look at nodes before it divides them, and costs an event e in all: that is proved in
`phdstream.privacy.divisible_noise`, and used in `tracking.staging`. At the start an event is in the total and in
every round's fine count: it costs the sum of their budgets, which is ``budget.count`` too.

Counts of different ticks, batches, blocks and kinds see different events, so they compose in parallel; the rest
composes adaptively (each count's question may depend on earlier answers). So one event costs at most
``budget.count`` over the whole stream, whatever the others are, and a unit's events add up to at most ε
(`phdstream.privacy.budget`). Everything else is computed from released counts (`phdstream.streams.tracking.model`). The
events of the open block are kept until they are counted: private state, never published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains import ROOT, Domain, domain_from_dict
from phdstream.privacy import Budget, Noise, Unit, noise_variance, scale_for, unit_from_dict
from phdstream.release.estimate import Estimate
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.state import Arrays, nest, unnest
from phdstream.streams.stream import Events, Stream
from phdstream.streams.tracking.adapting import enough
from phdstream.streams.tracking.block import Tide
from phdstream.streams.tracking.buffer import Buffer
from phdstream.streams.tracking.choosing import patience, spending
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.measuring import Measured, count_variance
from phdstream.streams.tracking.model import Model
from phdstream.streams.tracking.shares import Shares
from phdstream.streams.tracking.staging import Plan, count_in_stages
from phdstream.streams.tracking.start import count_start

__all__ = ["TrackingStream"]

_ONCE_SPENT_ON = (0.03, 0.09, 0.88)
"""How an event's budget is divided in states that do not say it."""
_LEAVES: Plan = ((3.0, 2), (3.5, 0))
"""The stages of a fine count."""
_ZONE, _ZONE_BITS, _BATCH = 40.0, 7, 0.08


class TrackingStream(Stream):
    """A private synthetic stream by tracking: the same interface and promise as `PHDStream`, and less error.

    Parameters
    ----------
    domain: where points can be; fixed before any data is seen.
    epsilon, unit: the promise: ε-differential privacy for each `Event`, `Record` or `User`, over the whole stream.
    window: records live this many ticks and then expire, at no privacy cost. No deletes are taken.
    insert_only: declares that there are no deletes, which makes a `Record` as cheap as an `Event`.
    start_after: t0, the tick of the first release; everything up to it is counted as one tick.
    max_nodes: nodes remembered; beyond it those that hold the fewest points are forgotten.
    noise: leave it out for exact noise; `Simulation` (seed) is for experiments and marks every release.

    >>> import phdstream as phd
    >>> stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, unit=phd.Event())
    >>> release = stream.update(inserts=[(0.2, 0.7), (0.2, 0.8)])
    >>> release = stream.update(inserts=[(0.9, 0.1)], deletes=[(0.2, 0.7)])
    >>> release.tick
    2
    """

    method = "tracking"

    def __init__(
        self,
        domain: Domain,
        epsilon: float,
        unit: Unit,
        *,
        window: int | None = None,
        insert_only: bool = False,
        start_after: int = 1,
        max_nodes: int = 1_000_000,
        noise: Noise | None = None,
    ) -> None:
        super().__init__(
            domain, unit, window=window, insert_only=insert_only, start_after=start_after, max_nodes=max_nodes,
            noise=noise,
        )  # fmt: skip
        self.budget = Budget.per_event(epsilon, unit, deletes=self.deletes)
        self._divide_budget(spending(0.0, self.budget.count))
        self._halves = Halves(domain)
        self._model = Model(self._halves, window, max_nodes, self._fallback)
        self._tides: list[Tide] = []
        self._patience = 0.0

    def _divide_budget(self, parts: Sequence[float]) -> None:
        """Fix what is spent on what by the events of a block, until it ends: they spend as they come."""
        self._spent_on = list(parts)
        self._for_total, self._for_zones, self._for_leaves = self.budget.divide_count(parts)

    def _release_tick(self, waiting: list[Events]) -> Estimate:
        """Count the tick roughly; if the block is due, count it finely; publish."""
        self._model.totals.pass_tick()
        if not self._tides:
            self._start(waiting)
            return self._first_sound(self._model.ways(self._tides, self._key))
        (events,) = waiting
        for tide, codes in zip(self._tides, events, strict=False):  # without deletes there is one tide
            tide.take(codes, self._noisy_total(codes))  # costs e0
        due = self._due()
        for tide in self._tides:
            if due or tide.batch_total >= self._worth_counting(tide):
                tide.add_zones(self._count(tide.batch, tide.zones, self._for_zones))  # costs e1
        if due:
            self._close_block()
        return self._first_sound(self._model.ways(self._tides, self._key))

    def _due(self) -> bool:
        """Whether enough has happened to count the block finely: a function of noisy counts and the tick."""
        if self.window is not None and len(self._tides[0].by_tick) >= max(1, self.window // 2):
            return True  # before any of it expires
        surprise = max(*self._model.surprises, *map(self._model.surprise_of, self._tides))
        happened = sum(tide.number[0] for tide in self._tides)
        return happened >= enough(self._patience, surprise) * self._model.totals.value

    def _worth_counting(self, tide: Tide) -> float:
        """How many events make it worth counting the zones: more than the noise of doing so."""
        return max(_BATCH * self._model.totals.value, 2 * tide.zones.size / self._for_zones)

    def _noisy_total(self, codes: Ints) -> int:
        scale = scale_for(self._for_total)
        return int(self.noise.add(np.array([codes.size]), scale, at=np.array([ROOT]))[0])

    def _count(self, events: Buffer, nodes: Ints, budget: float) -> Ints:
        """Return noisy counts of disjoint nodes; an event enters one of them, by 1."""
        return self.noise.add(events.within(nodes), scale_for(budget), at=nodes)

    def _start(self, waiting: list[Events]) -> None:
        """Count everything up to now, and open the first block."""
        inserts, deletes = (CodeCounts(self._halves, np.concatenate(codes)) for codes in zip(*waiting, strict=True))
        known = count_start(
            self._halves, inserts, deletes, self.budget, self.noise, self.max_nodes, self._fallback
        )  # costs budget.count
        self._model.begin(*known, ticks=len(waiting))
        self._open_block()

    def _open_block(self) -> None:
        """Choose what is spent on what, the zones, and how much must happen until the next fine count: all public."""
        total = self._model.totals.value
        self._divide_budget(spending(total, self.budget.count))
        self._patience = patience(total, self._for_leaves)
        zones, empty, expected = self._model.zones(_ZONE / self._for_zones, _ZONE_BITS)
        variances = [count_variance(budget) for budget in (self._for_total, self._for_zones)]
        signs = (1, -1) if self.deletes else (1,)
        buffers = [(Buffer(self._halves), Buffer(self._halves)) for _ in signs]
        fixed = (zones, empty, expected, variances[0], variances[1])
        self._tides = [Tide(sign, *fixed, *pair) for sign, pair in zip(signs, buffers, strict=True)]
        self._model.look(total)

    def _close_block(self) -> None:
        """Count the block's events finely, where they are expected; learn from that; begin a new block."""
        for tide in self._tides:
            self._model.learn(tide, self._count_finely(tide))  # costs e2
        self._model.forget()
        self._open_block()

    def _count_finely(self, tide: Tide) -> Measured:
        expected, count = self._model.expected(tide), tide.codes.within
        return count_in_stages(self._halves, count, self.noise, self._for_leaves, expected, _LEAVES, self.max_nodes)

    @property
    def nodes(self) -> int:
        """How many nodes the stream remembers."""
        return self._model.shares.node.size

    def options(self) -> dict[str, Any]:
        """Return the method's own parameters: none."""
        return {}

    def method_metadata(self) -> dict[str, Any]:
        """Return what a release states of the method besides its name: nothing."""
        return {}

    def method_lines(self) -> list[str]:
        """Return how the budget is spent, in plain words."""
        deviation = float(np.sqrt(noise_variance(scale_for(self._for_leaves))))
        return [
            f"Budget: an event costs {self.budget.count:.4g}, whether it inserts or deletes: {self._for_total:.3g} for "
            f"its tick's total, {self._for_zones:.3g} for its zone, {self._for_leaves:.3g} for its cell at present; "
            "the more points there are, the more for the cell.",
            "Choosing the cells costs nothing: they are chosen from what was released before.",
            f"Counting: a block of ticks is counted once, when enough has happened; a cell's count is off by "
            f"{deviation:.3g} (standard deviation), and then filtered.",
        ]

    def private_parts(self) -> list[str]:
        """Return what of the saved state is private besides what every stream holds."""
        return ["the events of the open block, until they are counted"]

    @classmethod
    def _remake(cls, fixed: dict[str, Any], noise: Noise) -> Self:
        domain, unit = domain_from_dict(fixed.pop("domain")), unit_from_dict(fixed.pop("unit"))
        del fixed["private_noise"], fixed["method"]
        return cls(domain, unit=unit, noise=noise, **fixed)

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        model = self._model
        shares = {"node": model.shares.node, "lean": model.shares.lean, "doubt": model.shares.doubt}
        arrays = nest("shares", shares) | {"totals": model.totals.to_array()}
        own: dict[str, Any] = {"patience": self._patience, "surprises": list(model.surprises), "tides": []}
        own |= {"viewed_at": model.viewed_at, "spent_on": self._spent_on}
        for i, tide in enumerate(self._tides):
            numbers, private = tide.to_state()
            own["tides"].append(numbers)
            arrays |= nest(f"tide{i}", private)
        return own, arrays

    def _restore_own(self, own: dict[str, Any], arrays: Arrays) -> None:
        model = self._model
        model.shares = Shares(**unnest("shares", arrays))
        model.totals.restore(arrays["totals"])
        self._tides = [
            Tide.from_state(self._halves, numbers, unnest(f"tide{i}", arrays)) for i, numbers in enumerate(own["tides"])
        ]
        self._divide_budget(own.get("spent_on", _ONCE_SPENT_ON))
        self._patience, model.surprises = own["patience"], list(own.get("surprises", [own.get("surprise"), 0.0]))
        model.look(own.get("viewed_at", model.totals.value))  # states of earlier versions do not say
