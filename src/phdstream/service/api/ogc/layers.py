"""The points and the cells of a release as layers of features: longitude and latitude, GeoJSON by the row. Public."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT, Domain
from phdstream.domains.shapes.projection import Projection
from phdstream.errors import InputError
from phdstream.release import Release
from phdstream.release.columns import locations_of
from phdstream.release.maps import cell_shapes
from phdstream.service.api.ogc.queries import Box, Query

__all__ = ["Layer", "Layers", "Place"]

_DEGREES = ("EPSG:4326", "OGC:CRS84")
_WORLD = (-180.0, -90.0, 180.0, 90.0)
_KEPT = 4
_SIDE = 64
_WHOLE = partial(pc.match_substring_regex, pattern="^-?[0-9]+$")


class Place:
    """How a domain's coordinates become longitude and latitude; refuses a domain whose coordinates cannot.

    >>> from phdstream.domains import Box
    >>> Place(Box([(-74.3, -73.7), (40.5, 41.0)], crs="EPSG:4326")).bounds
    [-74.3, 40.5, -73.7, 41.0]
    """

    def __init__(self, domain: Domain) -> None:
        if domain.dimension != 2 or domain.crs is None:
            raise InputError("this stream is on no map: its domain names no coordinate system, or is not of the plane.")
        own = "OGC:CRS84" if domain.crs in _DEGREES else domain.crs
        self._projection = Projection(own, "OGC:CRS84")
        around = shapely.segmentize(shapely.box(*domain.bounds(np.array([ROOT]))[0]), self._step(domain))
        self.bounds: list[float] = shapely.total_bounds(self.shapes(np.array([around]))).tolist()

    @staticmethod
    def _step(domain: Domain) -> float:
        west, south, east, north = domain.bounds(np.array([ROOT]))[0]
        return float(max(east - west, north - south) / _SIDE)

    def points(self, points: Floats) -> Floats:
        """Return points as longitudes and latitudes."""
        return self._known(self._projection.forward(np.asarray(points, dtype=np.float64)))

    def shapes(self, shapes: NDArray[Any]) -> NDArray[Any]:
        """Return shapes in longitudes and latitudes; what reaches across the antimeridian is cut in two."""
        mapped = shapes if self._projection.identity else shapely.transform(shapes, self._projection.forward)
        self._known(shapely.get_coordinates(mapped))
        bounds = shapely.bounds(mapped)
        across = np.flatnonzero((bounds[:, 0] < _WORLD[0]) | (bounds[:, 2] > _WORLD[2]))
        if across.size:
            mapped = mapped.copy()
            mapped[across] = [_cut(shape) for shape in mapped[across]]
        return np.asarray(mapped)

    @staticmethod
    def _known(points: Floats) -> Floats:
        if not np.isfinite(points).all():
            raise InputError("some of this stream's domain has no longitude and latitude.")
        return points


def _cut(shape: Any) -> Any:
    """Return a shape whose longitudes go beyond 180 degrees as parts within."""
    turned = [shapely.transform(shape, partial(np.add, (by, 0.0))) for by in (0.0, 360.0, -360.0)]
    return shapely.union_all([shapely.clip_by_rect(one, *_WORLD) for one in turned])


@dataclass(frozen=True)
class Layer:
    """Features of one tick: their shapes (for points, their coordinates), their columns, and when the tick was."""

    tick: int
    privacy: str
    time: tuple[datetime, datetime]
    shapes: NDArray[Any]
    columns: pa.Table | None = None

    @property
    def size(self) -> int:
        """How many features there are."""
        return len(self.shapes)

    def about(self) -> dict[str, Any]:
        """Return what is the same for all features: the tick, when it was, what its release may claim."""
        start, end = (moment.isoformat().replace("+00:00", "Z") for moment in self.time)
        return {"tick": self.tick, "start": start, "end": end, "privacy": self.privacy}

    def page(self, query: Query) -> tuple[int, Ints]:
        """Return how many features a query matches, and the rows of those on its page."""
        if query.boxes is None:
            last = min(query.offset + query.limit, self.size)
            return self.size, np.arange(query.offset, last, dtype=np.int64)
        inside = np.zeros(self.size, dtype=bool)
        for box in query.boxes:
            inside |= self._meets(box)
        rows = np.flatnonzero(inside)
        return rows.size, rows[query.offset : query.offset + query.limit]

    def _meets(self, box: Box) -> Bools:
        west, south, east, north = box
        if self.columns is None:
            x, y = self.shapes.T
            return np.asarray((x >= west) & (x <= east) & (y >= south) & (y <= north))
        return np.asarray(shapely.intersects(self.shapes, shapely.box(*box)))

    def encode(self, rows: Ints) -> str:
        """Return the features of some rows as GeoJSON, with commas between."""
        if not rows.size:
            return ""
        identity = pa.array(rows + 1).cast(pa.string())
        parts: list[Any] = [f'{{"type":"Feature","id":"{self.tick}-', identity]
        parts += [f'","properties":{{"tick":{self.tick}']
        if self.columns is not None:
            some = self.columns.take(pa.array(rows))
            for name in some.column_names:
                parts += [f",{json.dumps(name)}:", _texts(some[name].combine_chunks())]
        features = pc.binary_join_element_wise(*parts, '},"geometry":', *self._geometry(rows), "}", "")
        return str(pc.binary_join(pa.ListArray.from_arrays(pa.array([0, rows.size], pa.int32()), features), ",")[0])

    def _geometry(self, rows: Ints) -> list[Any]:
        if self.columns is not None:
            return [pa.array(shapely.to_geojson(self.shapes[rows]), pa.string())]
        lon, lat = (_texts(pa.array(np.ascontiguousarray(axis))) for axis in self.shapes[rows].T)
        return ['{"type":"Point","coordinates":[', lon, ",", lat, "]}"]


def _texts(values: pa.Array) -> pa.Array:
    """Return values as JSON writes them; what is not finite is null. A real number shows that it is one.

    >>> _texts(pa.array([1.5, 2.0, 1e-30, float("inf")])).to_pylist(), _texts(pa.array(["é"])).to_pylist()
    (['1.5', '2.0', '1e-30', 'null'], ['"é"'])
    """
    if pa.types.is_floating(values.type):
        texts = values.cast(pa.string())
        whole = pc.binary_join_element_wise(texts, ".0", "")
        return pc.if_else(pc.is_finite(values), pc.if_else(_WHOLE(texts), whole, texts), "null")
    if pa.types.is_integer(values.type):
        return values.cast(pa.string())
    return pa.array([json.dumps(value, ensure_ascii=False, allow_nan=False) for value in values.to_pylist()])


class Layers:
    """Makes layers of releases, and keeps those asked for lately. Threads may share it."""

    def __init__(self) -> None:
        self._kept, self._lock = OrderedDict[tuple[int, str], Layer](), threading.Lock()

    def layer(self, release: Release, what: str, place: Place, time: tuple[datetime, datetime]) -> Layer:
        """Return the points or the cells of a release that began and ended at two moments."""
        key = release.tick, what
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        if what == "points":
            layer = Layer(
                release.tick,
                release.privacy,
                time,
                place.points(locations_of(release.sample(), release.domain.location.names)),
            )
        else:
            shapes = place.shapes(cell_shapes(release.domain, release.leaves))
            cells = release.cells()
            nodes = cells["node"].cast(
                pa.string()
            )  # GDAL takes a column's width from its first numbers, which are small
            cells = cells.set_column(0, "node", nodes)
            layer = Layer(release.tick, release.privacy, time, shapes, cells)
        with self._lock:
            self._kept[key] = layer
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return layer
