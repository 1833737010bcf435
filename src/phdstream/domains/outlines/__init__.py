"""Outlines that come with the package: the Earth's land, and New York State."""

from phdstream.domains.outlines.geometries import land, new_york_state

__all__ = ["land", "new_york_state"]
