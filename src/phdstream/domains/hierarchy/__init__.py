"""`Hierarchy`: a named tree, such as country / state / hospital, with any number of children anywhere."""

from phdstream.domains.hierarchy.hierarchy import Hierarchy

__all__ = ["Hierarchy"]
