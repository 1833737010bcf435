"""`PHDStream`: the paper's method as a stream."""

from __future__ import annotations

from typing import Any

from phdstream.domains import Domain
from phdstream.errors import InputError
from phdstream.privacy import Budget, Noise, SplitRule, Unit
from phdstream.streams.paper.counters import Counter, CounterChoice
from phdstream.streams.paper.method import NAME, PaperMethod
from phdstream.streams.setting import Setting, checked_noise
from phdstream.streams.stream import Stream

__all__ = ["PHDStream"]


class PHDStream(Stream):
    """A private synthetic stream by the paper's method, repaired where it was not private.

    Parameters
    ----------
    domain: where points can be; fixed before any data is seen.
    epsilon, unit: the promise: ε-differential privacy for each `Event`, `Record` or `User`, over the whole stream.
    counter: ``"simple"``, ``"block"``, ``"binary"``, ``"hybrid"``, a function from a budget to a counter, or
        ``phd.counters.by_level`` for different counters on different levels of the tree.
    threshold: θ, the biased count above which a node is split.
    window: records live this many ticks and then expire, at no privacy cost. No deletes are taken.
    insert_only: declares that there are no deletes, which makes a `Record` as cheap as an `Event`.
    start_after: t0, the tick of the first release; everything up to it is counted as one tick.
    tree_share: the part of an insert's budget that goes to choosing the tree.
    max_nodes: nodes kept; beyond it the least recently used subtrees are folded into their roots.
    prior: none is taken; `TrackingStream` starts from one.
    noise: leave it out for exact noise; `Simulation` (seed) is for experiments and marks every release.

    >>> import phdstream as phd
    >>> stream = phd.PHDStream(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, unit=phd.Event())
    >>> release = stream.update(inserts=[(0.2, 0.7), (0.2, 0.8)])
    >>> release = stream.update(inserts=[(0.9, 0.1)], deletes=[(0.2, 0.7)])
    >>> release.tick
    2
    """

    method = NAME

    def __init__(
        self,
        domain: Domain,
        epsilon: float,
        unit: Unit,
        *,
        counter: CounterChoice | dict[str, Any] = "simple",
        threshold: int = 0,
        window: int | None = None,
        insert_only: bool = False,
        start_after: int = 1,
        tree_share: float = 0.5,
        max_nodes: int = 1_000_000,
        prior: None = None,
        noise: Noise | None = None,
    ) -> None:
        if prior is not None:
            raise InputError(
                "PHDStream takes no prior: it is the paper's algorithm. Use TrackingStream, or leave it out."
            )
        setting, source = Setting(domain, unit, window, insert_only, start_after, max_nodes), checked_noise(noise)
        budget = Budget.solve(epsilon, unit, deletes=setting.deletes, tree_share=tree_share)
        self._paper = PaperMethod(setting, budget, source, counter, threshold, tree_share)
        super().__init__(setting, self._paper)

    @property
    def rule(self) -> SplitRule:
        """The split test: its noise, its bias, its threshold."""
        return self._paper.rule

    @property
    def counter(self) -> Counter:
        """The kind of counter that counts the leaves, with its budget."""
        return self._paper.counter
