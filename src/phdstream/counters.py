"""The counters, under their public name: ``phd.counters.Simple``, ``Block``, ``BinaryTree``, ``Hybrid``."""

from phdstream.counting import BinaryTree, Block, Counter, CounterBank, Hybrid, Simple

__all__ = ["BinaryTree", "Block", "Counter", "CounterBank", "Hybrid", "Simple"]
