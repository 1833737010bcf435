"""What became of every tick, in public: statuses, errata, readiness and metrics, and nothing private in any of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from phdstream.errors import StateError
from phdstream.io.sinks.folder import ReleaseFolder
from tests.service.api.serving import USERS, Make, Served, crowd, row


def statuses(one: Served) -> list[str]:
    return [entry["status"] for entry in one.get("/v1/ticks").json()["ticks"]]


def metric(one: Served, name: str) -> float:
    lines = one.get("/v1/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(f"phdstream_{name}{{")).split()[-1])


def test_open_then_released(make: Make) -> None:
    one = make()
    assert statuses(one) == ["open"]
    one.post(crowd(5))
    one.go_to(10)
    assert statuses(one) == ["released", "open"]
    first = one.get("/v1/ticks?first=1&limit=1").json()
    assert first["current"] == 2
    assert first["ticks"] == [
        {
            "tick": 1, "start": "2024-05-31T00:00:00+00:00", "end": "2024-05-31T00:00:10+00:00",
            "due": "2024-05-31T00:00:10+00:00", "status": "released", "errata": [],
        }
    ]  # fmt: skip
    assert one.get("/v1/ticks?first=1000000000").json()["ticks"] == []
    one.go_to(55)
    assert [entry["tick"] for entry in one.get("/v1/ticks?limit=2").json()["ticks"]] == [5, 6]


def test_held_before_the_start(make: Make) -> None:
    one = make(stream="start_after = 2")
    one.go_to(10)
    assert statuses(one) == ["held", "open"]
    one.go_to(20)
    assert statuses(one)[1:] == ["released", "open"]
    assert one.get("/v1/ready").status_code == 200


def test_red_within_one_tick(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be written: at once not ready, then late, then missing; and green once it is mended."""
    one = make()
    one.go_to(10)
    assert one.get("/v1/ready").json() == {"status": "ready"}

    def full(*_: Any) -> None:
        raise StateError(f"{one.folder}/releases cannot be written (No space left on device).")

    with monkeypatch.context() as patch:
        patch.setattr(ReleaseFolder, "publish", full)
        one.seconds = 20.0
        one.service.publisher._try()
        answer = one.get("/v1/ready")
        assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json")
        assert str(one.folder) not in answer.text
        assert statuses(one) == ["released", "late", "open"]
        assert [metric(one, name) for name in ("ready", "failing", "ticks_late", "ticks_missing")] == [0, 1, 1, 0]
        one.seconds = 30.0
        one.service.publisher._try()
        assert statuses(one) == ["released", "missing", "late", "open"]
        assert metric(one, "ticks_missing") == 1
        told = one.get("/v1/status", headers=one.by("operate")).json()
        assert "No space left" in told["failure"]
    one.service.publisher._try()
    assert one.get("/v1/ready").status_code == 200
    assert statuses(one) == ["released", "released", "released", "open"]


def test_red_though_the_publisher_says_nothing(make: Make) -> None:
    """It hangs, say: the board goes by the clock, not by what the publisher believes."""
    one = make()
    one.seconds = 25.0
    assert statuses(one) == ["missing", "late", "open"]
    assert one.get("/v1/ready").status_code == 503
    assert metric(one, "ready") == 0


def test_a_release_that_is_gone(make: Make) -> None:
    one = make()
    one.go_to(30)
    one.service.archive._path(2).unlink()
    assert statuses(one) == ["released", "missing", "released", "open"]
    answer = one.get("/v1/ready")
    assert (answer.status_code, answer.json()["detail"]) == (503, "ticks are missing: 2")


def test_errata(make: Make) -> None:
    """What is said of a tick is public, stays, and is added to, not replaced."""
    one = make()
    one.go_to(10)
    said = [one.client.post("/v1/ticks/1/errata", json={"text": f"{i} é"}, headers=one.by("operate")) for i in (1, 2)]
    assert [answer.status_code for answer in said] == [201, 201]
    one.reopen()
    errata = one.get("/v1/ticks").json()["ticks"][0]["errata"]
    assert [entry["text"] for entry in errata] == ["1 é", "2 é"]
    for tick, text in ((0, "x"), (3, "x"), (10**10, "x"), (1, ""), (1, " "), (1, "x" * 2001), (1, None), (1, "\ud800")):
        answer = one.client.post(
            f"/v1/ticks/{tick}/errata",
            content=json.dumps({"text": text}),
            headers=one.by("operate") | {"Content-Type": "application/json"},
        )
        assert answer.status_code == 422
    assert len(one.get("/v1/ticks").json()["ticks"][0]["errata"]) == 2


def test_late_events_by_the_stated_rule(make: Make) -> None:
    one, other = make("one"), make("two", service='late = "next"\npublic = true')
    for each in (one, other):
        each.go_to(12)
    assert one.post([row(5)]).json() == {"accepted": 0, "rejected": [{"reason": "its tick is closed", "rows": 1}]}
    assert other.post([row(5)]).json() == {"accepted": 1, "rejected": []}
    assert next(iter(other.journal()))[0] == 2
    assert other.get("/v1").json()["rules"]["late"] == "next"


@pytest.mark.parametrize("config", [{}, USERS], ids=["events", "users"])
def test_metrics_say_nothing_private(make: Make, config: dict[str, str]) -> None:
    """Two streams, one with an event more, a hostile body more and a refused row more: byte for byte the same."""
    more: dict[str, Any] = {"who": "ann", "sign": 1} if config else {}
    streams = [make(name, **config) for name in ("a", "b")]
    seen: list[list[bytes]] = [[], []]
    for one, texts in zip(streams, seen, strict=True):
        for tick in (1, 2, 3):
            one.seconds = 10 * tick - 5.0
            one.post([entry | more for entry in crowd(one.seconds, 100)])
            if one is streams[1]:
                one.post([row(one.seconds, **more), row(one.seconds, x=99.0, **more)])
                one.post(b"\xff")
                one.post([row(one.seconds, **more)], **{"Content-Length": "99999999999"})
            texts.append(one.get("/v1/metrics").content)
            one.go_to(10.0 * tick)
            for path in ("/v1/metrics", "/v1/ticks", "/v1/ready", "/v1"):
                texts.append(one.get(path).content.replace(one.service.stream_id.encode(), b"ID"))
    assert seen[0] == seen[1]
    assert b"phdstream_ready" in seen[0][0]
