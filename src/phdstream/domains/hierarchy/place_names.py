"""The names of a `Hierarchy`: its places, and events at places, from what users hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from phdstream.domains.columns import column_names, is_missing, named_column
from phdstream.errors import InputError, shown

__all__ = ["SEPARATOR", "event_names", "read_paths"]

SEPARATOR = "/"
Path = tuple[str, ...]
_ONE_EACH = "events come as a list, an array or a column of places' names, one for each event."


def read_paths(places: Any) -> list[Path]:
    """Return the paths of places, in order; refuse what are no names, places named twice, and places that are groups.

    >>> read_paths({"FR": ["Paris", "Lyon"]})
    [('FR', 'Lyon'), ('FR', 'Paris')]
    """
    try:
        paths = _paths(places)
    except (TypeError, RecursionError):
        raise InputError(_EXPECTED) from None
    if not paths:
        raise InputError("a hierarchy needs at least one place.")
    for path in paths:
        if not path or not all(map(_is_name, path)):
            raise InputError(
                f"every name must be a non-empty text without '{SEPARATOR}' (numbers too: write '12', not 12), and "
                f"none may be missing; one path is {shown(path)}."
            )
    paths.sort()
    for path, following in pairwise(paths):
        if path == following:
            raise InputError(f"the place {SEPARATOR.join(path)!r} is there twice: name each place once.")
        if following[: len(path)] == path:
            raise InputError(f"{SEPARATOR.join(path)!r} is both a place and a group of places: rename one of them.")
    return paths


def _is_name(name: Any) -> bool:
    if not isinstance(name, str) or not name or SEPARATOR in name or "\0" in name:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in name)  # halves of characters, not text


_EXPECTED = "places must be a table with one column a level, or nested names; see Hierarchy."


def _paths(places: Any) -> list[Path]:
    if isinstance(places, Mapping):
        return _nested(places, ())
    if isinstance(places, pa.Table):
        return list(zip(*(column.to_pylist() for column in places.columns), strict=True))
    if hasattr(places, "iter_rows"):  # Polars
        return list(places.iter_rows())
    if hasattr(places, "itertuples"):  # pandas
        return list(places.itertuples(index=False, name=None))
    if isinstance(places, str) or not isinstance(places, Iterable):
        raise InputError(_EXPECTED)
    return [tuple(p.split(SEPARATOR)) if isinstance(p, str) else tuple(p) for p in places]


def _nested(places: Any, above: Path) -> list[Path]:
    if isinstance(places, str):
        return [(*above, places)]
    if not isinstance(places, Mapping):
        return [path for inner in places for path in _nested(inner, above)]
    return [path for name, inner in places.items() for path in (_nested(inner, (*above, name)) or [(*above, name)])]


def event_names(data: Any, name: str, levels: int) -> list[str]:
    """Return the place of each event as text, one for each row that came; a missing one is the empty text.

    ``data`` is a list or an array of names, paths or tuples of names, or a table: its column called ``name``, or
    else one column a level.
    """
    if data is None:
        return []
    there = column_names(data)
    if there is not None:
        if name in there or len(there) != levels:
            return _texts(named_column(data, there, name, (name,)))
        levels_of = [_values(named_column(data, there, c, ())) for c in there]
        if len(set(map(len, levels_of))) > 1:
            raise InputError("the columns of places' names must be equally long.")
        return [_text(path) for path in zip(*levels_of, strict=True)]
    return _texts(data)


def _texts(column: Any) -> list[str]:
    return [_text(value) for value in _values(column)]


def _values(column: Any) -> list[Any]:
    if getattr(column, "shape", None) == ():
        raise InputError(_ONE_EACH)
    if isinstance(column, np.ma.MaskedArray):
        return [None if np.any(hidden) else value for value, hidden in _masked(column)]
    if hasattr(column, "to_pylist"):  # Arrow
        return list(column.to_pylist())
    if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
        raise InputError(_ONE_EACH)
    return list(column)


def _masked(column: Any) -> Iterable[tuple[Any, Any]]:
    return zip(np.ma.getdata(column), np.ma.getmaskarray(column), strict=True)


def _text(value: Any) -> str:
    """Return a name or a path as text; a path ends where its names are missing.

    >>> _text(("US", "NY", None)), _text(float("nan")), _text(12)
    ('US/NY', '', '12')
    """
    if isinstance(value, tuple | list | np.ndarray):
        parts = list(np.atleast_1d(np.array(value, dtype=object)))
        while parts and is_missing(parts[-1]):
            parts.pop()
        return "" if any(map(is_missing, parts)) else SEPARATOR.join(map(_written, parts))
    return "" if is_missing(value) else _written(value)


def _written(value: Any) -> str:
    try:
        return str(value)
    except (ValueError, RecursionError):  # a number of thousands of digits names no place, nor does a deep list
        return ""
