"""What every source promises, with its real server: each message once, all before the close, whatever is killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import StateError
from phdstream.service.feeds.protocol import Message
from phdstream.service.schedule import LATE
from phdstream.service.stream_service import StreamService
from tests.service.feeds.brokers import NAMES, START, Broker, running_broker, with_source
from tests.service.streams import HandClock, deliver, row, service_at
from tests.service.test_publisher import contents

TICKS = 4


@pytest.fixture(scope="module", params=NAMES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    yield from running_broker(request.param, tmp_path_factory.mktemp("broker"))


@pytest.fixture
def broker(server: Broker) -> Broker:
    server.fresh()
    return server


def rows_of(tick: int, number: int = 60) -> list[dict[str, Any]]:
    rng = np.random.default_rng(tick)
    return [row(10 * tick - 10 + 9.9 * rng.random(), *rng.random(2).tolist()) for _ in range(number)]


class Following:
    """A service that reads a source, with a clock set by hand; ticks are released by `to`."""

    def __init__(self, path: Path, seconds: float = 0.0) -> None:
        self.hand = HandClock(seconds)
        self.service: StreamService = service_at(path, self.hand)
        assert self.service.consumer is not None
        self.consumer = self.service.consumer
        self.consumer.start()

    def to(self, seconds: float) -> None:
        self.hand.go_to(seconds)
        self.service.publisher.release_due()

    def stop(self) -> None:
        self.service.stop()

    def refused(self) -> dict[str, int]:
        return self.service._journal.refused()


def released_from_posts(folder: Path, ticks: list[list[dict[str, Any]]]) -> dict[str, bytes]:
    """Return what is released if the same events come by HTTP, in time."""
    from tests.service.streams import write_config

    folder.mkdir()
    hand = HandClock()
    service = service_at(write_config(folder), hand)
    for tick, rows in enumerate(ticks, 1):
        hand.go_to(10 * tick - 0.05)
        if rows:
            deliver(service, str(tick), rows)
        hand.go_to(10 * tick)
        service.publisher.release_due()
    service.stop()
    return contents(folder / "releases")


def test_releases_are_those_of_posts(broker: Broker, tmp_path: Path) -> None:
    ticks = [rows_of(tick) for tick in range(1, TICKS + 1)]
    following = Following(with_source(tmp_path / "a", broker.source()))
    for tick, rows in enumerate(ticks, 1):
        broker.send_rows(rows[:40], 10 * tick - 3)
        broker.send_rows(rows[40:][::-1], 10 * tick - 0.001)
        following.to(10 * tick)
        assert following.service.publisher.tick == tick
    following.stop()
    assert contents(tmp_path / "a" / "releases") == released_from_posts(tmp_path / "b", ticks)


def test_beside_posts(broker: Broker, tmp_path: Path) -> None:
    rows = rows_of(1)
    following = Following(with_source(tmp_path / "a", broker.source()))
    broker.send_rows(rows[:30], 5)
    following.hand.go_to(6)
    deliver(following.service, "some", rows[30:])
    following.to(10)
    following.stop()
    assert contents(tmp_path / "a" / "releases") == released_from_posts(tmp_path / "b", [rows])


def test_late_early_and_out_of_order_by_the_brokers_stamp(broker: Broker, tmp_path: Path) -> None:
    """Also if nothing ran when they came: the stamp decides, and nothing else."""
    late = rows_of(1, 30)
    messages = [(rows_of(2, 20), 5.0), (rows_of(1, 20), 9.0), ([row(5000)], 9.5), (late, 10.0), (rows_of(2, 25), 19.5)]
    for folder, at_once in (("stepwise", False), ("afterwards", True)):
        broker.fresh()
        path = with_source(tmp_path / folder, broker.source())
        following = None if at_once else Following(path)
        for number, (rows, arrived) in enumerate(messages):
            broker.send_rows(rows, arrived)
            if following is not None and number == 3:
                following.to(10)
        following = following or Following(path)
        following.to(20)
        refused = following.refused()
        following.stop()
        assert refused == {LATE: 30, "its time is too far in the future": 1}
    expected = released_from_posts(tmp_path / "posts", [messages[1][0], messages[0][0] + messages[4][0]])
    assert contents(tmp_path / "stepwise" / "releases") == contents(tmp_path / "afterwards" / "releases") == expected


def test_late_ones_go_to_the_next_tick_if_so_configured(broker: Broker, tmp_path: Path) -> None:
    path = with_source(tmp_path / "a", broker.source(), service='late = "next"')
    broker.send_rows(rows_of(1), 5)
    late = rows_of(1, 10)
    broker.send_rows(late, 12)
    following = Following(path)
    following.to(20)
    assert following.refused() == {}
    following.stop()
    moved = [one | {"time": row(15)["time"]} for one in late]
    assert contents(tmp_path / "a" / "releases") == released_from_posts(tmp_path / "b", [rows_of(1), moved])


POISON: list[bytes | None] = [
    b"no json", b"", None, b"[1, 2]", b'{"x": 0.5}', b'{"time": "2024-05-31T00:00:05Z", "x": 0.5, "y": "no"}',
    b'{"time": "2024-05-31T00:00:05Z",\n"x": 0.5, "y": 0.5}', b"x" * (1 << 20), b'{"a": ' * 3000,
    b"\xef\xbb\xbf" + json.dumps(row(5)).encode(),
]  # fmt: skip


@pytest.mark.parametrize("bad_rows", ["stop", "drop"])
def test_poison_is_kept_apart_and_the_stream_goes_on(broker: Broker, tmp_path: Path, bad_rows: str) -> None:
    poison = [one for one in POISON if broker.kind != "kafka" or one is None or len(one) < 1 << 20]
    good = rows_of(1)
    following = Following(with_source(tmp_path / "a", broker.source(), input=f'bad_rows = "{bad_rows}"'))
    for place, message in enumerate(poison):
        broker.send_rows(good[place : place + 1], 5)
        broker.send([message], 5)
    broker.send_rows(good[len(poison) :], 6)
    following.to(10)
    assert following.service.why_not_ready() == []
    following.stop()
    assert contents(tmp_path / "a" / "releases") == released_from_posts(tmp_path / "b", [good])
    path = tmp_path / "a" / "private" / "dead-letters.ndjson"
    assert path.stat().st_mode & 0o777 == 0o600
    letters = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(letters) == len(poison) == len({(one["partition"], *one["position"]) for one in letters})
    assert {one.get("content") for one in letters} >= {"no json", "[1, 2]", '{"x": 0.5}'}
    assert all(one["reason"] for one in letters)


def test_what_is_handed_over_again_is_left_out(broker: Broker, tmp_path: Path) -> None:
    """By its position alone: all that was ever read comes again and again, before and after what is new."""
    ticks, earlier = [rows_of(tick) for tick in (1, 2)], list[Message]()
    following = Following(with_source(tmp_path / "a", broker.source()))
    read = following.consumer._feed.read

    def again(most: int, seconds: float) -> list[Message]:
        found = read(most, seconds)
        told = [*earlier, *found, *found, *earlier[::-1]] if found else []
        earlier.extend(found)
        return told

    following.consumer._feed.read = again  # type: ignore[method-assign]
    for tick, rows in enumerate(ticks, 1):
        for some in (rows[:20], rows[20:21] * 2, rows[21:]):  # two that are alike are two
            broker.send_rows(some, 10 * tick - 4)
            broker.send([b"no json"], 10 * tick - 4)
        following.to(10 * tick)
    following.stop()
    assert len(earlier) == 2 * (61 + 3)
    expected = released_from_posts(tmp_path / "b", [[*rows, rows[20]] for rows in ticks])
    assert contents(tmp_path / "a" / "releases") == expected
    assert len((tmp_path / "a" / "private" / "dead-letters.ndjson").read_text().splitlines()) == 6


def test_the_broker_is_killed_during_the_run(broker: Broker, tmp_path: Path) -> None:
    """While it is down the tick is held up, and that is said; afterwards all goes on, and nothing is missing."""
    ticks = [rows_of(tick) for tick in range(1, 4)]
    following = Following(with_source(tmp_path / "a", broker.source()))
    broker.send_rows(ticks[0], 5)
    following.to(10)
    broker.send_rows(ticks[1], 15)
    broker.server.kill()
    with pytest.raises(StateError, match="not read to its end"):
        following.to(20)
    assert following.service.why_not_ready() == ["the source cannot be read: see the log"]
    assert following.service.publisher.tick == 1
    broker.server.restart()
    following.to(20)
    broker.send_rows(ticks[2], 25)
    following.to(30)
    assert following.service.why_not_ready() == []
    following.stop()
    assert contents(tmp_path / "a" / "releases") == released_from_posts(tmp_path / "b", ticks)


def test_run_reads_what_is_there_and_goes_on_later(broker: Broker, tmp_path: Path) -> None:
    from datetime import timedelta

    ticks = [rows_of(tick) for tick in range(1, 4)]
    config = load_config(with_source(tmp_path / "a", broker.source()))
    broker.send_rows(ticks[0], 5)
    broker.send_rows(ticks[1][:20], 6)
    assert run(config, now=START + timedelta(seconds=5)).last_tick == 0
    assert run(config, now=START + timedelta(seconds=12)).last_tick == 1
    assert run(config, now=START + timedelta(seconds=13)).last_tick == 1
    broker.send_rows(ticks[1][20:], 15)
    broker.send_rows(ticks[2], 25)
    assert run(config, now=START + timedelta(seconds=30)).last_tick == 3
    assert contents(tmp_path / "a" / "releases") == released_from_posts(tmp_path / "b", ticks)


def test_a_run_tells_the_operator_what_was_left_out(broker: Broker, tmp_path: Path) -> None:
    from datetime import timedelta

    config = load_config(with_source(tmp_path / "a", broker.source()))
    broker.send_rows(rows_of(1, 30), 5)
    assert run(config, now=START + timedelta(seconds=12)).private_notes == []
    broker.send_rows(rows_of(1, 7), 13)
    broker.send([b"no json"], 14)
    late, dead = run(config, now=START + timedelta(seconds=22)).private_notes
    assert late == f"since the stream began, 7 events of the source were left out ({LATE})"
    assert "dead-letters.ndjson" in dead


def test_another_source_is_refused(broker: Broker, tmp_path: Path) -> None:
    from datetime import timedelta

    path = with_source(tmp_path / "a", broker.source())
    broker.send_rows(rows_of(1), 5)
    run(load_config(path), now=START + timedelta(seconds=12))
    was = broker.topic
    broker.fresh()
    path.write_text(path.read_text().replace(was, broker.topic))
    with pytest.raises(StateError, match="counted twice"):
        run(load_config(path), now=START + timedelta(seconds=22))
    path.write_text(path.read_text().partition("[source]")[0].replace("[ticks]", 'files = "*.csv"\n[ticks]'))
    with pytest.raises(StateError, match="counted twice"):
        run(load_config(path), now=START + timedelta(seconds=22))


def test_neighbours_differ_by_that_one_alone(broker: Broker, tmp_path: Path) -> None:
    """One event more, wherever it stands and whatever it is: all others are admitted to the same ticks."""
    base = [(one, at) for tick in (1, 2) for one in rows_of(tick, 15) for at in (10 * tick - 1,)]
    extra: list[tuple[Any, float]] = [(row(5), 5.0), (row(5), 19.0), ("poison", 5.0), (row(5, 7.0), 5.0)]
    found = []
    for number, more in enumerate([None, *extra]):
        broker.fresh()
        messages = base if more is None else [*base[:7], more, *base[7:]]
        following = Following(with_source(tmp_path / str(number), broker.source()))
        for one, at in sorted(messages, key=lambda pair: pair[1]):
            broker.send([json.dumps(one).encode()], at)
        following.consumer.drain(START)
        found.append({tick: following.service._journal.events(tick)[0].codes.tolist() for tick in (1, 2)})
        following.stop()
    plain = {tick: sorted(codes) for tick, codes in found[0].items()}
    assert [len(codes) for codes in plain.values()] == [15, 15]
    for number, some in enumerate(found[1:]):
        added = {tick: _without(codes, plain[tick]) for tick, codes in some.items()}
        assert [len(codes) for codes in added.values()] == [1 if number == 0 else 0, 0]


def _without(codes: list[int], others: list[int]) -> list[int]:
    left = list(codes)
    for one in others:
        left.remove(one)
    return left
