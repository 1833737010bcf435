"""Bodies are read in processes of their own, so that none can take down, hang or fill up the one that holds a stream.

One request at a time for each process, which answers with events as they are stored. One that dies, says nothing for
too long or needs too much memory read a hostile body: that request is refused, and a new process serves the next.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import select
import struct
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import IO, Any

from phdstream.domains import Domain, domain_from_dict
from phdstream.errors import InputError, PhdstreamError
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.reading import Reading
from phdstream.service.bodies import Body, BodyReader
from phdstream.service.journal import Part

__all__ = ["Readers"]

PATIENCE = 30.0
"""Seconds without an answer after which a body is taken to be hostile."""
MEMORY = 2 << 30
"""Bytes that reading a body may take."""
_MICROSECOND = timedelta(microseconds=1)
_FRAME = struct.Struct(">cQ")
_HOSTILE = "the body could not be read: it crashed, hung or took too much memory in the process that reads bodies."


class Readers:
    """So many processes that read bodies for one stream; `read` waits for one that is free."""

    def __init__(self, number: int, domain: Domain, clock: Clock, columns: Columns, reading: Reading) -> None:
        about = {
            "domain": domain.to_dict(), "columns": asdict(columns), "reading": asdict(reading),
            "start": clock.start.isoformat(), "every": clock.every // _MICROSECOND,
        }  # fmt: skip
        self._about = json.dumps(about).encode()
        self._free: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        self._number = number
        for _ in range(number):
            self._free.put(_Process(self._about))

    def read(self, kind: str, content: bytes | bytearray) -> Body:
        """Return what a body says, as `BodyReader.read` does.

        A process that ends at it may have been ended by something else (a machine short of memory), so another one
        tries the body once more. If that ends too, it is the body's doing.
        """
        process = self._free.get()
        try:
            for tries in (1, 2):
                try:
                    return process.read(kind, content)
                except (OSError, EOFError, struct.error, ValueError) as error:
                    if isinstance(error, InputError):
                        raise
                    process.stop()
                    process = self._another(process)
                    if tries == 2 or isinstance(error, TimeoutError):
                        raise InputError(_HOSTILE) from None
            raise AssertionError
        finally:
            self._free.put(process)

    def _another(self, ended: _Process) -> _Process:
        """Return a new process; if none can be had now, the one that ended: whoever gets it tries once more."""
        try:
            return _Process(self._about)
        except OSError:
            return ended

    def close(self) -> None:
        """End the processes."""
        for _ in range(self._number):
            with contextlib.suppress(queue.Empty):
                self._free.get(timeout=PATIENCE).stop()


class _Process:
    """One process, and how to talk to it."""

    def __init__(self, about: bytes) -> None:
        environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "phdstream.service.reader"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
            start_new_session=True,
        )  # fmt: skip
        self._send(b"C", about)

    def _send(self, kind: bytes, content: Any) -> None:
        assert self._process.stdin is not None
        view = memoryview(content)
        self._process.stdin.write(_FRAME.pack(kind, view.nbytes))
        self._process.stdin.write(view)
        self._process.stdin.flush()

    def read(self, kind: str, content: bytes | bytearray) -> Body:
        """Have a body read."""
        self._send(b"K", kind.encode())
        self._send(b"B", content)
        body, about = Body(), {}
        while True:
            what, answer = self._message()
            if what == b"P":
                about = json.loads(answer)
            elif what == b"R":
                body.parts.append(Part(rows=bytes(answer), **about))
            elif what == b"E":
                raise InputError(answer.decode())
            elif what == b"Z":
                last = json.loads(answer)
                body.rows, body.rejected = last["rows"], last["rejected"]
                return body

    def _message(self) -> tuple[bytes, bytearray]:
        what, size = _FRAME.unpack(self._exactly(_FRAME.size))
        return what, self._exactly(size)

    def _exactly(self, size: int) -> bytearray:
        assert self._process.stdout is not None
        channel, content, got = self._process.stdout.fileno(), bytearray(size), 0
        view = memoryview(content)
        while got < size:
            if not select.select([channel], [], [], PATIENCE)[0]:
                raise TimeoutError
            more = os.readv(channel, [view[got:]])
            if not more:
                raise EOFError
            got += more
        return content

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        self._process.wait()


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more."""
    _limit()
    reader, kind = None, ""
    while head := requests.read(_FRAME.size):
        what, size = _FRAME.unpack(head)
        content = requests.read(size)
        if what == b"C":
            reader = _reader(json.loads(content))
        elif what == b"K":
            kind = content.decode()
        else:
            assert reader is not None
            _answer(reader, kind, content, answers)
            answers.flush()


def _answer(reader: BodyReader, kind: str, content: bytes, answers: IO[bytes]) -> None:
    try:
        body = reader.read(kind, content)
    except PhdstreamError as error:
        _write(answers, b"E", str(error).encode("utf-8", "replace"))
        return
    for part in body.parts:
        _write(answers, b"P", json.dumps({"tick": part.tick, "sign": part.sign, "number": part.number}).encode())
        _write(answers, b"R", part.rows)
    _write(answers, b"Z", json.dumps({"rows": body.rows, "rejected": body.rejected}).encode())


def _write(answers: IO[bytes], what: bytes, content: bytes) -> None:
    answers.write(_FRAME.pack(what, len(content)))
    answers.write(content)


def _limit() -> None:
    kind = getattr(resource, "RLIMIT_DATA", resource.RLIMIT_AS)
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what was being read is private


def _reader(about: dict[str, Any]) -> BodyReader:
    clock = Clock(datetime.fromisoformat(about["start"]), about["every"] * _MICROSECOND, None)
    columns = Columns(**(about["columns"] | {"coordinates": tuple(about["columns"]["coordinates"])}))
    return BodyReader(domain_from_dict(about["domain"]), clock, columns, Reading(**about["reading"]))


if __name__ == "__main__":
    # Libraries may print; only messages may go where the other process listens.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _serve(sys.stdin.buffer, channel)
