"""The part of an S2 cell inside a rectangle of longitudes and latitudes.

The area between a curve and the equator is the integral of sin(latitude) over longitude. So the area of a
cell is such an integral along its sides, and that of its part inside a rectangle the same with longitudes
restricted to, and sines clipped to, the rectangle's. All sides are great circles, for which the integral has
a closed form.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.globe.s2 import Cells, spherical_area, to_lon_lat

__all__ = ["cut_shares", "inside_and_touched"]

_FACE_LONGITUDE = np.radians([0.0, 90.0, 0.0, 180.0, -90.0, 0.0])
_PARTS = 16
_CLOSED_FORM_LEVEL = 16
"""The finest S2 level at which the area cut out of a cell is taken by its formula, whose rounding error is absolute."""


def inside_and_touched(boxes: Floats, rectangles: Floats) -> tuple[Bools, Bools]:
    """Return which boxes (columns) lie wholly inside each rectangle (rows), and which have any part inside."""
    inside, touched = np.ones((2, len(rectangles), len(boxes)), dtype=bool)
    for low, high in ((0, 2), (1, 3)):
        inside &= (rectangles[:, low, None] <= boxes[:, low]) & (boxes[:, high] <= rectangles[:, high, None])
        touched &= (rectangles[:, low, None] < boxes[:, high]) & (boxes[:, low] < rectangles[:, high, None])
    return inside, touched


def cut_shares(cells: Cells, s2_levels: Ints, rectangles: Floats) -> Floats:
    """Return the share of each cell inside the rectangle of its row; level -1 stands for the whole sphere."""
    share = np.empty(s2_levels.size)
    root, fine = s2_levels < 0, s2_levels > _CLOSED_FORM_LEVEL
    polar = (cells.face % 3 == 2) & ~root & ~fine
    rules = {_share_of_sphere: root, _share_of_parts: fine, _share_of_polar: polar}
    for rule, rows in (rules | {_share_of_equatorial: ~(root | fine | polar)}).items():
        share[rows] = rule(Cells(*(column[rows] for column in cells)), rectangles[rows])
    return np.clip(share, 0, 1)


def _share_of_sphere(_: Cells, rectangles: Floats) -> Floats:
    """Return the share of the whole sphere inside each rectangle."""
    west, south, east, north = np.radians(rectangles.T)
    share: Floats = (east - west) * (np.sin(north) - np.sin(south)) / (4 * np.pi)
    return share


def _share_of_parts(cells: Cells, rectangles: Floats) -> Floats:
    """Return the share by counting the parts with their middle inside; for cells so small that areas are flat."""
    middles = (np.arange(_PARTS) + 0.5) / _PARTS
    across, up = (grid.ravel() for grid in np.meshgrid(middles, middles))
    u, v = cells.u[:, None] + cells.du[:, None] * across, cells.v[:, None] + cells.dv[:, None] * up
    lon, lat = (x.reshape(u.shape) for x in to_lon_lat(np.repeat(cells.face, across.size), u.ravel(), v.ravel()))
    west, south, east, north = rectangles.T[:, :, None]
    inside = (west <= lon) & (lon < east) & (south <= lat) & (lat < north)
    return np.asarray(inside.mean(axis=1))


def _share_of_equatorial(cells: Cells, rectangles: Floats) -> Floats:
    """Return the share of cells on the faces around the equator: bounded by two meridians, and below and above."""
    face, u, v, du, dv = cells
    front = face < 3
    left, width = np.where(front, u, v), np.where(front, du, dv)
    bottom, height = np.where(front, v, -u - du), np.where(front, dv, du)
    middle, start, end = _FACE_LONGITUDE[face], np.arctan(left), np.arctan(left + width)
    below, above = (
        _swept(slope, np.ones_like(slope), middle, start, end, rectangles, np.zeros_like(slope))
        for slope in (bottom, bottom + height)
    )
    return (above - below) / spherical_area(u, v, du, dv)


def _share_of_polar(cells: Cells, rectangles: Floats) -> Floats:
    """Return the share of cells on the faces around the poles: seen from the pole, a rectangle."""
    face, u, v, du, dv = cells
    north = face < 3
    sign = np.where(north, 1.0, -1.0)
    x, y = np.where(north, -u - du, v), np.where(north, -v - dv, u)  # towards longitude 0, and towards 90
    right, top = x + np.where(north, du, dv), y + np.where(north, dv, du)
    reference = np.sin(np.radians(np.where(north, rectangles[:, 3], rectangles[:, 1])))  # the end towards the pole
    sides = ((right, y, top, 0.0), (top, -right, -x, 0.5), (x, top, y, 0.0), (y, -x, -right, 0.5))
    area = np.zeros_like(u)
    for distance, begin, end, turn in sides:  # counter-clockwise
        apex = np.pi * np.where(distance > 0, turn, turn + 1)
        start, stop = _angle(begin, distance), _angle(end, distance)
        area -= sign * _swept(sign, distance, apex, start, stop, rectangles, reference)
    return area / spherical_area(u, v, du, dv)


def _angle(along: Floats, distance: Floats) -> Floats:
    """Return the angle at which a pole sees a point along a side at a distance; zero for a side through the pole."""
    return np.arctan2(along * np.sign(distance), np.abs(distance))


def _swept(
    rise: Floats, run: Floats, apex: Floats, start: Floats, end: Floats, rectangles: Floats, reference: Floats
) -> Floats:
    """Return the integral over longitude of sin(latitude), clipped to the rectangle, minus a reference.

    It is taken along the great circle ``tan(latitude) = rise/run · cos(longitude - apex)``, from ``start`` to ``end``
    (longitudes from the apex, at most a quarter turn), as far as these are in the rectangle.
    """
    west, south, east, north = np.radians(rectangles.T)
    circle = _Circle(rise, run, np.sin(south), np.sin(north))
    first = (west - apex + 1.5 * np.pi) % (2 * np.pi) - 1.5 * np.pi
    total = np.zeros_like(start)
    for low in (first, first - 2 * np.pi):
        begin, stop = (np.clip(angle, low, low + (east - west)) for angle in (start, end))
        total += circle.integral(stop) - circle.integral(begin) - reference * (stop - begin)
    return total


class _Circle:
    """The clipped sine of latitude along a great circle, as a function of longitude from its apex.

    In the northern half it falls from ``sine`` at the apex to zero a quarter turn away, passing ``high`` and ``low`` on
    the way, or not. The southern half is the northern one turned over.
    """

    def __init__(self, rise: Floats, run: Floats, low: Floats, high: Floats) -> None:
        length = np.hypot(rise, run)
        self._sign = np.where(rise < 0, -1.0, 1.0)
        self._sine, self._cosine = np.abs(rise) / length, np.abs(run) / length
        self._low, self._high = np.where(rise < 0, [-high, -low], [low, high])
        self._high_until, self._low_from = self._reaches(self._high), self._reaches(self._low)

    def _reaches(self, height: Floats) -> Floats:
        return np.arctan2(np.sqrt(np.maximum(self._sine**2 - height**2, 0)), height * self._cosine)

    def integral(self, angle: Floats) -> Floats:
        """Return the integral from the apex to an angle of at most a quarter turn either way."""
        away: Floats = np.abs(angle)
        between = self._free(np.clip(away, self._high_until, self._low_from)) - self._free(self._high_until)
        flat = self._high * np.minimum(away, self._high_until) + self._low * np.maximum(away - self._low_from, 0)
        return np.asarray(self._sign * np.sign(angle) * (between + flat))

    def _free(self, angle: Floats) -> Floats:
        """Return the integral without clipping, arcsin(sine · sin(angle)), in a form that is accurate near the pole."""
        across = np.sin(angle)
        return np.arctan2(self._sine * across, np.hypot(np.cos(angle), self._cosine * across))
