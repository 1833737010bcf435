"""Which counter to use: by name, by a function of the budget, by level of the tree, or as a saved state has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains import ROOT
from phdstream.errors import InputError, did_you_mean, shown
from phdstream.privacy.budget import check_enough
from phdstream.privacy.proved import check_proved
from phdstream.streams.paper.counters.binary import BinaryTree, Hybrid
from phdstream.streams.paper.counters.counter import Block, Counter, Simple
from phdstream.streams.paper.counters.levels import ByLevel

__all__ = ["CounterChoice", "LevelRule", "by_level", "checked_counter", "counter_from_dict", "make_counter"]

OneKind: TypeAlias = str | Callable[[float], Counter]
_BY_NAME: dict[str, type[Counter]] = {
    "simple": Simple,
    "block": Block,
    "binary": BinaryTree,
    "hybrid": Hybrid,
}
_BY_CLASS = {kind.__name__: kind for kind in _BY_NAME.values()} | {"ByLevel": ByLevel}
_ROOT_ALONE = np.array([ROOT])


@dataclass(frozen=True)
class LevelRule:
    """From which level of the tree on which kind of counter counts a node. Made by `by_level`."""

    choices: tuple[tuple[int, OneKind], ...]

    def counter(self, epsilon: float, first_nodes: Ints) -> ByLevel:
        """Return the counter for a tree whose levels begin at these nodes, all kinds with the same budget."""
        levels, choices = zip(*self.choices, strict=True)
        if levels[-1] >= first_nodes.size:
            raise InputError(f"by_level names level {levels[-1]}, but the tree has levels 0 to {first_nodes.size - 1}.")
        kinds = tuple(make_counter(choice, epsilon) for choice in choices)
        return ByLevel(epsilon, kinds, tuple(first_nodes[list(levels)].tolist()))


CounterChoice: TypeAlias = OneKind | LevelRule


def by_level(choices: Mapping[int, OneKind]) -> LevelRule:
    """Return a rule for `PHDStream`: from each of these levels of the tree on, another kind of counter.

    Nodes near the root are leaves again and again, so that a counter with long memory pays there; deep ones seldom.

    >>> import phdstream as phd
    >>> rule = by_level({0: "block", 6: "simple"})
    >>> phd.PHDStream(phd.Box([(0, 1), (0, 1)]), 1.0, phd.Event(), counter=rule).counter.kinds
    (Block(epsilon=0.5, size=8), Simple(epsilon=0.5))
    """
    levels = list(choices) if isinstance(choices, Mapping) else []
    whole = all(isinstance(level, int | np.integer) and not isinstance(level, bool) for level in levels)
    if not whole or 0 not in levels or min(levels) < 0:
        raise InputError(f"by_level takes levels, 0 among them, and a counter for each, not {shown(choices)}.")
    return LevelRule(tuple(sorted((int(level), choice) for level, choice in choices.items())))


def make_counter(choice: CounterChoice | dict[str, Any], epsilon: float, first_nodes: Ints = _ROOT_ALONE) -> Counter:
    """Return the counter that was asked for, with its budget; or the one that `Counter.to_dict` described.

    ``first_nodes`` are where the tree's levels begin.

    >>> make_counter("block", 0.5)
    Block(epsilon=0.5, size=8)
    """
    check_enough(epsilon)
    if isinstance(choice, dict):
        return counter_from_dict(choice)
    if isinstance(choice, str):
        return _kind(choice, _BY_NAME)(epsilon)
    if isinstance(choice, LevelRule):
        return choice.counter(epsilon, first_nodes)
    error = InputError(f"counter must be one of {', '.join(_BY_NAME)}, or a function from a budget to a counter.")
    try:
        counter = choice(epsilon) if callable(choice) else None
    except TypeError as wrong:  # something else that can be called, such as a class
        raise error from wrong
    if not isinstance(counter, Counter):
        raise error
    return checked_counter(counter)


def checked_counter(counter: Counter) -> Counter:
    """Return a counter whose privacy is proved here, or vouched for; of counters by level all kinds must be."""
    for kind in counter.kinds if isinstance(counter, ByLevel) else (counter,):
        check_proved("counter", kind)
    return counter


def counter_from_dict(spec: dict[str, Any]) -> Counter:
    """Return the counter that `Counter.to_dict` described."""
    fields = dict(spec)
    if "kinds" in fields:
        fields |= {"kinds": tuple(map(counter_from_dict, fields["kinds"]))}
        fields |= {"first_nodes": tuple(fields["first_nodes"])}
    return _kind(fields.pop("type"), _BY_CLASS)(**fields)


def _kind(name: str, kinds: dict[str, type[Counter]]) -> type[Counter]:
    """Return the kind of counter with that name."""
    if name not in kinds:
        raise InputError(f"unknown counter {shown(name)}: {did_you_mean(name, kinds)}")
    return kinds[name]
