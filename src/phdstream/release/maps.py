"""Releases on maps: layers of polygons, H3 cells, shapes of points and cells. Needs the extra ``geo``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.domains import ROOT, Domain
from phdstream.domains.shapes.geometries import read_layer
from phdstream.domains.shapes.projection import Projection, need
from phdstream.errors import InputError, shown
from phdstream.release.columns import locations_of

__all__ = ["DEGREES", "cell_shapes", "check_planar", "check_released", "h3_shapes", "layer_shapes", "point_shapes"]

_MOST_H3_CELLS = 20_000
DEGREES = "EPSG:4326"


def check_planar(domain: Domain) -> None:
    """Refuse domains whose points are not two coordinates."""
    if domain.location.dimension != 2:
        raise InputError(
            f"maps need points with two coordinates; {domain!r} has {domain.location.dimension}. Its tables are "
            "there: cells(), count(...) and sample()."
        )


def check_released(release: Any) -> None:
    """Refuse a release of which nothing is known yet."""
    if release.held:
        raise InputError("nothing is released yet: the stream is still collecting events for its start.")


def layer_shapes(domain: Domain, layer: Any) -> NDArray[Any]:
    """Return the polygons of a layer in the domain's coordinates, one for each row; missing ones are empty.

    A layer in another coordinate system is converted; one that names none is taken to be in the domain's.
    """
    check_planar(domain)
    shapes, own = read_layer(layer)
    crs = domain.crs
    if own is None or own == crs:
        return shapes
    if crs is None:
        raise InputError(
            f"the layer is in {own}, but the domain names no coordinate system, so the two cannot be compared: "
            "say crs=... in the domain."
        )
    mapped = shapely.transform(shapes, Projection(own, crs).forward)
    if not np.isfinite(shapely.get_coordinates(mapped)).all():
        raise InputError(f"some of the layer has no place in {crs}, the domain's coordinate system.")
    return np.asarray(mapped)


def h3_shapes(domain: Domain, resolution: int) -> tuple[list[str], NDArray[Any]]:
    """Return the H3 cells of a resolution that meet the domain, and their hexagons. Coordinates must be degrees."""
    check_planar(domain)
    h3 = need("h3")
    if not isinstance(resolution, int) or not 0 <= resolution <= 15:
        raise InputError(f"an H3 resolution is a whole number from 0 to 15, not {shown(resolution)}.")
    west, south, east, north = domain.location.bounds(np.array([ROOT]))[0]
    if not (-180 <= west < east <= 180 and -90 <= south < north <= 90):
        raise InputError("H3 needs longitudes and latitudes in degrees; this domain's coordinates are something else.")
    expected = (east - west) * (north - south) / 41253 * h3.get_num_cells(resolution)
    if expected > _MOST_H3_CELLS:
        raise InputError(
            f"H3 resolution {resolution} would give more than {_MOST_H3_CELLS:,} cells here: use a coarser one, or "
            "count_in(...) with the cells of the part you want."
        )
    cells = sorted(_h3_cover(h3, (west, south, east, north), resolution))
    return cells, _hexagons([h3.cell_to_boundary(cell) for cell in cells])


def _hexagons(corners: list[Any]) -> NDArray[Any]:
    """Return cells' shapes in degrees from their corners (latitude, longitude)."""
    number, shapes = np.array([len(ring) for ring in corners]), np.empty(len(corners), dtype=object)
    for size in np.unique(number).tolist():  # pentagons, and hexagons across an edge of H3's icosahedron, have others
        rows = np.flatnonzero(number == size)
        rings = np.array([corners[row] for row in rows])[:, :, ::-1]
        shapes[rows] = shapely.polygons(rings)
        for row in np.flatnonzero(np.ptp(rings[:, :, 0], axis=1) > 180).tolist():
            shapes[rows[row]] = _across_antimeridian(rings[row])
    return shapes


def _across_antimeridian(ring: NDArray[Any]) -> Any:
    """Return a cell that crosses the antimeridian as two parts."""
    lon, lat = ring.T
    whole = shapely.make_valid(shapely.Polygon(np.column_stack([np.where(lon < 0, lon + 360, lon), lat])))
    west = shapely.transform(whole, lambda points: points - (360, 0))
    world = shapely.box(-180, -90, 180, 90)
    return shapely.union(shapely.intersection(whole, world), shapely.intersection(west, world))


def _h3_cover(h3: Any, box: tuple[float, float, float, float], resolution: int) -> set[str]:
    """Return all cells that meet a box: those with their centre in it, and the neighbours of those."""
    west, south, east, north = box
    steps = np.linspace(west, east, max(2, int((east - west) / 60) + 2))
    cells: set[str] = set()
    for left, right in pairwise(steps):  # H3 takes the short way round: keep parts narrow
        ring = [(south, left), (south, right), (north, right), (north, left)]
        cells.update(h3.h3shape_to_cells_experimental(h3.LatLngPoly(ring), resolution, contain="overlap"))
    return cells


def cell_shapes(domain: Domain, nodes: NDArray[np.int64]) -> NDArray[Any]:
    """Return the cells' shapes in users' coordinates, as the domain draws them."""
    check_planar(domain)
    return domain.geometry(nodes)


def point_shapes(domain: Domain, points: NDArray[Any]) -> NDArray[Any]:
    """Return points' shapes in users' coordinates."""
    check_planar(domain)
    return np.atleast_1d(shapely.points(locations_of(points, domain.location.names)))
