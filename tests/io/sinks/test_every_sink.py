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


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def wait_for(process: subprocess.Popen[str], said: str) -> None:
    """Read what a process says up to a line, or to its end if it is past that."""
    assert process.stdout is not None
    for line in process.stdout:
        if line in (said, "done\n"):
            return


@pytest.mark.slow
def test_our_process_is_killed_at_any_point(place: Place, archive: Archive) -> None:
    """It says each tick it begins: what is killed is at work on the tick we wait for, or just past it."""
    rng, seen = random.Random(5), set()
    for attempt in range(15):
        process = start_publishing(place, f"killed{attempt // 5}", archive)
        go(process)
        wait_for(process, f"tick {1 + attempt % 5 + rng.randrange(3)}\n")
        time.sleep(rng.choice([0, 0.002, 0.005, 0.02]))
        process.kill()
        process.communicate()
        sink = place.settings(f"killed{attempt // 5}").open(ID, archive.domain)
        seen.add(sink.last_tick())
        sink.close()
    assert seen & set(range(1, 8)), "no kill fell between the first tick and the last"
    for number in range(3):
        process = start_publishing(place, f"killed{number}", archive)
        assert process.communicate("go\n")[0].endswith("done\n")
        assert place.check(f"killed{number}", archive) == list(range(1, 9))


@pytest.mark.slow
def test_two_processes_with_the_same_sink(place: Place, archive: Archive) -> None:
    both = [start_publishing(place, "both", archive) for _ in range(2)]
    for process in both:
        go(process)
    for process in both:
        process.communicate()
    assert all_published(place.settings("both"), archive)
    assert place.check("both", archive) == list(range(1, 9))


@pytest.mark.slow
def test_the_server_is_killed_while_ticks_are_published(
    place: Place, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all was published before the first kill, as on a fast machine, we try again."""
    monkeypatch.setattr(redis_stream, "AT_ONCE", 25)
    rng = random.Random(7)
    assert any(killed_while_publishing(place, f"server{attempt}", archive, rng) for attempt in range(10))


def killed_while_publishing(place: Place, name: str, archive: Archive, rng: random.Random) -> bool:
    """Publish while the server is killed thrice; return whether there was anything left to do at a kill."""
    following, failures, ended = follower(place.settings(name), archive), [], threading.Event()

    def follow() -> None:
        while not following.catch_up():
            failures.append(following.failure)
            time.sleep(0.1)
        ended.set()

    threading.Thread(target=follow, daemon=True).start()
    hit = False
    for _ in range(3):
        time.sleep(rng.uniform(0.005, 0.1))
        hit |= not ended.is_set()
        place.server.restart()
        if ended.is_set():
            break
    assert ended.wait(120), failures[-3:]
    assert place.check(name, archive) == list(range(1, 9))
    following.close()
    return hit


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
