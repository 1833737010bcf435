"""`Hierarchy`: a named tree, such as country / state / hospital, with any number of children anywhere.

**Privacy on irregular trees.** The argument of `phdstream.privacy.calibration` speaks of one root-to-leaf
path: the biased counts on it fall by at least δ per level because the score of a child is at most its
parent's, and one insert moves the score by 1 on that path alone. How many children a node has enters nowhere.
The largest fanout is used for one thing only: the size of δ, so that noise alone does not grow the tree.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.arguments import check_names
from phdstream.domains.codes import MAX_BITS, ROOT, child_nodes
from phdstream.domains.domain import Domain
from phdstream.domains.hierarchy.place_names import SEPARATOR, event_names, read_paths
from phdstream.errors import InputError, did_you_mean

__all__ = ["Hierarchy"]


class Hierarchy(Domain):
    """Named places in groups of groups. Events happen at places; releases name them.

    ``places`` is a table with one column a level (rows of names, an Arrow table, a pandas or Polars frame),
    or nested names (dictionaries, with lists of places inside). A place is written as its path,
    ``"US/NY/Bellevue"``, or by its own name where that is the only one. Counts are spread evenly over the
    places of a group.

    >>> hospitals = Hierarchy({"US": {"NY": ["Bellevue", "Harlem"], "CA": ["Kaiser"]}, "FR": {"Paris": ["Necker"]}})
    >>> hospitals.encode(hospitals.points(["Harlem", "FR/Paris/Necker", "Nowhere"]))[1].tolist()
    [True, True, False]
    >>> hospitals
    Hierarchy(4 places, 3 levels)
    """

    dimension = 1

    def __init__(self, places: Any, *, names: Sequence[str] = ("place",)) -> None:
        paths = read_paths(places)
        self.names = check_names(names, self.dimension)
        self.places = [SEPARATOR.join(path) for path in paths]
        self._build(paths)

    def _build(self, paths: list[tuple[str, ...]]) -> None:
        depth = max(map(len, paths))
        children = [_children_at(paths, level) for level in range(depth)]
        self.fanout = max(2, max(len(family) for level in children for family in level.values()))
        widest = [max(len(family) for family in level.values()) for level in children]
        self.level_bits = tuple(max(1, (most - 1).bit_length()) for most in widest)
        if sum(self.level_bits) > MAX_BITS:
            raise InputError(f"the hierarchy is too deep and too wide: its codes need more than {MAX_BITS} bits.")
        self._node: dict[tuple[str, ...], int] = {(): ROOT}
        for level, bits in zip(children, self.level_bits, strict=True):
            for parent, family in level.items():
                for i, name in enumerate(family):
                    self._node[(*parent, name)] = self._node[parent] << bits | i
        self._finish(paths, depth)

    def _finish(self, paths: list[tuple[str, ...]], depth: int) -> None:
        """Continue short paths straight down, so that all places lie at the same depth, and index everything."""
        finest = []
        for path in paths:
            node = self._node[path]
            for bits in self.level_bits[len(path) : depth]:
                node <<= bits
            finest.append(node - (ROOT << self.total_bits))
        order = np.argsort(finest)
        self._codes = np.array(finest, dtype=np.int64)[order]
        self._path_of_code = np.array(self.places, dtype=np.str_)[order]
        self._code_of = _code_names(self.places, finest)
        self._longest = max(map(len, self.places))
        self._name_of_node = {node: SEPARATOR.join(path) for path, node in self._node.items()}

    def points(self, data: Any) -> NDArray[Any]:
        """Return places as text, one row each, from names, paths, tuples of names, or a table of them.

        A table has a column called as the hierarchy's ``names`` say, or one column a level. A missing place, and what
        cannot be the name of one, is the empty text, which is nowhere.
        """
        texts = event_names(data, self.names[0], self.depth)
        known = [text if len(text) <= self._longest and "\0" not in text else "" for text in texts]
        return np.array(known, dtype=np.str_).reshape(-1, 1)

    def encode(self, points: Any) -> tuple[Ints, Bools]:
        """Return the code of each place, and whether there is such a place."""
        different, which = np.unique(np.asarray(points).ravel(), return_inverse=True)
        codes = np.array([self._code_of.get(name, -1) for name in different.tolist()], dtype=np.int64)
        return np.maximum(codes, 0)[which], (codes >= 0)[which]

    def children(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the groups or places inside nodes; shares are by number of places. See `Domain.children`."""
        if nodes.size == 0:
            return nodes, np.zeros(0, np.int64), np.zeros(0)
        bits = self.level_bits[int(self.levels(nodes[:1])[0])]
        family = child_nodes(nodes, bits)
        number = self.measure(family.ravel()).reshape(family.shape)
        parent, child = np.nonzero(number)
        return family[parent, child], parent, number[parent, child] / number.sum(axis=1)[parent]

    def measure(self, nodes: Ints) -> Floats:
        """Return the number of places in each node."""
        first, past = self.code_range(nodes)
        return (np.searchsorted(self._codes, past) - np.searchsorted(self._codes, first)).astype(np.float64)

    def labels(self, nodes: Ints) -> NDArray[Any]:
        """Return the path of each node; the root is the empty text."""
        return np.array([self._label(node) for node in nodes.tolist()], dtype=np.str_)

    def _label(self, node: int) -> str:
        if node not in self._name_of_node:  # a short path, continued straight down
            first = self.code_range(np.array([node]))[0]
            return str(self._path_of_code[np.searchsorted(self._codes, first)[0]])
        return self._name_of_node[node]

    def cell_columns(self, nodes: Ints) -> dict[str, NDArray[Any]]:
        """Return the cells' names."""
        return {self.names[0]: self.labels(nodes)}

    def bounds(self, nodes: Ints) -> Floats:
        """Return the first and last place of each node, as positions in code order."""
        first, past = self.code_range(nodes)
        sides = np.searchsorted(self._codes, first), np.searchsorted(self._codes, past)
        return np.column_stack(sides).astype(np.float64)

    def queries(self, data: Any) -> NDArray[Any]:
        """Return the nodes of groups or places, given by their paths or by places' own names; None is the root."""
        if data is None:
            return self.first_nodes[:1].copy()
        nodes = []
        for name in event_names([data] if isinstance(data, str) else data, self.names[0], self.depth):
            path = tuple(part for part in name.split(SEPARATOR) if part)
            if path not in self._node and name not in self._code_of:
                known = [label for label in self._name_of_node.values() if label]
                raise InputError(f"there is no place or group '{name[:100]}': {did_you_mean(name[:100], known[:1000])}")
            nodes.append(self._node[path] if path in self._node else self._code_of[name] + (ROOT << self.total_bits))
        return np.array(nodes, dtype=np.int64)

    def overlap(self, nodes: Ints, rectangles: Any) -> Floats:
        """Return the share of each node's places (columns) inside each queried node (rows)."""
        (first, past), (start, end) = self.code_range(nodes), self.code_range(rectangles)
        low, high = np.maximum(first, start[:, None]), np.minimum(past, end[:, None])
        inside = np.searchsorted(self._codes, np.maximum(high, low)) - np.searchsorted(self._codes, low)
        return inside / np.maximum(self.measure(nodes), 1)

    def covered(self, nodes: Ints, queried: Any, exact: Bools) -> Floats:
        """Return the share of each node's places inside the queried node at the same position."""
        (first, past), (start, end) = self.code_range(nodes), self.code_range(queried)
        low, high = np.maximum(first, start), np.minimum(past, end)
        inside = np.searchsorted(self._codes, np.maximum(high, low)) - np.searchsorted(self._codes, low)
        return inside / np.maximum(self.measure(nodes), 1)

    def place(self, codes: Ints, index: Ints, key: int) -> NDArray[Any]:
        """Return the place of each code, as its path."""
        return self._path_of_code[np.searchsorted(self._codes, codes)].reshape(-1, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the hierarchy as plain data."""
        return {"type": "hierarchy", "places": self.places, "names": list(self.names)}

    def summary(self) -> dict[str, Any]:
        """Return what a manifest says: how many places and levels, and a digest of them."""
        digest = hashlib.sha256("\n".join(self.places).encode()).hexdigest()
        return {"type": "hierarchy", "number_of_places": len(self.places), "levels": self.depth, "sha256": digest}

    def __repr__(self) -> str:
        return f"Hierarchy({len(self.places)} places, {self.depth} levels)"


def _children_at(paths: list[tuple[str, ...]], level: int) -> dict[tuple[str, ...], list[str]]:
    families: dict[tuple[str, ...], dict[str, None]] = {}
    for path in paths:
        if len(path) > level:
            families.setdefault(path[:level], {})[path[level]] = None
    return {parent: list(names) for parent, names in families.items()}


def _code_names(places: list[str], codes: list[int]) -> dict[str, int]:
    """Return the code of each place by its path, and by its last name where only one place has it."""
    by_path = dict(zip(places, codes, strict=True))
    last = [place.rsplit(SEPARATOR, 1)[-1] for place in places]
    times = Counter(last)
    once = {name: code for name, code in zip(last, codes, strict=True) if times[name] == 1}
    return once | by_path
