"""A process that brings a sink up to a folder, to be killed: ``python -m tests.io.sinks.publishing FOLDER TABLE``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from phdstream.io.archive import open_archive
from phdstream.io.sinks import redis_stream
from tests.io.sinks.places import follower, one


def at_each_tick() -> bool:
    """Say which tick comes next, and go on."""
    print(f"tick {following.tick + 1}", flush=True)
    return False


if __name__ == "__main__":
    redis_stream.AT_ONCE = 40  # so that ticks are there in part, too
    following = follower(one(json.loads(sys.argv[2])), open_archive(Path(sys.argv[1])))
    following.catch_up(lambda: True)  # opens the sink, so that what is killed later is publishing
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(100):
        if following.catch_up(at_each_tick):
            print("done", flush=True)
            break
    following.close()
    if following.failure:
        print(following.failure, flush=True)
