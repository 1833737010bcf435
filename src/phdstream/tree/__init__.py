"""The tree: nodes ever visited, the private choice of a subtree, and the estimates that follow from it."""

from phdstream.tree.answering import answer_queries, parents_of
from phdstream.tree.estimation import Estimate, estimate
from phdstream.tree.nodes import NodeStore
from phdstream.tree.selection import Level, select_tree
from phdstream.tree.share_noise import share_noise_of_all
from phdstream.tree.soundness import Fallback, faults, total_alone
from phdstream.tree.tally import CodeCounts
from phdstream.tree.window import Window

__all__ = [
    "CodeCounts",
    "Estimate",
    "Fallback",
    "Level",
    "NodeStore",
    "Window",
    "answer_queries",
    "estimate",
    "faults",
    "parents_of",
    "select_tree",
    "share_noise_of_all",
    "total_alone",
]
