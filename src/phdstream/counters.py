"""The counters, under their public name: ``phd.counters.Simple``, ``Block``, ``BinaryTree``, ``Hybrid``."""

from phdstream.streams.paper.counters import BinaryTree, Block, Counter, CounterBank, Hybrid, Simple

__all__ = ["BinaryTree", "Block", "Counter", "CounterBank", "Hybrid", "Simple"]
