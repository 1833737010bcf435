"""Every sink that follows a folder: each tick there once, whole and as in the folder, whatever is killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phdstream.errors import StateError
from phdstream.io.archive import Archive
from phdstream.io.sinks import redis_stream
from tests.io.sinks.places import (
    ID,
    OTHER,
    OnKafka,
    OnPostgis,
    OnRedis,
    Place,
    all_published,
    apart,
    folder_of,
    follower,
)
from tests.servers import left_out, running, start_kafka, start_postgres, start_redis

KINDS: dict[str, tuple[Any, type[Place]]] = {
    "redis": (start_redis, OnRedis), "kafka": (start_kafka, OnKafka), "postgis": (start_postgres, OnPostgis),
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    start, kind = KINDS[request.param]
    with apart() as folder:
        for server in running(start(folder)):
            found = kind(server)
            if isinstance(found, OnPostgis):
                if not found.ask("SELECT 1 FROM pg_available_extensions WHERE name = 'postgis'"):
                    left_out("PostGIS is not installed")
                found.ask("CREATE EXTENSION postgis")
            yield found


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return folder_of(tmp_path_factory.mktemp("releases"), ticks=8)


def test_a_folder_is_followed_from_the_beginning_and_tick_by_tick(place: Place, tmp_path: Path) -> None:
    following = follower(place.settings("steps"), folder_of(tmp_path, 1))
    for ticks in (1, 2, 4):
        archive = folder_of(tmp_path, ticks)
        assert following.catch_up(), following.failure
        assert following.tick == ticks
        assert place.check("steps", archive) == list(range(1, ticks + 1))
    following.close()


def test_a_tick_that_is_there_is_left(place: Place, archive: Archive) -> None:
    sink = place.settings("again").open(ID, archive.domain)
    assert sink.last_tick() == 0
    assert not sink.has(1)
    for tick in (1, 2, 2, 1):
        sink.publish(archive.release(tick))
    assert sink.last_tick() == 2
    assert [sink.has(tick) for tick in (1, 2, 3)] == [True, True, False]
    sink.close()
    assert place.check("again", archive) == [1, 2]


def test_another_content_is_refused(place: Place, archive: Archive, tmp_path: Path) -> None:
    settings, other = place.settings("content"), folder_of(tmp_path, 8, seed=4)
    sink = settings.open(ID, archive.domain)
    for tick in (1, 2, 3):
        sink.publish(archive.release(tick))
    for tick in (1, 3):
        with pytest.raises(StateError, match=f"tick {tick} with another content"):
            sink.publish(other.release(tick))
    sink.close()
    following = follower(settings, other)
    assert not following.catch_up()
    assert following.refused
    assert "another content" in following.behind
    assert place.check("content", archive) == [1, 2, 3]


def test_another_streams_sink_is_refused(place: Place, archive: Archive, tmp_path: Path) -> None:
    assert all_published(place.settings("whose"), archive)
    other = follower(place.settings("whose"), folder_of(tmp_path, 9, OTHER))
    assert not other.catch_up()
    assert f"belongs to stream {ID}, not to {OTHER}" in other.failure
    assert place.check("whose", archive) == list(range(1, 9))


def test_a_sink_ahead_of_the_folder_is_refused(place: Place, archive: Archive, tmp_path: Path) -> None:
    assert all_published(place.settings("ahead"), archive)
    older = follower(place.settings("ahead"), folder_of(tmp_path, 3))
    assert not older.catch_up()
    assert "has tick 8, but the folder of releases ends at tick 3" in older.failure


def start_publishing(place: Place, name: str, archive: Archive) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.io.sinks.publishing", str(archive.folder), json.dumps(place.table(name))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str], ticks: int = 1) -> None:
    """Let it begin so many ticks more."""
    assert process.stdin is not None
    process.stdin.write("go\n" * ticks)
    process.stdin.flush()


def wait_for_next(process: subprocess.Popen[str]) -> None:
    """Wait until it has done all before the next tick."""
    assert process.stdout is not None
    assert process.stdout.readline() == "next\n"


@pytest.mark.slow
def test_our_process_is_killed_at_any_point(place: Place, archive: Archive) -> None:
    """In the middle of a tick, or between two, as chance has it; on a fast machine as on a slow one."""
    rng, took, seen = random.Random(5), 0.01, set[int]()
    for attempt in range(15):
        name, whole = f"killed{attempt // 5}", attempt % 2
        before = last_tick(place, name, archive)
        process = start_publishing(place, name, archive)
        for _ in range(whole):
            wait_for_next(process)
            began = time.monotonic()
            go(process)
            wait_for_next(process)
            took = time.monotonic() - began
        go(process)
        time.sleep(rng.uniform(0, took))
        process.kill()
        process.communicate()
        after = last_tick(place, name, archive)
        assert after >= before + whole
        seen.add(after)
    assert seen & set(range(1, 8)), "no kill fell between the first tick and the last"
    for number in range(3):
        process = start_publishing(place, f"killed{number}", archive)
        assert process.communicate()[0].endswith("done\n")
        assert place.check(f"killed{number}", archive) == list(range(1, 9))


def last_tick(place: Place, name: str, archive: Archive) -> int:
    """Return the last tick that is in a sink, whole."""
    sink = place.settings(name).open(ID, archive.domain)
    found = sink.last_tick()
    sink.close()
    return found


@pytest.mark.slow
def test_two_processes_with_the_same_sink(place: Place, archive: Archive) -> None:
    both = [start_publishing(place, "both", archive) for _ in range(2)]
    for process in both:
        go(process, 1000)
    for process in both:
        process.communicate()
    assert all_published(place.settings("both"), archive)
    assert place.check("both", archive) == list(range(1, 9))


class Paced:
    """Brings a sink up in a thread of its own, which begins a tick only when it may, and tries again what fails."""

    def __init__(self, place: Place, name: str, archive: Archive) -> None:
        self.following, self.failures = follower(place.settings(name), archive), list[str]()
        self.at_next, self.may = threading.Semaphore(0), threading.Semaphore(0)
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self) -> None:
        while not self.following.catch_up(self._begin):
            self.failures.append(self.following.failure)
            time.sleep(0.1)

    def _begin(self) -> bool:
        self.at_next.release()
        self.may.acquire()
        return False

    def wait_for_next(self) -> None:
        assert self.at_next.acquire(timeout=300), self.failures[-3:]


@pytest.mark.slow
def test_the_server_is_killed_while_ticks_are_published(
    place: Place, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time in a tick, or just after it: at the first kill one tick is there, at the last one two are not."""
    monkeypatch.setattr(redis_stream, "AT_ONCE", 25)
    rng, paced = random.Random(7), Paced(place, "server", archive)
    paced.wait_for_next()
    began = time.monotonic()
    paced.may.release()
    paced.wait_for_next()
    took = time.monotonic() - began
    for _ in range(5):
        paced.may.release()
        time.sleep(rng.uniform(0, took))
        place.server.restart()
        paced.wait_for_next()
    assert paced.thread.is_alive()
    paced.may.release(10_000)
    paced.thread.join(300)
    assert not paced.thread.is_alive(), paced.failures[-3:]
    paced.following.close()
    assert place.check("server", archive) == list(range(1, 9))


@pytest.mark.parametrize("place", ["redis", "postgis"], indirect=True)
def test_a_server_that_is_down_is_said_and_caught_up_later(place: Place, archive: Archive) -> None:
    """Of Kafka the test above has it: librdkafka waits half a minute for brokers."""
    following = follower(place.settings("down"), archive)
    place.server.kill()
    assert not following.catch_up()
    assert "is at tick 0, behind the folder" in following.behind
    assert not following.refused
    place.server.start()
    assert following.catch_up()
    assert following.behind == ""
    assert place.check("down", archive) == list(range(1, 9))
    following.close()
