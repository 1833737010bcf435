"""Budgets in exact fractions: what a unit's events may spend, at which scales, for many ε, units and shares."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from phdstream.audit.finding import Effort, Finding, Progress
from phdstream.errors import BudgetError
from phdstream.privacy import (
    Budget,
    ContributionBound,
    Event,
    Ledger,
    Record,
    SplitRule,
    Unit,
    User,
    calibrate_split,
    scale_for,
    user_ids,
)
from phdstream.streams.paper.counters import BinaryTree, Block, Hybrid, Simple
from phdstream.streams.private_codes import PrivateCodes

__all__ = ["ArithmeticCheck"]


class ArithmeticCheck:
    """Divides budgets and computes scales at random, and adds up what they come to, in fractions."""

    name = "arithmetic"
    shows = "In exact fractions a unit's events never spend more than ε, no scale is too small, no ledger is passed."

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Try random numbers."""
        finding = Finding(self.name, self.shows, excess_found=0.0)
        for seed in effort.seeds(finding, 6.0, 3000, progress):
            rng = np.random.default_rng((seed, 4))
            epsilon = float(np.exp(rng.uniform(-6, 3)))
            k, m = int(rng.integers(1, 40)), int(rng.integers(0, 40))
            for unit in (Event(), Record(), User(k, m)):
                _budget(finding, epsilon, unit, rng)
            _scales(finding, epsilon, int(rng.integers(1, 30)))
            if seed % 10 == 0:
                _split_test(finding, epsilon, int(rng.choice([2, 3, 4, 8])))
            finding.samples += 3
        _ledger(finding)
        _saved(finding)
        return finding


def _budget(finding: Finding, epsilon: float, unit: Unit, rng: np.random.Generator) -> None:
    deletes, share = bool(rng.integers(2)), float(rng.uniform(0.01, 0.99))
    worst = unit.worst_cases()
    for budget in (
        Budget.solve(epsilon, unit, deletes=deletes, tree_share=share),
        Budget.per_event(epsilon, unit, deletes=deletes),
    ):
        most = max(budget.spent_by(a, b if deletes else 0) for a, b in worst)
        if most > Fraction(epsilon):
            finding.violated(f"ε = {epsilon!r}, {unit}: a unit's events may spend more than ε")
        if sum(map(Fraction, budget.divide_count(rng.uniform(0.01, 1, 4).tolist()))) > Fraction(budget.count):
            finding.violated(f"ε = {epsilon!r}, {unit}: the parts of a budget are more than the whole")


def _scales(finding: Finding, epsilon: float, sums: int) -> None:
    if Fraction(scale_for(epsilon, sums)) * Fraction(epsilon) < sums:
        finding.violated(f"ε = {epsilon!r}: the scale of noise for {sums} sums is too small")
    for counter in (Simple(epsilon), Block(epsilon, size=sums), BinaryTree(epsilon, horizon=sums), Hybrid(epsilon)):
        for steps in (1, 2, sums, 3 * sums + 1, 100):
            if counter.privacy_loss(steps) > epsilon:
                finding.violated(f"ε = {epsilon!r}: {counter!r} loses more than that in {steps} steps")


def _split_test(finding: Finding, epsilon: float, fanout: int) -> None:
    """The calibrated test against the sum of its losses along the worst path, added up here."""
    rule = calibrate_split(epsilon, fanout)
    worst = 0.0
    for i in range(300):  # above the floor by 1, and δ apart
        count = rule.floor + 1 + i * rule.bias
        worst += _log_above(count, rule) - _log_above(max(count - 1, rule.floor), rule)
    if worst > epsilon:
        finding.violated(f"ε = {epsilon!r}: split tests of fanout {fanout} lose more than that on the worst path")


def _log_above(count: int, rule: SplitRule) -> float:
    """Return ``ln P(count + Z > θ)`` for Z discrete Laplace."""
    short, a = rule.threshold + 1 - count, math.exp(-1 / rule.scale)
    return math.log(a**short / (1 + a)) if short >= 1 else math.log1p(-(a ** (1 - short)) / (1 + a))


def _ledger(finding: Finding) -> None:
    """A ledger refuses the first charge that passes its limit, also after being joined with another."""
    ledger, other = Ledger(Fraction(1)), Ledger(Fraction(1))
    for one in (ledger, other):
        one.charge(0.5)
    other.charge(0.25)
    ledger.join(other)
    try:
        ledger.charge(0.25 + 2**-50)
    except BudgetError:
        return
    finding.violated("a ledger lets events spend more than they may")


def _saved(finding: Finding) -> None:
    """Events that were saved and loaded have spent what they had, and users what they have used, however many."""
    for users in (range(5000), [f"u{i}" for i in range(5000)]):
        names, bound, again = user_ids(list(users), 5000, "inserts"), ContributionBound(1), ContributionBound(1)
        bound.admit(names)
        again.restore(bound.to_arrays())
        if again.admit(names).any():
            finding.violated("users who were saved and loaded may contribute anew")
    events = PrivateCodes(3, Fraction(1), np.array([5]))
    events.spend(0.75)
    try:
        PrivateCodes.from_arrays(3, events.to_arrays()).spend(0.5)
    except BudgetError:
        return
    finding.violated("events that were saved and loaded may spend their budget anew")
