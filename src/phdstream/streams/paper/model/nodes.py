"""The nodes a stream has ever visited, and what has been released about each. Public.

A node's public record is made of its *own* released amount (its counter's output plus an offset for what was folded
into it or has expired) and the sum of all its descendants' own amounts (``below``). With the share ``s(v)`` of a
node in its parent's measure, the paper's consistent extension Ext of everything released is

    above(v) = s(v) · (above(parent) + own(parent)),        G(v) = above(v) + own(v) + below(v),

so G of any visited node costs one step from its parent's. The variance of the noise in each amount is kept alongside.

Nodes are rows of one table; the children of a node stand together, so walking down follows ``first_child`` and
needs no search. All public: the counters themselves are the mechanism's (`phdstream.streams.paper.mechanism`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints, ragged
from phdstream.domains import ROOT, Domain
from phdstream.streams.paper.counters import Counter

__all__ = ["NodeStore"]

_COLUMNS = {
    "node": np.int64,
    "parent": np.int64,
    "first_child": np.int64,
    "children": np.int64,
    "share": np.float64,
    "offset": np.float64,
    "offset_variance": np.float64,
    "below": np.float64,
    "below_variance": np.float64,
    "counted": np.int64,
    "steps": np.int64,
    "own": np.float64,
    "own_variance": np.float64,
    "expired_steps": np.int64,
    "last_visit": np.int64,
}
_NONE = -1


class NodeStore:
    """A growing table of visited nodes; row 0 is the root."""

    def __init__(self, domain: Domain, counter: Counter) -> None:
        self.domain, self.counter = domain, counter
        self._columns: dict[str, NDArray[Any]] = {name: np.zeros(0, kind) for name, kind in _COLUMNS.items()}
        self.size = 0
        self._append(np.array([ROOT]), np.array([_NONE]), np.array([1.0]))

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column][: self.size]

    def _append(self, nodes: Ints, parents: Ints, shares: Floats) -> None:
        """Add nodes at the end; the room for them doubles when it runs out, and holds zeros until it is used."""
        start, self.size = self.size, self.size + nodes.size
        room = self._columns["node"].size
        if self.size > room:
            spare = max(self.size, 2 * room) - room
            self._columns = {n: np.concatenate([c, np.zeros(spare, c.dtype)]) for n, c in self._columns.items()}
        new = {"node": nodes, "parent": parents, "share": shares, "first_child": _NONE}
        for name, values in new.items():
            self._columns[name][start : self.size] = values

    def children_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the rows of all children of ``rows``, in order, and the position of each one's parent in ``rows``."""
        first = self["first_child"][rows]
        if (childless := first == _NONE).any():
            self._create_children(rows[childless])
            first = self["first_child"][rows]
        position, within = ragged(self["children"][rows])
        return first[position] + within, position

    def _create_children(self, rows: Ints) -> None:
        nodes, position, shares = self.domain.children(self["node"][rows])
        number = np.bincount(position, minlength=rows.size)
        self["first_child"][rows] = self.size + np.cumsum(number) - number
        self["children"][rows] = number
        self._append(nodes, rows[position], shares)

    def record(self, rows: Ints, totals: Ints, steps: Ints) -> Floats:
        """Take the counters' latest outputs; return by how much each released amount changed.

        ``totals`` are the running totals, ``steps`` how many values each counter has had.
        """
        self["counted"][rows], self["steps"][rows] = totals, steps
        return self._refresh(rows)

    def expire(self, rows: Ints, amounts: Floats, steps: Ints, variances: Floats) -> None:
        """Take back amounts released earlier, with the counter steps or variance they carry; rows may repeat."""
        np.subtract.at(self["offset"], rows, amounts)
        np.add.at(self["expired_steps"], rows, steps)
        np.subtract.at(self["offset_variance"], rows, variances)
        self._refresh(np.unique(rows))

    def _refresh(self, rows: Ints) -> Floats:
        """Recompute the own amounts of rows and pass the changes up to all ancestors."""
        own = self["counted"][rows] + self["offset"][rows]
        noise = self.counter.variance_at(self["node"][rows], self["expired_steps"][rows], self["steps"][rows])
        variance = noise + self["offset_variance"][rows]
        change: Floats = own - self["own"][rows]
        change_variance = variance - self["own_variance"][rows]
        self["own"][rows], self["own_variance"][rows] = own, variance
        self._pass_up(rows, change, change_variance)
        return change

    def _pass_up(self, rows: Ints, change: Floats, change_variance: Floats) -> None:
        parent, below, below_variance = self["parent"], self["below"], self["below_variance"]
        parents = parent[rows]
        while parents.size:
            if (parents == _NONE).any():  # those are above the root
                on = np.flatnonzero(parents != _NONE)
                parents, change, change_variance = parents[on], change[on], change_variance[on]
            np.add.at(below, parents, change)
            np.add.at(below_variance, parents, change_variance)
            parents = parent[parents]

    def fold(self, keep: int) -> tuple[Ints, Bools, Ints, Floats]:
        """Fold the least recently visited subtrees into their roots until at most ``keep`` nodes are left.

        A subtree's root takes over, as its own, everything released below it. Which ones are folded depends on
        when they were visited, which is public. Nodes visited in the latest tick stay. Returns, for every old row,
        its new row (or that of the node it was folded into) and whether it stayed; then the rows of the roots and
        the variance each took over.
        """
        visits = self["last_visit"]
        cut = np.sort(visits)[max(0, self.size - keep - 1)] if self.size > keep else _NONE
        stays = visits > min(cut, visits.max() - 1)
        home = self._nearest_kept(stays)
        roots = np.unique(home[~stays])
        taken = self["below_variance"][roots].copy()
        for own, folded in (("own", "below"), ("offset", "below"), ("own_variance", "below_variance")):
            self[own][roots] += self[folded][roots]
        self["offset_variance"][roots] += taken
        for name in ("below", "below_variance", "children"):
            self[name][roots] = 0
        self["first_child"][roots] = _NONE
        new_row = self._compact(stays)
        return new_row[home], stays, new_row[roots], taken

    def _nearest_kept(self, stays: Bools) -> Ints:
        home = np.arange(self.size)
        while (lost := ~stays[home]).any():
            home[lost] = self["parent"][home[lost]]
        return home

    def _compact(self, stays: Bools) -> Ints:
        """Drop the rows that do not stay, and return the new number of each."""
        new_row = np.cumsum(stays) - 1
        kept = np.flatnonzero(stays)
        self._columns = {name: self[name][kept] for name in self._columns}
        self.size = kept.size
        for link in ("parent", "first_child"):
            there = self[link] != _NONE
            self[link][there] = new_row[self[link][there]]
        return new_row

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the table as plain arrays."""
        return {name: self[name] for name in _COLUMNS}

    @classmethod
    def from_arrays(cls, domain: Domain, counter: Counter, arrays: dict[str, NDArray[Any]]) -> NodeStore:
        """Return the store that `to_arrays` described."""
        store = cls(domain, counter)
        store._columns = {name: np.array(arrays[name]) for name in _COLUMNS}
        store.size = store._columns["node"].size
        return store
