"""Events in: ``POST /v1/events``. Private."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from phdstream.service.api import guard
from phdstream.service.api.access import Service, needs
from phdstream.service.api.problems import ProblemError, problems
from phdstream.service.bodies import ARROW, KINDS, NDJSON
from phdstream.service.intake import Ticket
from phdstream.service.stream_service import StreamService

__all__ = ["router"]

router = APIRouter(tags=["events"])
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_LONGEST_KEY = 255
_IN_ALL = 300.0
"""Seconds that a whole body may take."""
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            NDJSON: {"schema": {"type": "string", "description": "one JSON object a line, with the stream's columns"}},
            ARROW: {"schema": {"type": "string", "format": "binary", "description": "an Arrow IPC stream"}},
        },
    }
}


class Rejected(BaseModel):
    """Rows that were left out, and why."""

    reason: str
    rows: int


class Accepted(BaseModel):
    """What became of a delivery. It is on the disk."""

    accepted: int
    rejected: list[Rejected]


@router.post(
    "/events",
    dependencies=[Depends(needs("ingest"))],
    response_model=Accepted,
    responses=problems(400, 401, 403, 408, 409, 413, 415, 422, 429, 503),
    openapi_extra=_BODY,
)
async def post_events(
    request: Request,
    service: Service,
    idempotency_key: Annotated[
        str | None, Header(description='A new one for every delivery, such as a UUID in quotes: "8e03978e-…"')
    ] = None,
) -> Accepted:
    """Take events in. When this answers 200 they are on the disk, and will be counted once.

    Send the same body with the same `Idempotency-Key` again if no answer came: it is not counted twice. Every row is
    judged for itself; what was left out is said by reason. Answers 429 and 503 say when to come again.
    """
    key = _key(idempotency_key)
    kind = KINDS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
    if kind is None:
        raise ProblemError(415, f"send {NDJSON} or {ARROW}.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError(415, "send the body without Content-Encoding (Arrow buffers may be compressed).")
    with service.intake.open(key) as ticket:
        content = await _body(request, service, ticket)
        answer = await service.intake.deliver(ticket, kind, content)
    return Accepted(**answer)


def _key(given: str | None) -> str:
    """Return the idempotency key: a structured field's string, or the bare text that most clients send."""
    if given is None or not given.strip():
        raise ProblemError(400, "the header Idempotency-Key is missing: send a new one, such as a UUID, per delivery.")
    given = given.strip()
    quoted = _QUOTED.fullmatch(given)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else given
    if not key or len(key) > _LONGEST_KEY or not key.isprintable() or ('"' in given and not quoted):
        raise ProblemError(400, f"the Idempotency-Key must be a text of at most {_LONGEST_KEY} printable characters.")
    return key


async def _body(request: Request, service: StreamService, ticket: Ticket) -> bytearray:
    """Return the body, received whole: not too large, not too slow, and while there is room for it."""
    most = service.settings.body
    stated = request.headers.get("content-length", "0")
    if not (stated.isascii() and stated.isdigit()):
        raise ProblemError(400, "Content-Length is a number of bytes.")
    if len(stated) > 15 or int(stated) > most:
        raise ProblemError(413, f"a body has at most {most} bytes: send several.")
    ticket.grow(int(stated))
    content = bytearray()
    pieces = aiter(request.stream())
    try:
        async with asyncio.timeout(_IN_ALL):
            while True:
                async with asyncio.timeout(guard.BETWEEN):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                if len(content) + len(piece) > most:
                    raise ProblemError(413, f"a body has at most {most} bytes: send several.")
                content += piece
                ticket.grow(max(len(content), int(stated)))
    except ClientDisconnect:
        raise ProblemError(400, "the body did not come whole; nothing was stored.") from None
    except TimeoutError:
        raise ProblemError(408, "the body came too slowly; nothing was stored.") from None
    return content
