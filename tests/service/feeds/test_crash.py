"""Our own process is killed with -9 at random moments, and the broker too: releases are those of a quiet run."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from phdstream.service.feeds import consumer as following_module
from tests.service.feeds.brokers import NAMES, Broker, running_broker, with_source
from tests.service.feeds.test_every_feed import POISON, Following, rows_of
from tests.service.test_publisher import contents
from tests.thorough import THOROUGH

TICKS = 8


@pytest.fixture(scope="module", params=NAMES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    yield from running_broker(request.param, tmp_path_factory.mktemp("broker"))


def follow_on(path: Path) -> None:
    """Go on from wherever the stream is, in small steps, so that a kill may fall between any two."""
    following_module._MOST = 7
    following = Following(path, 10 * TICKS)
    for tick in range(following.service.publisher.tick + 1, TICKS + 1):
        following.to(10 * tick)
    following.to(10 * TICKS)
    following.stop()


def fill(broker: Broker) -> None:
    for tick in range(1, TICKS + 1):
        broker.send_rows(rows_of(tick, 40), 10 * tick - 4)
        broker.send(list(POISON[:6]), 10 * tick - 3)
        broker.send_rows(rows_of(tick, 10), 10 * tick + 1)  # late


@pytest.mark.slow
def test_killed_at_random_moments(server: Broker, tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.service.feeds.test_crash"])
    server.fresh()
    fill(server)
    whole = with_source(tmp_path / "whole", server.source(), service='late = "next"')
    quiet = context.Process(target=follow_on, args=(whole,))
    quiet.start()
    quiet.join()
    assert quiet.exitcode == 0
    expected, letters = contents(whole.parent / "releases"), _letters(whole.parent)
    assert len(expected) == 3 * TICKS
    assert len(letters) == 6 * TICKS
    rng, kills = random.Random(int.from_bytes(os.urandom(4))), 0
    for turn in range(100):
        if turn >= (20 if THOROUGH else 1) and kills >= 5:  # a fast machine comes to its end with fewer
            break
        path = with_source(tmp_path / str(turn), server.source(), service='late = "next"')
        patience = 0.3
        while True:
            process = context.Process(target=follow_on, args=(path,))
            process.start()
            process.join(rng.uniform(0, patience))
            if process.is_alive():
                assert process.pid is not None
                os.kill(process.pid, signal.SIGKILL)
                process.join()
                kills += 1
                patience *= 1.15
                if kills == 4:  # and the broker, at least once
                    server.server.kill()
                    server.server.restart()
                continue
            assert process.exitcode == 0
            break
        assert contents(path.parent / "releases") == expected
        assert _letters(path.parent) == letters
    assert kills >= 5
    print(f"{kills} kills")


def _letters(folder: Path) -> list[str]:
    return sorted((folder / "private" / "dead-letters.ndjson").read_text().splitlines())
