"""Areas to follow over time: polygons of a layer, rectangles or names, or everything. Public."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from phdstream.domains import Domain
from phdstream.release import Counts, Release
from phdstream.release.layers import area_names, is_frame
from phdstream.release.maps import layer_shapes

__all__ = ["names_of", "question"]


def question(domain: Domain, areas: Any, where: Mapping[str, Any] | None = None) -> Callable[[Release, float], Counts]:
    """Return what asks a release for counts in some areas, with some confidence; a layer is read once."""
    if areas is None or domain.location.dimension != 2:
        return lambda release, confidence: release.count(areas, confidence, where=where)
    shapes = list(layer_shapes(domain, areas))
    return lambda release, confidence: release.count_in(shapes, confidence, where=where)


def names_of(areas: Any, number: int) -> list[str]:
    """Return what to call each of a number of areas.

    >>> names_of(None, 1), names_of(["NY", "CA"], 2), names_of([[0, 0, 1, 1]], 1)
    (['everything'], ['NY', 'CA'], ['Area 1'])
    """
    if areas is None:
        return ["everything"]
    if is_frame(areas):
        return area_names(areas)
    names = [areas] if isinstance(areas, str) else areas
    if isinstance(names, list) and len(names) == number and all(isinstance(one, str) for one in names):
        return list(names)
    return [f"Area {i + 1}" for i in range(number)]
