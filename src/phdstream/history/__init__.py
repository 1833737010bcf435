"""Many ticks together: all releases of a folder, counts over time, changes and rates. Public."""

from phdstream.history.releases import Releases, read_releases

__all__ = ["Releases", "read_releases"]
