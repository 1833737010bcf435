"""Releases out: what was published, as it was, in several formats; and each new one as it comes. Public."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import FileResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent

from phdstream.release import Release
from phdstream.service.api.access import Service, needs
from phdstream.service.api.formats import MEDIA, Encodings, Format, asked_format
from phdstream.service.api.problems import ProblemError, problems
from phdstream.service.stream_service import StreamService

__all__ = ["Tick", "base_of", "caching", "latest_tick", "release_at", "router"]

router = APIRouter(tags=["releases"], dependencies=[Depends(needs("read"))])
_LARGEST = 10**9
Tick = Annotated[str, Path(pattern=r"^(latest|[1-9][0-9]{0,8})$", description="a tick's number, or latest")]
_YEAR = "max-age=31536000, immutable"
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The part of the release.",
        "content": {media.partition(";")[0]: _BINARY for media in MEDIA.values()}
        | {MEDIA[form]: {"schema": {"type": "object"}} for form in ("json", "geojson")},
    }
}
_MOST_AS_TEXT = 2_000_000
_KEEP_ALIVE, _AGAIN, _LISTENERS = 15.0, 1000, 500
"""Seconds; releases that are announced once more to who missed them; how many may listen to a stream."""


def latest_tick(service: StreamService) -> int:
    """Return the last tick that can be read; say so if there is none."""
    tick = service.archive.last_tick
    if not tick:
        raise ProblemError(404, "nothing is released yet.")
    return tick


def release_at(service: StreamService, tick: str | int) -> Release:
    """Return the release of a tick, or say that there is none."""
    number = latest_tick(service) if tick == "latest" else int(tick)
    if not service.archive.has(number):
        raise ProblemError(404, f"tick {number} has no release here: /v1/ticks says what became of it.")
    return service.archive.release(number)


def _summary(service: StreamService, release: Release, base: str) -> dict[str, Any]:
    own = f"{base}/releases/{release.tick}"
    return {
        "tick": release.tick,
        "privacy": release.privacy,
        "total": release.total,
        "cells": int(release.leaves.size),
        "points": int(release.points.sum()),
        "warning": release.usefulness.warning,
        "metadata": release.metadata,
        "links": {part: f"{own}/{part}" for part in ("points", "cells", "changes")},
    }


def caching(service: StreamService, tick: str) -> str:
    """Return how long an answer is good; what needs a token is kept by nobody else's cache."""
    whose = "public" if service.settings.public else "private"
    return f"{whose}, no-cache" if tick == "latest" else f"{whose}, {_YEAR}"


def base_of(request: Request) -> str:
    """Return the address of a stream's routes as the reader sees it: also behind a proxy, and beside other streams.

    Starlette's ``base_url`` leaves out the name under which one of several streams is mounted.
    """
    return f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '').rstrip('/')}/v1"


@router.get("/releases", responses=problems(401, 403, 422, 429, 503))
def list_releases(
    service: Service,
    request: Request,
    first: Annotated[int, Query(ge=1, le=_LARGEST)] = 1,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """Return which ticks can be read, from ``first`` on."""
    last = service.archive.last_tick
    there = [tick for tick in range(first, min(last, first + limit - 1) + 1) if service.archive.has(tick)]
    return {"last": last, "releases": [{"tick": t, "href": f"{base_of(request)}/releases/{t}"} for t in there]}


@router.get("/releases/{tick}", responses=problems(401, 403, 404, 422, 429, 503))
def get_release(service: Service, request: Request, response: Response, tick: Tick) -> dict[str, Any]:
    """Return what a release promises, its total, and where its parts are."""
    release = release_at(service, tick)
    response.headers["Cache-Control"] = caching(service, tick)
    return _summary(service, release, base_of(request))


@router.get(
    "/releases/{tick}/{part}", responses=_CONTENT | problems(401, 403, 404, 406, 422, 429, 503), response_class=Response
)
def get_part(
    service: Service,
    request: Request,
    tick: Tick,
    part: Literal["points", "cells", "changes"],
    f: Annotated[Format | None, Query(description="the format; otherwise the header Accept says it")] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Return the synthetic points, the cells with their counts, or the changes since the tick before."""
    release, form = release_at(service, tick), asked_format(f, accept)
    if part == "changes" and release.tick > service.publisher.first_release and not release.previous_nodes.size:
        raise ProblemError(404, f"tick {release.tick - 1} is not here, so there are no changes since.")
    etag = f'"{service.stream_id[:12]}-{release.tick}-{part}-{form}"'
    headers = {"ETag": etag, "Vary": "Accept", "Cache-Control": caching(service, tick)}
    headers["X-Tick"] = str(release.tick)
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if etag in known or known == ["*"]:
        return Response(status_code=304, headers=headers)
    there = service.archive.file(release.tick, part, form)
    if there is not None:
        return FileResponse(there, headers=headers, media_type=MEDIA[form])
    if form in ("json", "geojson", "csv") and int(release.points.sum()) > _MOST_AS_TEXT:
        raise ProblemError(406, f"more than {_MOST_AS_TEXT} points are not written as text: ask for arrow or parquet.")
    encodings: Encodings = request.app.state.encodings
    return Response(encodings.encode(release, part, form), headers=headers, media_type=MEDIA[form])


async def _room_to_listen(service: Service) -> None:
    """Leave connections for those who send events and ask for releases."""
    if service.announcer.listeners >= _LISTENERS:
        raise ProblemError(429, "too many listen already: ask for releases from time to time instead.")


@router.get(
    "/stream", response_class=EventSourceResponse, responses=problems(401, 403, 422, 429),
    dependencies=[Depends(_room_to_listen)],
)  # fmt: skip
async def stream(
    service: Service,
    request: Request,
    last_event_id: Annotated[str | None, Header(pattern=r"^[0-9]{1,9}$")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Send an event for each new release: its tick and its total. With Last-Event-ID, first for up to 1,000 since."""
    last = service.archive.last_tick
    seen = last if last_event_id is None else max(last - _AGAIN, min(int(last_event_id), last))
    async with service.announcer.listening() as woken:
        yield ServerSentEvent(comment="phdstream", retry=5000)
        while not service.announcer.closed and not await request.is_disconnected():
            woken.clear()
            for tick in range(seen + 1, service.archive.last_tick + 1):
                if service.archive.has(tick):
                    release = await asyncio.to_thread(service.archive.release, tick)
                    about = {"tick": tick, "total": release.total, "href": f"{base_of(request)}/releases/{tick}"}
                    yield ServerSentEvent(data=about, event="release", id=str(tick))
                seen = tick
            try:
                await asyncio.wait_for(woken.wait(), _KEEP_ALIVE)
            except TimeoutError:
                yield ServerSentEvent(comment="still here")
