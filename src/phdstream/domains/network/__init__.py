"""`Network`: points on lines, such as streets; the tree halves the plane, and the measure is length."""

from phdstream.domains.network.network import Network

__all__ = ["Network"]
