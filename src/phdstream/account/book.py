"""An account as its log tells it, and the rule by which streams draw on it.

**What is promised.** An account is for one population and one kind of unit, and has a budget E. Whatever streams draw
on it, whenever and wherever they run: all that they publish, ever, taken together, is E-differentially private for
every unit of that kind.

**Rule.** A stream draws its whole ε once, before it begins. It may begin only if the sum of all that was drawn, its own
ε included, is at most E; and only if its unit is of the account's kind.

**Proof** (basic composition; Dwork and Roth 2014, Theorem 3.16). Two worlds differ in one unit: one event; one record;
or one user with all their events, in all sources at once. Each stream i sees of either world what its own input has of
it. If it has nothing of the unit, it sees the same in both. If it has, its two inputs differ in (at most) one unit of
its own, and any output is at most exp(ε_i) times as likely in one as in the other, whatever the outputs of the other
streams were: its noise is its own. The probabilities of outputs multiply, so the losses add: Σ ε_i <= E. That streams
run at the same time, and that a later one's ε may be chosen by what earlier ones released, changes nothing for pure
differential privacy (Vadhan and Wang 2021, concurrent composition; Rogers et al. 2016, filters).

- **User.** Bounds may differ from stream to stream. A stream with `User(k, m)` promises ε_i against the removal of all
  that a user has, since what is beyond the bound is dropped user by user. So the sum is right for any k and m. It is
  for people as the streams' ids tell them apart: one whom a stream knows under two ids draws twice there.
- **Event, record.** A unit that is in one source only loses less than the sum, never more.
- **Kinds do not mix.** An event's ε says nothing of a user who has any number of events. Nor does a user's ε hold for
  one event: without a user's first event, their next one takes its place within the bound, so that two events change.

**Numbers.** Sums are exact: fractions of ε as it is written (0.1 is one tenth, ten of them are 1). A stream computes
with the double nearest to that, which may be larger by one part in 2^53; so the promise is E times at most 1 + 2^-53.

Streams with seeded noise draw nothing. They promise nothing, so no amount would cover them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from phdstream.account.entries import Charge, LedgerLine, Opening, digest
from phdstream.errors import BudgetError, StateError

__all__ = ["Book", "decimal"]


def decimal(amount: Fraction) -> str:
    """Return an exact amount as a decimal number; sums of written ε always have one.

    >>> decimal(Fraction("0.1") + Fraction("0.25")), decimal(Fraction(3))
    ('0.35', '3')
    """
    places = 0
    while (amount * 10**places).denominator != 1:
        places += 1
        if places > 400:
            raise ValueError(f"{amount} has no end as a decimal number.")
    whole = f"{int(amount * 10**places):0{places + 1}d}"
    return f"{whole[:-places]}.{whole[-places:]}" if places else whole


@dataclass(frozen=True)
class Book:
    """An opened account and all its charges, in order, each checked against the one before."""

    opening: Opening
    charges: tuple[Charge, ...] = ()

    @classmethod
    def replay(cls, lines: Sequence[bytes]) -> Book:
        """Return the account that a log tells of; refuse a line that does not follow from those before it."""
        try:
            book = cls(Opening.decode(lines[0]))
        except StateError as error:
            raise StateError(f"line 1 was not written by phdstream: {error}") from None
        for number, line in enumerate(lines[1:], 2):
            try:
                book = book.add(Charge.decode(line))
            except (StateError, BudgetError) as error:
                raise StateError(f"line {number} does not follow from the lines before it: {error}") from None
        return book

    def add(self, charge: Charge) -> Book:
        """Return the account with one more charge, if it follows and there is room for it."""
        if (charge.sequence, charge.previous) != (len(self.charges) + 1, self.digest):
            raise StateError("it is not the next one")
        if self.of(charge.stream):
            raise StateError("its stream was charged before")
        self.check_room(charge.epsilon, charge.unit)
        return Book(self.opening, (*self.charges, charge))

    @property
    def digest(self) -> str:
        """The digest of the last line; who notes it elsewhere can tell whether the log was changed."""
        return digest((self.charges[-1] if self.charges else self.opening).encode())

    @property
    def drawn(self) -> Fraction:
        """What all streams have drawn."""
        return sum((charge.amount for charge in self.charges), Fraction(0))

    @property
    def left(self) -> Fraction:
        """What may still be drawn."""
        return self.opening.limit - self.drawn

    @property
    def ledger(self) -> LedgerLine:
        """What the ledger says when all lines are acknowledged."""
        return LedgerLine(self.opening.account, len(self.charges), self.drawn, self.digest)

    def of(self, stream: str) -> Charge | None:
        """Return a stream's charge, if it has one."""
        return next((charge for charge in self.charges if charge.stream == stream), None)

    def up_to(self, sequence: int) -> Book:
        """Return the account as it was after a charge."""
        return Book(self.opening, self.charges[:sequence])

    def check_room(self, epsilon: str, unit: dict[str, Any]) -> None:
        """Refuse a draw that is of another kind of unit, or more than is left."""
        if unit["type"] != self.opening.unit:
            raise BudgetError(
                f"the account of {self.opening.population!r} is for units of the kind {self.opening.unit!r}, and this "
                f"stream's is {unit['type']!r}: their ε do not add up. Set [privacy] unit to the same kind, or open an "
                "account of its own in another folder, and say publicly that there are two."
            )
        if Fraction(epsilon) > self.left:
            raise BudgetError(
                f"this stream's ε is {epsilon}, but the account of {self.opening.population!r} has "
                f"{decimal(self.left)} left of {self.opening.epsilon}. The stream was not started and nothing was "
                "drawn. Take a smaller [privacy] epsilon; `phdstream account` shows who drew what."
            )
