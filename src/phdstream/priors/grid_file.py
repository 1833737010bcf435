"""A grid of numbers in a text file, as Esri's ASCII format has it: what population grids are published in. Public."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from phdstream.arrays import Floats
from phdstream.errors import InputError

__all__ = ["read_grid"]

_KEYS = ("ncols", "nrows", "xllcorner", "yllcorner", "cellsize")
_MOST = 1 << 26


def read_grid(path: Path) -> tuple[Floats, Floats]:
    """Return a grid's values, the first row in the north (missing ones are NaN), and its bounds."""
    try:
        with path.open(encoding="ascii") as file:
            head: dict[str, float] = {}
            while True:
                at = file.tell()
                words = file.readline(200).split()
                if len(words) != 2 or not words[0][:1].isalpha():
                    break
                head[words[0].lower()] = float(words[1])
            file.seek(at)
            columns, rows, left, low, side = (head[key] for key in _KEYS)
            if not 1 <= columns * rows <= _MOST:
                raise InputError(f"{path} has {columns:g} by {rows:g} cells; at most {_MOST:,} can be read.")
            values = np.loadtxt(file, max_rows=int(rows), ndmin=2)
    except InputError:
        raise
    except (OSError, ValueError, KeyError, UnicodeDecodeError):
        raise InputError(
            f"{path} cannot be read as an Esri ASCII grid: lines {', '.join(_KEYS)}, then a line for each row."
        ) from None
    if values.shape != (int(rows), int(columns)):
        raise InputError(f"{path} says it has {rows:g} rows of {columns:g} cells, and has others.")
    values[values == head.get("nodata_value", np.nan)] = np.nan
    return values, np.array([left, low, left + columns * side, low + rows * side])
