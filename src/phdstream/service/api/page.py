"""The live page: `/` for a browser, and what it asks for: the stream's facts, and each tick as bytes. Public.

The document itself holds nothing of the stream, so it is open to all; what it shows is asked for with a reader's token
where reading is not public.
"""

from __future__ import annotations

import logging
import struct
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from phdstream.errors import InputError
from phdstream.page import page_html, page_policy
from phdstream.page.blocks import encode_tree
from phdstream.page.coarse import coarsened
from phdstream.page.facts import facts_of_stream, tick_label
from phdstream.page.quantise import Frame, encode_points
from phdstream.page.surroundings import read_layer_file
from phdstream.release.maps import check_planar
from phdstream.service.api.access import Service, needs
from phdstream.service.api.formats import Encodings
from phdstream.service.api.problems import ProblemError, problems
from phdstream.service.api.releases import Tick, caching, latest_tick, release_at
from phdstream.service.stream_service import StreamService

__all__ = ["kept_tick", "open_router", "page_response", "router", "wants_page"]

router = APIRouter(tags=["page"], dependencies=[Depends(needs("read"))])
open_router = APIRouter(tags=["page"])
_LOG = logging.getLogger("phdstream.service")
_MOST_TICKS = 300
_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


def wants_page(accept: str | None) -> bool:
    """Tell whether a browser asks, by the header Accept.

    >>> wants_page("text/html,application/xhtml+xml,*/*;q=0.8"), wants_page("*/*"), wants_page(None)
    (True, False, False)
    """
    return "text/html" in (accept or "").lower()


def page_response(tiles: str) -> Response:
    """Return the page, which asks the service it came from, and for tiles if there is a source; nothing else."""
    try:
        policy = f"{page_policy(False, tiles)}; frame-ancestors 'none'"
        text = page_html({"kind": "service"}, tiles=tiles)
    except InputError as error:
        raise ProblemError(503, str(error)) from None
    headers = {"Content-Security-Policy": policy, "Vary": "Accept", "Cache-Control": "no-cache"}
    return Response(text, headers=headers, media_type="text/html; charset=utf-8")


@open_router.get("/", include_in_schema=False)
def root(service: Service, request: Request, accept: Annotated[str | None, Header()] = None) -> Response:
    """Return the page to a browser; to others, where the stream is."""
    if wants_page(accept):
        return page_response(service.settings.tiles)
    raise ProblemError(404, f"the stream is at {str(request.base_url).rstrip('/')}/v1.")


@router.get("/page", responses=problems(401, 403, 404, 422, 429, 503))
def about_page(service: Service) -> dict[str, Any]:
    """Return what the page says of the stream, and its latest ticks."""
    last = latest_tick(service)
    try:
        check_planar(service.domain)
    except InputError as error:
        raise ProblemError(422, str(error)) from None
    there = [tick for tick in range(max(1, last - _MOST_TICKS + 1), last + 1) if service.archive.has(tick)]
    facts = facts_of_stream(
        service.domain.location, service.archive.manifest() or {}, release_at(service, "latest").places()
    )
    named = {"title": service.settings.name, "ticks": [_named(service, tick) for tick in there]}
    return facts | named | {"layer": _areas(service)}


def _areas(service: StreamService) -> dict[str, Any] | None:
    """Return the areas of the operator's layer, if there is one. The file is read each time: it may have changed."""
    if service.settings.layer is None:
        return None
    try:
        layer = read_layer_file(service.settings.layer, service.domain.location, Frame.of(service.domain.location))
    except InputError as error:  # which names a path of the machine
        _LOG.error("the page's layer cannot be read", extra={"why": str(error)})
        return None
    return {"areas": [{"name": name, "shape": shape} for name, shape in zip(layer.names, layer.drawn, strict=True)]}


@router.get("/page/labels", responses=problems(401, 403, 404, 422, 429, 503))
def label(service: Service, tick: Annotated[int, Query(ge=1, le=10**9)]) -> dict[str, Any]:
    """Return what the page calls a tick."""
    return _named(service, tick)


def _named(service: StreamService, tick: int) -> dict[str, Any]:
    return {"tick": tick, "label": tick_label((service.archive.manifest() or {}).get("ticks") or {}, tick)}


@router.get("/page/ticks/{tick}", responses=_BYTES | problems(401, 403, 404, 422, 429, 503), response_class=Response)
def tick_bytes(service: Service, request: Request, tick: Tick) -> Response:
    """Return a tick as the page reads it: its total, its points (what stays, came and went), its coarse tree."""
    number = latest_tick(service) if tick == "latest" else int(tick)
    release_at(service, number)
    content = kept_tick(service, request.app.state.encodings, number)
    headers = {"Cache-Control": caching(service, tick), "X-Tick": str(number)}
    return Response(content, headers=headers, media_type="application/octet-stream")


def kept_tick(service: StreamService, encodings: Encodings, tick: int) -> bytes:
    """Return a tick's bytes, made once."""
    return encodings.keep((tick, "page", "bytes"), lambda: _tick_bytes(service, tick))


def _tick_bytes(service: StreamService, tick: int) -> bytes:
    release, frame = release_at(service, tick).places(), Frame.of(service.domain.location)
    before = frame.keys(release_at(service, tick - 1).places().sample()) if service.archive.has(tick - 1) else None
    points = encode_points(frame.keys(release.sample()), before)
    return struct.pack("<f", release.total) + points + encode_tree(coarsened(release), frame)
