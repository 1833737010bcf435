"""The two collections, and which tick a request is about. Public."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from phdstream.errors import ConfigError
from phdstream.service.api.ogc.queries import Moments, Query
from phdstream.service.api.problems import ProblemError
from phdstream.service.api.releases import release_at
from phdstream.service.stream_service import StreamService

__all__ = ["COLLECTIONS", "CRS84", "chosen_tick", "described", "interval"]

COLLECTIONS = {
    "points": ("Synthetic points", "The synthetic points of the latest release, or of the one that datetime names."),
    "cells": ("Cells", "The cells of the latest release, or of the one that datetime names, with their counts."),
}
"""Their ids, titles and descriptions."""
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_GREGORIAN = "http://www.opengis.net/def/uom/ISO-8601/0/Gregorian"
_GAP = 1000
"""How many ticks without a release are stepped over: none is looked for before them."""


def interval(service: StreamService, tick: int) -> Moments:
    """Return when a tick begins and ends; it takes in its beginning and not its end."""
    clock = service.schedule.clock
    begin, end = (clock.end_of(number) or datetime.max.replace(tzinfo=UTC) for number in (tick - 1, tick))
    return begin.astimezone(UTC), end.astimezone(UTC)


def chosen_tick(service: StreamService, query: Query) -> int | None:
    """Return the tick that a request is about: the last one at the moments asked for; None if there is none then."""
    last = service.archive.last_tick
    if query.tick is not None:
        tick = release_at(service, query.tick).tick
        return tick if query.moments is None or _meets(interval(service, tick), query.moments) else None
    if query.moments is None or not last:
        return last or None
    clock, (first_moment, last_moment) = service.schedule.clock, query.moments
    try:
        newest = last if last_moment.year > 9000 else min(last, clock.until(last_moment) + 1)
        oldest = 1 if first_moment.year < 1000 else clock.until(first_moment) + 1
    except ConfigError as error:
        raise ProblemError(400, str(error)) from None
    for tick in range(newest, max(oldest, newest - _GAP) - 1, -1):
        if service.archive.has(tick):
            return tick if _meets(interval(service, tick), query.moments) else None
    return None


def _meets(tick: Moments, asked: Moments) -> bool:
    return tick[0] <= asked[1] and asked[0] < tick[1]


def described(service: StreamService, name: str, bounds: list[float]) -> dict[str, Any]:
    """Return what a collection is; when its features are, once there are some."""
    title, description = COLLECTIONS[name]
    extent: dict[str, Any] = {"spatial": {"bbox": [bounds], "crs": CRS84}}
    manifest = service.archive.manifest()
    if manifest is not None:
        first, last = int(manifest.get("first_tick", 1)), int(manifest["last_tick"])
        ends = interval(service, first)[0], interval(service, last)[1]
        texts = [moment.isoformat().replace("+00:00", "Z") for moment in ends]
        extent["temporal"] = {"interval": [texts], "trs": _GREGORIAN}
    about = {"id": name, "title": title, "description": description, "itemType": "feature"}
    return about | {"extent": extent, "crs": [CRS84]}
