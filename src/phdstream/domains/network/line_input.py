"""Lines and parameters of a `Network`, read and checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.domains.box import Box
from phdstream.domains.codes import ROOT
from phdstream.domains.shapes.geometries import geometry_parts, read_geometries
from phdstream.domains.shapes.projection import Projection, is_geographic, need
from phdstream.errors import InputError, shown

__all__ = ["box_around", "check_planar", "check_snap", "project", "read_binary", "read_lines"]

_MOST_HALVINGS = 16
_FARTHEST = 1e30
"""No distance on any map is as large; NaN and infinity are not below it."""


def read_lines(lines: Any, crs: Any) -> tuple[NDArray[Any], str | None]:
    """Return lines of positive length in two dimensions, each once whatever its direction, and their system."""
    if hasattr(lines, "edges") and hasattr(lines, "nodes") and hasattr(lines, "graph"):  # networkx
        lines = graph_lines(lines)
    geometries, own = read_geometries(lines, crs)
    coordinates, line = shapely.get_coordinates(geometry_parts(geometries, "LineString"), return_index=True)
    if not np.isfinite(coordinates).all():
        raise InputError("every coordinate of the lines must be a finite number.")
    flat = shapely.linestrings(coordinates, indices=line)
    flat = flat[shapely.length(flat) > 0]
    if not flat.size:
        raise InputError("there is no line of positive length.")
    _, first = np.unique(shapely.to_wkb(shapely.normalize(flat)), return_index=True)
    return flat[np.sort(first)], own


def read_binary(lines: str) -> Any:
    """Return the geometry of a well-known binary in hexadecimal."""
    try:
        return shapely.from_wkb(lines)
    except (shapely.errors.ShapelyError, TypeError, ValueError):
        raise InputError("lines must name a file, or be well-known binary in hexadecimal.") from None


def graph_lines(graph: Any) -> Any:
    """Return the edges of an OSMnx graph: their geometry, or straight between the nodes' x and y."""
    try:
        at = {node: (data["x"], data["y"]) for node, data in graph.nodes(data=True)}
        edges = [d.get("geometry") or shapely.LineString([at[u], at[v]]) for u, v, d in graph.edges(data=True)]
        crs = graph.graph.get("crs")
        return edges if crs is None else need("geopandas").GeoSeries(edges, crs=crs)
    except (KeyError, TypeError, ValueError):
        raise InputError("a graph needs x and y at its nodes, or Shapely lines as its edges' geometry.") from None


def project(ends: Floats, projection: Projection, tolerance: float) -> Floats:
    """Return segments in the tree's system; one that would be bent there is halved until it is as good as straight."""
    if projection.identity:
        return ends
    for _ in range(_MOST_HALVINGS):
        middle = (ends[:, :2] + ends[:, 2:]) / 2
        start, through, end = np.split(projection.forward(np.concatenate([ends[:, :2], middle, ends[:, 2:]])), 3)
        if not np.isfinite([start, through, end]).all():
            break
        bent = np.hypot(*(through - (start + end) / 2).T) > tolerance
        if not bent.any():
            return np.hstack([start, end])
        halves = np.hstack([ends[bent, :2], middle[bent]]), np.hstack([middle[bent], ends[bent, 2:]])
        ends = np.concatenate([ends[~bent], *halves])
    raise InputError(f"some of the lines have no place in {projection.tree_crs}: choose another tree_crs.")


def check_snap(snap: Any) -> float:
    """Return the snap distance, a positive number."""
    number = isinstance(snap, int | float | np.integer | np.floating) and not isinstance(snap, bool)
    if not number or not 0 < snap <= _FARTHEST:
        raise InputError(f"snap must be a positive, finite distance in units of tree_crs, not {shown(snap)}.")
    return float(snap)


def check_planar(projection: Projection, lines: NDArray[Any]) -> None:
    """Refuse a tree in degrees, and name a system in metres that would do."""
    if not is_geographic(projection.tree_crs):
        return
    west, south, east, north = shapely.total_bounds(lines)
    zone = math.floor(((west + east) / 2 + 180) / 6) % 60 + 1
    utm = f"EPSG:{(32600 if south + north >= 0 else 32700) + zone}"
    hint = f"such as tree_crs={utm!r}" if is_geographic(projection.crs) else "or leave tree_crs out"
    raise InputError(
        f"{projection.tree_crs} is in degrees, but lengths and the snap distance need a planar system: "
        f"give one as tree_crs, {hint}."
    )


def box_around(ends: Floats, bounds: Sequence[Sequence[float]] | None, tree: dict[str, Any]) -> Box:
    """Return the box of the tree: the one asked for, or one just around the segments."""
    low, high = ends.reshape(-1, 2).min(axis=0), ends.reshape(-1, 2).max(axis=0)
    margin = (high - low).max() / 1024
    box = Box(np.column_stack([low - margin, high + margin]).tolist() if bounds is None else bounds, **tree)
    outer = box.bounds(np.array([ROOT]))[0]
    if box.dimension != 2 or (low < outer[:2]).any() or (high > outer[2:]).any():
        raise InputError(f"bounds must hold all lines, which reach from {low.tolist()} to {high.tolist()}.")
    return box
