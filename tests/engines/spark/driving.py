"""A driver of its own, which kills itself with -9 at a given point on its way: a process for tests.

    python -m tests.engines.spark.driving CONFIG MOMENT POINT

It runs a stream, of a topic or of files, as if it were that moment; POINT is one of `POINTS`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.app.run_topic import run_topic
from phdstream.engines.spark.arrivals import Arrivals
from phdstream.engines.spark.streaming import SparkStreaming
from phdstream.engines.spark.ticks import TickHolder
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.streams.durable.stream import DurableStream

POINTS: dict[str, tuple[type, str, int]] = {
    "a batch is written, not noted": (Arrivals, "write", 1),
    "a batch is noted": (SparkStreaming, "_note", 1),
    "the table of users is written, events are not": (TickHolder, "_bounded", 1),
    "the events of a tick are held": (TickHolder, "hold", 1),
    "a tick is committed": (DurableStream, "update", 1),
    "a release is published": (ReleaseFolder, "publish", 1),
    "what is done with is deleted": (TickHolder, "tidy", 2),
}
"""After what the process ends: a method of one of the rooms on the way, and after how many calls."""


def killed(config: Path, moment: datetime, point: str) -> None:
    """Run a driver that ends at a point."""
    command = [sys.executable, "-m", "tests.engines.spark.driving", str(config), moment.isoformat(), point]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


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


def main(config: Path, moment: datetime, point: str) -> None:
    kill_after(*POINTS[point])
    loaded = load_config(config)
    if loaded.source is None:
        run(loaded, now=moment)
    else:
        run_topic(loaded, now=lambda: moment)


if __name__ == "__main__":
    main(Path(sys.argv[1]), datetime.fromisoformat(sys.argv[2]), sys.argv[3])
