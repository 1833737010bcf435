"""How ε is spent: per insert on the tree and on counting, per delete on counting only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from phdstream.errors import BudgetError, shown
from phdstream.privacy.units import Unit

__all__ = ["Budget", "check_enough"]

_SMALLEST, _LARGEST = 1e-9, 1e4
_LEAST = 1e-11
"""What an event must have for one thing: noise of a scale above 2^44 cannot be drawn, and a counter has many sums."""


@dataclass(frozen=True)
class Budget:
    """A promise of ``epsilon`` to every ``unit``, divided between split decisions and counting.

    An insert enters the split decisions of one tick (``tree``) and one counter (``count``); a delete enters
    one counter only. With a unit of at most k inserts and m deletes,

        k · (tree + count) + m · count <= epsilon.

    ``tree_share`` is the part of an insert's budget that goes to the tree. When ``deletes`` is False (streams
    declared insert-only, and windows, where records expire by post-processing) deletes do not exist.

    >>> from phdstream.privacy.units import Event, Record, User
    >>> Budget.solve(1.0, Event())
    Budget(epsilon=1.0, tree=0.5, count=0.5)
    >>> round(Budget.solve(1.0, Record()).count, 4)
    0.3333
    >>> Budget.solve(1.0, User(inserts=2), deletes=False)
    Budget(epsilon=1.0, tree=0.25, count=0.25)
    """

    epsilon: float
    tree: float
    count: float

    @classmethod
    def solve(cls, epsilon: float, unit: Unit, *, deletes: bool = True, tree_share: float = 0.5) -> Budget:
        """Return the largest per-event budgets that keep the promise."""
        _check_epsilon(epsilon)
        if not isinstance(tree_share, int | float | Fraction) or not 0 < tree_share < 1:
            raise BudgetError(f"tree_share must lie strictly between 0 and 1, not {shown(tree_share)}.")
        share = Fraction(tree_share)
        cost = max(k + (m * (1 - share) if deletes else 0) for k, m in unit.worst_cases())
        per_insert = Fraction(epsilon) / Fraction(cost)
        return cls(float(epsilon), _down(per_insert * share), _down(per_insert * (1 - share)))

    @classmethod
    def per_event(cls, epsilon: float, unit: Unit, *, deletes: bool = True) -> Budget:
        """Return the largest budget for each event when inserts and deletes cost the same, all of it for counting.

        >>> from phdstream.privacy.units import Record
        >>> Budget.per_event(1.0, Record())
        Budget(epsilon=1.0, tree=0.0, count=0.5)
        """
        _check_epsilon(epsilon)
        events = max(k + (m if deletes else 0) for k, m in unit.worst_cases())
        return cls(float(epsilon), 0.0, _down(Fraction(epsilon) / Fraction(events)))

    def divide_count(self, parts: Sequence[float]) -> tuple[float, ...]:
        """Return the counting budget divided in proportion to ``parts``, rounded so that it is never exceeded.

        >>> Budget(1.0, 0.0, 1.0).divide_count([1, 3])
        (0.25, 0.75)
        """
        total = sum(map(Fraction, parts))
        return tuple(check_enough(_down(Fraction(self.count) * Fraction(part) / total)) for part in parts)

    @property
    def of_insert(self) -> Fraction:
        """What one insert may spend, over the whole stream."""
        return Fraction(self.tree) + Fraction(self.count)

    @property
    def of_delete(self) -> Fraction:
        """What one delete may spend, over the whole stream."""
        return Fraction(self.count)

    def spent_by(self, inserts: int, deletes: int) -> Fraction:
        """Return the exact loss of a unit with that many inserts and deletes."""
        return inserts * self.of_insert + deletes * self.of_delete

    def to_dict(self) -> dict[str, Any]:
        """The budget as plain data."""
        return {"epsilon": self.epsilon, "tree": self.tree, "count": self.count}


def _check_epsilon(epsilon: float) -> None:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise BudgetError(f"epsilon must be a number, not {shown(epsilon)}.")
    if not 0 < epsilon < math.inf:
        raise BudgetError(
            f"epsilon must be a positive, finite number, not {shown(epsilon)}. Smaller is more private; "
            "usual values lie between 0.1 and 2."
        )
    if epsilon < _SMALLEST:
        raise BudgetError(f"epsilon = {shown(epsilon)} leaves nothing but noise; the least accepted is {_SMALLEST:g}.")
    if epsilon > _LARGEST:
        raise BudgetError(f"epsilon = {shown(epsilon)} promises nothing; the largest accepted value is {_LARGEST:g}.")


def check_enough(budget: float) -> float:
    """Return what one event may spend on one thing, if noise can be drawn for it."""
    if budget < _LEAST:
        raise BudgetError(
            "so little of epsilon is left for a single event that there would be nothing but noise: take a larger "
            "epsilon, or lower bounds in User(...), or a tree_share nearer to the middle."
        )
    return budget


def _down(value: Fraction) -> float:
    """Return the largest float that is at most ``value``: rounding never spends more."""
    rounded = float(value)
    while Fraction(rounded) > value:
        rounded = math.nextafter(rounded, 0)
    return rounded
