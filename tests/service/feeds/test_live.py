"""By the real clock: `phdstream serve` is killed with -9, and the broker too, while events are sent.

What a broker stamped decides. So a run that reads the same topic once, afterwards and undisturbed, must release the
same ticks, bit for bit.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from phdstream.app.config import load_config
from phdstream.app.run import run
from tests.service.feeds.brokers import NAMES, Broker, KafkaBroker, running_broker, with_source
from tests.service.test_crash import served
from tests.service.test_publisher import contents
from tests.thorough import THOROUGH
from tests.waiting import wait_for_ticks, wait_until

FILES = 3 * 5
"""Of five ticks: estimates, points and cells."""


@pytest.fixture(params=NAMES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    for one in running_broker(request.param, tmp_path_factory.mktemp("broker")):
        if isinstance(one, KafkaBroker):
            one.stamps = "LogAppendTime"
        one.fresh()
        yield one


class Sender(threading.Thread):
    """Sends events that happen now, some of them poison; tries again what the broker did not take."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(daemon=True)
        self._broker, self._rng, self.over, self.sent = broker, random.Random(3), threading.Event(), 0

    def run(self) -> None:
        while not self.over.is_set():
            now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
            rows = [{"time": now, "x": self._rng.random(), "y": self._rng.random()} for _ in range(20)]
            lines = [json.dumps(one).encode() for one in rows] + [b"poison"]
            while not self.over.is_set():
                try:
                    self._broker.send_now(lines)
                    self.sent += len(rows)
                    break
                except Exception:
                    time.sleep(0.1)
            time.sleep(0.02)


@pytest.mark.slow
def test_killed_while_events_are_sent(broker: Broker, tmp_path: Path) -> None:
    start = datetime.now(UTC).replace(microsecond=0)
    source = broker.source().replace('settle = "0s"', 'settle = "3s"')  # a busy broker's stamps are a little old
    paths = [with_source(tmp_path / name, source) for name in ("served", "afterwards")]
    for path in paths:
        text = path.read_text().replace("2024-05-31T00:00:00Z", start.isoformat())
        path.write_text(text.replace('every = "10s"', 'every = "2s"'))
    sender, rng = Sender(broker), random.Random(int.from_bytes(b"live"))
    sender.start()
    for turn in range(12 if THOROUGH else 3):
        with served(tmp_path / "served"):
            time.sleep(rng.uniform(0.5, 3.5))
            if turn == 1:
                broker.server.kill()
                time.sleep(0.5)
                broker.server.restart()
                time.sleep(1.0)
    with served(tmp_path / "served") as (process, _):
        wait_until(lambda: sender.sent > 500)
        sender.over.set()
        sender.join()
        last = int((datetime.now(UTC) - start) / timedelta(seconds=2)) + 1  # once it is released, all was read
        wait_for_ticks(tmp_path / "served" / "releases", max(FILES, 3 * last))
        process.terminate()
        process.wait(60)
    released = contents(tmp_path / "served" / "releases")
    assert len(released) >= FILES
    run(load_config(paths[1]))
    expected = contents(tmp_path / "afterwards" / "releases")
    assert {name: expected[name] for name in released} == released
    letters = [
        (folder / "private" / "dead-letters.ndjson").read_text()
        for folder in (tmp_path / "served", tmp_path / "afterwards")
    ]
    assert sorted(letters[0].splitlines()) == sorted(letters[1].splitlines())
