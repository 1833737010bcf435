"""S2 cells on whole arrays: from longitude and latitude to a place on the Hilbert curve, and back.

The definition is Google's S2 (https://s2geometry.io; ``s2coords.h`` and ``s2cell_id.cc`` of google/s2geometry), with
its quadratic projection, so that cell ids agree with every other S2 library. It is written out here because no light,
vectorised S2 is on the package index: ``s2sphere`` works on one cell at a time, the others bring a C++ build. A point
on the sphere takes these steps:

- **xyz**, a unit vector; its largest component says which **face** of a cube it is seen on;
- **u, v** in [-1, 1], where the ray meets that face. Lines of constant u or v are great circles;
- **s, t** in [0, 1], by a quadratic that makes cells of one level more equal in area;
- **i, j**, the column and row in a grid of 2^level by 2^level;
- the **code**: the face (three bits), then the position along a Hilbert curve (two bits a level). The curves of the
  six faces join up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.domains.sines import sine_and_cosine

__all__ = [
    "CHUNK",
    "TO_CURVE",
    "Cells",
    "cells_of",
    "chunks_of",
    "codes_of",
    "corners",
    "grid_position",
    "spherical_area",
    "to_face",
    "to_lon_lat",
]

CHUNK = 4
"""Levels of the curve that one look-up takes: the table has 4^4 entries for each of 4 orientations, as S2's has."""
_MASK = (1 << CHUNK) - 1
_SWAP = 1
"""The orientation in which i and j change places; that of odd faces, and of the first and last quarter of a curve."""
_CURVES = np.array([[0, 1, 3, 2], [0, 2, 3, 1], [3, 2, 0, 1], [3, 1, 0, 2]])
"""The quadrant (2·i + j) at each position along the curve, for each orientation."""
_TURNS = np.array([_SWAP, 0, 0, 3])
"""How the orientation changes in each quarter of the curve."""


class Cells(NamedTuple):
    """Rectangles on the faces of the cube: the corner of least u and v, and the sides (exact also when tiny)."""

    face: Ints
    u: Floats
    v: Floats
    du: Floats
    dv: Floats


# --- between the sphere and the faces of the cube ---


def to_face(lon: Floats, lat: Floats) -> tuple[Ints, Floats, Floats]:
    """Return the face, u and v of points given in degrees.

    >>> face, u, v = to_face(np.array([10.0, 0.0]), np.array([0.0, 90.0]))
    >>> face.tolist(), round(float(u[0]), 3)
    ([0, 2], 0.176)
    """
    (z, across), (north, east) = sine_and_cosine(lat), sine_and_cosine(lon)
    x, y = east * across, north * across
    ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
    axis = np.where((ax > ay) & (ax > az), 0, np.where((ay >= ax) & (ay > az), 1, 2))
    along = np.where(axis == 0, x, np.where(axis == 1, y, z))
    p, q = np.where(axis == 0, y, -x) / along, np.where(axis == 2, -y, z) / along
    behind = along < 0
    return axis + 3 * behind, np.where(behind, q, p), np.where(behind, p, q)


def to_lon_lat(face: Ints, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Return longitude and latitude, in degrees, of points on faces.

    >>> lon, lat = to_lon_lat(np.array([1]), np.array([1.0]), np.array([0.0]))
    >>> lon.tolist(), lat.tolist()
    ([135.0], [0.0])
    """
    axis, sign = face % 3, np.where(face < 3, 1.0, -1.0)
    p, q = np.where(face < 3, u, -v), np.where(face < 3, v, -u)
    x = np.where(axis == 0, sign, -p)
    y = np.where(axis == 0, p, np.where(axis == 1, sign, -q))
    z = np.where(axis == 2, sign, q)
    x, y = x + 0.0, y + 0.0  # no negative zeros: a pole has longitude 0, the antimeridian 180
    return np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))


def _s_from_u(u: Floats) -> Floats:
    root = 0.5 * np.sqrt(1 + 3 * np.abs(u))
    return np.asarray(np.where(u >= 0, root, 1 - root))


def _u_from_s(s: Floats) -> Floats:
    return np.where(s >= 0.5, (4 * s * s - 1) / 3, (1 - 4 * (1 - s) * (1 - s)) / 3)


def _u_side(s: Floats, ds: Floats) -> Floats:
    """Return u(s + ds) - u(s), without the cancellation, for cells: on one side of the middle, or all across."""
    return np.where(ds == 1, 2.0, (4 / 3) * ds * np.where(s >= 0.5, 2 * s + ds, 2 * (1 - s) - ds))


# --- between the faces and the codes ---


def grid_position(u: Floats, level: int) -> Ints:
    """Return the column of u (or the row of v) in the grid of a level; a cell holds its lower edges."""
    position = np.floor(_s_from_u(u) * (1 << level)).astype(np.int64)
    return np.clip(position, 0, (1 << level) - 1)


def _curve_tables() -> tuple[Ints, Ints]:
    """Return the tables (position, orientation) -> (i, j, new orientation) and (i, j, orientation) -> (position, new).

    Both are indexed, and filled, with the orientation in the lowest two bits.
    """
    entry = np.arange(4 << 2 * CHUNK)
    position, turned = entry >> 2, entry & 3
    i, j = np.zeros_like(entry), np.zeros_like(entry)
    for step in reversed(range(CHUNK)):
        quarter = position >> 2 * step & 3
        quadrant = _CURVES[turned, quarter]
        i, j, turned = i << 1 | quadrant >> 1, j << 1 | quadrant & 1, turned ^ _TURNS[quarter]
    to_grid = (i << CHUNK | j) << 2 | turned
    to_curve = np.empty_like(entry)
    to_curve[to_grid & ~3 | entry & 3] = entry & ~3 | turned
    return to_grid, to_curve


_TO_GRID, TO_CURVE = _curve_tables()


def _start(face: Ints, level: int) -> tuple[Ints, range]:
    """Return the orientation to start with and the chunks to take.

    A level of zeros keeps to position zero and swaps the orientation; an odd number of them is swapped back here (it
    is odd when the level is, as a chunk is even).
    """
    return (face ^ level) & _SWAP, chunks_of(level)


def chunks_of(level: int) -> range:
    """Return the chunks of a level to take, the first padded with zeros on its left."""
    return range((level - 1) // CHUNK, -1, -1)


def codes_of(face: Ints, i: Ints, j: Ints, level: int) -> Ints:
    """Return the code of the cell in column i and row j of a face's grid.

    >>> codes_of(np.array([3]), np.array([0]), np.array([1]), level=1).tolist()      # face 3, third quarter: 0b011_11
    [15]
    """
    position = np.zeros_like(face)
    turned, chunks = _start(face, level)
    for k in chunks:
        low = CHUNK * k
        found = TO_CURVE[((i >> low & _MASK) << CHUNK | j >> low & _MASK) << 2 | turned]
        position, turned = position << 2 * CHUNK | found >> 2, found & 3
    return face << 2 * level | position


def _grid_of(codes: Ints, level: int) -> tuple[Ints, Ints, Ints]:
    """Undo `codes_of`: return face, i and j."""
    face = codes >> 2 * level
    position = codes & ((1 << 2 * level) - 1)
    i, j = np.zeros_like(codes), np.zeros_like(codes)
    turned, chunks = _start(face, level)
    for k in chunks:
        found = _TO_GRID[(position >> 2 * CHUNK * k & ((1 << 2 * CHUNK) - 1)) << 2 | turned]
        i, j, turned = i << CHUNK | found >> CHUNK + 2, j << CHUNK | found >> 2 & _MASK, found & 3
    return face, i, j


def cells_of(codes: Ints, level: int, above: Ints | int = 0) -> Cells:
    """Return the cells of codes of a level, or their ancestors so many levels ``above``.

    >>> cells_of(np.array([0b011_10]), level=1)[1:]
    (array([0.]), array([0.]), array([1.]), array([1.]))
    """
    face, i, j = _grid_of(codes, level)
    s, t = (np.ldexp(k >> above << above, -level) for k in (i, j))
    ds = np.ldexp(np.ones(codes.size), above - level)
    return Cells(face, _u_from_s(s), _u_from_s(t), _u_side(s, ds), _u_side(t, ds))


# --- cells on the sphere ---


def corners(cells: Cells) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of the corners, (n, 4) each, counter-clockwise seen from outside."""
    face = np.repeat(cells.face, 4)
    u = cells.u[:, None] + cells.du[:, None] * np.array([0, 1, 1, 0])
    v = cells.v[:, None] + cells.dv[:, None] * np.array([0, 0, 1, 1])
    lon, lat = to_lon_lat(face, u.ravel(), v.ravel())
    return lon.reshape(-1, 4), lat.reshape(-1, 4)


def spherical_area(u: Floats, v: Floats, du: Floats, dv: Floats) -> Floats:
    """Return the exact area on the unit sphere of rectangles on a face, to full relative accuracy however small.

    It is that of two spherical triangles, ``tan(E/2) = |a·(b×c)| / (abc + (a·b)c + (b·c)a + (c·a)b)`` (Eriksson 1990).
    With all corners on the plane of the face, the numerator is ``du · dv``.

    >>> face = spherical_area(np.array([-1.0]), np.array([-1.0]), np.array([2.0]), np.array([2.0]))
    >>> round(float(face[0] * 6 / np.pi), 12)
    4.0
    """
    right, top = u + du, v + dv
    a, b, c, d = (np.sqrt(1 + x * x + y * y) for x, y in ((u, v), (right, v), (right, top), (u, top)))
    ab, bc, cd, da = 1 + u * right + v * v, 1 + right * right + v * top, 1 + u * right + top * top, 1 + u * u + v * top
    ac = 1 + u * right + v * top
    first, second = a * b * c + ab * c + bc * a + ac * b, a * c * d + ac * d + cd * a + da * c
    return 2 * (np.arctan(du * dv / first) + np.arctan(du * dv / second))
