"""`Tally`: what became of the rows of the input. Private."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Tally"]


@dataclass
class Tally:
    """What became of the rows, for the operator only. **Private: do not publish.**

    ``bad``: could not be read, and why; ``before`` the first tick and ``after`` the last; ``late``: their tick was
    released by an earlier run; ``early``: their tick is not to be released yet; ``outside`` the domain, and how many of
    those tried are inside with their coordinates ``swapped``; ``usable``: all others.
    """

    bad: Counter[str] = field(default_factory=Counter)
    before: int = 0
    after: int = 0
    late: int = 0
    early: int = 0
    outside: int = 0
    tried: int = 0
    swapped: int = 0
    usable: int = 0

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return sum(self.bad.values()) + self.placed + self.outside

    @property
    def placed(self) -> int:
        """How many rows could be read, and are not outside."""
        return self.before + self.after + self.late + self.early + self.usable
