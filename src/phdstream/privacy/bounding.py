"""Contribution bounding: a user-level promise is enforced before anything else sees the events."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Ints
from phdstream.errors import InputError, StateError
from phdstream.privacy.user_ids import UserIds

__all__ = ["ContributionBound"]

_KINDS = ("", "integers", "text", "bytes")
_LARGE = 1 << 63


class ContributionBound:
    """Keeps the first ``limit`` events of every user over the whole stream, and drops the rest.

    Users are told apart exactly (no hashing: two users sharing a bound would make one's presence
    change what is kept of the other). The table of users is private state.

    >>> from phdstream.privacy.user_ids import user_ids
    >>> bound = ContributionBound(limit=2)
    >>> bound.admit(user_ids(["ann", "bob", "ann", "ann"], 4, "inserts")).tolist()
    [True, True, True, False]
    >>> bound.admit(user_ids(["ann", "bob"], 2, "inserts")).tolist()
    [False, True]
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kind = ""
        self._used: dict[Any, int] = {}  # by integer, or by bytes

    def check(self, users: UserIds) -> None:
        """Refuse users of another kind than those known (integers before, text now): they could not be matched."""
        if self._kind and len(users) and users.kind != self._kind:
            raise InputError(f"users were {self._kind} before and are {users.kind} now: pass them in one form.")

    def admit(self, users: UserIds) -> Bools:
        """Return which events to keep, in order of arrival, and remember them."""
        self.check(users)
        if not len(users):
            return np.zeros(0, dtype=bool)
        coded = users.ids.dictionary_encode()  # so that Python sees each user once
        keys, which = coded.dictionary.to_pylist(), coded.indices.to_numpy()
        used: Ints = np.fromiter((self._used.get(key, 0) for key in keys), dtype=np.int64, count=len(keys))
        after = used + np.bincount(which, minlength=len(keys))
        self._kind = users.kind
        self._used.update(zip(keys, np.minimum(after, self.limit).tolist(), strict=True))
        keep: Bools = np.ones(which.size, dtype=bool)
        over = np.flatnonzero((after > self.limit)[which])  # only of these the order matters
        keep[over] = used[which[over]] + _rank_within(which[over]) < self.limit
        return keep

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The table of users as columns, for private state: its size grows with the bytes of the names.

        Integers are ``users``, the last ``large`` of them unsigned; text and bytes lie end to end in ``users``, each
        up to its ``ends``.
        """
        names, none = list(self._used), np.zeros(0, dtype=np.int64)
        used = np.fromiter(self._used.values(), dtype=np.int64, count=len(names))
        table = {"kind": np.array(_KINDS.index(self._kind)), "large": np.array(0)}
        if self._kind in ("text", "bytes"):
            ends = np.cumsum([len(name) for name in names], dtype=np.int64)
            blob = np.frombuffer(b"".join(names), dtype=np.uint8)
            return table | {"users": blob, "ends": ends, "used": used}
        is_large = np.array([name >= _LARGE for name in names], dtype=np.bool_)
        small = np.array([name for name in names if name < _LARGE], dtype=np.int64)
        large = np.array([name for name in names if name >= _LARGE], dtype=np.uint64)
        users, order = np.concatenate([small, large.view(np.int64)]), np.argsort(is_large, kind="stable")
        return table | {"large": np.array(large.size), "users": users, "ends": none, "used": used[order]}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take the table back from `to_arrays`; refuse one that is not whole."""
        kind, users, used = _KINDS[int(arrays["kind"])], arrays["users"], arrays["used"].tolist()
        names: list[int] | list[bytes]
        if kind in ("text", "bytes"):
            blob, ends = users.tobytes(), arrays["ends"].tolist()
            names = [blob[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
            whole = len(blob) == (ends[-1] if ends else 0)
        else:
            small = users.size - int(arrays["large"])
            names = users[:small].tolist() + users[small:].view(np.uint64).tolist()
            whole = True
        if not whole or not len(names) == len(used) == len(set(names)):
            raise StateError("the saved table of users is not whole. Restore the state from a backup of that tick.")
        self._kind, self._used = kind, dict(zip(names, used, strict=True))


def _rank_within(groups: NDArray[Any]) -> Ints:
    """Return, for each position, how many earlier positions hold the same group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: ordered.size])
    sizes = np.diff(np.r_[starts, ordered.size])
    rank = np.empty(groups.size, dtype=np.int64)
    rank[order] = np.arange(ordered.size) - np.repeat(starts, sizes)
    return rank
