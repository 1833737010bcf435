"""Which columns hold what, and where a source keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from phdstream.errors import InputError

__all__ = ["Columns", "Found"]


@dataclass(frozen=True)
class Found:
    """Where a source keeps what is needed: the columns to read, and the coordinates its point geometry stands for."""

    columns: list[str]
    xy: tuple[str, str] | None


@dataclass(frozen=True)
class Columns:
    """Which columns hold what. With ``names`` the coordinates are the names of a place, level by level, not numbers.

    ``attributes`` are those of a `Product`, as ``Attribute.to_dict`` describes them: plain data, for other processes.
    """

    coordinates: tuple[str, ...]
    time: str | None = None
    sign: str | None = None
    user: str | None = None
    names: bool = False
    attributes: tuple[dict[str, Any], ...] = ()

    @property
    def needed(self) -> list[str]:
        """The columns to read, each once."""
        told = (each.get("column", each["name"]) for each in self.attributes)
        wanted = (self.time, *self.coordinates, *told, self.sign, self.user)
        return list(dict.fromkeys(name for name in wanted if name is not None))

    def find(self, source: str, there: Sequence[str], geometry: bool, show: bool = True) -> Found:
        """Return where to read, given the columns that are there, and whether there is a geometry besides.

        Two coordinates without a column of their name are the x and the y of the geometry. Where the names of columns
        are themselves data, errors do not ``show`` them.

        >>> Columns(("lon", "lat"), time="when").find("a.gpkg", ["when", "fare"], geometry=True)
        Found(columns=['when'], xy=('lon', 'lat'))
        """
        absent = [name for name in self.coordinates if name not in there]
        xy = (absent[0], absent[1]) if geometry and len(absent) == 2 else None
        columns = [name for name in self.needed if xy is None or name not in xy]
        for name in columns:
            self._check(source, name, there, geometry, show)
        return Found(columns, xy)

    def _check(self, source: str, name: str, there: Sequence[str], geometry: bool, show: bool) -> None:
        if name not in there:
            note = " (Its points stand for two coordinates, x and y: not for more, nor for one.)" if geometry else ""
            raise InputError(f"{source} has no column '{name}'{self._hint(name, there, show)}{note}")
        if list(there).count(name) > 1:
            raise InputError(f"{source} has more than one column '{name}': give each its own name.")

    def _hint(self, name: str, there: Sequence[str], show: bool) -> str:
        """Return what may be meant. A file without a header has a private record there, which is never shown."""
        close = get_close_matches(name, list(there), n=1)
        if close:
            return f": did you mean '{close[0]}'?"
        if not show:
            return " in its first rows."
        if any(column in there for column in self.needed):
            return ": there are " + ", ".join(sorted(set(there))) + ". (Do not publish this message.)"
        return ", nor any other that was asked for. Does its first line hold the names of the columns?"
