"""Errors as answers (RFC 9457, problem details): what was wrong and what to do; no stack trace, no private value."""

from __future__ import annotations

import http
import json
import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from phdstream.errors import InputError, PhdstreamError, StateError
from phdstream.service.api.guard import HEADERS
from phdstream.service.intake import InFlightError, MismatchError, NoRoomError, UnreadableError

__all__ = ["PROBLEM", "Problem", "ProblemError", "add_problem_handlers", "problems"]

PROBLEM = "application/problem+json"
_LOG = logging.getLogger("phdstream.service")
_STATUS: dict[type[PhdstreamError], int] = {
    InFlightError: 409, MismatchError: 422, NoRoomError: 429, UnreadableError: 422, InputError: 422, StateError: 503,
}  # fmt: skip
RETRY_AFTER = {429: "1", 503: "5", 409: "1"}


class Problem(BaseModel):
    """What went wrong with a request."""

    title: str
    status: int
    detail: str
    rejected: list[dict[str, Any]] | None = None


class ProblemError(Exception):
    """An answer other than 2xx, raised wherever it is known."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how an operation's errors are described in OpenAPI."""
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": http.HTTPStatus(status).phrase, "content": content} for status in statuses}


def _answer(status: int, detail: str, headers: dict[str, str] | None = None, **more: Any) -> JSONResponse:
    title = http.HTTPStatus(status).phrase
    headers = {**({"Retry-After": RETRY_AFTER[status]} if status in RETRY_AFTER else {}), **(headers or {})}
    content = {"title": title, "status": status, "detail": detail} | more
    return _Ascii(content, status, headers, PROBLEM)


class _Ascii(JSONResponse):
    """JSON that can hold whatever was sent, also halves of characters."""

    def render(self, content: Any) -> bytes:
        """Return the bytes."""
        return json.dumps(content).encode()


def add_problem_handlers(app: FastAPI) -> None:
    """Let an app answer errors so."""

    @app.exception_handler(ProblemError)
    async def stated(request: Request, error: ProblemError) -> JSONResponse:
        return _answer(error.status, error.detail, error.headers)

    @app.exception_handler(PhdstreamError)
    async def known(request: Request, error: PhdstreamError) -> JSONResponse:
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 422)
        if status == 503:  # its message may name a path of the machine
            _LOG.error("a request failed", extra={"why": str(error), "path": request.url.path})
            return _answer(503, "the service cannot do this at the moment; nothing was lost. Try again later.")
        if isinstance(error, UnreadableError):
            rejected = [{"reason": why, "rows": rows} for why, rows in sorted(error.rejected.items())]
            return _answer(status, str(error), rejected=rejected)
        return _answer(status, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        said = [f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors()[:5]]
        status = 400 if any(e["type"] == "json_invalid" for e in error.errors()) else 422
        return _answer(status, "; ".join(said))

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        return _answer(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        _LOG.error("an error that should not happen", extra={"kind": type(error).__name__, "path": request.url.path})
        return _answer(500, "an error that should not happen. It is in the service's log.", HEADERS)
