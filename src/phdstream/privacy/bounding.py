"""Contribution bounding: a user-level promise is enforced before anything else sees the events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Ints
from phdstream.errors import InputError

__all__ = ["ContributionBound"]


_KINDS = {"i": "integers", "u": "integers", "U": "text", "S": "bytes"}


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
        self._kind = ""
        self._used: dict[int | str | bytes, int] = {}

    def check(self, users: NDArray[Any]) -> None:
        """Refuse users of another form than those known (integers before, text now): they could not be matched."""
        if self._kind and users.size and _KINDS[users.dtype.kind] != self._kind:
            raise InputError(
                f"users were {self._kind} before and are {_KINDS[users.dtype.kind]} now: pass them in one form."
            )

    def admit(self, users: NDArray[Any]) -> Bools:
        """Return which events to keep, in order of arrival, and remember them."""
        self.check(users)
        if users.size == 0:
            return np.zeros(0, dtype=bool)
        self._kind = _KINDS[users.dtype.kind]
        names, which, totals = np.unique(users, return_inverse=True, return_counts=True)
        keys = names.tolist()
        used: Ints = np.fromiter((self._used.get(key, 0) for key in keys), dtype=np.int64, count=len(keys))
        self._used.update(zip(keys, np.minimum(used + totals, self.limit).tolist(), strict=True))
        keep: Bools = used[which] + _rank_within(which) < self.limit
        return keep

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The table of users as columns of text and numbers, for private state."""
        write = bytes.hex if self._kind == "bytes" else str
        users = np.array([write(user) for user in self._used], dtype=np.str_)  # type: ignore[arg-type]
        used = np.fromiter(self._used.values(), dtype=np.int64, count=len(self._used))
        return {"users": users, "used": used, "kind": np.array(self._kind)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take the table back from `to_arrays`."""
        self._kind = str(arrays["kind"])
        readers: dict[str, Callable[[str], int | str | bytes]] = {"integers": int, "bytes": bytes.fromhex}
        read = readers.get(self._kind, str)
        users = [read(user) for user in arrays["users"].tolist()]
        self._used = dict(zip(users, arrays["used"].tolist(), strict=True))


def _rank_within(groups: NDArray[Any]) -> Ints:
    """Return, for each position, how many earlier positions hold the same group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, ordered.size])
    rank = np.empty(groups.size, dtype=np.int64)
    rank[order] = np.arange(ordered.size) - np.repeat(starts, sizes)
    return rank
