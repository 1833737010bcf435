"""The counters, under their public name: ``phd.counters.Simple``, ``Block``, ``BinaryTree``, ``Hybrid``; `by_level`."""

from phdstream.streams.paper.counters import BinaryTree, Block, ByLevel, Counter, CounterBank, Hybrid, Simple, by_level

__all__ = ["BinaryTree", "Block", "ByLevel", "Counter", "CounterBank", "Hybrid", "Simple", "by_level"]
