"""A driver of its own, which kills itself with -9 at a given point on its way: a process for tests.

    python -m tests.engines.spark.driving CONFIG SECONDS POINT

It runs a topic's stream as if it were so many seconds after the start; POINT is one of `POINTS`, or "never".
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from phdstream.app.config import load_config
from phdstream.app.run_topic import run_topic
from phdstream.engines.spark.arrivals import Arrivals
from phdstream.engines.spark.streaming import SparkStreaming
from phdstream.engines.spark.ticks import TickHolder
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.streams.durable.stream import DurableStream
from tests.service.feeds.brokers import START

POINTS: dict[str, tuple[type, str]] = {
    "a batch is written, not noted": (Arrivals, "write"),
    "a batch is noted": (SparkStreaming, "_note"),
    "the events of a tick are held": (TickHolder, "hold"),
    "a tick is committed": (DurableStream, "update"),
    "a release is published": (ReleaseFolder, "publish"),
    "what is done with is deleted": (TickHolder, "tidy"),
}
"""After what the process ends: each is a method of one of the rooms on the way."""


def kill_after(owner: type, name: str, calls: int) -> None:
    """End this process with -9 when a method has returned so many times."""
    method, left = getattr(owner, name), [calls]

    def last(*arguments: Any, **more: Any) -> Any:
        answer = method(*arguments, **more)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(owner, name, last)


def main(config: Path, seconds: float, point: str) -> None:
    if point != "never":
        kill_after(*POINTS[point], calls=2 if point == "what is done with is deleted" else 1)
    run_topic(load_config(config), now=lambda: START + timedelta(seconds=seconds))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
