"""`Release`: what comes out of a tick. Everything here is public and may be recomputed at will."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints
from phdstream.domains import Domain
from phdstream.errors import InputError, shown
from phdstream.release.answering import answer_queries, parents_of
from phdstream.release.estimate import Estimate
from phdstream.release.maps import cell_shapes, check_planar, domain_crs, geodataframe, h3_shapes, layer_shapes
from phdstream.release.share_noise import share_noise_of_all

__all__ = ["Changes", "Counts", "Release"]

Overlap: TypeAlias = Callable[[Ints, NDArray[Any]], Floats]

_CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Counts:
    """Estimated numbers of points in rectangles.

    - ``value``: the estimate to use; never negative, and rectangles that tile the domain add up to the total;
    - ``unbiased``: before negative counts were removed; right on average, but may be negative;
    - ``stderr``: the standard deviation of the privacy noise in ``unbiased``;
    - ``low``, ``high``: an interval for what would have been released without noise.

    **What the interval covers:** the privacy noise. **What it does not cover:** that points need not lie
    evenly inside a cell of the release, which matters for rectangles smaller than or cutting through cells.
    """

    value: Floats
    unbiased: Floats
    stderr: Floats
    low: Floats
    high: Floats
    confidence: float
    privacy: str


@dataclass(frozen=True)
class Changes:
    """Synthetic points that appear and disappear between two releases."""

    inserts: Floats
    deletes: Floats
    names: tuple[str, ...]
    metadata: dict[str, Any] = field(repr=False, default_factory=dict)

    def to_table(self) -> pa.Table:
        """Return the changes as an Arrow table: the coordinates, and ``sign`` (+1 appears, -1 disappears)."""
        points = np.concatenate([self.deletes, self.inserts])
        sign = np.repeat(np.array([-1, 1], dtype=np.int8), [len(self.deletes), len(self.inserts)])
        columns = {name: points[:, i] for i, name in enumerate(self.names)}
        return _table(columns | {"sign": sign}, self.metadata)


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

    def cells(self) -> pa.Table:
        """Return the partition as an Arrow table, one row a cell.

        Columns: ``node``, ``level``, the bounds (or the name), ``count`` (never negative, adds up), ``unbiased`` (may
        be negative), ``stderr`` (of the noise in ``unbiased``) and ``points`` (how many synthetic points it has).
        """
        order = self._leaf_order
        nodes = self.estimate.node[order]
        columns: dict[str, NDArray[Any]] = {"node": nodes, "level": self.domain.levels(nodes)}
        columns |= self.domain.cell_columns(nodes)
        columns |= {"count": self.estimate.count[order], "unbiased": self.estimate.unbiased[order]}
        columns |= {"stderr": np.sqrt(self.estimate.variance[order]), "points": self.estimate.points[order]}
        return _table(columns, self.metadata)

    def count(self, rectangles: Any, confidence: float = 0.95) -> Counts:
        """Estimate how many points lie in rectangles, an array (n, 2d): all minima, then all maxima."""
        return self._answer("", self.domain.queries(rectangles), confidence)

    def count_in(self, layer: Any, confidence: float = 0.95) -> Counts:
        """Estimate how many points lie in each polygon of a layer (wards, counties).

        ``layer`` is a GeoSeries or GeoDataFrame, Shapely polygons, or the path of a file of them. There is one answer
        for each row; in a missing or empty polygon there is nothing, and one that crosses itself is mended. A layer in
        another coordinate system than the domain's is converted; one that names none is taken to be in the domain's.
        """
        return self._answer("_shapes", layer_shapes(self.domain, layer), confidence)

    def to_h3(self, resolution: int, confidence: float = 0.95) -> pa.Table:
        """Return counts per H3 cell, an Arrow table: ``h3``, ``count``, ``unbiased``, ``stderr``, ``low``, ``high``."""
        cells, shapes = h3_shapes(self.domain, resolution)
        answer = self._answer("_shapes", shapes, confidence)
        columns = {"h3": np.array(cells), "count": answer.value, "unbiased": answer.unbiased}
        return _table(columns | {"stderr": answer.stderr, "low": answer.low, "high": answer.high}, self.metadata)

    def to_geodataframe(self, what: str = "points") -> Any:
        """Return the synthetic ``"points"``, or the ``"cells"`` with their counts, as a GeoDataFrame."""
        if not isinstance(what, str) or what not in ("points", "cells"):
            raise InputError(f"a GeoDataFrame can hold 'points' or 'cells', not {shown(what)}.")
        check_planar(self.domain)
        crs = domain_crs(self.domain)
        if what == "points":
            shapes = np.atleast_1d(shapely.points(self.sample()))
            return geodataframe({"tick": np.full(shapes.size, self.tick)}, shapes, crs, self.metadata)
        return geodataframe(self.cells().to_pandas(), cell_shapes(self.domain, self.leaves), crs, self.metadata)

    def _answer(self, kind: str, queries: NDArray[Any], confidence: float) -> Counts:
        if not isinstance(confidence, float | int) or not 0 < confidence < 1 or (1 + confidence) / 2 == 1:
            raise InputError(f"confidence lies strictly between 0 and 1, not {shown(confidence)}.")
        if self.held:
            zero, unknown = np.zeros(len(queries)), np.full(len(queries), np.inf)
            return Counts(zero, zero, unknown, zero, unknown, confidence, self.privacy)
        value, unbiased, variance = self._shape_estimates(queries) if kind else self._estimates(kind, queries)
        stderr = np.sqrt(variance)
        margin = _quantile(confidence) * stderr
        low, high = np.maximum(unbiased - margin, 0), np.maximum(unbiased + margin, 0)
        return Counts(
            value, unbiased, stderr, np.minimum(low, value), np.maximum(high, value), confidence, self.privacy
        )

    def _shape_estimates(self, shapes: NDArray[Any]) -> Floats:
        """Return the same for polygons; empty ones hold nothing."""
        there, estimates = ~shapely.is_empty(shapes), np.zeros((3, len(shapes)))
        shapely.prepare(shapes)
        try:
            estimates[:, there] = self._estimates("_shapes", shapes[there])
        except shapely.errors.GEOSException:
            raise InputError(
                "some polygon cannot be compared with the release's cells: simplify it, or mend it in a GIS."
            ) from None
        return estimates

    def _estimates(self, kind: str, queries: NDArray[Any]) -> Floats:
        """Return value, unbiased value and variance, by descent where the domain can compare one by one."""
        if hasattr(self.domain, f"covered{kind}"):
            return answer_queries(self.domain, self.estimate, queries, getattr(self.domain, f"covered{kind}"))
        overlap = getattr(self.domain, f"overlap{kind}")
        rows = max(1, _CELLS_AT_ONCE // self.estimate.node.size)
        parts = [self._compare_all(overlap, queries[i : i + rows]) for i in range(0, len(queries), rows)]
        return np.concatenate(parts, axis=1) if parts else np.zeros((3, 0))

    def _compare_all(self, overlap: Overlap, queries: NDArray[Any]) -> Floats:
        """Return the same by comparing all nodes with all queries; a node's noise enters with its overlap squared."""
        e = self.estimate
        share = overlap(e.node, queries)
        of_leaves, noise = share[:, e.leaf], share**2 @ e.own_variance
        if e.share_variance.any():
            noise += share_noise_of_all(e, parents_of(self.domain, e), share)
        return np.stack([of_leaves @ e.count[e.leaf], of_leaves @ e.unbiased[e.leaf], noise])

    def sample(self) -> Floats:
        """Return the synthetic points now at hand, an array (n, d): the same each time for one release."""
        return self.domain.sample(self.leaves, self.points, self.key)

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

    def __repr__(self) -> str:
        state = "held until the start" if self.held else f"total {self.total:g}, {self.leaves.size} cells"
        return f"<Release tick {self.tick}: {state}; {self.privacy}>"


def _difference(come: Floats, gone: Floats) -> tuple[Floats, Floats]:
    """Return the rows of ``come`` not in ``gone``, and the reverse, counting repeated rows; both in order."""
    rows = np.concatenate([come, gone])
    order = np.lexsort(rows.T[::-1])
    rows, sign = rows[order], np.where(order < len(come), 1, -1)
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)][: len(rows)])
    net = np.add.reduceat(sign, starts) if starts.size else sign
    return np.repeat(rows[starts], np.maximum(net, 0), axis=0), np.repeat(rows[starts], np.maximum(-net, 0), axis=0)


def _quantile(confidence: float) -> float:
    """Return how many standard deviations to go: enough for one Laplace variable and for a sum of many."""
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    return max(normal, -math.log(1 - confidence) / math.sqrt(2))


def _table(columns: dict[str, Any], metadata: dict[str, Any]) -> pa.Table:
    """Return an Arrow table that carries the release's metadata, above all what it may claim about privacy."""
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    return table.replace_schema_metadata(
        {"phdstream": json.dumps(metadata), "privacy": str(metadata.get("privacy", ""))}
    )
