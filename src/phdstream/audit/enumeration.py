"""Enumeration: every output of small streams, with its exact probability, under all neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from phdstream.arrays import Ints
from phdstream.audit import divisible
from phdstream.audit.finding import Effort, Finding, Progress, Violation
from phdstream.audit.forcing import ForcedNoise, ForcedSums, Script, all_outputs
from phdstream.domains import Box
from phdstream.errors import PhdstreamError
from phdstream.priors import Prior
from phdstream.privacy import DivisibleNoise, Event, Record, Unit
from phdstream.streams.paper.counters import BinaryTree, Block, ByLevel, Simple
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.stream import Stream
from phdstream.streams.tracking import TrackingParameters, TrackingStream

__all__ = ["EnumerationCheck", "Instance", "PathNoise", "PlacedEvent", "largest_losses", "play", "with_one_more"]

PlacedEvent = tuple[int, float, int]
"""A tick, a place on the line, and +1 or -1."""
LOW_AND_HIGH = (-2, 3)
FEW_AND_MANY = (-3, 40)
"""Beyond the data on either side the likelihood ratio of a noisy sum is constant, so two values show all losses. Of
tracking's, the larger is large enough for leaves to split."""
Make = Callable[[], Any]


@dataclass(frozen=True)
class Instance:
    """A small stream, its events, and what it may have more: each neighbour with what that may cost."""

    name: str
    make: Make
    base: list[PlacedEvent]
    ticks: int
    neighbours: list[tuple[list[PlacedEvent], float]]
    stride: int = 1


def play(stream: Any, events: list[PlacedEvent], ticks: int, choose: Callable[[int], int]) -> float:
    """Run a stream whose output is forced, and return the log-probability of that output."""
    paper = isinstance(stream, PHDStream)
    noise = ForcedNoise(stream.rule, choose, LOW_AND_HIGH) if paper else ForcedSums(choose, FEW_AND_MANY)
    stream.noise = noise
    for tick in range(ticks):
        come, gone = ([(i, [x]) for i, (t, x, s) in enumerate(events) if (t, s) == (tick, sign)] for sign in (1, -1))
        users = [[f"user {i}" for i, _ in some] for some in (come, gone)]  # each event has its own, should they matter
        stream.update([point for _, point in come], [point for _, point in gone], *users)
    return noise.log_probability


def largest_losses(
    make: Make,
    base: list[PlacedEvent],
    ticks: int,
    others: list[list[PlacedEvent]],
    every: int = 1,
) -> tuple[list[float], int]:
    """Return, for each neighbour, the largest loss over all outputs, in either direction, and how many outputs.

    Only every so many-th output is compared: the last choices move fastest, so all kinds are there.
    """
    losses, log_p, seen = np.zeros(len(others)), 0.0, 0

    def run(choose: Callable[[int], int]) -> None:
        nonlocal log_p
        log_p = play(make(), base, ticks, choose)

    for number, choices in enumerate(all_outputs(run)):
        if number % every == 0:
            seen += 1
            for i, events in enumerate(others):
                losses[i] = max(losses[i], abs(log_p - play(make(), events, ticks, Script(list(choices)))))
    return losses.tolist(), seen


def with_one_more(
    base: list[PlacedEvent], ticks: range, cells: int
) -> tuple[list[list[PlacedEvent]], list[list[PlacedEvent]]]:
    """Return all neighbours of a stream with one insert more, and with one delete more."""
    places = ((np.arange(cells) + 0.5) / cells).tolist()
    inserts, deletes = ([[*base, (t, x, sign)] for t in ticks for x in places] for sign in (1, -1))
    return inserts, deletes


class EnumerationCheck:
    """All outputs of small streams of both methods; of divisible noise the probability of every output, added up."""

    name = "enumeration"
    shows = (
        "Small streams of both methods: over every output, the exact loss of each neighbour is within what it may be."
    )

    def __init__(self, configured: Stream | None = None) -> None:
        self._configured = configured

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Enumerate instance after instance; each has its share of the time."""
        finding = Finding(self.name, self.shows, excess_found=0.0, largest_loss=0.0)
        instances = _instances(self._configured)
        number, strides = len(instances) + 1, [_stride(instance, effort) for instance in instances]
        for done, instance in enumerate(instances):
            progress(done, number)
            try:
                _enumerate(finding, instance, strides[done])
            except (Violation, PhdstreamError) as error:
                finding.violated(f"{instance.name}: refused by the product itself ({type(error).__name__})")
            finding.trials += 1
            if effort.stop_early and finding.status == "violated":
                finding.ended = f"stopped at the first violation, after {finding.trials} of {number} instances"
                return finding
        progress(len(instances), number)
        _divisible_noise(finding)
        finding.ended = f"all {number} instances" + (
            f"; of the larger ones one output in {min(s for s in strides if s > 1)} to {max(strides)}"
            if max(strides) > 1
            else ""
        )
        progress(number, number)
        return finding


def _stride(instance: Instance, effort: Effort) -> int:
    """Return how many outputs go on one that is compared: of larger instances several, unless the audit is thorough."""
    return 1 if effort.scale > 1 else round(instance.stride / min(effort.scale, 1.0))


def _enumerate(finding: Finding, instance: Instance, stride: int) -> None:
    events, limits = [n for n, _ in instance.neighbours], [limit for _, limit in instance.neighbours]
    losses, seen = largest_losses(instance.make, instance.base, instance.ticks, events, stride)
    for loss, limit in zip(losses, limits, strict=True):
        finding.saw_loss(loss, limit, instance.name)
    finding.samples += seen * len(events) - len(losses)


def _divisible_noise(finding: Finding) -> None:
    """Brute force: every draw of four parts, and the probability of everything that is released with them."""
    for stages in divisible.STAGES:
        for place in (0, 2):
            with_event = (*divisible.BASE, place)
            for here, there in ((divisible.BASE, with_event), (with_event, divisible.BASE)):
                loss = divisible.largest_loss(here, there, stages, DivisibleNoise)
                finding.samples += 1
                if not loss <= divisible.EPSILON + 1e-3:  # the neighbour's parts, cut off later, add a little
                    finding.violated(f"divisible noise of {len(stages)} stages loses more than its ε")
    finding.trials += 1


def _instances(configured: Stream | None) -> list[Instance]:
    found = [] if configured is None else [_as_configured(configured)]
    found.append(_instance("PHDStream after a bad past, one tick", _after_a_bad_past, _BAD_PAST, 1, stride=4))
    found.append(_instance("PHDStream three levels deep, one tick", partial(_paper, 3), _ONE, 1, stride=8))
    for name, counter in _COUNTERS.items():
        make = partial(_paper, 1, counter=counter)
        found.append(_instance(f"PHDStream with {name} counters, three ticks", make, _THREE, 3, stride=5))
    some: list[dict[str, Any]] = [{"start_after": 2}, {"window": 1}, {"window": 2, "start_after": 2}, {"max_nodes": 3}]
    for options in some:
        found.append(_instance(f"PHDStream, {options}", partial(_paper, 1, **options), _TWO, 3, stride=5))
    found.append(_instance("PHDStream for a record, three ticks", partial(_paper, 1, Record()), _THREE, 3, stride=5))
    found.append(_instance("TrackingStream, a start and a block", _tracking, _TWO, 2, stride=3))
    found.append(_instance("TrackingStream, a start from a prior", partial(_tracking, 2, _prior()), _TWO, 1))
    return found


def _instance(name: str, make: Make, base: list[PlacedEvent], ticks: int, stride: int = 1) -> Instance:
    """Return an instance with all its neighbours, each with what its events may spend."""
    stream = make()
    places, kinds = (0.2, 0.8), (1, -1) if stream.deletes else (1,)
    base = [event for event in base if event[2] in kinds]
    budget = stream.budget
    more: list[list[PlacedEvent]] = [[(t, x, sign)] for t in range(ticks) for x in places for sign in kinds]
    if not isinstance(stream.unit, Event):
        more += [[(0, x, 1), (t, x, -1)] for t in range(ticks) for x in places] if stream.deletes else []
    neighbours = [([*base, *events], float(budget.spent_by(*_numbers(events)))) for events in more]
    return Instance(name, make, base, ticks, neighbours, stride)


def _numbers(events: list[PlacedEvent]) -> tuple[int, int]:
    return sum(sign > 0 for *_, sign in events), sum(sign < 0 for *_, sign in events)


_THREE: list[PlacedEvent] = [(0, 0.2, 1), (1, 0.8, 1), (1, 0.2, -1)]
_ONE: list[PlacedEvent] = [(0, 0.2, 1)]
_TWO: list[PlacedEvent] = [(0, 0.2, 1), (1, 0.8, 1)]
_BAD_PAST: list[PlacedEvent] = [(0, 0.05, 1), (0, 0.3, 1), (0, 0.3, -1), (0, 0.95, 1)]
_COUNTERS: dict[str, Any] = {
    "simple": "simple",
    "block": partial(Block, size=2),
    "binary tree": partial(BinaryTree, horizon=3),
    "hybrid": "hybrid",
    "by level": lambda epsilon: ByLevel(epsilon, (Simple(epsilon), Block(epsilon, size=2)), (1, 2)),
}


def _paper(depth: int, unit: Unit | None = None, **options: Any) -> PHDStream:
    return PHDStream(Box([(0, 1)], depth=depth), 1.0, unit or Event(), **options)


def _tracking(depth: int = 1, prior: Prior | None = None) -> TrackingStream:
    """Fewer rounds than usual, so that outputs are few."""
    rounds = {"start.rounds": ((0.4, ((6.0, 1), (6.0, 0))), (0.6, ((4.5, 0),)))}
    parameters = TrackingParameters().changed(rounds)
    line = Box([(0, 1)], depth=depth)
    return TrackingStream(line, 1.0, Event(), insert_only=True, parameters=parameters, prior=prior)


def _prior() -> Prior:
    """Points on the line, seven in ten of them in its first half."""
    return Prior.from_points((np.arange(400) / 400)[:, None] ** 2, about="invented")


def _as_configured(stream: Stream) -> Instance:
    """A small stream with the configured method, unit, budget and options, on a line of two cells.

    Tracking has very many outputs: of it one tick is enumerated. A prior is of the configured domain, so another one
    takes its place.
    """
    fixed = {key: value for key, value in stream.parameters.items() if key not in ("domain", "unit", "method")}
    fixed.pop("private_noise", None)
    ticks = 1 if isinstance(stream, TrackingStream) else 2
    fixed |= {"start_after": min(stream.start_after, ticks)} | ({"prior": _prior()} if fixed.get("prior") else {})
    kind: Any = type(stream)
    make = partial(kind, Box([(0, 1)], depth=1), unit=stream.unit, **fixed)
    return _instance("your stream, on a line of two cells", make, _TWO, ticks, stride=2)


def _after_a_bad_past() -> PHDStream:
    """A first tick whose noise left a path that sits at the threshold at every level, between negative siblings."""
    stream = _paper(3)
    bias = stream.rule.bias
    stream.noise = PathNoise(stream, {8: 3 * bias, 9: -bias, 5: -bias, 3: -bias})
    stream.update()
    return stream


class PathNoise(ForcedNoise):
    """Forces the tree whose leaves are given, with these outputs; sums up the log-probability of the splits alone."""

    def __init__(self, stream: PHDStream, leaves: dict[int, int]) -> None:
        super().__init__(stream.rule, lambda options: next(self._decisions), LOW_AND_HIGH)
        self.leaves = leaves
        self._decisions: Iterator[int] = iter(())

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return the given outputs, and split whatever is not a given leaf."""
        if scale != self.rule.scale:
            return np.array([self.leaves[node] for node in at.tolist()], dtype=np.int64)
        self._decisions = iter([int(node not in self.leaves) for node in at.tolist()])
        return super().add(values, scale, at)
