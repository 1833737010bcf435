"""Files are read in a process of their own, so that no file can take down, hang or fill up the one that holds a stream.

The process is started at the first file and serves all others, so that starting it costs once. It answers with Arrow
batches while they are wanted; if it dies, says nothing for too long or needs too much memory, the file is damaged, and
a new process serves the next.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO

import pyarrow as pa

from phdstream.errors import InputError
from phdstream.io.sources.child import BATCH, END, ERROR, FRAME, NOTE, ROWS, SCHEMA
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.reading import Reading, Rows

__all__ = ["rows_apart"]

PATIENCE = 60.0
"""Seconds without a word after which a file is taken to be damaged: the next batch takes a fraction of one."""
MEMORY = 4 << 30
"""Bytes that reading may take; whole files are read a batch at a time and need far less."""
_LARGEST, _PIPE = 1 << 32, 1 << 20


def rows_apart(path: Path, columns: Columns, reading: Reading, rows: int, notes: list[str]) -> Iterator[Rows]:
    """Yield what `file_rows` would, from the other process."""
    reader = _Reader.at_hand()
    reader.ask({"path": str(path.absolute()), "columns": asdict(columns), "reading": asdict(reading), "rows": rows})
    whole = False
    try:
        told: list[str] = []
        yield from reader.answers(path, told)
        notes += [note.replace(str(path.absolute()), str(path)) for note in told]
        whole = True
    except InputError as error:
        whole = reader.idle
        raise InputError(str(error).replace(str(path.absolute()), str(path))) from None
    finally:
        if not whole:  # what it still has to say would be taken for the answer to the next request
            reader.stop()


class _Reader:
    """The other process, and how to talk to it."""

    _current: _Reader | None = None

    def __init__(self) -> None:
        command = [sys.executable, "-m", "phdstream.io.sources.child", str(MEMORY)]
        environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        _widen(self._process.stdout)
        self._owner, self.idle = os.getpid(), True
        atexit.register(self.stop)

    @classmethod
    def at_hand(cls) -> _Reader:
        """Return the process, started anew if there is none, it is busy, or it is another process's."""
        reader = cls._current
        if reader is None or not reader.idle or reader._owner != os.getpid() or reader._process.poll() is not None:
            reader = cls._current = _Reader()
        return reader

    def ask(self, request: dict[str, object]) -> None:
        """Send a request."""
        self.idle = False
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            self.stop()
            raise InputError("the process that reads files could not be started, or was ended. Try again.") from None

    def answers(self, path: Path, notes: list[str]) -> Iterator[Rows]:
        """Yield the rows of the answer to the end; raise the error it ends with."""
        schema, about, failed = None, "{}", ""
        while True:
            kind, content = self._message(path)
            if kind == SCHEMA:
                schema = pa.ipc.read_schema(pa.py_buffer(content))
            elif kind == ROWS:
                about = content.decode()
            elif kind == BATCH:
                yield Rows(pa.ipc.read_record_batch(pa.py_buffer(content), schema), **json.loads(about))
            elif kind == NOTE:
                notes.append(content.decode())
            elif kind == ERROR:
                failed = content.decode()
            elif kind == END:
                self.idle = True
                if failed:
                    raise InputError(failed)
                return

    def _message(self, path: Path) -> tuple[bytes, bytearray]:
        kind, size = FRAME.unpack(self._exactly(FRAME.size, path))
        if size > _LARGEST:
            raise self._damaged(path)
        return kind, self._exactly(size, path)

    def _exactly(self, size: int, path: Path) -> bytearray:
        """Return so many bytes of the answer."""
        assert self._process.stdout is not None
        channel, content = self._process.stdout.fileno(), bytearray(size)
        view, got = memoryview(content), 0
        while got < size:
            if not select.select([channel], [], [], PATIENCE)[0]:
                raise self._damaged(path)
            more = os.readv(channel, [view[got:]])
            if not more:
                raise self._damaged(path)
            got += more
        return content

    def _damaged(self, path: Path) -> InputError:
        return InputError(
            f"{path} is damaged: reading it crashed, hung or took too much memory. It was read in a process of its "
            "own, and nothing else is harmed. Write the file anew."
        )

    def stop(self) -> None:
        """End the process."""
        if self._owner != os.getpid():
            return
        self.idle = False
        atexit.unregister(self.stop)
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            _close(pipe)
        self._process.wait()


def _widen(pipe: IO[bytes] | None) -> None:
    """Let the pipe hold more than the usual 64 kB, where that can be had: a batch then takes fewer turns."""
    if pipe is not None and (resize := getattr(fcntl, "F_SETPIPE_SZ", None)) is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe.fileno(), resize, _PIPE)


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except OSError:  # there was something left to write
        pass
