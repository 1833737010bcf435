"""The description of the OGC routes in OpenAPI 3.0, which its clients read; FastAPI's own is 3.1. Public."""

from __future__ import annotations

from typing import Any

from phdstream.service.api.ogc.collections import COLLECTIONS
from phdstream.service.api.ogc.queries import DEFAULT, MOST
from phdstream.service.api.problems import PROBLEM
from phdstream.version import __version__

__all__ = ["CONFORMS", "OPENAPI", "document"]

OPENAPI = "application/vnd.oai.openapi+json;version=3.0"
_GEOJSON, _JSON = "application/geo+json", "application/json"
_CLASSES = "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf"
CONFORMS = [f"{_CLASSES}/core", f"{_CLASSES}/oas30", f"{_CLASSES}/geojson"]
"""The conformance classes that are met."""
_OBJECT: dict[str, Any] = {"type": "object"}
_LINKS = {"type": "array", "items": {"$ref": "#/components/schemas/link"}}
_TEXT = {"type": "string"}


def document(name: str, base: str, public: bool) -> dict[str, Any]:
    """Return the description of one stream's routes at an address; ``public``: no token is needed to read."""
    about: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {"title": f"phdstream: {name}", "version": __version__, "description": "OGC API - Features, part 1."},
        "servers": [{"url": base}],
        "tags": [{"name": "Capabilities"}, {"name": "Data"}],
        "paths": _paths(),
        "components": {
            "parameters": _PARAMETERS,
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return about if public else about | {"security": [{"token": []}]}


def _paths() -> dict[str, Any]:
    paths = {
        "/": _operation("getLandingPage", "What is here, and where.", "landingPage"),
        "/api": _operation("getApi", "This description.", "any", OPENAPI),
        "/conformance": _operation("getConformance", "The parts of the standard that are met.", "conformance"),
        "/collections": _operation("getCollections", "The collections.", "collections"),
    }
    names = [{"$ref": f"#/components/parameters/{name}"} for name in ("limit", "offset", "bbox", "datetime", "tick")]
    feature = [{"$ref": "#/components/parameters/featureId"}]
    for name, (title, description) in COLLECTIONS.items():
        upper, own = name.capitalize(), f"/collections/{name}"
        paths[own] = _operation(f"describe{upper}", f"{title}: where and when.", "collection", tag="Data", missing=True)
        paths[f"{own}/items"] = _operation(
            f"get{upper}", description, "featureCollection", _GEOJSON, names, tag="Data", missing=True
        )
        paths[f"{own}/items/{{featureId}}"] = _operation(
            f"getOneOf{upper}", f"{title}: one of them.", "feature", _GEOJSON, feature, tag="Data", missing=True
        )
    return paths


def _operation(
    identity: str,
    summary: str,
    schema: str,
    media: str = _JSON,
    parameters: list[dict[str, str]] | None = None,
    tag: str = "Capabilities",
    missing: bool = False,
) -> dict[str, Any]:
    content = {media: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    problem = {PROBLEM: {"schema": {"$ref": "#/components/schemas/problem"}}}
    answers: dict[str, Any] = {"200": {"description": summary, "content": content}}
    answers["400"] = {"description": "A parameter is unknown or wrong.", "content": problem}
    if missing:
        answers["404"] = {"description": "There is no such thing.", "content": problem}
    answers["default"] = {"description": "Something else is wrong.", "content": problem}
    operation: dict[str, Any] = {"operationId": identity, "summary": summary, "tags": [tag], "responses": answers}
    return {"get": operation | ({"parameters": parameters} if parameters else {})}


def _query(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    about = {"name": name, "in": "query", "description": description, "required": False, "schema": schema}
    return about | {"style": "form", "explode": False}


_PARAMETERS: dict[str, Any] = {
    "limit": _query(
        "limit",
        "How many features a page has at most.",
        {"type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT},
    ),
    "offset": _query(
        "offset", "How many features come before the page.", {"type": "integer", "minimum": 0, "default": 0}
    ),
    "bbox": _query(
        "bbox",
        "Features that meet west,south,east,north, in degrees; across the antimeridian if west is more than east.",
        {"type": "array", "minItems": 4, "maxItems": 6, "items": {"type": "number"}},
    ),
    "datetime": _query("datetime", "The last release of a moment or an interval: begin/end, .. for open.", _TEXT),
    "tick": _query("tick", "The release of one tick.", {"type": "integer", "minimum": 1}),
    "featureId": {"name": "featureId", "in": "path", "description": "A feature's id.", "required": True}
    | {"schema": _TEXT},
}
_SCHEMAS: dict[str, Any] = {
    "any": _OBJECT,
    "link": {
        "type": "object",
        "required": ["href", "rel"],
        "properties": {"href": _TEXT, "rel": _TEXT, "type": _TEXT, "title": _TEXT},
    },
    "landingPage": {
        "type": "object",
        "required": ["links"],
        "properties": {"title": _TEXT, "description": _TEXT, "links": _LINKS},
    },
    "conformance": {
        "type": "object",
        "required": ["conformsTo"],
        "properties": {"conformsTo": {"type": "array", "items": _TEXT}},
    },
    "collection": {
        "type": "object",
        "required": ["id", "links"],
        "properties": {
            "id": _TEXT, "title": _TEXT, "description": _TEXT, "itemType": _TEXT, "extent": _OBJECT,
            "crs": {"type": "array", "items": _TEXT}, "links": _LINKS,
        },
    },
    "collections": {
        "type": "object",
        "required": ["links", "collections"],
        "properties": {
            "links": _LINKS,
            "collections": {"type": "array", "items": {"$ref": "#/components/schemas/collection"}},
        },
    },
    "feature": {
        "type": "object",
        "required": ["type", "geometry", "properties"],
        "properties": {
            "type": {"type": "string", "enum": ["Feature"]}, "id": _TEXT, "geometry": _OBJECT, "properties": _OBJECT,
            "links": _LINKS,
        },
    },
    "featureCollection": {
        "type": "object",
        "required": ["type", "features"],
        "properties": {
            "type": {"type": "string", "enum": ["FeatureCollection"]},
            "features": {"type": "array", "items": {"$ref": "#/components/schemas/feature"}},
            "links": _LINKS,
            "timeStamp": {"type": "string", "format": "date-time"},
            "numberMatched": {"type": "integer", "minimum": 0},
            "numberReturned": {"type": "integer", "minimum": 0},
            "tick": {"type": "integer", "minimum": 1}, "start": _TEXT, "end": _TEXT, "privacy": _TEXT,
        },
    },
    "problem": {
        "type": "object",
        "properties": {"title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT},
    },
}  # fmt: skip
