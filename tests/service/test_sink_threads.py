"""Sinks of a service: ticks come out whatever they do; a failure is said in public by name, and mended by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phdstream.errors import SinkError
from phdstream.io.sinks import settings
from phdstream.release import Release
from phdstream.service import sink_threads
from tests.service.api.serving import Served, crowd

SINK = 'public = true\n[[sinks]]\ntype = "redis"\nurl = "redis://127.0.0.1:1/0"\nkey = "taxis"\n'


class Hand:
    """A sink in memory that can be made to fail or to hang."""

    def __init__(self) -> None:
        self.ticks: list[int] = []
        self.why, self.free = "", threading.Event()
        self.free.set()

    def open(self, *about: Any) -> Hand:
        return self

    def publish(self, release: Release) -> None:
        self.free.wait()
        if self.why:
            raise SinkError(self.why)
        if release.tick not in self.ticks:
            self.ticks.append(release.tick)

    def last_tick(self) -> int:
        return max(self.ticks, default=0)

    def close(self) -> None:
        pass


def soon(there: Callable[[], bool]) -> bool:
    until = time.monotonic() + 120
    while not there() and time.monotonic() < until:
        time.sleep(0.01)
    return there()


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    sink = Hand()
    monkeypatch.setattr(settings.RedisSettings, "open", lambda self, *about: sink.open(*about))
    monkeypatch.setattr(sink_threads, "_RETRY", 0.02)
    return sink


def metric(one: Served, name: str) -> float:
    lines = one.get("/v1/metrics").text.splitlines()
    line = next(line for line in lines if line.startswith(f"phdstream_{name}{{"))
    assert 'sink="redis:taxis"' in line
    return float(line.split()[-1])


def test_a_failure_is_said_and_caught_up_in_order(tmp_path: Path, hand: Hand) -> None:
    one = Served(tmp_path, service=SINK)
    sink = one.service.sinks[0]
    sink.start()
    one.post(crowd(5))
    one.go_to(10)
    assert soon(lambda: hand.ticks == [1])
    assert one.get("/v1/ready").json() == {"status": "ready"}
    hand.why = "the table at db.example.org cannot be written."
    one.go_to(30)
    assert soon(lambda: bool(sink.behind))
    ready = one.get("/v1/ready")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "sinks_behind": "redis:taxis"})
    assert (metric(one, "sink_failing"), metric(one, "sink_tick")) == (1, 1)
    assert one.get("/v1/releases/latest").json()["tick"] == 3
    hand.why = ""
    assert soon(lambda: hand.ticks == [1, 2, 3])
    assert soon(lambda: (metric(one, "sink_failing"), metric(one, "sink_tick")) == (0, 3))
    one.close()


def test_a_sink_that_hangs_holds_up_no_tick_and_no_end(
    tmp_path: Path, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_threads, "_LAST_WORD", 0.2)
    hand.free.clear()
    one = Served(tmp_path, service=SINK)
    one.service.sinks[0].start()
    for seconds in (10, 20, 30):
        one.go_to(seconds)
    assert one.get("/v1/releases/latest").json()["tick"] == 3
    assert hand.ticks == []
    closing = threading.Thread(target=one.close)
    closing.start()
    closing.join(120)
    assert not closing.is_alive()
    hand.free.set()
