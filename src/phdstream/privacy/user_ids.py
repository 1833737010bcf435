"""Whose event it is: users' names as one exact Arrow column, whatever the caller holds them in.

Two users must never become one (each would use up the other's bound, and one's presence would decide what is kept of
the other), nor one user two (who could then contribute twice the bound). So nothing here rounds, cuts, pads or guesses:
what is not plainly an integer, a text or bytes is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from phdstream.arrays import Bools, Ints
from phdstream.errors import InputError

__all__ = ["LONGEST_ID", "UserIds", "user_ids"]

LONGEST_ID = 1024
"""How many bytes a user's name may have: every name is kept in the state for ever."""
_MISSING = "every event needs a user; at least one came without: drop such events first."
_NO_VALUE = {"NoneType", "NAType", "NaTType", "MaskedConstant"}
_TYPES = {"integers": (pa.int64(), pa.uint64()), "text": (pa.large_binary(),), "bytes": (pa.large_binary(),)}


@dataclass(frozen=True, eq=False)
class UserIds:
    """One user per event: ``kind`` is "integers", "text" or "bytes", ``ids`` an Arrow array without nulls.

    Integers are int64 or uint64; text (as UTF-8) and bytes are large_binary. Who has such an array needs no `user_ids`:

    >>> UserIds("text", pa.array([b"ann", b"bob"], pa.large_binary())).filter(np.array([False, True])).ids.to_pylist()
    [b'bob']
    """

    kind: str
    ids: pa.Array = field(repr=False)

    def __post_init__(self) -> None:
        if self.ids.type not in _TYPES[self.kind]:
            raise InputError(f"users that are {self.kind} cannot be an Arrow array of {self.ids.type}.")
        if self.ids.null_count:
            raise InputError(_MISSING)
        if self.kind != "integers" and len(self) and pc.max(pc.binary_length(self.ids)).as_py() > LONGEST_ID:
            raise InputError(f"a user's name may have at most {LONGEST_ID} bytes; a longer one came.")

    def __len__(self) -> int:
        return len(self.ids)

    def filter(self, keep: Bools) -> UserIds:
        """Return the users of the events to keep."""
        return UserIds(self.kind, self.ids.filter(pa.array(keep)))

    def take(self, rows: Ints) -> UserIds:
        """Return the users of some events, in that order."""
        return UserIds(self.kind, self.ids.take(pa.array(rows)))

    @staticmethod
    def concat(parts: Sequence[UserIds]) -> UserIds:
        """Return the users of all parts, which must be of one kind; parts without events do not matter."""
        some = [part for part in parts if len(part)]
        kinds = {part.kind for part in some}
        if not some:
            return parts[0] if parts else UserIds("integers", pa.array([], pa.int64()))
        if len(kinds) > 1:
            raise InputError(f"users must be of one kind, but {' and '.join(sorted(kinds))} came.")
        if len({part.ids.type for part in some}) > 1:
            return _from_list([user for part in some for user in part.ids.to_pylist()])
        return UserIds(kinds.pop(), pa.concat_arrays([part.ids for part in some]))


def user_ids(users: Any, events: int, what: str) -> UserIds:
    """Return one user per event from a list, an array, a Series or an Arrow array; refuse anything that is not exact.

    >>> user_ids(["ann", "bob"], 2, "inserts").ids.to_pylist()
    [b'ann', b'bob']
    """
    if users is None:
        if events:
            raise InputError(f"the unit is User(...), so each of the {what} needs a user: pass one per event.")
        users = []
    ids = users if isinstance(users, UserIds) else _read(users)
    if len(ids) != events:
        raise _shape(what)
    return ids


def _shape(what: str = "events") -> InputError:
    return InputError(f"users must be one-dimensional, with one entry for each of the {what}.")


def _read(users: Any) -> UserIds:
    shape = getattr(users, "shape", (0,))
    if (
        isinstance(users, type | str | bytes | dict | set | frozenset)
        or not isinstance(shape, tuple)
        or len(shape) != 1
    ):
        raise _shape()
    if isinstance(users, pa.Array | pa.ChunkedArray):
        return _from_arrow(users)
    if isinstance(users, np.ndarray):
        return _from_numpy(users)
    dtype = getattr(users, "dtype", None)
    if isinstance(dtype, np.dtype):  # a pandas Series of NumPy's values
        return _from_numpy(users.to_numpy())
    try:
        if dtype is not None and hasattr(users, "to_arrow"):  # a Polars Series
            return _from_arrow(users.to_arrow())
        return _from_list(list(users))
    except (TypeError, pa.ArrowException) as error:
        raise _shape() if isinstance(error, TypeError) else _refused(str(dtype)) from None


def _from_numpy(users: NDArray[Any]) -> UserIds:
    if users.dtype.names is not None:
        raise _refused("rows of a table")
    if np.ma.getmaskarray(users).any():
        raise InputError(_MISSING)
    if users.dtype.kind in "iu":
        return UserIds("integers", pa.array(np.asarray(users, np.uint64 if users.dtype == np.uint64 else np.int64)))
    return _from_list(users.tolist())


def _from_list(users: list[Any]) -> UserIds:
    """Return Python values as a column. Their types are looked at first: Arrow would merge text with bytes."""
    types = set(map(type, users))
    if any(kind.__name__ in _NO_VALUE for kind in types) or (
        any(issubclass(kind, float | np.floating) for kind in types)
        and any(isinstance(user, float | np.floating) and user != user for user in users)
    ):
        raise InputError(_MISSING)
    kinds = {_kind_of(kind) for kind in types}
    if len(kinds) > 1:
        raise InputError(f"users must be of one kind, but {' and '.join(sorted(kinds))} came.")
    kind = kinds.pop() if kinds else "integers"
    if kind == "integers":
        return UserIds(kind, _integers(users))
    if kind == "text":
        return UserIds(kind, _text(users))
    return UserIds(kind, pa.array(users, pa.large_binary()))


def _kind_of(kind: type) -> str:
    if issubclass(kind, int | np.integer) and not issubclass(kind, bool):
        return "integers"
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, bytes):
        return "bytes"
    raise _refused(kind.__name__)


def _refused(what: str) -> InputError:
    return InputError(f"users must be integers, text or bytes, not {what}.")


def _integers(users: list[Any]) -> pa.Array:
    plain = [int(user) for user in users]  # NumPy's own integers too
    for kind in (pa.int64(), pa.uint64()):
        try:
            return pa.array(plain, kind)
        except (OverflowError, pa.ArrowInvalid):
            continue
    raise InputError("users that are integers must fit into 64 bits, all of them signed or all of them unsigned.")


def _text(users: list[str]) -> pa.Array:
    try:
        return pa.array(users, pa.large_string()).cast(pa.large_binary())
    except (UnicodeError, pa.ArrowException):  # halves of a surrogate pair: no UTF-8, but a name all the same
        return pa.array([user.encode("utf-8", "surrogatepass") for user in users], pa.large_binary())


def _from_arrow(users: pa.Array | pa.ChunkedArray) -> UserIds:
    if pa.types.is_dictionary(users.type):
        users = users.cast(users.type.value_type)
    kind, target = _arrow_kind(users.type)
    if users.null_count or (pa.types.is_floating(users.type) and pc.any(pc.is_nan(users)).as_py()):
        raise InputError(_MISSING)
    if target is None:
        raise _refused(str(users.type))
    whole = users.cast(target)
    return UserIds(kind, whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole)


def _arrow_kind(kind: pa.DataType) -> tuple[str, pa.DataType | None]:
    """Return the kind of an Arrow type, and the type that holds it exactly."""
    types = pa.types
    if types.is_null(kind):
        return "integers", pa.int64()
    if types.is_integer(kind):
        return "integers", pa.uint64() if kind == pa.uint64() else pa.int64()
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text", pa.large_binary()
    if any(test(kind) for test in (types.is_binary, types.is_large_binary, types.is_binary_view)):
        return "bytes", pa.large_binary()
    return ("bytes", pa.large_binary()) if types.is_fixed_size_binary(kind) else ("", None)
