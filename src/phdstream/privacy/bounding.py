"""Contribution bounding: a user-level promise is enforced before anything else sees the events."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Ints
from phdstream.errors import InputError

__all__ = ["ContributionBound"]


class ContributionBound:
    """Keeps the first ``limit`` events of every user over the whole stream, and drops the rest.

    Users are told apart exactly (no hashing: two users sharing a bound would make one's presence
    change what is kept of the other). The table of users is private state.

    >>> bound = ContributionBound(limit=2)
    >>> bound.admit(np.array(["ann", "bob", "ann", "ann"])).tolist()
    [True, True, True, False]
    >>> bound.admit(np.array(["ann", "bob"])).tolist()
    [False, True]
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used: dict[int | str, int] = {}

    def check(self, users: NDArray[Any]) -> None:
        """Refuse users of another form than those known (integers before, text now): they could not be matched."""
        if self._used and users.size and (users.dtype.kind in "US") != isinstance(next(iter(self._used)), str):
            raise InputError("users were integers before and text now (or the reverse): pass them in one form.")

    def admit(self, users: NDArray[Any]) -> Bools:
        """Return which events to keep, in order of arrival, and remember them."""
        self.check(users)
        if users.size == 0:
            return np.zeros(0, dtype=bool)
        names, which, totals = np.unique(users, return_inverse=True, return_counts=True)
        keys = names.astype(str).tolist() if names.dtype.kind == "S" else names.tolist()
        used: Ints = np.fromiter((self._used.get(key, 0) for key in keys), dtype=np.int64, count=len(keys))
        self._used.update(zip(keys, np.minimum(used + totals, self.limit).tolist(), strict=True))
        keep: Bools = used[which] + _rank_within(which) < self.limit
        return keep

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The table of users as two columns, for private state."""
        keys = list(self._used)
        users = np.array(keys) if keys else np.empty(0, dtype=np.int64)
        return {"users": users, "used": np.fromiter(self._used.values(), dtype=np.int64, count=len(keys))}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take the table back from `to_arrays`."""
        self._used = dict(zip(arrays["users"].tolist(), arrays["used"].tolist(), strict=True))


def _rank_within(groups: NDArray[Any]) -> Ints:
    """Return, for each position, how many earlier positions hold the same group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, ordered.size])
    rank = np.empty(groups.size, dtype=np.int64)
    rank[order] = np.arange(ordered.size) - np.repeat(starts, sizes)
    return rank
