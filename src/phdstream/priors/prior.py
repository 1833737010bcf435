"""`Prior`: what the public knows of where events are, before any private data is seen. Public."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.domains import ROOT, Domain
from phdstream.domains.binary_tree import BinaryTree
from phdstream.domains.columns import column_names, floats, named_column
from phdstream.domains.network import Network
from phdstream.domains.shapes.geometries import geometry_parts, read_geometries
from phdstream.domains.shapes.projection import Projection, crs_name
from phdstream.errors import InputError, shown
from phdstream.priors.grid_file import read_grid
from phdstream.priors.splits import MOST_NODES, PriorSplits, divided
from phdstream.priors.spread import POINTS, on_grid, on_lines, on_polygons
from phdstream.release import Release

__all__ = ["Prior"]

_Placed: TypeAlias = tuple[Any, Floats | None]
"""Points as a domain takes them, and their weights; None: all the same."""


@dataclass(frozen=True)
class Prior:
    """Public points, polygons, lines, a grid or an earlier release: where a stream expects events at first.

    Made by `from_points`, `from_polygons`, `from_lines`, `from_raster` or `from_release`, and given to a
    `TrackingStream` as ``prior=``. It costs no privacy, **if it is public**: made without looking at the data that is
    to be protected, or from what was released of it with differential privacy. ``about`` says in words where it comes
    from; every release repeats it.

    How far to believe it is learnt from the stream's own noisy counts. Only where events are matters, not how many.

    >>> import phdstream as phd
    >>> city = phd.Box([(0, 1), (0, 1)])
    >>> blocks = [(0.2, 0.2), (0.2, 0.3), (0.3, 0.2), (0.3, 0.3), (0.7, 0.3)]
    >>> people = phd.Prior.from_points(blocks, weights=[500, 400, 400, 500, 300], about="census 2020")
    >>> stream = phd.TrackingStream(city, epsilon=1.0, unit=phd.Event(), prior=people)
    >>> [line for line in stream.describe().splitlines() if line.startswith("Prior")]
    ['Prior: starts from what is public: census 2020. It costs no privacy.']
    """

    about: str
    simulated: bool = False
    """Whether it is from a release that was not private."""
    _placed: Callable[[Domain], _Placed] = field(default=lambda _: ([], None), repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.about, str) or not self.about.strip() or len(self.about) > 1000:
            raise InputError(
                "a prior needs about=..., a text that says where it comes from: 'census 2020, by block', for example. "
                "Every release repeats it."
            )

    @classmethod
    def from_points(cls, points: Any, weights: Any = None, *, about: str) -> Self:
        """Take public points: whatever `Stream.update` takes. ``weights``: one for each, or the name of their column.

        On a `Product` points are rows with all attributes.
        """
        there = column_names(points) if isinstance(weights, str) else None
        own = None if there is None else [str(name) for name in there if name != weights]
        if isinstance(weights, str):
            if own is None or there is None:
                raise InputError("weights names a column, but the points are not a table: give numbers, one for each.")
            weights = floats(named_column(points, there, weights, own))
        given = _weights(weights)
        return cls(about, False, lambda domain: (domain.points(points), given))

    @classmethod
    def from_polygons(cls, polygons: Any, weights: Any = None, *, about: str) -> Self:
        """Take areas: a GeoDataFrame, Shapely polygons or a file. ``weights``: how much each holds, or their column.

        Without weights each holds as much as its area.
        """
        return cls._from_shapes(polygons, weights, "Polygon", about)

    @classmethod
    def from_lines(cls, lines: Any, weights: Any = None, *, about: str) -> Self:
        """Take lines, such as streets: a GeoDataFrame, Shapely lines, a file or a `Network`.

        ``weights`` say how much lies along each, traffic for example, or name their column; without, its length.
        """
        if isinstance(lines, Network):
            points = lines.sample(np.array([ROOT]), np.array([POINTS]), key=0)
            return cls(about, False, _in_domain((points, None), lines.crs))
        return cls._from_shapes(lines, weights, "LineString", about)

    @classmethod
    def from_raster(cls, values: Any, bounds: Any = None, crs: Any = None, *, about: str) -> Self:
        """Take a grid of weights, its first row in the north, and its ``bounds`` (west, south, east, north).

        Or the path of a grid in text (Esri ASCII, ``.asc``), which says its bounds itself. Missing and negative values
        are nothing.
        """
        if isinstance(values, str | Path):
            values, bounds = read_grid(Path(values))
        grid, edges = floats(values), floats(bounds if bounds is not None else [])
        if grid.ndim != 2 or not grid.size or not (np.nan_to_num(grid, posinf=-1) > 0).any():
            raise InputError("a raster is a table of numbers, rows from north to south, some of them above 0.")
        if edges.shape != (4,) or not (edges[0] < edges[2] and edges[1] < edges[3]):
            raise InputError(f"a raster needs bounds=(west, south, east, north), not {shown(bounds)}.")
        return cls(about, False, _in_domain(on_grid(np.nan_to_num(grid, posinf=0), edges), crs_name(crs)))

    @classmethod
    def from_release(cls, release: Release, *, about: str | None = None) -> Self:
        """Take an earlier release of this stream, or one of another about the same places.

        What it cost was paid when it was released, so it costs nothing more. One that is simulated is for experiments.
        """
        if not isinstance(release, Release) or release.held:
            raise InputError("a prior's release is one that a stream has released: phd.read_releases(folder)[-1].")
        points, own = release.sample(), release.domain
        simulated = "simulated" in release.privacy
        said = about or f"release of tick {release.tick} of another stream ({release.privacy})"
        plane = own.location is own and own.dimension == 2 and points.dtype.kind == "f"
        if plane:
            return cls(said, simulated, _in_domain((points, None), own.crs))
        return cls(said, simulated, lambda domain: (domain.points(points), None))

    @classmethod
    def _from_shapes(cls, shapes: Any, weights: Any, kind: str, about: str) -> Self:
        if isinstance(weights, str):
            there = column_names(shapes)
            if there is None:
                raise InputError("weights names a column, but the shapes are not a GeoDataFrame: give numbers.")
            weights = floats(named_column(shapes, there, weights, [str(name) for name in there]))
        geometries, crs = read_geometries(shapes)
        given = _weights(weights)
        if given is not None and given.size != geometries.size:
            raise InputError(f"there are {given.size} weights for {geometries.size} shapes that are not empty.")
        spread = _polygons if kind == "Polygon" else _lines
        return cls(about, False, _in_domain(spread(geometries, given), crs))

    def on(self, domain: Domain, most: int = MOST_NODES) -> PriorSplits:
        """Return how the prior divides a domain's nodes, at most so many; refuse one that says nothing there."""
        points, weights = self._placed(domain)
        codes, inside = domain.encode(points)
        weights = np.ones(codes.size) if weights is None else weights
        if weights.size != codes.size:
            raise InputError(f"the prior has {weights.size} weights for {codes.size} points.")
        told = inside & (weights > 0)
        if not told.any():
            raise InputError(
                "nothing of the prior lies in the domain: are coordinates in the domain's order and coordinate system?"
            )
        splits = divided(BinaryTree(domain), codes[told], weights[told], most)
        if not splits.node.size:
            raise InputError(
                "the prior is worth fewer than four points in the domain: too few to say where events are."
            )
        return splits


def _weights(given: Any) -> Floats | None:
    if given is None:
        return None
    weights = floats(given)
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise InputError("weights are finite numbers, one for each, none negative, and not all 0.")
    largest: float = weights.max()
    return weights / largest


def _in_domain(placed: tuple[Floats, Floats | None], crs: str | None) -> Callable[[Domain], _Placed]:
    """Return what gives points of the plane in a domain's coordinates."""
    points, weights = placed

    def in_domain(domain: Domain) -> _Placed:
        if domain.attributes or domain.dimension != 2:
            raise InputError(
                "this prior is of places on a map alone, which this domain's points are not: give rows with all of "
                "the domain's columns, by Prior.from_points(...), or an earlier release on the same domain."
            )
        own = domain.crs
        if crs is None or crs == own:
            return points, weights
        if own is None:
            raise InputError(
                f"the prior is in {crs}, but the domain names no coordinate system: say crs=... in the domain."
            )
        return Projection(crs, own).forward(points), weights

    return in_domain


def _polygons(geometries: NDArray[Any], weights: Floats | None) -> tuple[Floats, Floats]:
    import shapely

    geometry_parts(geometries, "Polygon")  # refuses anything else
    return on_polygons(geometries, shapely.area(geometries) if weights is None else weights)


def _lines(geometries: NDArray[Any], weights: Floats | None) -> tuple[Floats, Floats]:
    import shapely

    geometry_parts(geometries, "LineString")
    return on_lines(geometries, shapely.length(geometries) if weights is None else weights)
