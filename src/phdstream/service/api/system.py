"""The stream itself: what it is and promises, its ticks, its health, its metrics; what operators may do."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from phdstream.service.api.access import Service, needs
from phdstream.service.api.problems import ProblemError, problems
from phdstream.service.stream_service import StreamService
from phdstream.version import __version__

__all__ = ["open_router", "operate_router", "router"]

router = APIRouter(tags=["stream"], dependencies=[Depends(needs("read"))])
open_router = APIRouter(tags=["health"])
_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}}
operate_router = APIRouter(tags=["operate"], dependencies=[Depends(needs("operate"))])


@router.get("", responses=problems(401, 403, 429, 503))
def about(service: Service) -> dict[str, Any]:
    """Return what the stream is, what it promises, and by which rules events are taken."""
    settings, clock = service.settings, service.schedule.clock
    grace = clock.grace if settings.catch_up is None else settings.catch_up
    return {
        "product": "phdstream", "version": __version__, "stream": service.stream_id, "name": settings.name,
        "description": service.description, "promise": service.source.about, "ticks": clock.to_dict(),
        "last": service.archive.last_tick,
        "columns": service.source.columns.needed,
        "rules": {
            "late": settings.late, "ahead_seconds": settings.ahead.total_seconds(),
            "catch_up_seconds": grace.total_seconds(),
            "idempotency_key_expires_seconds": settings.remember.total_seconds(),
            "largest_body_bytes": settings.body, "requests_per_second": settings.rate,
        },
    }  # fmt: skip


@router.get("/ticks", responses=problems(401, 403, 422, 429, 503))
def ticks(
    service: Service,
    first: Annotated[int | None, Query(ge=1, le=10**9)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """Return every scheduled tick up to the present one: open, held, released, late or missing; with errata.

    Without ``first``, the latest ones.
    """
    last = service.board.current
    start = max(1, last - limit + 1) if first is None else first
    return {"current": last, "ticks": service.board.rows(start, start + limit - 1)}


@router.get("/card", responses=problems(401, 403, 404, 429, 503))
def card(service: Service) -> dict[str, Any]:
    """Return a draft of the entry for OpenDP's registry of deployments."""
    if service.source.card is None:
        raise ProblemError(404, "a stream with seeded noise promises nothing, so it has no card.")
    return service.source.card(service.archive.last_tick)


class Erratum(BaseModel):
    """What to say of a tick, in public and for ever."""

    text: str = Field(min_length=1, max_length=2000)


@operate_router.post(
    "/ticks/{tick}/errata", status_code=201, responses=problems(400, 401, 403, 408, 413, 422, 429, 503)
)
def add_erratum(service: Service, tick: Annotated[int, Path(ge=1, le=10**9)], erratum: Erratum) -> list[dict[str, str]]:
    """Say something of a tick: what was wrong with it. Errata are public and stay."""
    service.board.add_erratum(tick, erratum.text)
    return service.board.errata()[str(tick)]


@operate_router.post("/reload", status_code=204, responses=problems(401, 403, 422, 429, 503))
def reload(service: Service) -> None:
    """Read the configuration again: limits, whether reading is public, keys. A changed promise is refused."""
    service.reload()


@operate_router.get("/status", responses=problems(401, 403, 429, 503))
def status(service: Service) -> dict[str, Any]:
    """Return what keeps the service from being ready, in full. For operators."""
    return {
        "failure": service.publisher.failure,
        "why_not_ready": service.why_not_ready(),
        "sinks": {sink.name: sink.behind for sink in service.sinks},
    }


@open_router.get("/health")
async def health() -> dict[str, str]:
    """Tell that the process answers."""
    return {"status": "up"}


@open_router.get("/ready", responses=problems(503))
def ready(service: Service) -> dict[str, str]:
    """Tell whether ticks come out as scheduled; a sink that is behind is named, and holds up nothing."""
    why = service.why_not_ready()
    if why:
        raise ProblemError(503, "; ".join(why))
    behind = [sink.name for sink in service.sinks if sink.behind]
    return {"status": "ready"} | ({"sinks_behind": ", ".join(behind)} if behind else {})


@router.get("/metrics", response_class=Response, responses=_TEXT | problems(401, 403, 429))
def metrics(service: Service, request: Request) -> Response:
    """Return metrics for Prometheus. Nothing in them depends on events: no sizes, no numbers of deliveries, no times
    that work took.
    """
    return Response(generate_latest(_registry(service)), media_type=CONTENT_TYPE_LATEST)


def _registry(service: StreamService) -> CollectorRegistry:
    registry, now = CollectorRegistry(), service.clock.now()
    board, clock = service.board, service.schedule.clock
    recent = board.rows(max(1, board.current - 1000), board.current)
    values = {
        "up": ("1: the service runs", 1),
        "ready": ("1: ticks come out as scheduled", int(not service.why_not_ready())),
        "tick_current": ("the tick of the present moment", board.current),
        "tick_due": ("the last tick that is due", clock.over(now)),
        "tick_released": ("the last tick that can be read", service.archive.last_tick),
        "ticks_late": ("ticks that are due and not released", sum(r["status"] == "late" for r in recent)),
        "ticks_missing": ("ticks overdue by more than a tick, or gone", sum(r["status"] == "missing" for r in recent)),
        "failing": ("1: releases are held up by an error", int(bool(service.publisher.failure))),
        "clock_jumped": ("1: the machine's clock jumped and is not followed yet", int(service.clock.jumped)),
        "listeners": ("readers of server-sent events", service.announcer.listeners),
        "epsilon": ("what is promised, over the whole stream", service.source.about.get("epsilon", 0)),
    }
    for name, (text, value) in values.items():
        gauge = Gauge(f"phdstream_{name}", text, ["stream"], registry=registry)
        gauge.labels(service.settings.name).set(value)
    _sink_gauges(service, registry)
    return registry


def _sink_gauges(service: StreamService, registry: CollectorRegistry) -> None:
    labels = ["stream", "sink"]
    failing = Gauge("phdstream_sink_failing", "1: the sink is behind, and tried again", labels, registry=registry)
    at = Gauge("phdstream_sink_tick", "the last tick that the sink was seen to have", labels, registry=registry)
    for sink in service.sinks:
        failing.labels(service.settings.name, sink.name).set(int(bool(sink.behind)))
        at.labels(service.settings.name, sink.name).set(sink.tick)
