"""Counters, and banks of counters."""

from phdstream.streams.paper.counters.bank import CounterBank, CounterChoice, counter_from_dict, make_counter
from phdstream.streams.paper.counters.binary import BinaryTree, Hybrid
from phdstream.streams.paper.counters.counter import Block, Counter, Simple

__all__ = [
    "BinaryTree",
    "Block",
    "Counter",
    "CounterBank",
    "CounterChoice",
    "Hybrid",
    "Simple",
    "counter_from_dict",
    "make_counter",
]
