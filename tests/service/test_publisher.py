"""Ticks are closed and released by the schedule, each once, whatever fails on the way."""

from __future__ import annotations

import json
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import StateError
from phdstream.io.archive import Archive
from phdstream.service import schedule as rules
from phdstream.service.stream_service import StreamService
from tests.service.streams import START, HandClock, at, deliver, row, service_at, write_config


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("tick-*")) if p.is_file()}


def rows_of(tick: int, number: int = 40) -> list[dict[str, Any]]:
    rng = np.random.default_rng(tick)
    return [row(10 * tick - 5, *rng.random(2).tolist()) for _ in range(number)]


def play(folder: Path, ticks: int = 4, **more: str) -> dict[str, bytes]:
    """Serve some ticks without a hitch, and return what was released."""
    folder.mkdir(exist_ok=True)
    hand = HandClock()
    service = service_at(write_config(folder, **more), hand)
    for tick in range(1, ticks + 1):
        hand.go_to(10 * tick - 2)
        deliver(service, f"tick {tick}", rows_of(tick))
        hand.go_to(10 * tick)
        service.publisher.release_due()
    service.stop()
    return contents(folder / "releases")


@cache
def undisturbed() -> dict[str, bytes]:
    """Return what three ticks release if nothing fails."""
    with tempfile.TemporaryDirectory() as folder:
        return play(Path(folder), 3)


class TestSchedule:
    def test_a_tick_is_released_when_it_is_due_and_not_before(self, tmp_path: Path) -> None:
        hand = HandClock()
        service = service_at(write_config(tmp_path, ticks='grace = "3s"'), hand)
        assert deliver(service, "a", [row(5), row(15)]) == {"accepted": 2, "rejected": []}
        hand.go_to(12.9)
        service.publisher.release_due()
        assert service.archive.last_tick == 0
        assert deliver(service, "b", [row(6)])["accepted"] == 1
        hand.go_to(13)
        service.publisher.release_due()
        assert service.archive.last_tick == 1
        late = deliver(service, "c", [row(6), row(16)])
        assert late == {"accepted": 1, "rejected": [{"reason": rules.LATE, "rows": 1}]}
        assert [one["status"] for one in service.board.rows(1, 9)] == ["released", "open"]
        service.stop()

    def test_an_empty_tick_is_released_too(self, tmp_path: Path) -> None:
        hand = HandClock(35)
        service = service_at(write_config(tmp_path), hand)
        service.publisher.release_due()
        assert service.archive.last_tick == 3
        service.stop()

    def test_the_data_closes_nothing(self, tmp_path: Path) -> None:
        """An event far in the future is refused, and one a little ahead waits for its tick."""
        hand = HandClock()
        service = service_at(write_config(tmp_path, service='ahead = "60s"'), hand)
        answer = deliver(service, "a", [row(5), row(55), row(86_400), {"time": "9999-12-31T00:00:00Z", "x": 0, "y": 0}])
        assert answer == {"accepted": 2, "rejected": [{"reason": rules.EARLY, "rows": 2}]}
        service.publisher.release_due()
        assert service.archive.last_tick == 0
        service.stop()

    def test_held_ticks_are_said_to_be(self, tmp_path: Path) -> None:
        hand = HandClock(25)
        service = service_at(write_config(tmp_path, stream="start_after = 3"), hand)
        service.publisher.release_due()
        assert [one["status"] for one in service.board.rows(1, 9)] == ["held", "held", "open"]
        hand.go_to(31)
        service.publisher.release_due()
        assert [one["status"] for one in service.board.rows(1, 9)] == ["held", "held", "released", "open"]
        assert service.archive.has(3)
        service.stop()

    def test_the_last_tick_is_the_last(self, tmp_path: Path) -> None:
        hand = HandClock(1000)
        service = service_at(write_config(tmp_path, ticks="end = 2024-05-31T00:00:20Z"), hand)
        service.publisher.release_due()
        assert service.archive.last_tick == 2
        assert [one["tick"] for one in service.board.rows(1, 99)] == [1, 2]
        assert not service.board.missing()
        service.stop()

    def test_closing_waits_for_what_was_received_before(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A request received in time, whose reading takes long, is in its tick though the tick closes meanwhile."""
        hand = HandClock(9)
        service = service_at(write_config(tmp_path), hand)
        reading, go_on = threading.Event(), threading.Event()
        real = service.intake._readers.read

        def slowly(kind: str, content: bytearray) -> Any:
            reading.set()
            assert go_on.wait(30)
            return real(kind, content)

        monkeypatch.setattr(service.intake._readers, "read", slowly)
        answers: list[Any] = []
        sender = threading.Thread(target=lambda: answers.append(deliver(service, "slow", rows_of(1))))
        sender.start()
        assert reading.wait(30)
        hand.go_to(11)
        closing = threading.Thread(target=service.publisher.release_due)
        closing.start()
        closing.join(0.5)
        assert closing.is_alive()
        assert service.archive.last_tick == 0
        go_on.set()
        closing.join(30)
        sender.join(30)
        assert answers == [{"accepted": 40, "rejected": []}]
        assert service.archive.release(1).total > 20
        service.stop()


class TestRunAndServe:
    def test_a_stream_begun_with_one_goes_on_with_the_other(self, tmp_path: Path) -> None:
        """Two ticks from a file, one served, one by run from a file and the journal: as if all were served."""
        whole = play(tmp_path / "whole", 4)
        folder = tmp_path / "mixed"
        folder.mkdir()
        path = write_config(folder, input='files = "events/*.ndjson"')
        (folder / "events").mkdir()
        lines = [json.dumps(one) for tick in (1, 2) for one in rows_of(tick)]
        (folder / "events" / "a.ndjson").write_text("\n".join(lines))
        hand = HandClock(20)
        run(load_config(path), now=hand.steady().now())
        service = service_at(path, hand)
        hand.go_to(28)
        deliver(service, "tick 3", rows_of(3))
        hand.go_to(30)
        service.publisher.release_due()
        hand.go_to(31)
        deliver(service, "half of tick 4", [one | {"time": at(35)} for one in rows_of(4)[:25]])
        service.stop()
        (folder / "events" / "b.ndjson").write_text("\n".join(json.dumps(one) for one in rows_of(4)[25:]))
        hand.go_to(40)
        report = run(load_config(path), now=hand.steady().now())
        assert (report.first_tick, report.last_tick) == (4, 4)
        assert contents(folder / "releases") == whole
        again = service_at(path, hand)  # what run counted is gone from the journal
        assert not again._journal.waiting(0)
        again.stop()

    def test_a_changed_promise_is_refused(self, tmp_path: Path) -> None:
        play(tmp_path, 1)
        path = tmp_path / "stream.toml"
        path.write_text(path.read_text().replace("epsilon = 1.0", "epsilon = 2.0"))
        with pytest.raises(StateError, match="cannot change"):
            service_at(path, HandClock())

    def test_one_owner_at_a_time(self, tmp_path: Path) -> None:
        service = service_at(write_config(tmp_path), HandClock())
        with pytest.raises(StateError):
            service_at(tmp_path / "stream.toml", HandClock())
        service.stop()
        service_at(tmp_path / "stream.toml", HandClock()).stop()


STEPS = [
    "phdstream.service.journal.Journal.close_tick",
    "phdstream.service.journal.Journal.events",
    "phdstream.streams.stream.Stream.update",
    "phdstream.streams.durable.commits.Commits.save",
    "phdstream.streams.durable.commits.Commits.mark",
    "phdstream.service.journal.Journal.purge",
    "phdstream.service.stream_service.StreamService._copy",
    "phdstream.io.sinks.folder.ReleaseFolder.publish",
    "phdstream.io.sinks.contents.Contents.put_once",
    "phdstream.io.sinks.contents.Contents.put_json",
    "phdstream.service.stream_service.Announcer.announce",
]
"""The statements of a release, in their order: a fault before or after any of them must cost nothing."""


def _failing(monkeypatch: pytest.MonkeyPatch, step: str, when: str, call: int) -> None:
    """Let one call of a step fail: before it does anything, or after all of it."""
    import importlib

    module, kind, name = step.rsplit(".", 2)
    owner = getattr(importlib.import_module(module), kind)
    real, calls = getattr(owner, name), [0]

    def step_or_fail(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == call and when == "before":
            raise OSError(28, "No space left on device")
        answer = real(*args, **named)
        if calls[0] == call and when == "after":
            raise OSError(5, "Input/output error")
        return answer

    monkeypatch.setattr(owner, name, step_or_fail)


class TestFaults:
    @pytest.mark.parametrize("call", [1, 2, 3])
    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("step", STEPS)
    def test_a_fault_between_every_two_statements(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, when: str, call: int
    ) -> None:
        """The same service tries again, and what comes out is what would have; nobody saw two versions."""
        whole = undisturbed()
        folder = tmp_path / "faulty"
        folder.mkdir()
        hand = HandClock()
        service = service_at(write_config(folder), hand)
        seen: dict[str, bytes] = {}
        with monkeypatch.context() as patch:
            _failing(patch, step, when, call)
            for tick in range(1, 4):
                hand.go_to(10 * tick - 2)
                deliver(service, f"tick {tick}", rows_of(tick))
                hand.go_to(10 * tick)
                for _ in range(2):
                    service.publisher._try()
                    shown = {n: b for n, b in contents(folder / "releases").items() if _shown(service, n)}
                    assert all(shown[name] == content for name, content in seen.items())
                    seen = shown
        service.publisher._try()
        assert not service.publisher.failure
        service.stop()
        assert contents(folder / "releases") == whole

    def test_a_failure_turns_readiness_red_within_one_tick(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hand = HandClock(5)
        service = service_at(write_config(tmp_path), hand)
        assert not service.why_not_ready()
        with monkeypatch.context() as patch:
            patch.setattr("phdstream.io.sinks.folder.ReleaseFolder.publish", _no_space)
            hand.go_to(10)
            service.publisher._try()
            assert service.why_not_ready() == ["releases are held up: see the log"]
            assert service.board.rows(1, 1)[0]["status"] == "late"
            hand.go_to(20)
            assert service.board.rows(1, 1)[0]["status"] == "missing"
            assert "ticks are missing: 1" in service.why_not_ready()
            assert deliver(service, "still taken", [row(25)])["accepted"] == 1
        service.publisher._try()
        assert not service.why_not_ready()
        assert service.archive.last_tick == 2
        service.stop()

    def test_a_file_of_a_release_that_is_gone_is_missing(self, tmp_path: Path) -> None:
        play(tmp_path, 2)
        (tmp_path / "releases" / "estimates" / "tick-00001.parquet").unlink()
        service = service_at(tmp_path / "stream.toml", HandClock(25))
        assert service.board.missing() == [1]
        service.stop()

    def test_the_clock_jumping_about_releases_nothing_early(self, tmp_path: Path) -> None:
        hand = HandClock(5)
        service = service_at(write_config(tmp_path), hand)
        for jump in (86_400.0, -3 * 86_400.0, 2 * 86_400.0 + 1):
            hand.wall += jump
            service.publisher.release_due()
            assert service.archive.last_tick == 0
        hand.wall = START.timestamp() + 11
        hand.passed += 6
        service.publisher.release_due()
        assert service.archive.last_tick == 1
        service.stop()


def _no_space(*args: Any) -> None:
    raise StateError("no space left")


def _shown(service: StreamService, name: str) -> bool:
    return int(name.partition("tick-")[2][:5]) <= Archive(service.archive.folder, service.domain).last_tick
