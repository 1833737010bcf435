"""Counters, banks of counters, and selective counting."""

from phdstream.counting.bank import CounterBank, CounterChoice, counter_from_dict, make_counter
from phdstream.counting.binary import BinaryTree, Hybrid
from phdstream.counting.counters import Block, Counter, Simple, check_whole
from phdstream.counting.selective import NoisyMax, Selection, SelectiveCounting, Selector

__all__ = [
    "BinaryTree",
    "Block",
    "Counter",
    "CounterBank",
    "CounterChoice",
    "Hybrid",
    "NoisyMax",
    "Selection",
    "SelectiveCounting",
    "Selector",
    "Simple",
    "check_whole",
    "counter_from_dict",
    "make_counter",
]
