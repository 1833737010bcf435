"""What lies around points on a map: the domain's own polygons or streets, packaged outlines, areas. Public."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from phdstream.domains import Domain
from phdstream.domains.outlines import land, new_york_state
from phdstream.domains.resolution import ground_units
from phdstream.domains.shapes.geometries import read_layer
from phdstream.errors import InputError
from phdstream.page.quantise import Frame
from phdstream.release.maps import layer_shapes

__all__ = ["Layer", "in_degrees", "outline", "read_layer_file"]

_COARSE = 4.0
"""Degrees from which on outlines of the world's land are fine enough."""
_DETAIL = 3000
"""Steps across the map that are told apart in outlines."""
_NAMES = ("name", "NAME", "Name", "ward", "label", "title", "id")


class Layer:
    """Areas to count in: their names, their shapes in the domain's coordinates, and these as GeoJSON."""

    def __init__(self, names: list[str], shapes: Any, frame: Frame) -> None:
        self.names, self.shapes = names, shapes
        self.drawn = [geojson(shape, frame) for shape in shapes]


def in_degrees(domain: Domain) -> bool:
    """Tell whether coordinates are longitude and latitude."""
    if domain.crs is not None:
        return domain.crs in ("EPSG:4326", "OGC:CRS84")
    frame = Frame.of(domain)
    units = ground_units(None, domain.names, np.array([frame.west, frame.south]), np.array([frame.east, frame.north]))
    return units is not None or type(domain).__name__ == "Globe"


def outline(domain: Domain, frame: Frame, in_degrees: bool) -> dict[str, Any] | None:
    """Return what to draw below the points as GeoJSON: the domain's own shape, or packaged land around it."""
    own = getattr(domain, "outline", None) or getattr(domain, "boundary", None)
    if own is not None:
        return geojson(own(), frame)
    if not in_degrees:
        return None
    box = shapely.box(frame.west, frame.south, frame.east, frame.north)
    wide = max(frame.east - frame.west, frame.north - frame.south) >= _COARSE
    if wide:
        return geojson(shapely.intersection(land(), box), frame)
    state = new_york_state()
    near = shapely.intersects(state, box)
    return geojson(shapely.intersection(state, shapely.buffer(box, 0.2)), frame) if near else None


def geojson(shape: Any, frame: Frame) -> dict[str, Any] | None:
    """Return a shape as GeoJSON with as much detail as a map shows; None if nothing is left of it."""
    step = max(frame.east - frame.west, frame.north - frame.south) / _DETAIL
    digits = max(0, 1 - int(np.floor(np.log10(step))))
    simple = shapely.simplify(shape, step / 2)
    if shapely.is_empty(simple):
        return None
    found: dict[str, Any] = json.loads(shapely.to_geojson(simple), parse_float=lambda x: round(float(x), digits))
    return found


def read_layer_file(path: Path, domain: Domain, frame: Frame) -> Layer:
    """Return the areas of a GeoJSON file, named by its property ``name``, or the first that is a text.

    They are converted to the domain's coordinate system; if it names none, they are taken to be in the domain's.
    """
    shapes = read_layer(path)[0] if domain.crs is None else layer_shapes(domain, path)
    try:
        features = json.loads(path.read_text(encoding="utf-8"))["features"]
        names = [_name(feature.get("properties") or {}, i) for i, feature in enumerate(features)]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{path} is not a GeoJSON FeatureCollection: convert the layer to one.") from None
    if len(names) != len(shapes):
        raise InputError(f"{path} has features that cannot be read: mend it in a GIS.")
    there = np.flatnonzero(~shapely.is_empty(shapes))
    if not there.size:
        raise InputError(f"{path} has no areas.")
    return Layer([names[i] for i in there], shapes[there], frame)


def _name(properties: dict[str, Any], position: int) -> str:
    found = [properties[key] for key in _NAMES if isinstance(properties.get(key), str | int)]
    found += [value for value in properties.values() if isinstance(value, str)]
    return str(found[0])[:120] if found else f"Area {position + 1}"
