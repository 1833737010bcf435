"""Counts in rectangles and polygons, with intervals, over time. Public; bounded by what a question may cost."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import numpy as np
import shapely
from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from phdstream.errors import InputError
from phdstream.service.api.access import Service, needs
from phdstream.service.api.problems import ProblemError, problems
from phdstream.service.api.releases import latest_tick, release_at
from phdstream.service.stream_service import StreamService

__all__ = ["router"]

router = APIRouter(tags=["counts"], dependencies=[Depends(needs("read"))])
MOST_QUERIES, MOST_ANSWERS, MOST_TICKS, MOST_VERTICES = 1000, 20_000, 1000, 100_000
"""What one question may ask for: areas, areas times ticks, ticks, vertices of polygons times ticks."""
_AT_ONCE, _WAITING = 4, 100
_WORKERS = ThreadPoolExecutor(_AT_ONCE, "counts")
"""Threads of their own: questions that take long keep nobody else waiting."""
_ROOM = threading.BoundedSemaphore(_AT_ONCE + _WAITING)
_ENDS = ("value", "low", "high", "noise_low", "noise_high", "stderr")
Number = Annotated[float, Field(allow_inf_nan=False)]
Confidence = Annotated[float, Field(ge=0.01, le=0.999, description="how often intervals are to cover the true count")]


class Question(BaseModel):
    """What to count: rectangles (all minima, then all maxima) or polygons (GeoJSON geometries), at which ticks.

    ``where`` is for streams of rows, as for `phdstream.Release.count`.
    """

    rectangles: list[list[Number]] | None = Field(None, max_length=MOST_QUERIES)
    polygons: list[dict[str, Any]] | None = Field(None, max_length=MOST_QUERIES)
    first: int | None = Field(None, ge=1, le=10**9, description="the first tick; the last one's alone if not given")
    last: int | None = Field(None, ge=1, le=10**9)
    confidence: Confidence = 0.95
    where: dict[str, Any] | None = Field(
        None, max_length=100, description="which values of attributes count: names, or a range [low, high], by name"
    )


class Answers(BaseModel):
    """Counts, one list a tick and one number an area; see `phdstream.Counts` for what each interval covers.

    ``low`` to ``high`` is for the true count, ``noise_low`` to ``noise_high`` for what noise alone explains.
    """

    privacy: str
    confidence: float
    ticks: list[int]
    missing: list[int]
    value: list[list[float]]
    low: list[list[float]]
    high: list[list[float]]
    noise_low: list[list[float]]
    noise_high: list[list[float]]
    stderr: list[list[float]]


@router.get("/counts", response_model=Answers, responses=problems(401, 403, 404, 422, 429, 503))
async def count_one(
    service: Service,
    bbox: Annotated[str, Query(pattern=r"^[-+0-9.eE]{1,40}(,[-+0-9.eE]{1,40}){1,63}$", description="minima, maxima")],
    first: Annotated[int | None, Query(ge=1, le=10**9)] = None,
    last: Annotated[int | None, Query(ge=1, le=10**9)] = None,
    confidence: Confidence = 0.95,
) -> Answers:
    """Count the points in one rectangle, at the latest tick or over several."""
    try:
        sides = [float(side) for side in bbox.split(",")]
        question = Question(
            rectangles=[sides], polygons=None, first=first, last=last, confidence=confidence, where=None
        )
    except ValueError:  # no number, or one that is infinite
        raise ProblemError(422, "bbox is a list of numbers: all minima, then all maxima.") from None
    return await count_many(service, question)


@router.post("/counts", response_model=Answers, responses=problems(400, 401, 403, 404, 408, 413, 422, 429, 503))
async def count_many(service: Service, question: Question) -> Answers:
    """Count the points in rectangles or polygons, at the latest tick or over several."""
    if (question.rectangles is None) == (question.polygons is None):
        raise ProblemError(422, "ask either for rectangles or for polygons.")
    if not _ROOM.acquire(blocking=False):
        raise ProblemError(429, "too many questions at once: ask again.")
    asked = _WORKERS.submit(_count, service, question)
    asked.add_done_callback(lambda _: _ROOM.release())
    return await asyncio.wrap_future(asked)


def _count(service: StreamService, question: Question) -> Answers:
    ticks = _ticks(service, question)
    areas: Any = question.rectangles if question.polygons is None else _polygons(question.polygons)
    if len(areas) * len(ticks) > MOST_ANSWERS or len(ticks) > MOST_TICKS:
        raise ProblemError(422, f"at most {MOST_TICKS} ticks, and {MOST_ANSWERS} answers, at once: ask for fewer.")
    if question.polygons is not None and shapely.get_num_coordinates(areas).sum() * len(ticks) > MOST_VERTICES:
        raise ProblemError(422, f"at most {MOST_VERTICES} vertices times ticks at once: simplify, or ask for fewer.")
    return _answer(service, question, ticks, areas)


def _ticks(service: StreamService, question: Question) -> range:
    latest = latest_tick(service)
    last = min(question.last or latest, latest)
    return range(question.first or last, last + 1)


def _polygons(given: list[dict[str, Any]]) -> Any:
    """Return GeoJSON geometries as shapes; any other thing is refused."""
    try:
        shapes = shapely.from_geojson([json.dumps(one) for one in given]) if given else np.zeros(0, object)
    except (shapely.errors.GEOSException, ValueError, TypeError, KeyError, RecursionError, OverflowError):
        raise ProblemError(422, "polygons are GeoJSON geometries of type Polygon or MultiPolygon.") from None
    kinds = set(shapely.get_type_id(shapes).tolist())
    if not kinds <= {3, 6}:
        raise ProblemError(422, "polygons are GeoJSON geometries of type Polygon or MultiPolygon.")
    return shapes


def _answer(service: StreamService, question: Question, ticks: range, areas: Any) -> Answers:
    there = sorted(service.archive.ticks(ticks.start, ticks.stop - 1))
    ends: dict[str, list[list[float]]] = {name: [] for name in _ENDS}
    privacy = release_at(service, "latest").privacy
    for tick in there:
        release = release_at(service, tick)
        try:
            ask = release.count if question.polygons is None else release.count_in
            counts = ask(areas, question.confidence, where=question.where)
        except InputError as error:
            raise ProblemError(422, str(error)) from None
        for name in _ENDS:
            ends[name].append(np.nan_to_num(getattr(counts, name), posinf=1e300).tolist())
    missing = sorted(set(ticks) - set(there))
    return Answers(privacy=privacy, confidence=question.confidence, ticks=there, missing=missing, **ends)
