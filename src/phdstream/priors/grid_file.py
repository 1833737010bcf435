"""A grid of numbers in a text file, as Esri's ASCII format has it: what population grids are published in. Public."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import numpy as np

from phdstream.arrays import Floats
from phdstream.errors import InputError

__all__ = ["read_grid"]

_KEYS = ("ncols", "nrows", "xllcorner", "yllcorner", "cellsize")
_LONGEST = 1 << 30
"""Characters of a file that are read."""


def read_grid(path: Path) -> tuple[Floats, Floats]:
    """Return a grid's values, the first row in the north (missing ones are NaN), and its bounds."""
    try:
        with path.open(encoding="ascii") as file:
            lines = file.read(_LONGEST).splitlines()
        head = dict(_pair(line) for line in takewhile(lambda line: line[:1].isalpha(), lines))
        columns, rows, left, low, side = (head[key] for key in _KEYS)
        values = np.array([line.split() for line in lines[len(head) :] if line.strip()], dtype=np.float64)
    except (OSError, ValueError, KeyError, UnicodeDecodeError):
        raise InputError(
            f"{path} cannot be read as an Esri ASCII grid: lines {', '.join(_KEYS)}, then a line for each row."
        ) from None
    if values.shape != (rows, columns):
        raise InputError(f"{path} says it has {rows:g} rows of {columns:g} cells, and has others.")
    values[values == head.get("nodata_value", np.nan)] = np.nan
    return values, np.array([left, low, left + columns * side, low + rows * side])


def _pair(line: str) -> tuple[str, float]:
    key, value = line.split()
    return key.lower(), float(value)
