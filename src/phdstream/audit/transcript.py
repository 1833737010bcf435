"""Everything a stream asks of its noise, and what it was answered; replayed to a neighbour, and compared exactly.

`Recorder` stands between a stream and its noise and writes down each question: how many parts of which scale, about
which nodes, with which run of parts each. `Replayer` hands the same answers to another stream, whose questions must be
the same. `exact_loss` is then the log-ratio of the probabilities of *all* that was answered, intermediate counts
included, under the two streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phdstream.arrays import Bools, Ints
from phdstream.audit.finding import Violation
from phdstream.domains.prefixes import code_range
from phdstream.privacy import DivisibleNoise, Noise, SplitRule
from phdstream.privacy.calibration import log_tail

__all__ = ["Loss", "Recorder", "Replayer", "Step", "check_runs", "exact_loss"]


@dataclass
class Step:
    """A question and its answer. ``values`` is the private part; all else must be the same for any two streams.

    A ``sum`` is a noisy number for each node; a ``split`` only says which are above the threshold; ``parts`` opens
    divisible noise, number ``of``, and a ``look`` is a count with runs of its parts.
    """

    kind: str
    scale: float
    at: Ints
    values: Ints
    answer: Any
    of: int = -1
    runs: tuple[Ints, Ints] | None = None

    def same_question(self, other: Step) -> bool:
        """Whether the other asks the same, of other data."""
        runs = zip(self.runs or (), other.runs or (), strict=True)
        return (
            (self.kind, self.scale, self.of) == (other.kind, other.scale, other.of)
            and np.array_equal(self.at, other.at)
            and all(np.array_equal(one, two) for one, two in runs)
        )


class Recorder:
    """Noise of another source, written down. ``rule`` tells split tests, which release one bit a node."""

    private = True
    unproved = "an audit's own"

    def __init__(self, noise: Noise, rule: SplitRule | None) -> None:
        self._noise, self.rule = noise, rule
        self.steps: list[Step] = []
        self._counts = 0

    def add(self, values: Ints, scale: float, at: Ints) -> Any:
        """Return noisy values, or for split tests what can only be compared with the threshold."""
        step = Step("sum", scale, np.array(at), np.array(values), None)
        self.steps.append(step)
        if self.rule and scale == self.rule.scale:
            step.kind = "split"
            return _OnlyCompared(self, step)
        step.answer = self._answered(step)
        return np.array(step.answer)

    def _answered(self, step: Step) -> Ints:
        return self._noise.add(step.values, step.scale, at=step.at)

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return noise in parts, of which every use is written down."""
        step = Step("parts", scale, np.array(at), np.array(parts), None, of=self._counts)
        self._counts += 1
        self.steps.append(step)
        return self._opened(step)

    def _opened(self, step: Step) -> DivisibleNoise:
        return _RecordedParts(self, step, self._noise.divisible(step.scale, step.values, at=step.at))

    def key(self) -> int:
        """Return the source's key."""
        return self._noise.key()

    def to_dict(self) -> dict[str, Any]:
        """A state that is saved meanwhile goes on with exact noise, until the recorder is put back."""
        return {"type": "exact"}

    def above(self, step: Step) -> Bools:
        """Return which split tests pass."""
        assert self.rule
        return np.asarray(self._answered(step) > self.rule.threshold)


class _OnlyCompared:
    """Noisy values of a split test. Their comparison with the threshold is paid for, and nothing else."""

    def __init__(self, recorder: Recorder, step: Step) -> None:
        self._recorder, self._step = recorder, step

    def __gt__(self, threshold: object) -> Bools:
        rule = self._recorder.rule
        if self._step.answer is not None or rule is None or threshold != rule.threshold:
            raise Violation("a split test was compared twice, or with another threshold than its own")
        self._step.answer = self._recorder.above(self._step)
        return np.array(self._step.answer)


class _RecordedParts(DivisibleNoise):
    def __init__(self, recorder: Recorder, step: Step, noise: DivisibleNoise) -> None:
        self._recorder, self._step, self._noise = recorder, step, noise
        number = np.arange(int(step.values.sum()))
        drawn = noise.add(np.zeros_like(number), number, np.ones_like(number), at=number)
        self._ends = np.concatenate([[0], np.cumsum(drawn)])

    def add(self, values: Ints, first: Ints, parts: Ints, at: Ints) -> Ints:
        """Return the count, after checking that its noise is the sum of the parts that it says it is."""
        step = Step("look", self._step.scale, np.array(at), np.array(values), None, self._step.of, (first, parts))
        check_within(step, self._ends.size - 1)
        step.answer = self._noise.add(values, first, parts, at=at)
        if not np.array_equal(step.answer - values, self._ends[first + parts] - self._ends[first]):
            raise Violation("a count has other noise than the parts that it was given")
        self._recorder.steps.append(step)
        return np.array(step.answer)


def check_within(step: Step, parts: int) -> None:
    """Refuse a look at parts that were never drawn."""
    assert step.runs
    first, number = step.runs
    if first.size and not (first.min() >= 0 and number.min() >= 1 and (first + number).max() <= parts):
        raise Violation("a count uses parts of noise that were never drawn, or none")


class Replayer(Recorder):
    """Noise for another stream: every question must be the recorded one, and gets the recorded answer."""

    def __init__(self, recorded: list[Step], rule: SplitRule | None, key: int) -> None:
        super().__init__(_NoNoise(), rule)
        self._recorded, self._key = recorded, key

    def _answered(self, step: Step) -> Ints:
        return np.array(self._compared(step).answer)

    def above(self, step: Step) -> Bools:
        """Return which split tests passed."""
        return np.array(self._compared(step).answer)

    def _compared(self, step: Step) -> Step:
        at = len(self.steps) - 1
        if at >= len(self._recorded) or not self._recorded[at].same_question(step):
            asked = "a further question" if at >= len(self._recorded) else _difference(self._recorded[at], step)
            raise Violation(f"what is asked depends on private data: {asked}")
        return self._recorded[at]

    def _opened(self, step: Step) -> DivisibleNoise:
        before = self._compared(step)
        if not np.array_equal(before.values, step.values):
            raise Violation("how many parts of noise are drawn depends on private data")
        return _ReplayedParts(self, step)

    def key(self) -> int:
        """Return the same key as before: it is public."""
        return self._key

    def finish(self) -> None:
        """Refuse a stream that asked less than the recorded one."""
        if len(self.steps) != len(self._recorded):
            raise Violation("how much is asked depends on private data")


def _difference(recorded: Step, asked: Step) -> str:
    if recorded.kind != asked.kind:
        return f"a {asked.kind} in place of a {recorded.kind}"
    if recorded.scale != asked.scale:
        return f"the scale of a {asked.kind}"
    return f"the nodes of a {asked.kind}, or their parts of noise"


Replayer.__name__ = Recorder.__name__
"""Releases name noise that is not proved: what they say must not tell the two apart."""


class _ReplayedParts(DivisibleNoise):
    def __init__(self, replayer: Replayer, step: Step) -> None:
        self._replayer, self._step = replayer, step

    def add(self, values: Ints, first: Ints, parts: Ints, at: Ints) -> Ints:
        """Return the recorded count."""
        step = Step("look", self._step.scale, np.array(at), np.array(values), None, self._step.of, (first, parts))
        self._replayer.steps.append(step)
        step.answer = self._replayer._compared(step).answer
        return np.array(step.answer)


class _NoNoise:
    private = True

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        raise NotImplementedError

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        raise NotImplementedError

    def key(self) -> int:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass
class Loss:
    """What all answers together cost: of these very answers, and at worst for any answers to the same sums."""

    exact: float = 0.0
    split: float = 0.0
    at_worst: float = 0.0

    @property
    def largest(self) -> float:
        """The larger of both."""
        return max(abs(self.exact), self.at_worst + abs(self.split))


def exact_loss(first: list[Step], second: list[Step], rule: SplitRule | None, total_bits: int) -> Loss:
    """Return the privacy loss of one and the same transcript, under two streams."""
    loss = Loss()
    for one, two in zip(first, second, strict=True):
        if one.kind == "sum":
            _add(loss, one.answer, one.values, two.values, one.scale)
        elif one.kind == "split":
            assert rule
            paid = _split_loss(one, two, rule)
            loss.exact += paid
            loss.split += paid
    for number in {step.of for step in first if step.kind == "look"}:
        looks = [(a, b) for a, b in zip(first, second, strict=True) if a.kind == "look" and a.of == number]
        check_runs([a for a, _ in looks], total_bits)
        _check_earlier(looks)
        last, other = looks[-1]
        _add(loss, last.answer, last.values, other.values, last.scale)
    return loss


def _add(loss: Loss, answer: Ints, first: Ints, second: Ints, scale: float) -> None:
    loss.exact += int((np.abs(answer - second) - np.abs(answer - first)).sum()) / scale
    loss.at_worst += int(np.abs(first - second).sum()) / scale


def _split_loss(one: Step, two: Step, rule: SplitRule) -> float:
    """Return the log-ratio of the probabilities of the outcomes; at equal values it is 0."""
    loss = 0.0
    for i in np.flatnonzero(one.values != two.values).tolist():
        a, b = (_log_outcome(int(step.values[i]), bool(one.answer[i]), rule) for step in (one, two))
        loss += a - b
    return loss


def _log_outcome(value: int, above: bool, rule: SplitRule) -> float:
    return log_tail(rule.threshold + 1 - value if above else value - rule.threshold, rule.scale)


def check_runs(looks: list[Step], total_bits: int) -> None:
    """Check that nodes of a look are disjoint, and runs too; that both nest in the look before; one part is left."""
    before: tuple[Ints, ...] | None = None
    for look in looks:
        assert look.runs
        (first, parts), (start, past) = look.runs, code_range(look.at, total_bits)
        _check_disjoint(start, past, "nodes that are counted together")
        _check_disjoint(first, first + parts, "runs of noise of different nodes")
        if before is not None and first.size:
            of = _holders(before[0], before[1], first, first + parts, "a node's noise")
            if not ((before[2][of] <= start) & (past <= before[3][of])).all():
                raise Violation("a node has noise of another place than the one it lies in")
        before = first, first + parts, start, past
    assert looks[-1].runs
    if (looks[-1].runs[1] != 1).any():
        raise Violation("a fine count ended with noise undivided")


def _check_disjoint(start: Ints, past: Ints, what: str) -> None:
    order = np.argsort(start, kind="stable")
    if (past[order[:-1]] > start[order[1:]]).any():
        raise Violation(f"{what} overlap")


def _holders(start: Ints, past: Ints, first: Ints, end: Ints, what: str) -> Ints:
    """Return in which of the disjoint ranges each other range lies."""
    order = np.argsort(start, kind="stable")
    of = order[np.maximum(np.searchsorted(start[order], first, side="right") - 1, 0)]
    if not ((start[of] <= first) & (end <= past[of])).all():
        raise Violation(f"{what} is not part of what was drawn for it")
    return np.asarray(of)


def _check_earlier(looks: list[tuple[Step, Step]]) -> None:
    """Check that, given the last count, earlier ones tell nothing more: they change by what it changes within them."""
    last, other = looks[-1]
    assert last.runs
    order = np.argsort(last.runs[0], kind="stable")
    changes = np.concatenate([[0], np.cumsum((other.values - last.values)[order])])
    starts = last.runs[0][order]
    for one, two in looks[:-1]:
        assert one.runs
        first, parts = one.runs
        within = changes[np.searchsorted(starts, first + parts)] - changes[np.searchsorted(starts, first)]
        if not np.array_equal(two.values - one.values, within):
            raise Violation("an earlier count of a fine count tells more than the last one: the loss has no bound")
