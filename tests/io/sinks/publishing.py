"""A process that brings a sink up to a folder, to be killed: ``python -m tests.io.sinks.publishing FOLDER TABLE``.

It begins a tick only when it is told to, by a line (or when there are no more lines to come): so a test knows at which
tick it is, on a fast machine and on a slow one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from phdstream.io.archive import open_archive
from phdstream.io.sinks import redis_stream
from tests.io.sinks.places import follower, one


def at_each_tick() -> bool:
    """Say that all before the next tick is done, and wait for leave to go on."""
    print("next", flush=True)
    sys.stdin.readline()
    return False


if __name__ == "__main__":
    redis_stream.AT_ONCE = 40  # so that ticks are there in part, too
    following = follower(one(json.loads(sys.argv[2])), open_archive(Path(sys.argv[1])))
    following.catch_up(lambda: True)  # opens the sink, so that what is killed later is publishing
    print("ready", flush=True)
    for _ in range(100):
        if following.catch_up(at_each_tick):
            print("done", flush=True)
            break
    following.close()
    if following.failure:
        print(following.failure, flush=True)
