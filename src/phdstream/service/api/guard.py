"""What every request passes first: headers that every answer carries, and bounds on bodies that nobody asked for."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BETWEEN", "HEADERS", "MOST", "Guard"]

MOST = 4 << 20
"""Bytes of a question or an erratum; deliveries of events have their own bound (``[service] body``)."""
BETWEEN = 20.0
"""Seconds that a sender may be silent."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""What every answer carries."""


class Guard:
    """Adds headers to answers, and lets no body grow beyond bounds: before it is parsed, and before a token is seen."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif str(scope["path"]).endswith("/v1/events"):
            await self._app(scope, receive, answer)
        else:
            await self._app(scope, _bounded(receive, Headers(scope=scope).get("content-length", "")), answer)


def _bounded(receive: Receive, stated: str) -> Receive:
    """Return what receives a body, as long as it is neither too large nor too slow."""
    size, whole = int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 16 else 0, False

    async def bounded() -> Message:
        nonlocal size, whole
        if whole:  # what follows is the end of the connection, whenever that comes
            return await receive()
        if size > MOST:
            raise HTTPException(413, f"a body has at most {MOST} bytes here.")
        try:
            async with asyncio.timeout(BETWEEN):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, "the body came too slowly.") from None
        whole = not message.get("more_body", False)
        if not stated:
            size += len(message.get("body", b""))
            if size > MOST:
                raise HTTPException(413, f"a body has at most {MOST} bytes here.")
        return message

    return bounded
