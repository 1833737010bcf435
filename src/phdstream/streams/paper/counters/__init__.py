"""Counters, and banks of counters."""

from phdstream.streams.paper.counters.bank import CounterBank
from phdstream.streams.paper.counters.binary import BinaryTree, Hybrid
from phdstream.streams.paper.counters.choice import CounterChoice, by_level, counter_from_dict, make_counter
from phdstream.streams.paper.counters.counter import Block, Counter, Simple
from phdstream.streams.paper.counters.levels import ByLevel

__all__ = [
    "BinaryTree",
    "Block",
    "ByLevel",
    "Counter",
    "CounterBank",
    "CounterChoice",
    "Hybrid",
    "Simple",
    "by_level",
    "counter_from_dict",
    "make_counter",
]
