"""What a request for features may ask: limit, offset, bbox, datetime, tick. Anything else is refused with 400."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fastapi import Request

from phdstream.service.api.problems import ProblemError

__all__ = ["DEFAULT", "MOST", "Box", "Moments", "Query", "only", "read_query"]

DEFAULT, MOST = 1000, 10_000
"""How many features a page has, unless asked for otherwise, and at most."""
_LARGEST = 10**9
Box = tuple[float, float, float, float]
Moments = tuple[datetime, datetime]
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?)?", re.ASCII)
_LENGTH = re.compile(r"P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?", re.ASCII)
_UNITS = ("weeks", "days", "hours", "minutes", "seconds")
_EVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_TIMES = "datetime is a moment such as 2026-11-18T08:00:00Z, or two with / between; .. leaves a side open."


@dataclass(frozen=True)
class Query:
    """A request for features, understood. ``boxes`` is None for everywhere, ``moments`` for the latest."""

    limit: int = DEFAULT
    offset: int = 0
    boxes: list[Box] | None = None
    moments: Moments | None = None
    tick: int | None = None


def only(*names: str) -> Callable[[Request], None]:
    """Return what refuses a request with other parameters than these, or with one of them twice."""

    def check(request: Request) -> None:
        given = [name for name, _ in request.query_params.multi_items()]
        unknown = sorted(set(given) - set(names))
        if unknown:
            known = f"known are {', '.join(names)}" if names else "there are none here"
            raise ProblemError(400, f"unknown parameter {unknown[0][:40]!r}: {known}.")
        if len(set(given)) < len(given):
            raise ProblemError(400, "every parameter can be given once.")

    return check


def read_query(request: Request) -> Query:
    """Return what a request asks, or say what is wrong with it."""
    given = request.query_params
    return Query(
        limit=min(_whole("limit", given["limit"], 1), MOST) if "limit" in given else DEFAULT,
        offset=_whole("offset", given["offset"], 0) if "offset" in given else 0,
        boxes=_boxes(given["bbox"]) if "bbox" in given else None,
        moments=_moments(given["datetime"]) if "datetime" in given else None,
        tick=_whole("tick", given["tick"], 1) if "tick" in given else None,
    )


def _whole(name: str, text: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) < least:
        raise ProblemError(400, f"{name} is a whole number, at least {least}.")
    return min(int(text), _LARGEST)


def _boxes(text: str) -> list[Box]:
    """Return a box as one or two: two if it goes across the antimeridian. Heights, if there are some, do not matter.

    >>> _boxes("177,65,-177,70")
    [(177.0, 65.0, 180.0, 70.0), (-180.0, 65.0, -177.0, 70.0)]
    """
    try:
        sides = [float(side) for side in text.split(",", 6)]
    except ValueError:
        sides = []
    if len(sides) not in (4, 6) or not all(map(math.isfinite, sides)):
        raise ProblemError(400, "bbox is west,south,east,north in degrees.")
    half = len(sides) // 2
    west, south, east, north = *sides[:2], *sides[half : half + 2]
    if south > north:
        raise ProblemError(400, "bbox is west,south,east,north: its south is north of its north.")
    return [(west, south, east, north)] if west <= east else [(west, south, 180.0, north), (-180.0, south, east, north)]


def _moments(text: str) -> Moments:
    """Return the first and the last moment that are asked for; a date is a whole day.

    >>> [str(moment) for moment in _moments("2026-11-18/P2D")]
    ['2026-11-18 00:00:00+00:00', '2026-11-20 00:00:00+00:00']
    """
    first, slash, last = text.partition("/")
    try:
        if not slash:
            return _moment(first)
        begin = _EVER[0] if first in ("", "..") else _moment(first)[0]
        end = _EVER[1] if last in ("", "..") else begin + _length(last) if last[0] == "P" else _moment(last)[1]
    except (ValueError, OverflowError):
        raise ProblemError(400, _TIMES) from None
    if begin > end:
        raise ProblemError(400, "datetime begins after it ends.")
    return begin, end


def _moment(text: str) -> Moments:
    match = _MOMENT.fullmatch(text)
    if not match:
        raise ValueError(text)
    day, time, fraction, zone = match.groups()
    if time is None:
        begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
        return begin, begin + timedelta(days=1, microseconds=-1)
    moment = datetime.fromisoformat(f"{day}T{time}{(fraction or '')[:7]}{(zone or 'Z').upper()}").astimezone(UTC)
    return moment, moment


def _length(text: str) -> timedelta:
    match = _LENGTH.fullmatch(text)
    if not match or not any(match.groups()):
        raise ValueError(text)
    return timedelta(**{unit: int(number) for unit, number in zip(_UNITS, match.groups(), strict=True) if number})
