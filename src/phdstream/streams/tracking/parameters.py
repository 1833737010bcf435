"""`TrackingParameters`: every number that tracking was tuned by, in one frozen value.

None of them touches privacy: they say how a budget is divided, where to count, and what to make of noisy counts, and
whatever they are, the ledger holds every event to its budget. They are fixed before any data is seen, and saved with
the state. `docs/parameters.md` is made from this file; `benchmarks/utility.py ablate` measures what each heuristic is
worth by switching it off (``on=False``, or the value named in the field's reason).

>>> TrackingParameters().smoothing.halvings
2
>>> TrackingParameters().changed({"smoothing.on": False}).smoothing.on
False
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

from phdstream.errors import InputError, did_you_mean, shown

__all__ = ["Stages", "TrackingParameters"]

Stages = tuple[tuple[float, int], ...]
"""The stages of a fine count: up to how many times the noise's scale a node may be expected to hold undivided, and how
often it may still be halved after that stage; not at all after the last."""


def _number(default: float, unit: str, low: float, high: float, why: str) -> Any:
    """Return a field for a number between two bounds."""
    return field(default=default, metadata={"unit": unit, "low": low, "high": high, "why": why})


def _switch(why: str) -> Any:
    """Return a field that switches a heuristic on and off."""
    return field(default=True, metadata={"unit": "switch", "why": why})


_MOST_FOR_ZONES = 0.95
"""Of an event's budget, for totals and zones together."""


class _Checked:
    """Refuses values outside their bounds."""

    def __post_init__(self) -> None:
        for about in fields(self):  # type: ignore[arg-type]
            value, bounds = getattr(self, about.name), about.metadata
            low, high = bounds.get("low", -math.inf), bounds.get("high", math.inf)
            if "low" in bounds and not (isinstance(value, int | float) and low <= value <= high):
                raise InputError(f"{about.name} must be a number from {low:g} to {high:g}, not {shown(value)}.")
            if about.metadata.get("unit") == "switch" and not isinstance(value, bool):
                raise InputError(f"{about.name} must be True or False, not {shown(value)}.")


@dataclass(frozen=True)
class BudgetSplit(_Checked):
    """How an event's budget is divided between its tick's total, its zone and the fine count of its block.

    The noise of totals and zones does not grow with the points: beside many it is small, and little budget is enough.
    """

    total: float = _number(0.02, "share of ε", 1e-4, 0.2, "for the tick's total, with many points")
    zones: float = _number(0.04, "share of ε", 1e-4, 0.2, "for the zone, with many points")
    many: float = _number(20_000, "points · ε", 1, 1e9, "with fewer, both shares grow as the cube root")
    growth: float = _number(4.5, "factor", 1, 4.5, "they grow no further; 1: they do not grow")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.growth * (self.total + self.zones) > _MOST_FOR_ZONES:
            raise InputError("budget: with this growth next to nothing would be left for the fine count of a block.")


@dataclass(frozen=True)
class Start(_Checked):
    """The start: everything up to t0 is counted in rounds, each on a tree chosen from the rounds before it."""

    total: float = _number(0.03, "share of ε", 1e-4, 0.5, "for the total; the rounds divide the rest")
    rounds: tuple[tuple[float, Stages], ...] = field(
        default=(
            (0.1, ((8.0, 3), (8.0, 0))),
            (0.3, ((6.0, 3), (6.0, 0))),
            (0.6, ((6.0, 4), (8.0, 2), (4.5, 0))),
        ),
        metadata={"unit": "share of the rest, stages", "why": "coarse and cheap first, then fine where points are"},
    )
    drift: float = _number(1.0, "κ", 0, 10, "how far splits may differ from the measure's: freely")
    deeper: float = _number(60.0, "noise scales", 1, 1e6, "later rounds divide at once what seems to hold more")
    parts: float = _number(2**18, "parts", 1, 2**24, "of noise at most for that, in a round; 1: none")


@dataclass(frozen=True)
class Prior(_Checked):
    """A public prior: how much of it is believed at first, and how its worth is learnt from the start's counts."""

    trust: float = _number(0.8, "share of points", 0, 1, "expected where it says, before anything is counted")
    hesitation: float = _number(4.0, "nodes", 0.1, 1e3, "as if so many said that it is half right, and free to differ")
    kinship: float = _number(0.6, "share", 0, 1, "how much of what one level tells holds for the next")
    visible: float = _number(2.0, "standard deviations", 0, 100, "nodes that hold so much tell what it is worth")
    room: float = _number(0.05, "share of variance", 0, 1, "the least deviation of uneven splits, as for the filter")
    least: float = _number(1e-3, "κ²", 1e-6, 1, "no prior is taken for better")
    curiosity: float = _number(
        0.3, "κ²", 0, 1, "where to count, none is taken for better; 1: it is counted as finely as without any"
    )
    worth: float = _number(0.2, "share of variance", 0, 1, "levels of which it explains less are left to the measure")


@dataclass(frozen=True)
class FineCounts(_Checked):
    """The fine count of a block: nodes that are expected to hold enough are counted, heavy ones refined."""

    stages: Stages = field(
        default=((3.0, 2), (3.5, 0)),
        metadata={"unit": "noise scales, halvings", "why": "small nodes tell more, but each has its noise"},
    )
    latitude: float = _number(1.0, "relative", 0, 10, "by how much a count may well differ from what was expected")
    return_dropped_noise: bool = _switch(
        "what refining dropped is known, and given back: else heavy nodes are too heavy"
    )
    parts_per_node: float = _number(4, "parts", 1, 64, "parts of noise drawn, at most, for each node that may be kept")


@dataclass(frozen=True)
class Zones(_Checked):
    """Zones: large parts of the domain, counted while a block is open: they show drift, and where to count finely."""

    fill: float = _number(40.0, "noise scales", 1, 1e4, "a zone that holds more points is divided")
    bits: int = _number(7, "bits", 0, 20, "no zone is finer than this")
    batch_noise: float = _number(2.0, "noise scales a zone", 0, 100, "they are counted when so many events came")
    on: bool = _switch("splits follow the zones between fine counts; else intervals are too narrow then")
    drift: float = _number(0.03, "κ", 0, 10, "how far splits may move by zones alone")


@dataclass(frozen=True)
class BlockLength(_Checked):
    """How much must happen before a block is counted finely.

    The longer a block, the older what is known of it; the shorter, the more often the noise of a count is added. With
    many points noise matters less: the balance moves as ``factor · (points · ε²)^(-1/4)``. Where all points are in few
    places, a longer block knows no finer cells: see `policy.block_length`.
    """

    adapts: bool = _switch("the balance moves with points and ε; else it is `usual`")
    factor: float = _number(3.5, "share of all points", 0.01, 100, "of the formula above, chosen by trial")
    by_places: bool = _switch("it is shorter where points are in so few finest cells that noise is small beside age")
    usual: float = _number(0.25, "share of all points", 0.01, 1, "the length if it does not adapt")
    least: float = _number(0.04, "share of all points", 0.001, 1, "no block is shorter")
    most: float = _number(0.6, "share of all points", 0.001, 10, "no block is longer")


@dataclass(frozen=True)
class Drift(_Checked):
    """What drift changes: points that come or go elsewhere than expected are counted sooner and wider.

    The drift score of a block is 0 if its events lie where points are, and about 1 if they lie elsewhere.
    """

    on: bool = _switch("whether drift changes anything")
    chance: float = _number(0.2, "score", 0, 1, "up to this it is chance")
    hurry: float = _number(3.0, "per score", 0, 100, "how much sooner a block is counted; 0: not at all")
    while_open: bool = _switch("the open block's zones are scored too, not only closed blocks")
    distrust: float = _number(2.0, "per score", 0, 100, "how much less the past is trusted; 0: as much as ever")


@dataclass(frozen=True)
class Exploration(_Checked):
    """How much of a block's events to expect anywhere, not where points are: that is how new places are found."""

    inserts: float = _number(0.07, "share of events", 0, 0.5, "of what comes")
    deletes: float = _number(0.02, "share of events", 0, 0.5, "of what goes")


@dataclass(frozen=True)
class Filter(_Checked):
    """The Kalman filter of every split contrast."""

    drift: float = _number(0.05, "κ", 0, 10, "how far a block's events may differ from the points that are there")
    uneven_vary_less: bool = _switch("chance and drift of a split of contrast c are 1 - c² of an even one's")
    room: float = _number(0.05, "share of variance", 0, 1, "but no less than this, so that thin halves can grow")
    outlier: float = _number(
        8.0, "variances", 1, math.inf, "an innovation beyond shows that its variance was larger; inf: off"
    )
    prior_from_emptiness: bool = _switch(
        "where halves are often empty, a first count decides and is not drawn to the middle"
    )


@dataclass(frozen=True)
class Expiry(_Checked):
    """With a window: what expires is taken off where its block divided otherwise than all points do."""

    on: bool = _switch("blocks are remembered, and taken off; else what expires divides as all points do")
    chance: float = _number(1.0, "variances", 0, 100, "a difference of so much is noise and chance; 0: all is believed")
    nodes: float = _number(32_768, "nodes", 1, 1e7, "remembered of all blocks of a window together")
    least: float = _number(64, "nodes", 0, 1e6, "remembered of a block, however long the window")


@dataclass(frozen=True)
class EmptyHalves(_Checked):
    """Which halves are released as empty, judged by how often halves are: a likelihood ratio test."""

    on: bool = _switch("whether any half is released as empty by this rule")
    well_known: float = _number(
        0.06, "share of a node", 0.001, 1, "halves of a smaller standard deviation tell how often"
    )
    nearly_empty: float = _number(0.05, "share of a node", 0.001, 0.5, "a half with less is next to empty")
    enough: float = _number(20, "nodes", 1, 1e6, "so many must tell; else `untold` is taken")
    untold: float = _number(0.2, "share of nodes", 0, 1, "how often a half is empty if too few tell")
    least: float = _number(0.02, "share of nodes", 0, 1, "never rarer: few nodes tell only so much")
    most: float = _number(0.95, "share of nodes", 0, 0.999, "never more often")
    deviations: float = _number(2.0, "standard deviations", 0, 10, "a half of more is never empty")


@dataclass(frozen=True)
class EmptyChildren(_Checked):
    """Which halves are released as empty, judged also by other halves of their level and by their neighbours."""

    on: bool = _switch("whether any half is released as empty by this rule")
    thin: float = _number(0.2, "points", 0, 100, "nodes with fewer are left as they are")
    visible: float = _number(0.9, "standard deviations", 0, 10, "half a node must hold so much to be judged")
    stands_out: float = _number(3.0, "standard deviations", 0, 100, "halves that hold so much tell what is usual")
    enough: float = _number(10, "halves", 1, 1e6, "so many must tell of a level")
    little: float = _number(0.15, "share of the node's", 0, 1, "a neighbour with less holds little")


@dataclass(frozen=True)
class Smoothing(_Checked):
    """Regularisation of what is released: where the density is smooth, neighbours tell of noisy nodes."""

    on: bool = _switch("whether anything is smoothed")
    thin: float = _number(0.2, "points", 0, 100, "measured nodes with fewer are left whole")
    worth_halving: float = _number(
        0.5, "points", 0, 100, "unmeasured nodes with more are halved by their neighbours' slope"
    )
    halvings: int = _number(2, "times", 0, 6, "how often unmeasured nodes are halved; 0: not at all")
    steepest: float = _number(0.9, "contrast", 0, 0.99, "no slope is steeper")
    soften: float = _number(0.1, "variance", 0, 10, "nodes measured better than this tell no more of the ruggedness")
    caution: float = _number(
        2.0, "standard errors", 0, 10, "ruggedness is taken to be so far above its estimate; 0: as estimated"
    )


@dataclass(frozen=True)
class TrackingParameters:
    """All parameters of tracking, by what they are for."""

    budget: BudgetSplit = BudgetSplit()
    start: Start = Start()
    prior: Prior = Prior()
    fine_counts: FineCounts = FineCounts()
    zones: Zones = Zones()
    block_length: BlockLength = BlockLength()
    drift: Drift = Drift()
    exploration: Exploration = Exploration()
    filter: Filter = Filter()
    expiry: Expiry = Expiry()
    empty_halves: EmptyHalves = EmptyHalves()
    empty_children: EmptyChildren = EmptyChildren()
    smoothing: Smoothing = Smoothing()
    thin: float = field(
        default=0.2, metadata={"unit": "points", "low": 0, "high": 100, "why": "released nodes with fewer stay whole"}
    )

    def changed(self, values: dict[str, Any]) -> Self:
        """Return the parameters with some values changed, each named as in ``"smoothing.on"``."""
        result = self
        for name, value in values.items():
            group, _, part = name.partition(".")
            if group not in {about.name for about in fields(self)}:
                raise InputError(f"unknown parameter {shown(name)}: {did_you_mean(group, asdict(self))}")
            if part:
                own = getattr(result, group)
                if part not in {about.name for about in fields(own)}:
                    raise InputError(f"unknown parameter {shown(name)}: {did_you_mean(part, asdict(own))}")
                value = replace(own, **{part: value})
            result = replace(result, **{group: value})
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data, as JSON has it."""
        plain: dict[str, Any] = _lists(asdict(self))
        return plain

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Self:
        """Return the parameters that `to_dict` described; those that are gone since are left out."""
        flat: dict[str, Any] = {}
        for group, values in spec.items():
            named = {f"{group}.{part}": value for part, value in values.items()} if isinstance(values, dict) else {}
            flat |= named or {group: values}
        return cls().changed({name: _tuples(value) for name, value in flat.items() if name not in _GONE})


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lists(part) for name, part in value.items()}
    return list(map(_lists, value)) if isinstance(value, tuple) else value


def _tuples(value: Any) -> Any:
    """Return lists, as JSON has them, as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


_GONE = {"zones.batch"}
"""Parameters of earlier versions: a stream that has them in its state goes on without."""
