"""`Release`: what comes out of a tick. Everything here is public and may be recomputed at will."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints
from phdstream.domains import Domain
from phdstream.errors import InputError
from phdstream.release.answering import answer_queries
from phdstream.release.changes import Changes
from phdstream.release.changes import difference as _difference
from phdstream.release.counts import Counts, check_confidence
from phdstream.release.estimate import Estimate
from phdstream.release.layers import is_frame, joined
from phdstream.release.maps import DEGREES, cell_shapes, h3_shapes, layer_shapes, point_shapes
from phdstream.release.plots import draw_release
from phdstream.release.shown import release_html
from phdstream.release.tables import table_as
from phdstream.release.usefulness import Usefulness, usefulness

__all__ = ["Release"]


@dataclass(frozen=True)
class Release:
    """A tick's public result: a partition of the domain into cells, with a count for each.

    Made by `Stream.update`. ``metadata`` states what was promised: unit, ε, method, version. While a stream is still
    collecting events for its start (``start_after``), ``held`` is True and nothing is known yet.

    >>> import phdstream as phd
    >>> stream = phd.PHDStream(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, unit=phd.Event(), noise=phd.Simulation(seed=1))
    >>> release = stream.update(np.full((500, 2), 0.3))
    >>> release.tick, round(release.total, -2), release.sample().shape[1]
    (1, 500.0, 2)
    >>> inside = release.count([[0.25, 0.25, 0.5, 0.5]])
    >>> bool(inside.low[0] <= 500 <= inside.high[0])
    True
    >>> release.cells().column_names[:6]
    ['node', 'level', 'x_min', 'y_min', 'x_max', 'y_max']
    """

    domain: Domain
    tick: int
    estimate: Estimate
    key: int
    metadata: dict[str, Any]
    previous_nodes: Ints
    previous_points: Ints
    held: bool = False

    @property
    def privacy(self) -> str:
        """What the release may claim, in words; experiments say "simulated, not private" here."""
        return str(self.metadata.get("privacy", ""))

    @property
    def total(self) -> float:
        """The estimated number of points at hand."""
        return float(self.estimate.count[0]) if not self.held else 0.0

    @property
    def leaves(self) -> Ints:
        """The nodes of the cells, in code order."""
        return self.estimate.node[self._leaf_order]

    @property
    def points(self) -> Ints:
        """How many synthetic points each cell has: whole numbers that add up."""
        return self.estimate.points[self._leaf_order]

    @property
    def leaf_unbiased(self) -> Floats:
        """Each cell's count before negative ones were removed."""
        return self.estimate.unbiased[self._leaf_order]

    @property
    def leaf_variance(self) -> Floats:
        """The variance of the noise in each cell's unbiased count."""
        return self.estimate.variance[self._leaf_order]

    @cached_property
    def _leaf_order(self) -> Ints:
        leaf = np.flatnonzero(self.estimate.leaf)  # level by level, each in order: runs that a stable sort merges
        return leaf[np.argsort(self.domain.code_range(self.estimate.node[leaf])[0], kind="stable")]

    def cells(self, to: str = "arrow") -> Any:
        """Return the partition as a table, one row a cell: ``"arrow"``, ``"pandas"``, ``"polars"`` or ``"geopandas"``.

        Columns: ``node``, ``level``, the bounds (or the name), ``count`` (never negative, adds up), ``unbiased`` (may
        be negative), ``stderr`` (of the noise in ``unbiased``) and ``points`` (how many synthetic points it has).
        """
        order = self._leaf_order
        nodes = self.estimate.node[order]
        columns: dict[str, NDArray[Any]] = {"node": nodes, "level": self.domain.levels(nodes)}
        columns |= self.domain.cell_columns(nodes)
        columns |= {"count": self.estimate.count[order], "unbiased": self.estimate.unbiased[order]}
        columns |= {"stderr": np.sqrt(self.estimate.variance[order]), "points": self.estimate.points[order]}
        return table_as(to, columns, self.metadata, lambda: (cell_shapes(self.domain, nodes), self.domain.crs))

    def count(self, rectangles: Any, confidence: float = 0.95) -> Counts:
        """Estimate how many points lie in rectangles, an array (n, 2d): all minima, then all maxima."""
        return self._answer(self.domain.queries(rectangles), confidence, self._rectangle_estimates)

    def count_in(self, layer: Any, confidence: float = 0.95, to: str | None = None) -> Any:
        """Estimate how many points lie in each polygon of a layer (wards, counties).

        A GeoDataFrame comes back as one, with its rows, columns and coordinates, and the columns of `Counts` added.
        From shapes without columns (Shapely polygons, a GeoSeries, the path of a file) come `Counts`, in their order.
        ``to`` names another kind of table, as everywhere.

        There is one answer for each row; in a missing or empty polygon there is nothing, and one that crosses itself is
        mended. A layer in another coordinate system than the domain's is converted; one that names none is taken to be
        in the domain's.
        """
        shapes = layer_shapes(self.domain, layer)
        answer = self._answer(shapes, confidence, self._shape_estimates)
        if is_frame(layer):
            return joined(layer, answer.columns(), self.metadata | {"confidence": confidence}, to)
        return answer if to is None else answer.to_table(to, lambda: (shapes, self.domain.crs))

    def to_h3(self, resolution: int, confidence: float = 0.95, to: str = "arrow") -> Any:
        """Return counts per H3 cell, a table: ``h3``, and the columns of `Counts`."""
        cells, shapes = h3_shapes(self.domain, resolution)
        answer = self._answer(shapes, confidence, self._shape_estimates)
        columns = {"h3": np.array(cells)} | answer.columns()
        return table_as(to, columns, self.metadata, lambda: (shapes, self.domain.crs or DEGREES))

    def _answer(self, queries: NDArray[Any], confidence: float, estimates: Callable[[NDArray[Any]], Floats]) -> Counts:
        check_confidence(confidence)
        if self.held:
            return Counts.unknown(len(queries), confidence, self.privacy)
        value, unbiased, noise, error = estimates(queries)
        return Counts.around(value, unbiased, noise, error, confidence, self.privacy)

    def _rectangle_estimates(self, queries: NDArray[Any]) -> Floats:
        """Return what `answer_queries` does for the domain's own queries, rectangles for most: (4, queries)."""
        return answer_queries(self.domain, self.estimate, queries, self.domain.overlap, self.domain.covered)

    def _shape_estimates(self, shapes: NDArray[Any]) -> Floats:
        """Return the same for polygons; empty ones hold nothing."""
        there, estimates, domain = ~shapely.is_empty(shapes), np.zeros((4, len(shapes))), self.domain
        some, positions = shapes[there], np.arange(np.count_nonzero(there))
        shapely.prepare(some)

        def overlap(nodes: Ints, at: Ints) -> Floats:
            return domain.overlap_shapes(nodes, some[at])

        try:
            covered = domain.covered_by(some)
            estimates[:, there] = answer_queries(domain, self.estimate, positions, overlap, covered)
        except shapely.errors.GEOSException:
            raise InputError(
                "some polygon cannot be compared with the release's cells: simplify it, or mend it in a GIS."
            ) from None
        return estimates

    def sample(self, to: str | None = None) -> Any:
        """Return the synthetic points now at hand, an array (n, d): the same each time for one release.

        Coordinates are numbers; on a `Hierarchy` they are the names of places. With ``to`` they are a table: ``tick``,
        and a column for each coordinate (with GeoPandas, points instead).
        """
        points = self.domain.sample(self.leaves, self.points, self.key)
        if to is None:
            return points
        columns = {"tick": np.full(len(points), self.tick)}
        if to != "geopandas":
            columns |= {name: points[:, i] for i, name in enumerate(self.domain.names)}
        return table_as(to, columns, self.metadata, lambda: (point_shapes(self.domain, points), self.domain.crs))

    @cached_property
    def usefulness(self) -> Usefulness:
        """What is expected of the release, by its own noise: ``warning`` says where it is no better than nothing."""
        return usefulness(self.domain, self.estimate)

    def changes(self) -> Changes:
        """Return the synthetic points that appeared and disappeared since the previous release.

        Applying all changes in order gives the current `sample`. A cell with as many points as before keeps them.
        """
        nodes, points = self.leaves, self.points
        _, before, now = np.intersect1d(self.previous_nodes, nodes, assume_unique=True, return_indices=True)
        same = self.previous_points[before] == points[now]
        old = np.delete(np.arange(self.previous_nodes.size), before[same])
        new = np.delete(np.arange(nodes.size), now[same])
        gone = self.domain.sample(self.previous_nodes[old], self.previous_points[old], self.key)
        come = self.domain.sample(nodes[new], points[new], self.key)
        return Changes(*_difference(come, gone), self.domain.names, self.metadata)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the release as plain arrays, to publish it again after a crash, bit for bit."""
        return vars(self.estimate) | {
            "previous_nodes": self.previous_nodes,
            "previous_points": self.previous_points,
        }

    @classmethod
    def from_arrays(
        cls,
        domain: Domain,
        tick: int,
        key: int,
        metadata: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        held: bool,
    ) -> Release:
        """Return the release that `to_arrays` described."""
        columns = dict(arrays)
        nodes, points = columns.pop("previous_nodes"), columns.pop("previous_points")
        return cls(domain, tick, Estimate(**columns), key, metadata, nodes, points, held)

    def plot(self, what: str = "points", axes: Any = None) -> Any:
        """Draw the release on a map with matplotlib, and return the axes.

        ``what``: the synthetic ``"points"``; the ``"cells"`` by how dense they are; the ``"uncertainty"`` of counts,
        place by place; or the ``"changes"`` since the tick before.
        """
        return draw_release(self, what, axes)

    def explore(self) -> Any:
        """Return the release as a page to look at in a notebook: a map to move, where rectangles can be counted.

        Needs the extra ``page``. ``.save(path)`` writes it to a file instead.
        """
        from phdstream.page.notebook import explored

        return explored(self)

    def _repr_html_(self) -> str:
        return release_html(self)

    def __repr__(self) -> str:
        state = "held until the start" if self.held else f"total {self.total:g}, {self.leaves.size} cells"
        return f"<Release tick {self.tick} on {self.domain!r}: {state}; {self.privacy}>"
