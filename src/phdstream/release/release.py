"""`Release`: what comes out of a tick. Everything here is public and may be recomputed at will."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints
from phdstream.domains import Domain
from phdstream.domains.product import Product
from phdstream.errors import InputError
from phdstream.release.answering import answer_queries
from phdstream.release.changes import Changes
from phdstream.release.changes import difference as _difference
from phdstream.release.columns import names_beside_shapes, point_columns
from phdstream.release.counts import Counts, check_confidence
from phdstream.release.estimate import Estimate
from phdstream.release.grouping import Groups, groups_of
from phdstream.release.layers import as_frame, is_frame, is_series, joined
from phdstream.release.maps import DEGREES, cell_shapes, h3_shapes, layer_shapes, point_shapes
from phdstream.release.marginal import marginal_estimate, marginal_points
from phdstream.release.plots import draw_release
from phdstream.release.shown import release_html
from phdstream.release.tables import check_kind, table_as
from phdstream.release.unevenness import ALIKE, ROWS_ALIKE
from phdstream.release.usefulness import Usefulness, usefulness

__all__ = ["Release"]

Within: TypeAlias = Callable[[Ints], Floats] | None
"""The share of each node that has the values asked for; None if all are."""


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

    def count(
        self, rectangles: Any = None, confidence: float = 0.95, *, where: Mapping[str, Any] | None = None
    ) -> Counts:
        """Estimate how many points lie in rectangles, an array (n, 2d): all minima, then all maxima.

        None is everything: one count. On a `Hierarchy` names of places and groups are asked for instead. On a `Product`
        rectangles, or names, are of the place, and ``where`` says which values count, by attributes' names: names or
        groups of a `Category` or days (one or a list), a range (low, high) of the others.
        """
        return self._answer(self.domain.queries(rectangles), confidence, self._rectangle_estimates, where)

    def table(
        self,
        by: Any,
        layer: Any = None,
        confidence: float = 0.95,
        to: str = "arrow",
        *,
        where: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return counts by the values of attributes of a `Product`: a table, with a row for each combination.

        ``by`` is a list of attributes' names. One may be a column of a ``layer`` of polygons, a GeoDataFrame: then
        rows are by its areas too. ``where`` is as for `count`. The columns are those names, and the columns of
        `Counts`. Tables by fewer attributes are the sums of those by more, counts being added; intervals
        are not.

        >>> import phdstream as phd
        >>> vehicle, day = phd.Category("vehicle", ["bus", "tram"]), phd.DayOfWeek("day")
        >>> domain = phd.Product(phd.Box([(0, 1), (0, 1)]), vehicle, day)
        >>> stream = phd.TrackingStream(domain, 1.0, phd.Event(), noise=phd.Simulation(seed=1))
        >>> release = stream.update([(0.3, 0.3, "bus", "Mon")] * 400 + [(0.6, 0.3, "tram", "Sun")] * 100)
        >>> table = release.table(["vehicle"])
        >>> table["vehicle"].to_pylist(), [round(count, -2) for count in table["value"].to_pylist()]
        (['bus', 'tram'], [400.0, 100.0])
        """
        groups = groups_of(self.domain, by, layer)
        shapes = np.zeros(0, dtype=object) if layer is None else layer_shapes(self.domain, layer)

        def estimates(queries: NDArray[Any], within: Within) -> Floats:
            return self._group_estimates(groups, shapes, queries, within)

        answer = self._answer(np.arange(len(groups)), confidence, estimates, where)
        area = groups.area
        drawn = None if area is None else lambda: (shapes[area], self.domain.crs)
        return table_as(to, groups.columns | answer.columns(), self.metadata, drawn)

    def count_in(
        self, layer: Any, confidence: float = 0.95, to: str | None = None, *, where: Mapping[str, Any] | None = None
    ) -> Any:
        """Estimate how many points lie in each polygon of a layer (wards, counties).

        A GeoDataFrame comes back as one, with its rows, columns and coordinates, and the columns of `Counts` added.
        From shapes without columns (Shapely polygons, a GeoSeries, the path of a file) come `Counts`, in their order.
        ``to`` names another kind of table, as everywhere; ``where`` is as for `count`.

        There is one answer for each row; in a missing or empty polygon there is nothing, and one that crosses itself is
        mended. A layer in another coordinate system than the domain's is converted; one that names none is taken to be
        in the domain's.
        """
        shapes = layer_shapes(self.domain, layer)
        answer = self._answer(shapes, confidence, self._shape_estimates, where)
        if is_frame(layer) or (to is not None and is_series(layer)):
            return joined(as_frame(layer), answer.columns(), self.metadata | {"confidence": confidence}, to)
        return answer if to is None else answer.to_table(to, lambda: (shapes, self.domain.crs))

    def to_h3(
        self, resolution: int, confidence: float = 0.95, to: str = "arrow", *, where: Mapping[str, Any] | None = None
    ) -> Any:
        """Return counts per H3 cell, a table: ``h3``, and the columns of `Counts`. ``where`` is as for `count`."""
        cells, shapes = h3_shapes(self.domain, resolution)
        answer = self._answer(shapes, confidence, self._shape_estimates, where)
        columns = {"h3": np.array(cells)} | answer.columns()
        return table_as(to, columns, self.metadata, lambda: (shapes, self.domain.crs or DEGREES))

    def _answer(
        self,
        queries: NDArray[Any],
        confidence: float,
        estimates: Callable[[NDArray[Any], Within], Floats],
        where: Mapping[str, Any] | None = None,
    ) -> Counts:
        check_confidence(confidence)
        within = None if where is None else self.domain.within(where)
        if self.held:
            return Counts.unknown(len(queries), confidence, self.privacy)
        value, unbiased, noise, error = estimates(queries, within)
        return Counts.around(value, unbiased, noise, error, confidence, self.privacy)

    def _rectangle_estimates(self, queries: NDArray[Any], within: Within = None) -> Floats:
        """Return what `answer_queries` does for the domain's own queries, rectangles for most: (4, queries)."""
        domain, alike = self.domain, ROWS_ALIKE if self.domain.attributes else None
        return answer_queries(domain, self.estimate, queries, domain.overlap, domain.covered, within, alike)

    def _group_estimates(self, groups: Groups, shapes: NDArray[Any], queries: NDArray[Any], within: Within) -> Floats:
        """Return the same for the groups of a table, by their positions."""
        covered = groups.covered(self.domain.covered_by(shapes) if shapes.size else None)

        def overlap(nodes: Ints, at: Ints) -> Floats:
            return groups.overlap(nodes, at, shapes)

        return answer_queries(
            self.domain, self.estimate, queries, overlap, covered, within, ALIKE if shapes.size else ROWS_ALIKE
        )

    def _shape_estimates(self, shapes: NDArray[Any], within: Within = None) -> Floats:
        """Return the same for polygons; empty ones hold nothing."""
        there, estimates, domain = ~shapely.is_empty(shapes), np.zeros((4, len(shapes))), self.domain
        some, positions = shapes[there], np.arange(np.count_nonzero(there))
        shapely.prepare(some)

        def overlap(nodes: Ints, at: Ints) -> Floats:
            return domain.overlap_shapes(nodes, some[at])

        try:
            covered = domain.covered_by(some)
            estimates[:, there] = answer_queries(domain, self.estimate, positions, overlap, covered, within)
        except shapely.errors.GEOSException:
            raise InputError(
                "some polygon cannot be compared with the release's cells: simplify it, or mend it in a GIS."
            ) from None
        return estimates

    def sample(self, to: str | None = None) -> Any:
        """Return the synthetic points now at hand, an array (n, d): the same each time for one release.

        Coordinates are numbers; on a `Hierarchy` they are the names of places. On a `Product` it is an array of n rows
        with named fields, coordinates and attributes. With ``to`` they are a table: ``tick``, and a column for each
        field (with GeoPandas, points instead of coordinates).
        """
        if to is not None:
            check_kind(to)
        points, domain = self.domain.rows(self.domain.sample(self.leaves, self.points, self.key)), self.domain
        if to is None:
            return points
        named = names_beside_shapes(domain) if to == "geopandas" else domain.names
        columns = {"tick": np.full(len(points), self.tick)} | point_columns(points, named)
        return table_as(to, columns, self.metadata, lambda: (point_shapes(domain, points), domain.crs))

    def places(self) -> Release:
        """Return the release of places alone, whatever the attributes (`Product`): itself, if there are none.

        It is for maps: counts are the same as this release's, and so are their noise intervals, nearly. Its intervals
        for true counts know less of rows, and are narrower than this release's; its synthetic points are others.
        """
        domain = self.domain
        if not isinstance(domain, Product):
            return self
        estimate = marginal_estimate(domain, self.estimate, self.key)
        before = marginal_points(domain, self.previous_nodes, self.previous_points, self.key)
        return Release(domain.location, self.tick, estimate, self.key, self.metadata, *before, self.held)

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
        inserts, deletes = map(self.domain.rows, _difference(come, gone))
        return Changes(inserts, deletes, self.domain, self.tick, self.metadata)

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
        state = "held until the start" if self.held else f"about {self.total:,.0f} points, {self.leaves.size:,} cells"
        return f"<Release tick {self.tick} on {self.domain!r}: {state}; {self.privacy}>"
