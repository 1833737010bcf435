"""A stream with its app, to be asked in tests: a box, ticks of ten seconds, a clock that is set by hand."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from phdstream.app.config import load_config
from phdstream.app.serve import source_of
from phdstream.service import stream_service
from phdstream.service.api.app import stream_app
from phdstream.service.bodies import NDJSON, BodyReader
from phdstream.service.schedule import SteadyClock
from phdstream.service.stream_service import StreamService

with warnings.catch_warnings():  # it asks for another client, which is new and not needed
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient as test_client  # noqa: N813

__all__ = ["Make", "Served", "test_client"]

START = datetime(2024, 5, 31, tzinfo=UTC)
CONFIG = """
[input]
coordinates = [{names}]
time = "time"
{input}
[ticks]
every = "10s"
start = 2024-05-31T00:00:00Z
{ticks}
[domain]
{domain}
[privacy]
epsilon = 1.0
unit = {unit}
[stream]
{stream}
[output]
releases = "releases"
state = "private"
[simulation]
seed = 7
[service]
readers = 1
{service}
"""
BOX = 'type = "box"\nbounds = [[0.0, 10.0], [40.0, 50.0]]\ncrs = "EPSG:4326"'
USERS = {
    "input": 'user = "who"\nsign = "sign"', "unit": '{ type = "user", inserts = 3, deletes = 3 }',
    "stream": 'method = "phdstream"',
}  # fmt: skip


class InProcess:
    """Reads bodies in the process itself: quicker to start than processes that must be as careful."""

    def __init__(self, number: int, *about: Any) -> None:
        self.read = BodyReader(*about).read

    def close(self) -> None:
        pass


class Served:
    """A stream, its service and its app. Time stands still unless told; ticks are released by hand."""

    def __init__(self, folder: Path, apart: bool = False, **more: Any) -> None:
        self.folder, self.path = folder, folder / "stream.toml"
        folder.mkdir(exist_ok=True, parents=True)
        sections = {
            "input": "",
            "ticks": "",
            "stream": "",
            "service": "public = true",
            "unit": '"event"',
            "names": '"x", "y"',
        }
        self.path.write_text(CONFIG.format(**(sections | {"domain": BOX} | more)))
        self.seconds, self._apart = 5.0, apart
        self.open()

    def open(self) -> None:
        """Open the service, as a new process would."""
        clock = SteadyClock(lambda: START.timestamp() + self.seconds, lambda: 1000 + self.seconds)
        with pytest.MonkeyPatch.context() as patch:
            if not self._apart:
                patch.setattr(stream_service, "Readers", InProcess)
            self.service = StreamService(source_of(load_config(self.path), self.path), clock)
        self.app = stream_app(self.service)
        self.client = test_client(self.app, raise_server_exceptions=False)
        tokens = self.service.tokens
        if not tokens.all():
            self.tokens = {role: tokens.add(role, (role,)) for role in ("ingest", "read", "operate")}

    def reopen(self) -> None:
        self.close()
        self.open()

    def close(self) -> None:
        self.client.close()
        self.service.stop()

    def by(self, role: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[role]}"}

    def go_to(self, seconds: float) -> None:
        """Let time pass, in steps that are no jumps, and release what is due."""
        self.seconds = seconds
        self.service.publisher.release_due()

    def post(self, content: Any, key: str = "", kind: str = NDJSON, **headers: str) -> Any:
        """Post events; a list of rows as NDJSON."""
        body = content if isinstance(content, bytes) else ndjson(content)
        given = self.by("ingest") | {"Content-Type": kind, "Idempotency-Key": key or new_key()} | headers
        return self.client.post("/v1/events", content=body, headers=given)

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, **more)

    def journal(self) -> Counter[tuple[Any, ...]]:
        """Return the admitted events that wait: tick, sign and what is stored of each."""
        found: Counter[tuple[Any, ...]] = Counter()
        ticks: list[Any] = self.service._journal._db.execute("SELECT DISTINCT tick FROM events").fetchall()
        for (tick,) in ticks:
            for sign in (1, -1):
                for batch in self.service._journal.batches(tick, sign):
                    found.update((tick, sign, *row.values()) for row in batch.to_pylist())
        return found

    def stored(self) -> tuple[int, int]:
        """Return how many blobs of events and how many deliveries the journal holds."""
        database = self.service._journal._db
        events, deliveries = (database.execute(f"SELECT count(*) FROM {t}").get for t in ("events", "deliveries"))
        return int(events), int(deliveries)


_KEYS = iter(range(10**9))


def new_key() -> str:
    return f'"key-{next(_KEYS)}"'


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def row(seconds: float, x: float = 5.0, y: float = 45.0, **more: Any) -> dict[str, Any]:
    return {"x": x, "y": y, "time": at(seconds)} | more


def ndjson(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def arrow(rows: list[dict[str, Any]] | pa.Table) -> bytes:
    table = pa.Table.from_pylist(rows) if isinstance(rows, list) else rows
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def crowd(seconds: float, number: int = 400, seed: int = 1) -> list[dict[str, Any]]:
    """Return rows in two crowded places."""
    rng = np.random.default_rng(seed)
    places = rng.normal([[3, 43], [7, 47]], 0.4, (number // 2, 2, 2)).reshape(-1, 2)
    return [row(seconds, *place) for place in np.clip(places, [0.1, 40.1], [9.9, 49.9]).tolist()]


@contextmanager
def serving(folder: Path, **more: Any) -> Iterator[Served]:
    one = Served(folder, **more)
    try:
        yield one
    finally:
        one.close()


Make = Callable[..., Served]
