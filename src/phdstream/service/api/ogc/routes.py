"""The routes of OGC API - Features: a landing page, what is conformed to, the collections, their features.

A collection is the points or the cells of one release: the latest, unless ``datetime`` or ``tick`` names another. A
page's link to the next one names its tick, so that a release that comes meanwhile changes nothing.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Depends, Request, Response

from phdstream.errors import InputError
from phdstream.service.api.access import Service, needs
from phdstream.service.api.ogc.collections import COLLECTIONS, chosen_tick, described, interval
from phdstream.service.api.ogc.layers import Layer, Layers, Place
from phdstream.service.api.ogc.openapi30 import CONFORMS, OPENAPI, document
from phdstream.service.api.ogc.queries import Query, only, read_query
from phdstream.service.api.problems import ProblemError
from phdstream.service.api.releases import base_of, release_at
from phdstream.service.stream_service import StreamService

__all__ = ["router"]

GEOJSON, JSON = "application/geo+json", "application/json"
_CACHE = {"Cache-Control": "no-cache"}
_PARAMETERS = ("limit", "offset", "bbox", "datetime", "tick")


def _place(request: Request, service: Service) -> Place:
    """Return how the stream's coordinates become longitude and latitude; 404 if they cannot."""
    state = request.app.state
    if not hasattr(state, "place"):
        try:
            state.place = Place(service.domain.location)
        except InputError as error:
            raise ProblemError(404, str(error)) from None
    place: Place = state.place
    return place


def _known(collection: str) -> str:
    if collection not in COLLECTIONS:
        raise ProblemError(404, f"there is no such collection: known are {', '.join(COLLECTIONS)}.")
    return collection


Where = Annotated[Place, Depends(_place)]
Name = Annotated[str, Depends(_known)]
router = APIRouter(dependencies=[Depends(needs("read")), Depends(_place)], include_in_schema=False)


def _base(request: Request) -> str:
    return f"{base_of(request)}/ogc"


def _link(href: str, rel: str, title: str, media: str = JSON) -> dict[str, str]:
    return {"href": href, "rel": rel, "type": media, "title": title}


def _json(content: dict[str, Any], media: str = JSON) -> Response:
    return Response(json.dumps(content, ensure_ascii=False, allow_nan=False), headers=_CACHE, media_type=media)


@router.get("", dependencies=[Depends(only())])
@router.get("/", dependencies=[Depends(only())])
def landing(service: Service, request: Request) -> Response:
    """Return what is here, and where."""
    base = _base(request)
    links = [
        _link(base, "self", "this page"),
        _link(f"{base}/api", "service-desc", "the description of these routes", OPENAPI),
        _link(f"{base}/conformance", "conformance", "the parts of the standard that are met"),
        _link(f"{base}/collections", "data", "points and cells"),
    ]
    about = "Synthetic points, and cells with counts, published with differential privacy over the whole stream."
    return _json({"title": f"phdstream: {service.settings.name}", "description": about, "links": links})


@router.get("/api", dependencies=[Depends(only())])
def api(service: Service, request: Request) -> Response:
    """Return the description of these routes: OpenAPI 3.0, which clients of this standard read."""
    return _json(document(service.settings.name, _base(request), service.settings.public), OPENAPI)


@router.get("/conformance", dependencies=[Depends(only())])
def conformance() -> Response:
    """Return which parts of the standard are met."""
    return _json({"conformsTo": CONFORMS})


def _collection(service: StreamService, request: Request, place: Place, name: str) -> dict[str, Any]:
    own = f"{_base(request)}/collections/{name}"
    links = [_link(own, "self", name), _link(f"{own}/items", "items", f"the {name} as GeoJSON", GEOJSON)]
    return described(service, name, place.bounds) | {"links": links}


@router.get("/collections", dependencies=[Depends(only())])
def collections(service: Service, request: Request, place: Where) -> Response:
    """Return the collections."""
    links = [_link(f"{_base(request)}/collections", "self", "this page")]
    there = [_collection(service, request, place, name) for name in COLLECTIONS]
    return _json({"links": links, "collections": there})


@router.get("/collections/{collection}", dependencies=[Depends(only())])
def collection(service: Service, request: Request, place: Where, collection: Name) -> Response:
    """Return what a collection is: where and when its features are."""
    return _json(_collection(service, request, place, collection))


@router.get("/collections/{collection}/items", dependencies=[Depends(only(*_PARAMETERS))])
def items(service: Service, request: Request, place: Where, collection: Name) -> Response:
    """Return a page of features."""
    query = read_query(request)
    tick = chosen_tick(service, query)
    layer = None if tick is None else _layer(service, request, place, collection, tick)
    matched, rows = (0, np.zeros(0, dtype=np.int64)) if layer is None else layer.page(query)
    head: dict[str, Any] = {
        "type": "FeatureCollection",
        "links": _page_links(request, query, collection, tick, matched),
        "timeStamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "numberMatched": matched, "numberReturned": rows.size,
    }  # fmt: skip
    head |= {} if layer is None else layer.about()
    features = "" if layer is None else layer.encode(rows)
    content = f'{json.dumps(head, ensure_ascii=False)[:-1]},"features":[{features}]}}'
    return Response(content, headers=_CACHE, media_type=GEOJSON)


def _page_links(request: Request, query: Query, collection: str, tick: int | None, matched: int) -> list[Any]:
    own = f"{_base(request)}/collections/{collection}"
    links = [_link(str(request.url), "self", "this page", GEOJSON), _link(own, "collection", collection)]
    asked = {"limit": str(query.limit), "tick": str(tick)}
    asked |= {"bbox": request.query_params["bbox"]} if "bbox" in request.query_params else {}

    def other(rel: str, offset: int) -> dict[str, str]:
        address = f"{own}/items?{urlencode(asked | {'offset': str(offset)}, safe=',')}"
        return _link(address, rel, f"the {rel} page", GEOJSON)

    if query.offset + query.limit < matched:
        links.append(other("next", query.offset + query.limit))
    if matched and query.offset:
        links.append(other("prev", max(0, query.offset - query.limit)))
    return links


@router.get("/collections/{collection}/items/{feature}", dependencies=[Depends(only())])
def item(service: Service, request: Request, place: Where, collection: Name, feature: str) -> Response:
    """Return one feature. Its id is that of its tick and its place in it, so it stays the same."""
    tick, _, row = feature.partition("-")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in (tick, row)):
        raise ProblemError(404, "there is no such feature: an id is a tick's number, a hyphen and the feature's.")
    layer = _layer(service, request, place, collection, int(tick))
    if f"{int(tick)}-{int(row)}" != feature or not 1 <= int(row) <= layer.size:
        raise ProblemError(404, f"tick {layer.tick} has no feature of this id.")
    own = f"{_base(request)}/collections/{collection}"
    links = [_link(f"{own}/items/{feature}", "self", "this feature", GEOJSON), _link(own, "collection", collection)]
    content = f'{layer.encode(np.array([int(row) - 1]))[:-1]},"links":{json.dumps(links)}}}'
    return Response(content, headers=_CACHE, media_type=GEOJSON)


def _layer(service: StreamService, request: Request, place: Place, collection: str, tick: int) -> Layer:
    layers: Layers = request.app.state.layers
    try:
        return layers.layer(release_at(service, tick), collection, place, interval(service, tick))
    except InputError as error:
        raise ProblemError(404, str(error)) from None
