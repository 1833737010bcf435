"""Streams to serve in tests: a small box, ticks of ten seconds, a clock that is set by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from phdstream.app.config import load_config
from phdstream.app.serve import source_of
from phdstream.service import stream_service
from phdstream.service.bodies import NDJSON, BodyReader
from phdstream.service.schedule import SteadyClock
from phdstream.service.stream_service import StreamService

START = datetime(2024, 5, 31, tzinfo=UTC)
EVERY = 10
CONFIG = """
[input]
coordinates = ["x", "y"]
time = "time"
{input}
[ticks]
every = "10s"
start = 2024-05-31T00:00:00Z
{ticks}
[domain]
type = "box"
bounds = [[0.0, 1.0], [0.0, 1.0]]
depth = 12
[privacy]
epsilon = 1.0
unit = {unit}
[output]
releases = "releases"
state = "private"
[stream]
{stream}
[simulation]
seed = 7
[service]
public = true
readers = 1
{service}
"""


class HandClock:
    """The machine's clock and the time that has passed, set by hand; both in seconds."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.wall = START.timestamp() + seconds
        self.passed = 1000.0

    def go_to(self, seconds: float) -> None:
        """Let time pass until so many seconds after the start."""
        step = START.timestamp() + seconds - self.wall
        self.wall += step
        self.passed += step

    def steady(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.passed)


def write_config(folder: Path, **more: str) -> Path:
    path = folder / "stream.toml"
    sections = {"input": "", "ticks": "", "stream": "", "service": "", "unit": '"event"'} | more
    path.write_text(CONFIG.format(**sections))
    return path


class InProcess:
    """Reads bodies in the process itself: to start another one takes longer than most tests."""

    def __init__(self, number: int, *about: Any) -> None:
        self.read = BodyReader(*about).read

    def close(self) -> None:
        pass


def service_at(path: Path, clock: HandClock) -> StreamService:
    """Return a service that was not started: its ticks are released by hand."""
    with patch.object(stream_service, "Readers", InProcess):
        return StreamService(source_of(load_config(path), path), clock.steady())


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def row(seconds: float, x: float = 0.5, y: float = 0.5, **more: Any) -> dict[str, Any]:
    return {"time": at(seconds), "x": x, "y": y} | more


def ndjson(rows: Iterable[dict[str, Any]]) -> bytearray:
    return bytearray("\n".join(json.dumps(one) for one in rows).encode())


def deliver(service: StreamService, key: str, rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Deliver rows as a request would, and return the answer."""

    async def delivered() -> dict[str, Any]:
        with service.intake.open(key) as ticket:
            return await service.intake.deliver(ticket, NDJSON, ndjson(rows))

    return asyncio.run(delivered())
