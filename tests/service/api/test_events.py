"""Events in: each delivery once, from those who may send, within bounds."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import threading
from typing import Any

import httpx
import pytest

from phdstream.errors import PhdstreamError
from phdstream.service.api import guard
from phdstream.service.bodies import ARROW, NDJSON, Body
from phdstream.service.journal import Delivery
from tests.service.api.serving import Make, Served, arrow, ndjson, row

ROWS = [row(5), row(6, 1.0, 41.0)]


def test_a_delivery(make: Make) -> None:
    one = make()
    answer = one.post([*ROWS, row(5, x=99.0), row(-20), row(9999), {"x": 1}])
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 2
    assert {r["reason"]: r["rows"] for r in answer.json()["rejected"]} == {
        "the place is outside the domain": 1,
        "its time is before the first tick": 1,
        "its time is too far in the future": 1,
        "column 'y' has rows without a number": 1,
    }
    assert one.journal().total() == 2
    assert one.post(arrow(ROWS), kind=ARROW).json() == {"accepted": 2, "rejected": []}
    assert sorted(one.journal().values()) == [2, 2]


@pytest.mark.parametrize("given", [None, "", " ", '""', '"a', 'a"b', '"a"b', "x" * 256, "a\tb", '"é"', '"\\a"'])
def test_a_key_that_is_none(make: Make, given: str | None) -> None:
    one = make()
    headers = one.by("ingest") | {"Content-Type": NDJSON}
    if given is not None:
        headers |= {"Idempotency-Key": given.encode("latin-1")}  # type: ignore[dict-item]
    answer = one.client.post("/v1/events", content=ndjson(ROWS), headers=headers)
    if given == '"é"':  # text of other languages is not a structured field's, but harms nobody
        assert answer.status_code in (200, 400)
        return
    assert answer.status_code == 400
    assert one.stored() == (0, 0)


def test_a_key_means_one_delivery(make: Make) -> None:
    one = make()
    first = one.post([*ROWS, row(5, x=77.0)], '"a"')
    for _ in range(2):
        for key in ('"a"', "a", ' "a" '):  # in quotes or not, it is the same key
            again = one.post([*ROWS, row(5, x=77.0)], key)
            assert (again.status_code, again.json()) == (200, first.json())
        assert one.post(ROWS, '"a"').status_code == 422
        assert one.post([*ROWS, row(5, x=77.0)], '"a"', kind=ARROW).status_code == 422
        one.reopen()  # remembered, also by the next process
    assert one.journal().total() == 2
    assert one.post(ROWS, '"b"').json()["accepted"] == 2
    assert one.journal().total() == 4


def test_the_answer_is_replayed_after_the_tick_is_released(make: Make) -> None:
    """What was answered stays answered, though the events are gone and the tick takes none any more."""
    one = make()
    first = one.post(ROWS, '"a"')
    one.go_to(10)
    assert one.stored() == (0, 1)
    one.reopen()
    assert one.post(ROWS, '"a"').json() == first.json() == {"accepted": 2, "rejected": []}
    assert one.post(ROWS, '"b"').json()["accepted"] == 0


def test_a_key_is_forgotten_after_the_published_time(make: Make) -> None:
    one = make(service='remember = "25s"\npublic = true')
    assert one.get("/v1").json()["rules"]["idempotency_key_expires_seconds"] == 25
    one.post(ROWS, '"a"')
    one.go_to(20)
    assert one.stored()[1] == 1
    one.go_to(40)
    assert one.stored()[1] == 0


def test_a_refused_delivery_leaves_its_key_free(make: Make) -> None:
    one = make()
    assert one.post(b"{}", '"a"').status_code == 422
    assert one.post(b"\xff" * 10, '"a"', kind=ARROW).status_code == 422
    assert one.post(ROWS, '"a"').status_code == 200


class Held:
    """Holds the reading of bodies until it is told to go on."""

    def __init__(self, one: Served) -> None:
        self.begun, self.go = threading.Semaphore(0), threading.Event()
        readers = one.service.intake._readers
        self._read = readers.read
        readers.read = self.read  # type: ignore[method-assign]

    def read(self, kind: str, content: bytes | bytearray) -> Body:
        self.begun.release()
        assert self.go.wait(30)
        return self._read(kind, content)


def test_in_flight(make: Make) -> None:
    """While a delivery is being taken its key is told to wait; a sender that goes away does not undo it."""
    one = make()
    held = Held(one)

    async def both() -> tuple[httpx.Response, httpx.Response, httpx.Response]:
        headers = one.by("ingest") | {"Content-Type": NDJSON, "Idempotency-Key": '"a"'}
        transport = httpx.ASGITransport(one.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            first = asyncio.create_task(client.post("/v1/events", content=ndjson(ROWS), headers=headers))
            await asyncio.to_thread(held.begun.acquire)
            second = await client.post("/v1/events", content=ndjson(ROWS), headers=headers)
            third = asyncio.create_task(
                client.post("/v1/events", content=ndjson(ROWS), headers=headers | {"Idempotency-Key": '"c"'})
            )
            await asyncio.to_thread(held.begun.acquire)
            third.cancel()
            await asyncio.sleep(0)
            fourth = await client.post("/v1/events", content=ndjson(ROWS), headers=headers | {"Idempotency-Key": '"c"'})
            held.go.set()
            done = await first
            while one.service.intake._outstanding:
                await asyncio.sleep(0.01)
            return done, second, fourth

    first, second, fourth = asyncio.run(both())
    assert (first.status_code, second.status_code, fourth.status_code) == (200, 409, 409)
    assert second.headers["Retry-After"] == "1"
    assert one.post(ROWS, '"a"').json() == first.json()
    assert one.post(ROWS, '"c"').json() == first.json()
    assert one.journal().total() == 4
    assert not one.service.intake._keys
    assert one.service.intake._taken == 0


def test_gone_before_it_is_begun(make: Make) -> None:
    """A sender that goes away the moment its body was received: the key is held until the delivery is done."""
    one = make()

    async def leave() -> None:
        intake = one.service.intake
        ticket = intake.open("a")
        task = asyncio.create_task(intake.deliver(ticket, NDJSON, bytearray(ndjson(ROWS))))
        with ticket:
            await asyncio.sleep(0)  # it has arrived, and is handed over
            task.cancel()
        assert ticket.key in intake._keys
        while intake._outstanding:
            await asyncio.sleep(0.01)
        assert not intake._keys

    asyncio.run(leave())
    assert one.journal().total() == 2


def test_nothing_of_a_delivery_stays_in_memory(make: Make) -> None:
    """Its bytes are let go of when it is answered, and not when Python next looks for what nobody uses."""
    one = make()
    gc.collect()
    gc.disable()
    try:
        for kind, content in ((NDJSON, ndjson(ROWS)), (NDJSON, b"{}"), (ARROW, arrow(ROWS)), (NDJSON, ndjson(ROWS))):
            body = bytearray(content)
            ticket = one.service.intake.open(content.hex())
            with contextlib.suppress(PhdstreamError):
                asyncio.run(one.service.intake.deliver(ticket, kind, body))
            assert not body
        assert not [thing for thing in gc.get_objects() if isinstance(thing, Delivery | Body) and thing.parts]
    finally:
        gc.enable()
    assert one.journal().total() == 4


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Encoding": "identity"}, 200),
        ({"Content-Type": "Application/NDJSON; charset=utf-8"}, 200),
    ],
)
def test_kinds_of_bodies(make: Make, headers: dict[str, str], status: int) -> None:
    one = make()
    assert one.post(ROWS, **headers).status_code == status


def test_too_large(make: Make) -> None:
    """A body that is too large is refused by what it states, or where it grows too large, and leaves nothing."""
    one = make(service='body = "1kB"\nmemory = "4kB"\npublic = true')
    fits = ndjson(ROWS) + b" " * (1024 - len(ndjson(ROWS)))
    assert one.post(fits).status_code == 200
    assert one.post(fits + b" ").status_code == 413
    headers = one.by("ingest") | {"Content-Type": NDJSON, "Idempotency-Key": '"a"'}
    for number, status in ((4, 200), (5, 413)):
        pieces = iter([fits[:256], fits[256:512], fits[512:768], fits[768:]] + [b" "] * (number - 4))
        assert one.client.post("/v1/events", content=pieces, headers=headers).status_code == status
        headers |= {"Idempotency-Key": '"b"'}
    assert one.post(ROWS, **{"Content-Length": "9" * 30}).status_code == 413
    for odd in ("-1", "abc", "1e3", "²"):
        assert one.post(ROWS, **{"Content-Length": odd.encode("latin-1")}).status_code == 400  # type: ignore[arg-type]
    assert one.service.intake._taken == 0


def test_no_room(make: Make) -> None:
    """While the memory for bodies is taken, others are told when to come again; then they are taken."""
    one = make(service='body = "1kB"\nmemory = "2kB"\npublic = true')
    taken = [one.service.intake.open(str(i)) for i in range(2)]
    for ticket in taken:
        ticket.grow(1000)
    answer = one.post(ROWS, '"a"')
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1
    headers = one.by("ingest") | {"Content-Type": NDJSON, "Idempotency-Key": '"a"'}
    assert one.client.post("/v1/events", content=iter([ndjson(ROWS)]), headers=headers).status_code == 429
    for ticket in taken:
        ticket.close()
    assert one.post(ROWS, '"a"').status_code == 200
    assert one.service.intake._taken == 0


def test_a_journal_that_cannot_be_written(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, say: the sender is told to come again, nothing of it says where the disk is, and nothing is lost."""
    one = make()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", str(one.folder))

    with monkeypatch.context() as patch:
        patch.setattr(one.service._journal, "accept", full)
        answer = one.post(ROWS, '"a"')
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert str(one.folder) not in answer.text
    assert one.stored() == (0, 0)
    assert one.post(ROWS, '"a"').json()["accepted"] == 2


def test_a_question_has_bounds_too(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies of other requests are bounded before they are parsed, whoever sends them."""
    one = make(service="")
    monkeypatch.setattr(guard, "MOST", 1000)
    for path in ("/v1/counts", "/v1/ticks/1/errata"):
        assert one.client.post(path, json={"text": "x" * 900}).status_code in (401, 422)
        assert one.client.post(path, json={"text": "x" * 1000}).status_code == 413
        pieces = iter([json.dumps({"text": "x" * 990}).encode(), b" " * 100])
        assert one.client.post(path, content=pieces, headers={"Content-Type": "application/json"}).status_code == 413


def test_a_slow_question(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one = make()
    monkeypatch.setattr(guard, "BETWEEN", 0.05)

    async def slow() -> httpx.Response:
        async def pieces() -> Any:
            yield b"{"
            await asyncio.sleep(5)
            yield b"}"

        transport = httpx.ASGITransport(one.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/v1/counts", content=pieces(), headers={"Content-Type": "application/json"})

    assert asyncio.run(slow()).status_code == 408
