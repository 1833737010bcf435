"""Groups of a table: each a combination of values of attributes, and perhaps an area. Public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints
from phdstream.domains import Domain
from phdstream.domains.domain import CoveredShare
from phdstream.domains.product import Attribute, Product
from phdstream.errors import InputError, did_you_mean, shown

__all__ = ["Groups", "groups_of"]

_MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class Groups:
    """The groups of a table, in order: ``columns`` name them; ``values`` and ``area`` say which each is.

    ``values[g, i]`` is the position of group g's value of the attribute ``parts[i]``, which comes with its place in
    the product.
    """

    domain: Product
    columns: dict[str, NDArray[Any]]
    parts: tuple[tuple[int, Attribute], ...]
    values: Ints
    area: Ints | None

    def __len__(self) -> int:
        return len(self.values)

    def share(self, nodes: Ints, groups: Ints) -> Floats:
        """Return the share of each node's values that is the group's beside it; both may be tables of one shape."""
        share: Floats = np.ones(1)
        for i, (part, attribute) in enumerate(self.parts):
            value = self.values[groups, i].astype(np.float64)
            share = share * attribute.overlap_of(self.domain.part_nodes(nodes, part), value, value + 1)
        return share

    def covered(self, covered_by: CoveredShare | None) -> CoveredShare | None:
        """Return what tells the share of nodes inside groups, in pairs; given the same for the areas, if there are."""
        if self.area is None:
            return lambda nodes, groups, exact: self.share(nodes, groups)
        area = self.area
        if covered_by is None:
            return None
        return lambda nodes, groups, exact: self.share(nodes, groups) * covered_by(nodes, area[groups], exact)

    def overlap(self, nodes: Ints, groups: Ints, shapes: NDArray[Any]) -> Floats:
        """Return the share of each node (columns) inside each group (rows)."""
        assert self.area is not None
        different, which = np.unique(self.area[groups], return_inverse=True)
        return self.domain.overlap_shapes(nodes, shapes[different])[which] * self.share(nodes, groups[:, None])


def groups_of(domain: Domain, by: Any, layer: Any) -> Groups:
    """Return the groups of a table by the names of attributes, and of a column of a layer of areas."""
    if not isinstance(domain, Product):
        raise InputError(f"a table is by the values of attributes; {domain!r} has none: make it part of a Product.")
    names = [by] if isinstance(by, str) else list(by) if isinstance(by, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError(f"a table is by names, such as ['vehicle', 'age'], each once; not {shown(by)}.")
    of_layer = _column_of(layer, names)
    attributes = domain.groupable
    labels: list[NDArray[Any]] = []
    parts: list[tuple[int, Attribute]] = []
    for name in names:
        if name == of_layer:
            labels.append(np.asarray(layer[name].astype(str), dtype=np.str_))
        elif name in attributes:
            values = np.arange(len(attributes[name][1]))
            labels.append(attributes[name][1].labels(values, values + 1))
            parts.append(attributes[name])
        else:
            raise InputError(f"there is nothing called {shown(name)} to group by: {did_you_mean(name, attributes)}")
    if np.prod([len(each) for each in labels], dtype=float) > _MOST_ROWS:
        raise InputError(f"this table would have more than {_MOST_ROWS:,} rows: group by fewer attributes.")
    each = np.array(list(product(*(range(len(of)) for of in labels))), dtype=np.int64).reshape(-1, len(names))
    columns = {name: labels[i][each[:, i]] for i, name in enumerate(names)}
    own = [i for i, name in enumerate(names) if name != of_layer]
    area = each[:, names.index(of_layer)] if of_layer else None
    return Groups(domain, columns, tuple(parts), each[:, own], area)


def _column_of(layer: Any, names: list[str]) -> str:
    """Return which of the names is a column of a layer of areas; nothing if there is no layer."""
    if layer is None:
        return ""
    there = [name for name in names if name in getattr(layer, "columns", ())]
    if len(there) != 1:
        raise InputError(
            "with a layer, exactly one of the names must be the column that says what its areas are called: give a "
            "GeoDataFrame with such a column."
        )
    return there[0]
