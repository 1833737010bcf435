"""What a page says about a stream, as plain data: its promise and its ticks. `js/promise.js` finds the words. Public.

Everything is taken from what was published: the manifest, and the latest release.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

from phdstream.domains import Box, Domain
from phdstream.page.quantise import Frame
from phdstream.page.surroundings import in_degrees, outline
from phdstream.release import Release

__all__ = ["facts_of_stream", "tick_label"]


def facts_of_stream(domain: Domain, manifest: dict[str, Any], latest: Release) -> dict[str, Any]:
    """Return what a page must know besides the ticks themselves."""
    frame = Frame.of(domain)
    degrees = in_degrees(domain)
    return {
        "privacy": latest.privacy,
        "simulated": "not private" in latest.privacy.lower(),
        "promise": promise(manifest, latest),
        "frame": [frame.west, frame.south, frame.east, frame.north],
        "degrees": degrees,
        "names": list(domain.names),
        "levels": list(domain.level_bits) if type(domain) is Box else None,
        "outline": outline(domain, frame, degrees),
    }


def promise(manifest: dict[str, Any], latest: Release) -> dict[str, Any]:
    """Return what is promised, and what to expect of it."""
    epsilon = float(manifest.get("epsilon", 0.0))
    useful = latest.usefulness
    odds = math.exp(min(epsilon, 700.0))
    ticks = manifest.get("ticks") or {}
    return {
        "unit": manifest.get("unit") or {},
        "unproved": latest.privacy.partition("; ")[2],
        "epsilon": epsilon,
        "odds": odds,
        "sure": odds / (1 + odds),
        "method": manifest.get("method", ""),
        "window": manifest.get("window"),
        "since": str(ticks.get("start", ""))[:16].replace("T", " "),
        "every_seconds": ticks.get("every_seconds"),
        "by_rows": "rows" in ticks,
        "version": manifest.get("version", ""),
        "errors": useful.expected_error,
        "warning": useful.warning,
    }


def tick_label(ticks: dict[str, Any], tick: int) -> str:
    """Return when a tick ended, as far as the manifest tells.

    >>> tick_label({"start": "2024-04-01T00:00:00+00:00", "every_seconds": 86400.0}, 2)
    '2024-04-02'
    >>> tick_label({"start": "2024-04-01T00:00:00+00:00", "every_seconds": 3600.0}, 2)
    '2024-04-01 02:00'
    """
    try:
        start, every = datetime.fromisoformat(str(ticks["start"])), float(ticks["every_seconds"])
        end = start + timedelta(seconds=every * tick)
    except (KeyError, TypeError, ValueError, OverflowError):
        return ""
    if every % 86400 == 0 and (start.hour, start.minute, start.second) == (0, 0, 0):
        return (end - timedelta(days=1)).date().isoformat()
    return end.isoformat(" ", "minutes" if every % 60 == 0 else "seconds")[: 16 if every % 60 == 0 else 19]
