"""Coordinate systems: users' coordinates in one, the tree and its measure in another."""

from __future__ import annotations

import re
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from phdstream.arrays import Floats
from phdstream.domains.chunks import in_chunks
from phdstream.domains.shapes.equal_area import to_equal_area
from phdstream.errors import InputError, shown

__all__ = ["EQUAL_AREA", "Projection", "crs_name", "is_geographic", "need"]

EQUAL_AREA = "ESRI:54034"
"""World Cylindrical Equal Area: areas are right everywhere, and rectangles of degrees stay rectangles."""
_DEGREES = ("EPSG:4326", "OGC:CRS84")
_COST = 5
"""Projecting a point takes about so many times as long as encoding one of a `Box`."""
_CODE = re.compile(r"(EPSG|ESRI|OGC):[0-9A-Z]+")


def need(module: str) -> Any:
    """Import an optional package of the extra ``geo``, or say how to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"this needs {module}: install it with  pip install 'phdstream[geo]'.") from None


def crs_name(crs: Any) -> str | None:
    """Return a coordinate reference system as text that names it for good: its authority code, or its WKT.

    >>> crs_name(None) is None
    True
    """
    if crs is None:
        return None
    if isinstance(crs, str) and _CODE.fullmatch(crs) and find_spec("pyproj") is None:
        return crs  # a name needs no library; converting from or to it does
    pyproj = need("pyproj")
    try:
        system = pyproj.CRS.from_user_input(crs)
    except (pyproj.exceptions.CRSError, ValueError, TypeError, OverflowError, RecursionError):
        raise InputError(f"{shown(crs)} is not a coordinate reference system; use one such as 'EPSG:4326'.") from None
    authority = system.to_authority(min_confidence=100)
    return ":".join(authority) if authority else str(system.to_wkt())


class Projection:
    """Maps points between the system users speak (``crs``) and the one the tree is built in (``tree_crs``).

    The tree's should be planar, so that areas and lengths mean something; for large regions an equal-area one.
    Without systems, or with equal ones, points stay as they are.

    >>> Projection(None, None).forward(np.array([[1.0, 2.0]]))
    array([[1., 2.]])
    """

    def __init__(self, crs: Any, tree_crs: Any) -> None:
        self.crs = crs_name(crs)
        self.tree_crs = crs_name(tree_crs) if tree_crs is not None else self.crs
        if self.tree_crs is not None and self.crs is None:
            raise InputError("tree_crs is given but the coordinates' own crs is not: say crs='EPSG:4326' for degrees.")

    @property
    def identity(self) -> bool:
        """Whether points stay as they are."""
        return self.crs == self.tree_crs

    @property
    def from_degrees(self) -> bool:
        """Whether it is the one from degrees of WGS 84 to the equal-area map, which takes no library."""
        return self.crs in _DEGREES and self.tree_crs == EQUAL_AREA

    @cached_property
    def _transformers(self) -> tuple[Any, Any]:
        pyproj = need("pyproj")
        make = pyproj.Transformer.from_crs
        try:
            return make(self.crs, self.tree_crs, always_xy=True), make(self.tree_crs, self.crs, always_xy=True)
        except pyproj.exceptions.ProjError:
            raise InputError(
                f"there is no way from {shown(self.crs)} to {shown(self.tree_crs)}: name another tree_crs, or "
                "convert the coordinates first."
            ) from None

    def forward(self, points: Floats) -> Floats:
        """Return points (n, 2) in the tree's system; what has no image is infinite."""
        if self.from_degrees:
            return to_equal_area(points)
        return points if self.identity else self._apply(0, points)

    def backward(self, points: Floats) -> Floats:
        """Return points of the tree's system in the users'."""
        return points if self.identity else self._apply(1, points)

    def _apply(self, direction: int, points: Floats) -> Floats:
        mapped, transformer = np.array(points.T, dtype=np.float64, order="C"), self._transformers[direction]
        in_chunks(lambda rows: transformer.transform(*mapped[:, rows], inplace=True), len(points), cost=_COST)
        return mapped.T


def is_geographic(crs: Any) -> bool:
    """Whether a coordinate system measures in degrees."""
    return crs is not None and bool(need("pyproj").CRS.from_user_input(crs).is_geographic)
