"""Who may call what, and how often. A token comes in the header ``Authorization: Bearer …``, never in an address."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from phdstream.service.api.problems import ProblemError
from phdstream.service.stream_service import StreamService

__all__ = ["Service", "needs", "service_of"]

_BEARER = HTTPBearer(auto_error=False, description="A token made by `phdstream token`.")
_LOG = logging.getLogger("phdstream.access")
_REMEMBERED = 10_000
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="phdstream"'}


class Rates:
    """How often each caller came lately: a bucket of one second's worth of requests, refilled as time passes."""

    def __init__(self) -> None:
        self._buckets, self._lock = OrderedDict[str, tuple[float, float]](), threading.Lock()

    def take(self, caller: str, rate: int) -> bool:
        """Take one request from a caller's bucket; tell whether there was one."""
        now = time.monotonic()
        with self._lock:
            left, then = self._buckets.pop(caller, (float(rate), now))
            left = min(float(rate), left + (now - then) * rate)
            self._buckets[caller] = (left - 1 if left >= 1 else left), now
            while len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)
        return left >= 1


async def service_of(request: Request) -> StreamService:
    """Return the stream that a request is about."""
    service: StreamService = request.app.state.service
    return service


Service = Annotated[StreamService, Depends(service_of)]


def needs(role: str) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return what lets a caller with a role pass, and no other; reading may be open to everybody.

    It runs in the event loop itself: threads that are busy answering readers keep no sender waiting.
    """

    async def check(
        request: Request, service: Service, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
    ) -> None:
        open_to_all = role == "read" and service.settings.public
        token = None if given is None else service.tokens.find(given.credentials)
        address = request.client.host if request.client else "?"
        rates: Rates = request.app.state.rates
        if not rates.take(token.name if token else address, service.settings.rate):
            raise ProblemError(429, "too many requests: wait a second.")
        if role != "read":
            about = {"path": request.url.path, "method": request.method, "token": token.name if token else None}
            _LOG.info("private endpoint", extra=about | {"address": address})
        if open_to_all and given is None:
            return
        if token is None:
            raise ProblemError(401, f"this needs a token with the role {role}.", _CHALLENGE)
        if role not in token.roles and not (role == "read" and "operate" in token.roles):
            raise ProblemError(403, f"this token does not have the role {role}.")

    return check
