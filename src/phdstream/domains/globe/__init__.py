"""`Globe`: the whole Earth, in S2 cells."""

from phdstream.domains.globe.globe import Globe

__all__ = ["Globe"]
