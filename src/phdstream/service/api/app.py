"""The app of one stream, and the app of several: ASGI, to be run by uvicorn."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response

from phdstream.service.api import counts, events, page, releases, system
from phdstream.service.api.access import Rates
from phdstream.service.api.formats import Encodings
from phdstream.service.api.guard import Guard
from phdstream.service.api.ogc import routes as ogc
from phdstream.service.api.ogc.layers import Layers
from phdstream.service.api.problems import Problem, add_problem_handlers
from phdstream.service.stream_service import StreamService
from phdstream.version import __version__

__all__ = ["host", "stream_app"]

_ABOUT = """Private events in, public synthetic releases out, with differential privacy over the whole stream."""


def stream_app(service: StreamService) -> FastAPI:
    """Return the app of one stream. Nobody is let in across origins (CORS stays off)."""
    app = FastAPI(
        title=f"phdstream: {service.settings.name}", version=__version__, description=_ABOUT,
        docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json",
    )  # fmt: skip
    app.state.service, app.state.rates, app.state.encodings = service, Rates(), Encodings()
    service.prepare = partial(page.kept_tick, service, app.state.encodings)
    app.state.layers = Layers()
    for part in (system.router, system.open_router, events.router, releases.router, counts.router, page.router):
        app.include_router(part, prefix="/v1")
    app.include_router(system.operate_router, prefix="/v1")
    app.include_router(ogc.router, prefix="/v1/ogc")
    app.include_router(page.open_router)
    _describe_problems(app)
    _guard(app)
    return app


def _guard(app: FastAPI) -> None:
    add_problem_handlers(app)
    app.add_middleware(Guard)


def _describe_problems(app: FastAPI) -> None:
    """Name the schema of errors in the description, and let no operation claim FastAPI's own form of them."""
    made = app.openapi

    def described() -> dict[str, Any]:
        schema = made()
        schemas = schema.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema()
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        return schema

    app.openapi = described  # type: ignore[method-assign]


def host(services: list[StreamService]) -> FastAPI:
    """Return the app of a service: its one stream at ``/v1``, or each of several at ``/NAME/v1``; `/` lists them.

    The page is at ``/``, or at ``/NAME/`` of each. Streams start with the app and stop with it.
    """

    @contextlib.asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        with contextlib.ExitStack() as stopping:
            for service in services:
                stopping.callback(service.stop)
                service.start()
            yield

    app = FastAPI(
        title="phdstream", version=__version__, docs_url=None, redoc_url=None, openapi_url=None, lifespan=running
    )
    _guard(app)
    paths = {service.settings.name: "" if len(services) == 1 else f"/{service.settings.name}" for service in services}

    @app.get("/", response_model=None)
    def streams(request: Request) -> dict[str, Any] | Response:
        """Return the streams that are served here; to a browser, the page of the only one."""
        if len(services) == 1 and page.wants_page(request.headers.get("accept")):
            return page.page_response(services[0].settings.tiles)
        base = str(request.base_url).rstrip("/")
        return {"product": "phdstream", "streams": {name: f"{base}{path}/v1" for name, path in paths.items()}}

    for service in services:
        app.mount(paths[service.settings.name] or "/", stream_app(service))
    return app
