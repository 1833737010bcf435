"""The privacy loss of whole outputs, computed exactly: every tree and noisy sum that can come out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import pytest

import phdstream as phd
from phdstream.arrays import Ints
from phdstream.audit.enumeration import LOW_AND_HIGH, PathNoise, largest_losses, with_one_more
from phdstream.audit.enumeration import PlacedEvent as Event
from phdstream.audit.forcing import ForcedNoise, Script, all_outputs
from phdstream.counters import BinaryTree, Block, ByLevel, Counter, Hybrid, Simple
from phdstream.errors import StateError
from phdstream.streams.paper import mechanism
from phdstream.streams.paper.model import selection
from phdstream.streams.private_codes import ExactCounts, PrivateCodes, TickEvents
from tests.thorough import cases

TOLERANCE = 1e-9
EVERY = cases(7, 1)
"""Of several ticks with every counter, one output in so many: the last choices move fastest, so all kinds are there."""
pytestmark = pytest.mark.slow


def build(depth: int, unit: object = None, counter: object = "simple", **options: object) -> phd.PHDStream:
    unit = phd.Event() if unit is None else unit
    return phd.PHDStream(phd.Box([(0, 1)], depth=depth), 1.0, unit, counter=counter, **options)  # type: ignore[arg-type]


def largest_loss(
    make: Callable[[], phd.PHDStream], base: list[Event], ticks: int, other: list[list[Event]], every: int = 1
) -> list[float]:
    return largest_losses(make, base, ticks, other, every)[0]


class TestOneTick:
    """Depth 3: 26 trees, 1446 outputs, from a past with negative counts at every level."""

    @staticmethod
    def after_a_bad_past() -> phd.PHDStream:
        """A first tick whose noise left a path that sits at the threshold at every level, between negative siblings."""
        stream = build(depth=3)
        bias = stream.rule.bias
        stream.noise = PathNoise(stream, {8: 3 * bias, 9: -bias, 5: -bias, 3: -bias})
        stream.update()
        return stream

    base: ClassVar[list[Event]] = [(0, 0.05, 1), (0, 0.3, 1), (0, 0.3, -1), (0, 0.95, 1)]

    def test_an_insert_costs_at_most_tree_and_count_and_a_delete_count_only(self) -> None:
        inserts, deletes = ([[*self.base, (0, x, sign)] for x in (0.06, 0.3, 0.94)] for sign in (1, -1))
        losses = largest_loss(self.after_a_bad_past, self.base, 1, inserts + deletes, cases(3, 1))
        budget = build(depth=3).budget
        assert max(losses[: len(inserts)]) <= budget.tree + budget.count + TOLERANCE
        assert max(losses[: len(inserts)]) > budget.count + 0.3 * budget.tree  # not vacuous: the tree does cost
        assert max(losses[len(inserts) :]) == pytest.approx(budget.count, abs=TOLERANCE)

    def test_the_published_score_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(selection, "project", lambda mass, released, parent, share: released)  # G itself, not P
        stream = self.after_a_bad_past()
        stream.noise = ForcedNoise(stream.rule, lambda options: 1, LOW_AND_HIGH)
        with pytest.raises(StateError, match="a child's score is above its parent's"):
            stream.update()

    def test_the_published_score_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _publish_score(monkeypatch)
        budget = build(depth=3).budget
        assert max(largest_loss(self.after_a_bad_past, [], 1, [[(0, 0.05, 1)]])) > budget.tree + budget.count + 0.05

    def test_deletions_in_the_score_are_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """∇F = A - D in the score: a delete then costs tree budget, which it was not given."""
        deletes = [(0, 0.3, -1)]
        _publish_net_counts(monkeypatch)
        assert max(largest_loss(partial(build, 3), [], 1, [deletes])) > build(depth=3).budget.count + 0.1


class TestDeepPath:
    """Depth 20, all nodes of one path at the threshold: the case in which the published score leaks most."""

    DEPTH = 20

    def loss_of_splitting_the_whole_path(self, monkeypatch: pytest.MonkeyPatch, published: bool) -> float:
        if published:
            _publish_score(monkeypatch)
        log_p = [self._play(with_event) for with_event in (False, True)]
        return abs(log_p[0] - log_p[1])

    def _play(self, with_event: bool) -> float:
        stream = build(self.DEPTH)
        bias = stream.rule.bias
        outputs = {(1 << level) + 1: -bias for level in range(1, self.DEPTH + 1)}
        stream.noise = PathNoise(stream, outputs | {1 << self.DEPTH: self.DEPTH * bias})
        stream.update()
        noise = stream.noise = PathNoise(stream, dict.fromkeys(outputs, 0) | {1 << self.DEPTH: 0})
        stream.update([[0.0]] if with_event else None)
        return noise.log_probability

    def test_within_budget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loss = self.loss_of_splitting_the_whole_path(monkeypatch, published=False)
        assert loss <= build(self.DEPTH).budget.tree + TOLERANCE

    def test_published_score_leaks_several_times_its_budget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loss = self.loss_of_splitting_the_whole_path(monkeypatch, published=True)
        assert loss > 6 * build(self.DEPTH).budget.tree


COUNTERS: dict[str, Callable[[float], Counter]] = {
    "simple": Simple,
    "block of 2": partial(Block, size=2),
    "block of 3": partial(Block, size=3),
    "binary tree": partial(BinaryTree, horizon=3),
    "hybrid, always past its horizon": Hybrid,
    "by level: the root a block, its halves a tree": lambda epsilon: ByLevel(
        epsilon, (Block(epsilon, size=2), BinaryTree(epsilon, horizon=3)), (1, 2)
    ),
    "by level: the root simple, its halves blocks": lambda epsilon: ByLevel(
        epsilon, (Simple(epsilon), Block(epsilon, size=2)), (1, 2)
    ),
}


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
class TestSeveralTicks:
    """Two cells, three ticks, a seventh of all outputs: the loss over the whole stream is within the budget."""

    TICKS = 3
    base: ClassVar[list[Event]] = [(0, 0.2, 1), (1, 0.8, 1), (1, 0.2, -1)]

    def test_each_event(self, counter: Callable[[float], Counter]) -> None:
        make = partial(build, 1, counter=counter)
        inserts, deletes = with_one_more(self.base, range(self.TICKS), cells=2)
        losses = largest_loss(make, self.base, self.TICKS, inserts + deletes, EVERY)
        budget = make().budget
        assert max(losses[: len(inserts)]) <= budget.tree + budget.count + TOLERANCE
        assert max(losses[len(inserts) :]) <= budget.count + TOLERANCE
        assert max(losses) > 0.5 * budget.count

    def test_each_record(self, counter: Callable[[float], Counter]) -> None:
        make = partial(build, 1, unit=phd.Record(), counter=counter)
        records = [[*self.base, (0, x, 1), (t, x, -1)] for x in (0.2, 0.8) for t in (0, 1, 2)]
        assert max(largest_loss(make, self.base, self.TICKS, records, EVERY)) <= 1.0 + TOLERANCE


@pytest.mark.parametrize(
    "options", [{"start_after": 2}, {"window": 1}, {"window": 2, "start_after": 2}, {"max_nodes": 3}]
)
def test_options_cost_nothing(options: dict[str, int]) -> None:
    """A start, a window, folding: the loss of an insert over three ticks is within the same budget."""
    make = partial(build, 1, **options)
    base: list[Event] = [(0, 0.2, 1), (1, 0.8, 1)]
    inserts, _ = with_one_more(base, range(3), cells=2)
    assert max(largest_loss(make, base, 3, inserts, cases(3, 1))) <= 1.0 + TOLERANCE


def test_an_irregular_tree() -> None:
    """Named places with different numbers of children at different depths: the same budget, every output."""
    places = phd.Hierarchy({"a": {"b": ["x", "y"], "c": []}, "d": []})

    def log_probability(events: list[str], choose: Callable[[int], int]) -> float:
        stream = phd.PHDStream(places, 1.0, phd.Event())
        noise = stream.noise = ForcedNoise(stream.rule, choose, LOW_AND_HIGH)
        stream.update(events)
        return noise.log_probability

    base = ["x", "a/c"]
    budget = phd.PHDStream(places, 1.0, phd.Event()).budget
    worst = 0.0
    for choices in all_outputs(lambda choose: log_probability(base, choose)):
        log_p = log_probability(base, Script(list(choices)))
        others = [log_probability([*base, place], Script(list(choices))) for place in ("x", "y", "a/c", "d")]
        worst = max(worst, *(abs(log_p - other) for other in others))
    assert budget.count < worst <= budget.tree + budget.count + TOLERANCE


def _publish_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the score be the paper's, G itself and not P, and the mechanism not notice."""
    monkeypatch.setattr(selection, "project", lambda mass, released, parent, share: released)
    monkeypatch.setattr(mechanism, "_monotone", lambda *_: True)


def _publish_net_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the selection see ∇F = A - D, as the paper has it."""
    spend, one_tick = PrivateCodes.spend, mechanism.one_tick
    net: list[PrivateCodes] = []

    class Net:
        def __init__(self, inserts: ExactCounts, deletes: ExactCounts) -> None:
            self.inserts, self.deletes = inserts, deletes

        def within(self, nodes: Ints, bits: int | None = None) -> Ints:
            difference: Ints = self.inserts.within(nodes, bits) - self.deletes.within(nodes, bits)
            return difference

    def noted(waiting: list[TickEvents]) -> TickEvents:
        net[:] = one_tick(waiting)
        return TickEvents(*net)

    def spent(self: PrivateCodes, epsilon: float) -> ExactCounts:
        exact = spend(self, epsilon)
        first = net and self is net[0] and epsilon == build(3).budget.tree and not getattr(self, "selected", False)
        self.selected = True  # type: ignore[attr-defined]
        return Net(exact, spend(net[1], 0.0)) if first else exact

    monkeypatch.setattr("phdstream.streams.paper.method.one_tick", noted)
    monkeypatch.setattr(PrivateCodes, "spend", spent)
