"""The one walk over the binary tree: from the top down, level by level, with amounts that divide between halves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from phdstream.arrays import Bools, Floats, Ints, positions
from phdstream.domains.prefixes import prefix_length

__all__ = ["Halve", "Opens", "leaves_of", "walk"]

Opens: TypeAlias = Callable[[Ints, Floats, int], Bools]
"""``opens(nodes, amounts, bits)``: which nodes of a level to open. The nodes are in order, the amounts in rows."""
Halve: TypeAlias = Callable[[Ints, Floats, int], Floats]
"""``halve(nodes, amounts, bits)``: the amounts of the opened nodes' halves, an array (rows, nodes, 2)."""
_Ends: TypeAlias = Callable[[Ints, Floats], None]
_NONE: Ints = np.zeros(0, np.int64)


def walk(
    total_bits: int,
    nodes: Ints,
    amounts: Floats,
    opens: Opens,
    halve: Halve,
    limit: int | None = None,
    ends: _Ends | None = None,
) -> None:
    """Open nodes from the top down while ``opens`` says so; ``ends`` is told of those that are not opened.

    ``amounts`` has rows of one number for each node. The nodes to begin with may be of any lengths, none inside
    another. No more are opened once that would make more than ``limit``.
    """
    waiting, brought = _in_order(nodes, amounts)
    begins = _begins(waiting, total_bits)
    here, carried, number = waiting[:0], brought[:, :0], 0
    for bits in range(int(prefix_length(waiting[:1])[0]), total_bits + 1):
        joining = slice(*begins[bits : bits + 2])
        here, carried = _merge(here, carried, waiting[joining], brought[:, joining])
        asked, later = opens(here, carried, bits), int(waiting.size - joining.stop)
        opened = positions(asked) if bits < total_bits else _NONE  # positions are quicker than a mask
        if limit is not None and number + here.size + opened.size + later > limit:
            opened = _NONE
        number += here.size - opened.size
        if ends is not None:
            left = np.ones(here.size, dtype=bool)
            left[opened] = False
            ended = positions(left)
            ends(here[ended], carried.take(ended, axis=1))
        if opened.size < here.size:
            here, carried = here[opened], carried.take(opened, axis=1)
        if opened.size:
            carried = halve(here, carried, bits).reshape(len(amounts), -1)
            here = _halves(here)
        elif not later:
            break


def leaves_of(
    total_bits: int, nodes: Ints, amounts: Floats, opens: Opens, halve: Halve, limit: int | None = None
) -> tuple[Ints, Floats]:
    """Walk, and return the unopened nodes and their amounts, in order of length, then of node.

    >>> evenly = lambda nodes, amounts, bits: np.stack([amounts / 2, amounts / 2], axis=2)
    >>> leaves_of(3, np.array([1]), np.array([[8.0]]), lambda nodes, amounts, bits: amounts[0] > 4, evenly)
    (array([2, 3]), array([[4., 4.]]))
    """
    if (nodes[1:] < nodes[:-1]).any():
        nodes, amounts = _in_order(nodes, amounts)
    begins = _begins(nodes, total_bits)
    asked = [opens(nodes[i:j], amounts[:, i:j], bits) for bits, (i, j) in enumerate(pairwise(begins)) if i < j]
    inner = np.concatenate(asked)
    rest, heavy = positions(~inner), positions(inner)  # most may stay as they are: they need no walk
    found, left = [nodes[rest]], [amounts.take(rest, axis=1)]

    def ends(here: Ints, carried: Floats) -> None:
        found.append(here)
        left.append(carried)

    if heavy.size:
        most = None if limit is None else limit - rest.size
        walk(total_bits, nodes[heavy], amounts.take(heavy, axis=1), opens, halve, most, ends)
    node, amount = np.concatenate(found), np.concatenate(left, axis=1)
    return _in_order(node, amount) if rest.size and heavy.size else (node, amount)


def _begins(nodes: Ints, total_bits: int) -> Ints:
    """Return where the nodes of each length begin among nodes in order, and their number."""
    return np.append(np.searchsorted(nodes, np.int64(1) << np.arange(total_bits + 1)), nodes.size)


def _halves(nodes: Ints) -> Ints:
    both = np.empty(2 * nodes.size, dtype=np.int64)
    np.multiply(nodes, 2, out=both[::2])
    np.add(both[::2], 1, out=both[1::2])
    return both


def _merge(nodes: Ints, amounts: Floats, more: Ints, brought: Floats) -> tuple[Ints, Floats]:
    if not more.size:
        return nodes, amounts
    return _in_order(np.concatenate([nodes, more]), np.concatenate([amounts, brought], axis=1))


def _in_order(nodes: Ints, amounts: Floats) -> tuple[Ints, Floats]:
    order = np.argsort(nodes, kind="stable")  # of a few runs in order: quickly merged
    return nodes[order], amounts.take(order, axis=1)
