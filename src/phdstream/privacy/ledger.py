"""The ledger: what events have spent of their budget, exactly, and that it is never more.

Budgets are divided by rules (how much for a total, for a zone, for a fine count) that may change from block to block.
That an event is never charged more than it may spend is not left to these rules: whatever uses events is charged
here first, in exact arithmetic, and refused if it would be too much.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from phdstream.errors import BudgetError

__all__ = ["Ledger"]


@dataclass
class Ledger:
    """What each of some events may spend over the whole stream (``limit``), and what it has spent at most (``spent``).

    What is charged follows from public plans alone, so a refusal tells nothing of the events.

    >>> ledger = Ledger(Fraction(1))
    >>> ledger.charge(0.25), ledger.charge(0.75)
    (None, None)
    >>> ledger.charge(2.0 ** -60)
    Traceback (most recent call last):
    phdstream.errors.BudgetError: this would spend more than the budget of an event: a bug, please report it.
    """

    limit: Fraction
    spent: Fraction = Fraction(0)

    def charge(self, epsilon: float) -> None:
        """Charge every one of the events, or refuse."""
        if epsilon < 0 or self.spent + Fraction(epsilon) > self.limit:
            raise BudgetError("this would spend more than the budget of an event: a bug, please report it.")
        self.spent += Fraction(epsilon)

    def join(self, other: Ledger) -> None:
        """Take other events in: from now on each counts as having spent what any of them has, and may spend no more."""
        self.limit, self.spent = min(self.limit, other.limit), max(self.spent, other.spent)
