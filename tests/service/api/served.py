"""A stream to read over HTTP without its intake: releases in a folder, and what the routes ask of a service."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import uvicorn

import phdstream as phd
from phdstream.domains import Domain
from phdstream.io.archive import Archive
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.io.sources.clock import Clock
from phdstream.service.api.app import stream_app
from phdstream.service.settings import ServiceSettings
from phdstream.service.tokens import Tokens

START = datetime(2026, 11, 18, 8, tzinfo=UTC)
CITY = phd.Box([(-74.3, -73.7), (40.5, 41.0)], names=("lon", "lat"), crs="EPSG:4326")


class Served:
    """A stream of hourly ticks from `START` on; `release` publishes the next one."""

    def __init__(
        self, folder: Path, domain: Domain = CITY, public: bool = True, clock: Clock | None = None, writes: bool = True
    ) -> None:
        self.stream = phd.PHDStream(domain, epsilon=1.0, unit=phd.Event(), noise=phd.Simulation(seed=1))
        self.folder = ReleaseFolder(folder / "releases", "stream", {})
        if writes:
            self.folder.open()
        settings = ServiceSettings(public=public, rate=100_000)
        (folder / "state").mkdir(exist_ok=True)
        self.tokens = Tokens(folder / "state")
        self.archive = Archive(folder / "releases", domain)
        clock = clock or Clock(START, timedelta(hours=1), None)
        service: Any = SimpleNamespace(
            settings=settings, domain=domain, archive=self.archive, tokens=self.tokens, stream_id="stream",
            schedule=SimpleNamespace(clock=clock),
        )  # fmt: skip
        self.app = stream_app(service)

    def release(self, number: int = 500, publish: bool = True) -> phd.Release:
        """Publish a tick with so many more events, spread around the middle of the domain."""
        low, high = np.split(self.stream.domain.bounds(np.array([1]))[0], 2)
        spread = np.random.default_rng(self.stream.tick).normal(0.5, 0.15, (number, low.size)).clip(0.01, 0.99)
        release = self.stream.update(low + spread * (high - low))
        if publish:
            self.folder.publish(release)
        return release


@contextlib.contextmanager
def listening(folder: Path, token: str = "") -> Iterator[str]:
    """Serve a folder's releases in a process of its own, as GDAL waits for answers without letting others run.

    Gives its address; reading needs a token unless there is none.
    """
    command = [sys.executable, "-m", "tests.service.api.served", str(folder), "" if token else "public"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _serve(folder: Path, public: bool) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        app = Served(folder, public=public, writes=False).app
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        bound.listen()
        print(f"http://127.0.0.1:{bound.getsockname()[1]}", flush=True)
        server.run(sockets=[bound])


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2] == "public")
