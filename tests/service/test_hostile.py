"""Bodies made to harm: refused with 4xx, nothing of them stored, and the service goes on for everybody else."""

from __future__ import annotations

import os
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import uvicorn

from phdstream.service import reader
from phdstream.service.api import guard
from phdstream.service.bodies import ARROW, NDJSON
from tests.service.api.serving import Served, arrow, ndjson, new_key, row
from tests.thorough import cases
from tests.waiting import wait_until

ROWS = [row(5), row(6)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A stream whose bodies are read in processes of their own, as they are in earnest."""
    one = Served(tmp_path_factory.mktemp("hostile"), apart=True, service="public = true\nrate = 1000000")
    assert one.post(ROWS).status_code == 200
    yield one
    one.close()


def refused(one: Served, content: bytes, kind: str) -> Any:
    """Post a body; it is refused, and nothing of it is stored."""
    before = one.stored()
    answer = one.post(content, kind=kind)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert one.stored() == before
    return answer


def goes_on(one: Served) -> None:
    answer = one.post(ROWS)
    assert (answer.status_code, answer.json()["accepted"]) == (200, 2)


NDJSON_BODIES = {
    "empty": b"", "blank": b"\n \r\n\n", "nested lists": b"[" * 4_000_000, "nested objects": b'{"x":' * 1_000_000,
    "one long line": b'{"x":"' + b"a" * 6_000_000, "one long number": b'{"x":' + b"9" * 6_000_000 + b"}",
    "zeros": b"\0" * 5_000_000, "newlines": b"\n" * 5_000_000, "quotes": b'"' * 5_000_000, "gzip": b"\x1f\x8b" * 1000,
    "UTF-16": '{"x":1}'.encode("utf-16"), "not UTF-8": b"\xff\xfe\xfd" * 100_000, "Arrow": arrow(ROWS),
    "scalars": b"1\n2\n3", "null": b"null", "a list of rows": b"[" + ndjson(ROWS).replace(b"\n", b",") + b"]",
    "surrogates": b'{"x":"\\ud800","y":"\\udfff","time":"\\ud83d"}',
    "many members": b"{" + b",".join(b'"%d":1' % i for i in range(300_000)) + b"}",
}  # fmt: skip


@pytest.mark.parametrize("name", NDJSON_BODIES)
def test_ndjson(served: Served, name: str) -> None:
    refused(served, NDJSON_BODIES[name], NDJSON)
    goes_on(served)


def table(**columns: Any) -> pa.Table:
    times = pa.array([5 * 10**6 + 1717113600 * 10**6] * 4, pa.timestamp("us", "UTC"))
    return pa.table({"x": pa.array([5.0] * 4), "y": pa.array([45.0] * 4), "time": times} | columns)


def stream(given: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, given.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(given)
    return sink.getvalue().to_pybytes()


def bad_offsets() -> bytes:
    """A column of text whose offsets lead out of its data."""
    offsets = pa.py_buffer(np.array([0, 10**9, 5, 2**31 - 1, 20], np.int32))
    column = pa.Array.from_buffers(pa.string(), 4, [None, offsets, pa.py_buffer(b"x" * 20)])
    return stream(table(time=column))


def bad_indices() -> bytes:
    """Categories that are not there."""
    indices = pa.array([0, 1, 10**6, -5], pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["2024-05-31T00:00:05Z"]), safe=False)
    return stream(table(time=column))


def bomb(codec: str) -> bytes:
    """Some megabytes that are gigabytes once they are read: the same batch many times."""
    zeros = pa.array(np.zeros(5_000_000))
    times = pa.array(np.zeros(5_000_000, np.int64), pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_arrays([zeros, zeros, times], names=["x", "y", "time"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        for _ in range(25):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def many_batches() -> bytes:
    sink = pa.BufferOutputStream()
    empty = table().slice(0, 0).to_batches() or [pa.RecordBatch.from_pylist([], table().schema)]
    with pa.ipc.new_stream(sink, table().schema) as writer:
        for _ in range(20_000):
            writer.write_batch(empty[0])
    return sink.getvalue().to_pybytes()


ARROW_BODIES: dict[str, Any] = {
    "empty": b"", "NDJSON": ndjson(ROWS), "zeros": b"\0" * 1_000_000, "ones": b"\xff" * 1_000_000,
    "a message of 4 GB": b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + b"\0" * 100,
    "a message of negative length": b"\xff\xff\xff\xff" + struct.pack("<i", -2) + b"\0" * 100,
    "offsets": bad_offsets(), "indices": bad_indices(), "no columns": stream(pa.table({})),
    "other columns": stream(pa.table({"a": [1]})), "no time": stream(table().drop_columns("time")),
    "no rows": stream(table().slice(0, 0)), "many empty batches": many_batches(),
    "a file, not a stream": b"ARROW1\0\0" + arrow(ROWS), "lists": stream(table(x=pa.array([[1.0]] * 4))),
    "texts that are no numbers": stream(table(x=pa.array(["a"] * 4))),
    "structs": stream(table(x=pa.array([{"a": 1}] * 4))),
    "times without a zone": stream(table(time=pa.array([0] * 4, pa.timestamp("us")))),
    "nulls": stream(table(x=pa.nulls(4))),
    "twice the same column": stream(pa.Table.from_arrays([*table().columns, table()["x"]], ["x", "y", "time", "x"])),
}  # fmt: skip


@pytest.mark.parametrize("name", ARROW_BODIES)
def test_arrow(served: Served, name: str) -> None:
    refused(served, ARROW_BODIES[name], ARROW)
    goes_on(served)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_bomb(served: Served, codec: str) -> None:
    """What grows too large in the process that reads it is refused; others are read meanwhile and after."""
    content = bomb(codec)
    assert len(content) < 64 << 20
    refused(served, content, ARROW)
    goes_on(served)


_WORDS = [b"\xff" * 8, b"\0" * 8, b"\x01\x02\x03\x04\x05\x06\x07\x08", struct.pack("<q", 2**40)]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return a body cut off, overwritten, repeated or with some bits the other way."""
    wounds = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(wounds) + 1)
        match rng.randrange(5):
            case 0:
                del wounds[place:]
            case 1:
                wounds[place : place + 8] = rng.choice(
                    [b"\xff" * 8, b"\0" * 8, rng.randbytes(8), struct.pack("<q", 2**40)]
                )
            case 2:
                wounds[place : place + 1] = rng.randbytes(1)
            case 3:
                wounds[place:place] = wounds[place : place + rng.randrange(200)]
            case 4:
                wounds[place : place + 4] = struct.pack("<i", rng.choice([-1, 2**31 - 1, 2**24, 0, 1]))
        if not wounds:
            break
    return bytes(wounds)


@pytest.mark.parametrize("number", [cases(200, 5000), pytest.param(cases(3000, 20_000), marks=pytest.mark.slow)])
def test_damaged_and_random_bytes(served: Served, number: int) -> None:
    """Whatever comes, an answer is 200 or 4xx; what is refused is not stored; what is accepted is what is said."""
    rng = random.Random(number)
    rows = [row(5, who="ann") for _ in range(20)]
    texts = pa.Table.from_pylist(rows)
    categories = texts.set_column(2, "time", texts["time"].dictionary_encode())
    tables = [table(), texts, categories]
    whole = [(stream(one, compression=codec), ARROW) for one in tables for codec in (None, "zstd", "lz4")]
    whole += [(ndjson(rows), NDJSON)] * 3 + [(rng.randbytes(300), kind) for kind in (ARROW, NDJSON)]
    for _ in range(number):
        content, kind = rng.choice(whole)
        before, waiting = served.stored(), served.journal().total()
        answer = served.post(damaged(content, rng), kind=kind)
        assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
        if answer.status_code == 200:
            assert served.journal().total() == waiting + answer.json()["accepted"]
        else:
            assert served.stored() == before
        served.service._journal.purge(10**6)
    goes_on(served)


def test_a_body_that_ends_its_reader_hurts_no_other(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was ended by something else is tried by another process; one that ends both of them is refused."""
    readers = served.service.intake._readers
    pids = []

    def kill() -> None:
        process = readers._free.get()
        readers._free.put(process)
        pids.append(process._process.pid)
        os.kill(process._process.pid, 9)

    kill()
    goes_on(served)
    kill()
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: served.post(ROWS).status_code, range(6)))
    assert answers == [200] * 6
    assert len(set(pids)) == 2
    real = reader._Process.read

    def end_at_it(self: Any, kind: str, content: bytes) -> Any:
        if b"ends its reader" in content:
            self._process.kill()
        return real(self, kind, content)

    with monkeypatch.context() as patch:
        patch.setattr(reader._Process, "read", end_at_it)
        refused(served, ndjson([ROWS[0] | {"more": "ends its reader"}]), NDJSON)
        goes_on(served)


def test_a_reader_that_says_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs is ended after a while, and another takes its place."""
    monkeypatch.setattr(reader, "PATIENCE", 0.5)
    process = served.service.intake._readers._free.get()
    served.service.intake._readers._free.put(process)
    os.kill(process._process.pid, 19)  # SIGSTOP
    refused(served, ndjson(ROWS), NDJSON)
    assert process._process.returncode is not None
    monkeypatch.undo()
    goes_on(served)


def test_no_process_can_be_had(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as none can be started, deliveries are refused; then they are taken again."""
    process = served.service.intake._readers._free.get()
    served.service.intake._readers._free.put(process)
    os.kill(process._process.pid, 9)
    process._process.wait()

    def none(*_: Any, **__: Any) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr("phdstream.service.reader.subprocess.Popen", none)
        for _ in range(2):
            refused(served, ndjson(ROWS), NDJSON)
    goes_on(served)  # it finds that the old process is gone, and starts one


@pytest.fixture(scope="module")
def port(served: Served) -> Iterator[int]:
    """The app behind a real server on loopback."""
    server = uvicorn.Server(uvicorn.Config(served.app, host="127.0.0.1", port=0, log_level="critical", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(20)


def request(one: Served, length: str, **more: str) -> bytes:
    headers = one.by("ingest") | {
        "Host": "x",
        "Content-Type": NDJSON,
        "Idempotency-Key": new_key(),
        "Content-Length": length,
    }
    lines = [f"{name}: {value}" for name, value in (headers | more).items() if value]
    return ("POST /v1/events HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def answer_to(port: int, *pieces: bytes, close: bool = False) -> bytes:
    """Send pieces; return the first bytes of the answer."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        for piece in pieces:
            connection.sendall(piece)
        if close:
            return b""
        return connection.recv(4096)


def test_a_slow_body(served: Served, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that stops sending is told so, and what it held is free again."""
    monkeypatch.setattr(guard, "BETWEEN", 0.3)
    before = served.stored()
    assert b" 408 " in answer_to(port, request(served, "1000"), b'{"x":')
    assert served.stored() == before
    assert served.service.intake._taken == 0
    assert not served.service.intake._keys


def test_a_body_that_does_not_come_whole(served: Served, port: int) -> None:
    """The sender goes away in the middle: nothing is stored, and nothing stays held."""
    before = served.stored()
    answer_to(port, request(served, "1000"), ndjson(ROWS), close=True)
    wait_until(lambda: not served.service.intake._keys and served.service.intake._taken == 0)
    assert served.stored() == before


@pytest.mark.parametrize(
    ("length", "more", "status"),
    [
        ("99999999999999999999", {}, b" 4"),
        ("-1", {}, b" 400 "),
        ("abc", {}, b" 400 "),
        ("90000000", {}, b" 413 "),
        ("2", {"Host": "["}, b" 4"),
        ("2", {"Host": "a b\t<script>"}, b" 4"),
        ("2", {"Content-Type": ""}, b" 415 "),
        ("2", {"Authorization": "Bearer \xff"}, b" 401 "),
        ("2", {"Idempotency-Key": "\xff\xfe"}, b" 4"),
    ],
)
def test_odd_headers(served: Served, port: int, length: str, more: dict[str, str], status: bytes) -> None:
    first = answer_to(port, request(served, length, **more), b"{}").split(b"\r\n")[0]
    assert status in first + b" "


@pytest.mark.parametrize("host", ["[", "[::1", "a b", "<script>", "x" * 5000, "\xff", "", "a:b:c", "a/b", "a@b"])
@pytest.mark.parametrize("path", ["/v1/releases", "/v1", "/v1/health"])
def test_odd_hosts(port: int, host: str, path: str) -> None:
    first = answer_to(port, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1")).split(b"\r\n")[0]
    assert b" 500 " not in first
    assert first
