"""How many events a second the service accepts durably, from a second process over loopback.

    python -m benchmarks.service --seconds 60        # Arrow and NDJSON, each for so long; readers ask at the same time

As ratios to an endpoint that only reads the body and syncs a file: same server, same client, same run. The service runs
as ``phdstream serve`` does, in a process of its own with its readers; this process is the client. Bodies are encoded
before, so that the client costs little; both share the machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import uvicorn
from fastapi import FastAPI, Request

CONFIG = """
[input]
coordinates = ["lon", "lat"]
time = "time"
[ticks]
every = "10s"
start = {start}
grace = "2s"
[domain]
type = "box"
bounds = [[-74.3, -73.7], [40.5, 41.0]]
crs = "EPSG:4326"
depth = 16
[privacy]
epsilon = 1.0
unit = "event"
[output]
releases = "releases"
state = "private"
[service]
public = true
port = 0
rate = 100000
"""
KINDS = {"arrow": "application/vnd.apache.arrow.stream", "ndjson": "application/x-ndjson"}
_EVERY = 10


def bare(folder: str) -> None:
    """Serve the endpoint to compare with: it reads the body and syncs a file, in a thread."""
    app = FastAPI()
    number = iter(range(10**9))

    def store(content: bytes) -> None:
        path = Path(folder) / str(next(number))
        with path.open("wb") as file:
            file.write(content)
            os.fsync(file.fileno())
        path.unlink()

    @app.post("/v1/events")
    async def events(request: Request) -> dict[str, int]:
        content = bytearray()
        async for piece in request.stream():
            content += piece
        await asyncio.to_thread(store, bytes(content))
        return {"accepted": 0}

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            print(f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}/", flush=True)

    Server(uvicorn.Config(app, host="127.0.0.1", port=0, access_log=False, log_level="error")).run()


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[tuple[int, int]]:
    """Run a server; give its port and its process's number."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    address = next(line for line in process.stdout if "http://" in line)
    drain = threading.Thread(target=lambda: [None for _ in process.stdout or ()], daemon=True)
    drain.start()
    try:
        yield int(re.findall(r"127\.0\.0\.1:(\d+)", address)[0]), process.pid
    finally:
        process.terminate()
        process.wait(60)


def body(kind: str, rows: int, moment: datetime, seed: int) -> bytes:
    """Return events of one moment's tick."""
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(-74.29, -73.71, rows), rng.uniform(40.51, 40.99, rows)
    if kind == "arrow":
        times = pa.array(np.full(rows, int(moment.timestamp() * 1e6)), pa.timestamp("us", "UTC"))
        batch = pa.RecordBatch.from_arrays([pa.array(lon), pa.array(lat), times], names=["lon", "lat", "time"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())
    text = moment.isoformat().replace("+00:00", "Z")
    lines = zip(lon.tolist(), lat.tolist(), strict=True)
    return "\n".join(f'{{"lon":{x:.6f},"lat":{y:.6f},"time":"{text}"}}' for x, y in lines).encode()


class Sender(threading.Thread):
    """Posts bodies one after the other over one connection, and notes how long each took."""

    def __init__(
        self, port: int, kind: str, bodies: dict[int, list[bytes]], token: str, end: float, wait: float
    ) -> None:
        super().__init__(daemon=True)
        self._port, self._kind, self._bodies, self._token, self._end = port, kind, bodies, token, end
        self._wait = wait
        self.took: list[float] = []
        self.accepted, self.bytes, self.told_to_wait = 0, 0, 0

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        headers = {"Content-Type": KINDS[self._kind], "Authorization": f"Bearer {self._token}"}
        number = 0
        while time.time() < self._end:
            slot = int(time.time() // _EVERY)
            content = self._bodies[slot][number % len(self._bodies[slot])]
            number += 1
            begun = time.perf_counter()
            connection.request("POST", "/v1/events", content, headers | {"Idempotency-Key": f'"{uuid.uuid4()}"'})
            answer = connection.getresponse()
            said = json.loads(answer.read())
            if answer.status == 429:
                self.told_to_wait += 1
                time.sleep(0.05)
                continue
            assert answer.status == 200, said
            self.took.append(time.perf_counter() - begun)
            self.accepted += said["accepted"]
            self.bytes += len(content)
            time.sleep(max(0.0, self._wait - (time.perf_counter() - begun)))


class Asker(threading.Thread):
    """Asks for counts and the latest release, a few times a second."""

    def __init__(self, port: int, end: float) -> None:
        super().__init__(daemon=True)
        self._port, self._end = port, end
        self.took: list[float] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        while time.time() < self._end:
            for path in ("/v1/counts?bbox=-74.1,40.6,-73.9,40.8", "/v1/releases/latest"):
                begun = time.perf_counter()
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    self.took.append(time.perf_counter() - begun)
                time.sleep(0.1)


def resident(pid: int) -> int:
    """Return the bytes that a process and those it started hold in memory."""
    total = 0
    for one in [pid, *children(pid)]:
        with contextlib.suppress(OSError, StopIteration):
            lines = Path(f"/proc/{one}/status").read_text().splitlines()
            total += 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])
    return total


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def load(port: int, pid: int, kind: str, token: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Post for so many seconds; return what came of it."""
    rows = asked.rows if kind == "arrow" else asked.rows // 5
    first = int(time.time() // _EVERY)
    slots = range(first, first + int(asked.seconds) // _EVERY + 8)
    bodies = {
        slot: [body(kind, rows, datetime.fromtimestamp(slot * _EVERY + 5, UTC), 10 * slot + i) for i in range(2)]
        for slot in slots
    }
    begun = time.time()
    end = begun + asked.seconds
    wait = asked.senders * rows / asked.pace if asked.pace else 0.0
    senders = [Sender(port, kind, bodies, token, end, wait) for _ in range(asked.senders)]
    askers = [Asker(port, end)] if token else []
    memory = []
    for thread in [*senders, *askers]:
        thread.start()
    while time.time() < end:
        time.sleep(1)
        memory.append(resident(pid))
    for thread in [*senders, *askers]:
        thread.join()
    passed = time.time() - begun
    took = np.array([t for sender in senders for t in sender.took]) * 1000
    read = np.array([t for asker in askers for t in asker.took]) * 1000
    return {
        "events_per_second": round(took.size * rows / passed),
        "accepted": sum(sender.accepted for sender in senders),
        "megabytes_per_second": round(sum(sender.bytes for sender in senders) / passed / 1e6, 1),
        "rows_per_body": rows,
        "bodies": took.size,
        "told_to_wait": sum(sender.told_to_wait for sender in senders),
        "ms_percentiles_50_90_99_100": np.percentile(took, [50, 90, 99, 100]).round(1).tolist(),
        "reads": read.size,
        "reads_ms_50_99": np.percentile(read, [50, 99]).round(1).tolist() if read.size else [],
        "megabytes_resident": [round(np.mean(part) / 1e6) for part in np.array_split(memory, 6)],
    }


def ticks(port: int) -> dict[str, int]:
    """Return which ticks are due and released at the end: whether releasing keeps up with taking in."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/v1/metrics")
    text = connection.getresponse().read().decode()
    return {name: int(float(re.findall(rf"phdstream_tick_{name}{{.*}} (.*)", text)[0])) for name in ("due", "released")}


def measured(kind: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Measure the service, and before and after it the endpoint to compare with."""
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        short = argparse.Namespace(**vars(asked) | {"seconds": max(5.0, asked.seconds / 4)})
        with running([__file__, "--bare", folder]) as (port, pid):
            floor = load(port, pid, kind, "", short)
        start = datetime.now(UTC).replace(microsecond=0, second=0) - timedelta(minutes=1)
        path = Path(folder) / "stream.toml"
        path.write_text(CONFIG.format(start=start.isoformat().replace("+00:00", "Z")))
        made = subprocess.run(
            [sys.executable, "-m", "phdstream", "token", str(path), "bench", "--role", "ingest"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        with running(["-m", "phdstream", "serve", str(path)]) as (port, pid):
            time.sleep(3)
            found = load(port, pid, kind, made.stdout.strip(), asked) | {"ticks": ticks(port)}
        with running([__file__, "--bare", folder]) as (port, pid):
            again = load(port, pid, kind, "", short)
    most = max(floor["events_per_second"], again["events_per_second"])
    return {
        "service": found,
        "only reads and syncs": [floor, again],
        "ratio": round(most / found["events_per_second"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=250_000, help="events of a body of Arrow; NDJSON has a fifth")
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--pace", type=float, default=0.0, help="events a second at most, to see that memory is flat")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--folder", help="where the stream's folders are for the while")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--bare", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.bare:
        bare(asked.bare)
        return
    results = {kind: measured(kind, asked) for kind in asked.kinds}
    print(json.dumps(results, indent=2))
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
