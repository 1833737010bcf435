"""Killed at any instant, as often as you like: what comes out is what would have, once.

A process of its own takes deliveries and releases ticks, is killed with -9 at a random moment, and is started again; a
sender that got no answer sends the same again. In the end all releases equal those of a service that was never killed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.service.tokens import Tokens
from tests.service.streams import HandClock, deliver, row, service_at, write_config
from tests.service.test_publisher import contents
from tests.waiting import wait_for_ticks

THOROUGH = bool(os.environ.get("PHDSTREAM_THOROUGH"))
TICKS, PER_TICK, ROWS = 12, 3, 20
BACKUP = 'backup = "copies"'


def rows_of(tick: int, part: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng([tick, part])
    return [row(10 * tick - 5, *rng.random(2).tolist()) for _ in range(ROWS)]


def serve_on(folder: Path, answers: Any = None) -> None:
    """Go on from wherever the stream is: deliver what the next tick should hold, release it, and so on to the end."""
    hand = HandClock()
    service = service_at(folder / "stream.toml", hand)
    service.publisher.release_due()
    for tick in range(service.publisher.tick + 1, TICKS + 1):
        hand.go_to(10 * tick - 2)
        for part in range(PER_TICK):
            answer = deliver(service, f"{tick} {part}", rows_of(tick, part))
            if answers is not None:
                answers.send((tick, part, answer["accepted"]))
        hand.go_to(10 * tick)
        service.publisher.release_due()
    service.stop()


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    write_config(whole)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.service.test_crash"])
    undisturbed = context.Process(target=serve_on, args=(whole,))
    undisturbed.start()
    undisturbed.join()
    assert undisturbed.exitcode == 0
    expected = contents(whole / "releases")
    assert len(expected) == 3 * TICKS
    rng, kills = random.Random(int.from_bytes(os.urandom(4))), 0
    for turn in range(100):
        if turn >= (30 if THOROUGH else 3) and kills >= 10:  # a fast machine comes to its end with fewer
            break
        folder = tmp_path / str(turn)
        folder.mkdir()
        write_config(folder, service=BACKUP if turn % 2 else "")
        kills += _kill_until_done(context, folder, rng, expected)
        assert contents(folder / "releases") == expected
    assert kills >= 10
    print(f"{kills} kills")


def _kill_until_done(context: Any, folder: Path, rng: random.Random, expected: dict[str, bytes]) -> int:
    """Start the process again and again, each time to be killed a little later, until it comes to its end."""
    kills, patience = 0, 0.05
    accepted: dict[tuple[int, int], int] = {}
    while True:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=serve_on, args=(folder, theirs))
        process.start()
        theirs.close()
        process.join(rng.uniform(0, patience))
        killed = process.is_alive()
        if killed:
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        for tick, part, number in _received(ours):
            assert accepted.setdefault((tick, part), number) == number == ROWS
        there = contents(folder / "releases") if (folder / "releases").exists() else {}
        assert all(expected[name] == content for name, content in there.items())
        if not killed:
            assert process.exitcode == 0
            return kills
        kills += 1
        patience *= 1.05


def _received(pipe: Any) -> Iterator[tuple[int, int, int]]:
    try:
        while pipe.poll():
            yield pipe.recv()
    except (EOFError, OSError):
        return


@contextmanager
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `phdstream serve` as its users do; give the process and its address."""
    command = [sys.executable, "-m", "phdstream", "serve", str(folder / "stream.toml"), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("Serving at "):
                yield process, line.split()[2]
                return
        pytest.fail("the service did not start")
    finally:
        process.kill()
        process.communicate()


def _post(address: str, token: str, key: str, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Send a delivery; None if no answer came."""
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson", "Idempotency-Key": f'"{key}"'}
    body = "\n".join(json.dumps(one) for one in rows).encode()
    request = urllib.request.Request(f"{address}/events", body, head)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return dict(json.load(answer))
    except (urllib.error.URLError, OSError, ValueError):
        return None


def _rows_now(rng: random.Random) -> list[dict[str, Any]]:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return [{"time": now, "x": rng.random(), "y": rng.random()} for _ in range(50)]


@pytest.mark.slow
def test_the_real_service_is_killed_while_a_client_posts(tmp_path: Path) -> None:
    """By its clock and over HTTP. What a run makes of the accepted events, from a file, is what was released."""
    kills = 20 if THOROUGH else 3
    path = write_config(tmp_path, service='catch_up = "1s"', input='files = "accepted.ndjson"')
    start = datetime.now(UTC).replace(microsecond=0)
    path.write_text(
        path.read_text().replace("2024-05-31T00:00:00Z", start.isoformat()).replace('every = "10s"', 'every = "2s"')
    )
    token = Tokens(tmp_path / "private").add("client", ("ingest",))
    rng, number = random.Random(5), 0
    accepted: list[dict[str, Any]] = []
    pending: tuple[str, list[dict[str, Any]]] | None = None
    for turn in range(kills + 1):
        with served(tmp_path) as (process, address):
            until = time.monotonic() + rng.uniform(0.5, 4.0)
            while time.monotonic() < until:
                if pending is None:
                    number += 1
                    pending = f"delivery {number}", _rows_now(rng)
                if turn == kills and time.monotonic() > until - 0.2:
                    break
                killer = time.monotonic() + rng.uniform(0, 0.05) if time.monotonic() > until - 0.1 else None
                answer = _post(address, token, *pending)
                if answer is not None:
                    assert answer["accepted"] in (0, 50)
                    accepted += pending[1] if answer["accepted"] else []
                    pending = None
                if killer is not None:
                    break
            process.kill()
    with served(tmp_path) as (process, address):
        while pending is not None or not accepted:  # until it is known what was taken
            if pending is None:
                number += 1
                pending = f"delivery {number}", _rows_now(rng)
            answer = _post(address, token, *pending)
            if answer is not None:
                accepted += pending[1] if answer["accepted"] else []
                pending = None
        wait_for_ticks(tmp_path / "releases", 9)
        process.terminate()
        process.wait(60)
    released = contents(tmp_path / "releases")
    other = tmp_path / "other"
    other.mkdir()
    (other / "stream.toml").write_text(path.read_text())
    (other / "accepted.ndjson").write_text("\n".join(json.dumps(one) for one in accepted))
    run(load_config(other / "stream.toml"))
    expected = contents(other / "releases")
    assert len(released) >= 9
    assert {name: expected[name] for name in released} == released
