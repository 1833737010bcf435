"""The binary tree over a public list of values: siblings are halved until each value stands alone."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains.codes import MAX_BITS
from phdstream.errors import InputError

__all__ = ["Path", "value_tree"]

Path = tuple[str, ...]
"""A value with the groups it is in: ``("injury", "burn")``, or ``("bus",)`` without groups."""


def value_tree(paths: list[Path]) -> tuple[Ints, int, dict[Path, tuple[int, int]]]:
    """Return a code for each value, in order, their length in bits, and which values each group (and value) has.

    The members of a group stand side by side. A list of siblings is halved, the first half having one more if their
    number is odd, until one is left; a group then goes on with its members. A value that is reached early goes
    straight on with zero bits, so all codes are equally long, and a node without a value is not in the tree.

    >>> codes, bits, groups = value_tree([("bus",), ("rail", "tram"), ("rail", "metro"), ("ferry",)])
    >>> [format(code, f"0{bits}b") for code in codes.tolist()], groups[("rail",)]
    (['000', '010', '011', '100'], (1, 3))
    """
    if max(map(len, paths)) > MAX_BITS:
        raise InputError(f"values lie in groups of groups, more than {MAX_BITS} deep: leave some levels out.")
    prefixes: list[str] = []
    groups: dict[Path, tuple[int, int]] = {}
    _divide([list(family) for _, family in groupby(paths, key=lambda path: path[0])], 1, "", prefixes, groups)
    bits = max(1, max(map(len, prefixes)))
    return np.array([int(prefix.ljust(bits, "0"), 2) for prefix in prefixes], dtype=np.int64), bits, groups


def _divide(
    families: list[list[Path]], level: int, prefix: str, prefixes: list[str], groups: dict[Path, tuple[int, int]]
) -> None:
    """Name the values of some families, each of which shares the first ``level`` words of its path."""
    if len(families) > 1:
        half = (len(families) + 1) // 2
        _divide(families[:half], level, prefix + "0", prefixes, groups)
        _divide(families[half:], level, prefix + "1", prefixes, groups)
        return
    members, start = families[0], len(prefixes)
    if len(members[0]) == level:
        prefixes.append(prefix)
    else:
        inner = [list(family) for _, family in groupby(members, key=lambda path: path[level])]
        _divide(inner, level + 1, prefix, prefixes, groups)
    groups[members[0][:level]] = start, len(prefixes)
