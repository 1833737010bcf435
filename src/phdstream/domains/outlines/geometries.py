"""The paper's geometries: the Earth's land, and New York State. Public domain; see README.md beside this file."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import shapely
import shapely.geometry

__all__ = ["land", "new_york_state"]


@cache
def land() -> Any:
    """Return the Earth's land without Antarctica, a Shapely geometry in degrees (Natural Earth, 1:110 million).

    >>> land().contains(shapely.Point(2.35, 48.86)), land().contains(shapely.Point(-30, 40))
    (True, False)
    """
    return _read("land.geojson")


@cache
def new_york_state() -> Any:
    """Return New York State, a Shapely geometry in degrees (US Census Bureau, 1:500,000).

    >>> new_york_state().contains(shapely.Point(-73.98, 40.75))
    True
    """
    return _read("new_york_state.geojson")


def _read(name: str) -> Any:
    collection = json.loads((files("phdstream.domains.outlines") / name).read_text(encoding="utf-8"))
    (feature,) = collection["features"]
    return shapely.geometry.shape(feature["geometry"])
