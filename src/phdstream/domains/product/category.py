"""`Category`: one of a public list of names, which may be in groups of groups."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.domains.hierarchy.place_names import SEPARATOR, read_paths
from phdstream.domains.product.attribute import MISSING, UNKNOWN, Attribute
from phdstream.errors import InputError, did_you_mean, shown

__all__ = ["Category"]

_SHOWN_AT_ONCE = 1000


class Category(Attribute):
    """One of some names: a vehicle, a diagnosis. The list is public, and complete: what is not in it counts nowhere.

    ``values`` is a list of names, or nested names in groups (dictionaries, with lists inside; or paths such as
    ``"injury/burn"``; or a table with one column a level). A row holds a path, or the name alone where only one value
    has it; a whole number is its digits. Leave room for the rest with a value such as "other".

    >>> vehicle = Category("vehicle", ["bus", "tram", "ferry"])
    >>> vehicle.read(pa.array(["tram", "rocket", None])).tolist()
    [1.0, -1.0, nan]
    >>> Category("diagnosis", {"injury": ["burn", "fracture"], "infection": ["flu", "measles"]})
    Category('diagnosis', 4 values)
    """

    def __init__(self, name: str, values: Any, *, column: str | None = None) -> None:
        try:
            paths = read_paths(values)
        except InputError as error:
            raise InputError(f"the values of {shown(name)}: {error}") from None
        if len(paths) < 2:
            raise InputError(f"the attribute {shown(name)} needs at least two values: with one it says nothing.")
        if isinstance(values, list | tuple) and all(len(path) == 1 for path in paths):
            paths = [path if isinstance(path, tuple) else (path,) for path in values]  # a flat list keeps its order
        super().__init__(name, paths, column)
        self._labels = [SEPARATOR.join(path) for path in paths]
        times = Counter(path[-1] for path in paths)
        once = {path[-1]: i for i, path in enumerate(paths) if times[path[-1]] == 1}
        self._position = once | {label: i for i, label in enumerate(self._labels)}
        self._array = np.array(self._labels, dtype=np.str_)
        self._named = {run: SEPARATOR.join(path) for path, run in self._groups.items()}

    def read(self, column: pa.Array) -> Floats:
        """Return the positions of names; each different one is looked up once. See `Attribute.read`."""
        texts = _texts(column, self.name).dictionary_encode()
        known = [MISSING if text == "" else self._position.get(text, UNKNOWN) for text in texts.dictionary.to_pylist()]
        at = pc.fill_null(texts.indices, len(known)).to_numpy(zero_copy_only=False)
        found: Floats = np.array([*known, MISSING], dtype=np.float64)[at]
        return found

    def values(self, positions: Floats) -> NDArray[Any]:
        """Return the names, as paths."""
        return np.asarray(self._array[positions.astype(np.int64)])

    def label(self, first: int, past: int) -> str:
        """Return a name, a group's path, or the first and last of a run of names."""
        named = self._labels[first] if past == first + 1 else self._named.get((first, past))
        return f"{self._labels[first]} .. {self._labels[past - 1]}" if named is None else named

    def intervals(self, wanted: Any) -> list[tuple[float, float]]:
        """Return the positions of names and groups, one or a list of them."""
        return [self._one(name) for name in (wanted if isinstance(wanted, list | tuple | set) else [wanted])]

    def _one(self, name: Any) -> tuple[float, float]:
        text = shown(name) if isinstance(name, int) and not isinstance(name, bool) else name
        if isinstance(text, str):
            group = self._groups.get(tuple(text.split(SEPARATOR)))
            if group is not None:
                return float(group[0]), float(group[1])
            if text in self._position:
                return float(self._position[text]), float(self._position[text] + 1)
        known = [SEPARATOR.join(path) for path in self._groups][:_SHOWN_AT_ONCE]
        word = text[:100] if isinstance(text, str) else shown(text)
        raise InputError(f"'{self.name}' has no value or group {shown(name)}: {did_you_mean(word, known)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the attribute as plain data."""
        return {"type": "category"} | self._told() | {"values": self._labels}

    def summary(self) -> dict[str, Any]:
        """Return what a manifest says: how many values, and a digest of them."""
        digest = hashlib.sha256("\n".join(self._labels).encode()).hexdigest()
        return {"type": "category"} | self._told() | {"number_of_values": len(self), "sha256": digest}

    def __repr__(self) -> str:
        return f"Category({self.name!r}, {len(self)} values)"


def _texts(column: pa.Array, name: str) -> pa.Array:
    """Return names as text, a whole number as its digits; what is no text in any encoding is missing."""
    kind, types = column.type, pa.types
    if types.is_floating(kind):  # what other tools make of whole numbers where some are missing
        whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), 2.0**53))
        digits = pc.cast(pc.cast(pc.if_else(pc.fill_null(whole, False), column, None), pa.int64()), pa.string())
        none = pc.or_kleene(pc.is_null(column, nan_is_null=True), False)
        return pc.if_else(none, None, pc.fill_null(digits, "\0"))  # another number is no name at all
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind) or types.is_boolean(kind)
            or types.is_null(kind)):  # fmt: skip
        raise InputError(f"the column of '{name}' holds {kind}, not names.")
    return pc.cast(column, pa.large_string())
