"""`Product`: a place and what else is known of an event, as one domain: rows, not only points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints, distinct
from phdstream.domains.chunks import in_chunks
from phdstream.domains.codes import MAX_BITS, hash_uniform
from phdstream.domains.domain import CoveredShare, Domain
from phdstream.domains.hierarchy import Hierarchy
from phdstream.domains.points import rectangles_array
from phdstream.domains.product.attribute import Attribute
from phdstream.domains.product.category import Category
from phdstream.domains.product.interleaving import Interleaving
from phdstream.domains.product.reading import Positions, read_rows
from phdstream.domains.product.schedule import PLACE, default_schedule, read_schedule
from phdstream.errors import InputError, did_you_mean, shown

__all__ = ["Product"]

_TAKEN = {
    *("tick", "start", "end", "area", "h3", "geometry", "sign", "node", "level", "count", "points"),
    *("value", "low", "high", "unbiased", "stderr", "noise_low", "noise_high"),
}
"""What columns of releases' tables are called, beside those of the domain."""


class Product(Domain):
    """A place with attributes: events are rows of a location, a category, an age, an hour.

    ``place`` is any other domain; each attribute is a `Category`, `Bins`, `TimeOfDay` or `DayOfWeek` with a public list
    of values. A row whose place is outside, or whose value is not in the list, counts nowhere.

    A node of the tree is a node of the place with a node of each attribute. ``schedule`` says which of them each level
    divides: a list of "place" and attributes' names, each as often as it has levels. By default they take turns
    (`default_schedule`). The code has at most 62 bits in all.

    >>> import phdstream as phd
    >>> city = phd.Box([(-74.3, -73.7), (40.5, 41.0)], names=("lon", "lat"))
    >>> rides = Product(city, phd.Category("vehicle", ["bus", "tram", "ferry"]), phd.Bins("age", [0, 18, 65, 120]))
    >>> rides
    Product(Box([(-74.3, -73.7), (40.5, 41.0)], fanout=2, depth=25), Category('vehicle', 3 values), \
Bins('age', [0.0, 18.0, 65.0, 120.0]))
    >>> rows = {"lon": [-74.0, -74.0], "lat": [40.7, 40.7], "vehicle": ["tram", "rocket"], "age": [33, 33]}
    >>> rides.encode(rides.points(rows))[1].tolist()
    [True, False]
    """

    def __init__(self, place: Domain, *attributes: Attribute, schedule: Sequence[str] | None = None) -> None:
        _check_parts(place, attributes)
        self._location, self.attributes, self.crs = place, attributes, place.crs
        first = Category(place.names[0], place.places) if isinstance(place, Hierarchy) else place
        self.parts: tuple[Domain, ...] = (first, *attributes)
        self.names = tuple(name for part in self.parts for name in part.names)
        self.dimension = len(self.names)
        _check_bits(self.parts)
        depths = {PLACE: first.depth} | {attribute.name: attribute.depth for attribute in attributes}
        self.schedule = default_schedule(depths) if schedule is None else read_schedule(schedule, depths)
        order = list(depths)
        divided = tuple(order.index(name) for name in self.schedule)
        self._mixed = Interleaving([part.level_bits for part in self.parts], divided)
        self.level_bits, self.fanout = tuple(self._mixed.level_bits), max(part.fanout for part in self.parts)
        self.covered = None if first.covered is None else self._covered
        ends = np.cumsum([0, *(part.dimension for part in self.parts)])
        self._columns = [slice(a, b) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Product:
        """Return the product that `to_dict` described, ``type`` left out."""
        from phdstream.domains import domain_from_dict
        from phdstream.domains.product import attribute_from_dict

        known = {"place", "attributes", "schedule"}
        for name in [*(known - {"schedule"}), *fields]:
            if name not in fields or name not in known:
                raise InputError(f"a domain of type 'product' has place, attributes and schedule; '{name}' is "
                                 f"{'missing' if name in known else 'not known'}.")  # fmt: skip
        attributes = fields["attributes"]
        if not isinstance(fields["place"], dict) or not isinstance(attributes, list | tuple):
            raise InputError("a domain of type 'product' has a place (a domain) and a list of attributes.")
        made = [attribute_from_dict(each) for each in attributes]
        return cls(domain_from_dict(fields["place"]), *made, schedule=fields.get("schedule"))

    @property
    def location(self) -> Domain:
        """The place alone."""
        return self._location

    @property
    def cell_metres(self) -> float | None:
        """How wide the finest cells are in metres, where that is known of the place."""
        return self.location.cell_metres

    @cached_property
    def bit_axes(self) -> tuple[int, ...]:
        """The coordinate that each bit halves; -1 where neighbours tell nothing: among the names of a category."""
        axes = [self._axes_of(part) for part in self.parts]
        if not any(axis >= 0 for axis in axes[0]):
            return ()
        begins = [columns.start for columns in self._columns]
        each = [iter(part) for part in axes]
        found = [(part, next(each[part])) for part in self._mixed.bits_by_part()]
        return tuple(begins[part] + axis if axis >= 0 else -1 for part, axis in found)

    @staticmethod
    def _axes_of(part: Domain) -> tuple[int, ...]:
        if isinstance(part, Attribute):
            return (-1 if isinstance(part, Category) else 0,) * part.total_bits
        return part.bit_axes or (-1,) * part.total_bits

    def points(self, data: Any) -> NDArray[Any]:
        """Return rows from what a user holds, as numbers: coordinates, and the position of each attribute's value.

        Takes tables by the names of their columns (also a GeoDataFrame, whose geometry is the place), arrays of rows
        with names as `Release.sample` gives them, and arrays or lists of rows (place, then attributes, in order).
        """
        return read_rows(self, data)

    def encode(self, points: Any) -> tuple[Ints, Bools]:
        """Return each row's code, and whether its place is inside and all its values are in their lists."""
        if points.dtype != np.float64:
            points = self._from_files(points) if points.dtype == object else self.points(points)
        codes, inside = np.empty(len(points), dtype=np.int64), np.empty(len(points), dtype=bool)
        place, there = self.parts[0].encode(np.asarray(points[:, self._columns[0]]))

        def encode_some(rows: slice) -> None:
            parts, within = [place[rows]], there[rows]
            for part, columns in zip(self.attributes, self._columns[1:], strict=True):
                code, known = part.encode(points[rows, columns])
                parts.append(code)
                within = within & known
            codes[rows], inside[rows] = self._mixed.join(parts), within

        in_chunks(encode_some, len(points))
        return codes, inside

    def _from_files(self, points: NDArray[Any]) -> Floats:
        """Return rows of a hierarchy's names, and of positions, as files give them, as numbers."""
        import pyarrow as pa

        place = self.parts[0]
        assert isinstance(place, Category)
        names = place.read(pa.array(points[:, 0], pa.string()))
        return np.column_stack([names, points[:, 1:].astype(np.float64)])

    def part_nodes(self, nodes: Ints, part: int) -> Ints:
        """Return the node of a part (0 is the place) that each node lies in."""
        return self._mixed.nodes_of(self.code_range(nodes)[0], self.levels(nodes), part)

    def bounds(self, nodes: Ints) -> Floats:
        """Return the bounding boxes of nodes: coordinates and positions of values, all minima, then all maxima."""
        each = [_of_distinct(part.bounds, self.part_nodes(nodes, i)) for i, part in enumerate(self.parts)]
        halves = [np.split(bounds, 2, axis=1) for bounds in each]
        return np.concatenate([low for low, _ in halves] + [high for _, high in halves], axis=1)

    def measure(self, nodes: Ints) -> Floats:
        """Return the size of each node: that of the place, times the numbers of values."""
        size: Floats = np.ones(nodes.size)
        for i, part in enumerate(self.parts):
            size = size * _of_distinct(part.measure, self.part_nodes(nodes, i))
        return size

    def has_measure(self, nodes: Ints) -> Bools:
        """Return which nodes have any measure: those whose parts all have."""
        there = np.ones(nodes.size, dtype=bool)
        for i, part in enumerate(self.parts):
            there &= _of_distinct(part.has_measure, self.part_nodes(nodes, i))
        return there

    def children(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the children of nodes: those of the part that is divided at their level. See `Domain.children`."""
        if nodes.size == 0:
            return nodes, np.zeros(0, np.int64), np.zeros(0)
        level = int(self.levels(nodes[:1])[0])
        bits, at = self.level_bits[level], self._mixed.schedule[level]
        different, which = distinct(self.part_nodes(nodes, at))
        child, parent, share = self.parts[at].children(different)
        number = np.bincount(parent, minlength=different.size)
        start = np.cumsum(number) - number
        family = number[which]
        of = np.repeat(np.arange(nodes.size), family)
        within = np.arange(of.size) - np.repeat(np.cumsum(family) - family, family)
        chosen = start[which[of]] + within
        return (nodes[of] << bits) | (child[chosen] & ((1 << bits) - 1)), of, share[chosen]

    def queries(self, data: Any) -> NDArray[Any]:
        """Return rectangles of all coordinates and positions (n, 2d), from what is asked of the place alone.

        That is rectangles, or names on a `Hierarchy`; None is the whole place. Of attributes it is everything.
        """
        place, whole = self.parts[0], self.bounds(self.first_nodes[:1])
        if data is None:
            return whole
        if isinstance(place, Category):
            if not _is_numbers(data):
                names = [data] if isinstance(data, str) else list(data)
                rows = np.repeat(whole, len(names), axis=0)
                for row, name in zip(rows, names, strict=True):
                    ((row[0], row[self.dimension]),) = place.intervals(name)
                return rows
        elif not _is_numbers(data, 2 * self.dimension):
            asked = place.queries(data)
            rows = np.repeat(whole, len(asked), axis=0)
            rows[:, : place.dimension], rows[:, self.dimension : self.dimension + place.dimension] = np.split(
                asked, 2, 1
            )
            return rows
        return rectangles_array(data, self.dimension)

    def overlap(self, nodes: Ints, rectangles: Floats) -> Floats:
        """Return the share of each node's measure (columns) inside each rectangle of all coordinates (rows)."""
        share: Floats = np.ones((len(rectangles), nodes.size))
        for i, part in enumerate(self.parts):
            different, which = distinct(self.part_nodes(nodes, i))
            share = share * part.overlap(different, self._sides(rectangles, i))[:, which]
        return share

    def _sides(self, rectangles: Floats, part: int) -> Floats:
        columns = self._columns[part]
        further = slice(columns.start + self.dimension, columns.stop + self.dimension)
        return np.concatenate([rectangles[:, columns], rectangles[:, further]], axis=1)

    def _covered(self, nodes: Ints, rectangles: Floats, exact: Bools) -> Floats:
        share: Floats = np.ones(nodes.size)
        for i, part in enumerate(self.parts):
            assert part.covered is not None
            share = share * part.covered(self.part_nodes(nodes, i), self._sides(rectangles, i), exact)
        return share

    def overlap_shapes(self, nodes: Ints, shapes: NDArray[Any]) -> Floats:
        """Return the share of each node's place (columns) inside each polygon (rows)."""
        different, which = distinct(self.part_nodes(nodes, 0))
        return self.location.overlap_shapes(different, shapes)[:, which]

    def covered_by(self, shapes: NDArray[Any]) -> CoveredShare | None:
        """Return what tells the share of nodes' places inside polygons, in pairs; equal pairs are compared once."""
        covered = self.location.covered_by(shapes)
        if covered is None:
            return None

        def share(nodes: Ints, at: Ints, exact: Bools) -> Floats:
            pairs = np.column_stack([self.part_nodes(nodes, 0), at, exact])
            each, which = np.unique(pairs, axis=0, return_inverse=True)
            return covered(each[:, 0], each[:, 1], each[:, 2].astype(bool))[which.ravel()]

        return share

    def within(self, where: Mapping[str, Any]) -> Callable[[Ints], Floats]:
        """Return what tells the share of nodes that has the values asked for, by attributes' names."""
        if not isinstance(where, Mapping):
            raise InputError(f"where names attributes and values, such as {{'vehicle': 'bus'}}; not {shown(where)}.")
        known = {attribute.name: i for i, attribute in enumerate(self.attributes, start=1)}
        chosen: list[tuple[int, Attribute, Floats]] = []
        for name, wanted in where.items():
            if name not in known:
                raise InputError(f"there is no attribute {shown(name)}: {did_you_mean(str(name), known)}")
            attribute = self.attributes[known[name] - 1]
            chosen.append((known[name], attribute, attribute.share_of(attribute.intervals(wanted))))

        def share(nodes: Ints) -> Floats:
            product: Floats = np.ones(nodes.size)
            for part, attribute, below in chosen:
                first, past = attribute.extent(self.part_nodes(nodes, part))
                product = product * ((below[past] - below[first]) / np.maximum(past - first, 1))
            return product

        return share

    @property
    def groupable(self) -> dict[str, tuple[int, Attribute]]:
        """The parts that have a list of values, by name: attributes, and the place if it is a hierarchy."""
        return {part.name: (i, part) for i, part in enumerate(self.parts) if isinstance(part, Attribute)}

    def place(self, codes: Ints, index: Ints, key: int) -> NDArray[Any]:
        """Return one row in the finest node of each code, as numbers.

        Rows of one place and different values are told apart, so that they do not lie on top of each other.
        """
        parts = [self._mixed.codes_of(codes, i) for i in range(len(self.parts))]
        apart = index + (hash_uniform(0, codes, 1) * 2.0**38).astype(np.int64)
        made = [self.parts[0].place(parts[0], apart, key)]
        for i, attribute in enumerate(self.attributes, start=1):
            within = hash_uniform(key, codes, (index + 1) * self.dimension + i)
            first = attribute.extent(parts[i] | (np.int64(1) << attribute.total_bits))[0]
            made.append((first + within).reshape(-1, 1))
        return np.concatenate(made, axis=1).view(Positions)

    def sample(self, nodes: Ints, counts: Ints, key: int) -> NDArray[Any]:
        """Return rows as numbers, as `points` does. See `Domain.sample`."""
        return super().sample(nodes, counts, key).view(Positions)

    def rows(self, points: NDArray[Any]) -> NDArray[Any]:
        """Return rows as users read them, an array with named fields: coordinates, and attributes' values."""
        columns: dict[str, NDArray[Any]] = {}
        for part, at in zip(self.parts, self._columns, strict=True):
            numbers = np.asarray(points[:, at])
            if isinstance(part, Attribute):
                columns[part.name] = part.values(numbers[:, 0])
            else:
                columns |= {name: numbers[:, i] for i, name in enumerate(part.names)}
        rows = np.empty(len(points), dtype=[(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            rows[name] = column
        return rows

    def geometry(self, nodes: Ints) -> NDArray[Any]:
        """Return the shapes of nodes' places."""
        different, which = distinct(self.part_nodes(nodes, 0))
        shapes: NDArray[Any] = self.location.geometry(different)[which]
        return shapes

    def cell_columns(self, nodes: Ints) -> dict[str, NDArray[Any]]:
        """Return where cells are, and which values they have; where nothing was divided, the empty text."""
        columns: dict[str, NDArray[Any]] = {}
        for i, part in enumerate(self.parts):
            columns |= part.cell_columns(self.part_nodes(nodes, i))
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the product as plain data."""
        attributes = [attribute.to_dict() for attribute in self.attributes]
        place = self.location.to_dict()
        return {"type": "product", "place": place, "attributes": attributes, "schedule": list(self.schedule)}

    def summary(self) -> dict[str, Any]:
        """Return what a manifest says: what its parts say, and in which order they are divided."""
        attributes = [attribute.summary() for attribute in self.attributes]
        place, schedule = self.location.summary(), " ".join(self.schedule)
        return {"type": "product", "place": place, "attributes": attributes, "schedule": schedule}

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, (self.location, *self.attributes)))})"


def _of_distinct(ask: Callable[[Ints], NDArray[Any]], nodes: Ints) -> NDArray[Any]:
    """Return what is said of each node, asking once for each different one."""
    different, which = distinct(nodes)
    return ask(different)[which]


def _is_numbers(data: Any, columns: int | None = None) -> bool:
    """Whether what came is an array of numbers, of so many columns."""
    try:
        array = np.asarray(data) if isinstance(data, list | tuple | np.ndarray) else np.empty(0, dtype=object)
    except (ValueError, OverflowError, TypeError):  # rows of different lengths, or lists in lists without end
        return False
    return array.dtype.kind in "iuf" and array.ndim == 2 and columns in (None, array.shape[1])


def _check_parts(place: Any, attributes: tuple[Any, ...]) -> None:
    if not isinstance(place, Domain) or isinstance(place, Product | Attribute):
        raise InputError(f"a product begins with its place: a domain such as a Box, not {shown(place)}.")
    for attribute in attributes:
        if not isinstance(attribute, Attribute):
            raise InputError(
                f"after the place come attributes (Category, Bins, TimeOfDay, DayOfWeek), not {shown(attribute)}."
            )
    if not attributes:
        raise InputError(f"a product needs an attribute besides its place; without one, use {place!r} itself.")
    names = [*place.names, *(attribute.name for attribute in attributes)]
    if len(set(names)) < len(names) or PLACE in [attribute.name for attribute in attributes]:
        raise InputError(
            f"coordinates and attributes need different names, and none but the location may be called '{PLACE}': "
            f"these are {', '.join(names)}."
        )
    taken = _TAKEN | {f"{name}_{end}" for name in place.names for end in ("min", "max")}
    for attribute in attributes:
        if attribute.name in taken:
            raise InputError(
                f"an attribute cannot be called '{attribute.name}', as a column of every table of releases is: give "
                f"it another name, and say column='{attribute.column}' if that is what its column is called."
            )


def _check_bits(parts: tuple[Domain, ...]) -> None:
    attributes = sum(part.total_bits for part in parts[1:])
    over = parts[0].total_bits + attributes - MAX_BITS
    if over > 0:
        raise InputError(
            f"codes have at most {MAX_BITS} bits: the attributes take {attributes}, and the place "
            f"{parts[0].total_bits}. Give the place a coarser resolution ({over} bits less) or attributes fewer values."
        )
