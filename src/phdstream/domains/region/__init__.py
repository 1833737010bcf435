"""`Region`: polygons (land, a state, a city), split like a box, with everything outside cut away."""

from phdstream.domains.region.region import Region

__all__ = ["Region"]
