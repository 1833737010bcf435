"""The process that reads files for another (`phdstream.io.sources.apart`): requests come in, batches go out.

Whatever a damaged or hostile file does to a C library happens here: the other process only ever sees whole Arrow
batches, an error, or that this process is gone.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
from pathlib import Path
from typing import IO, Any

from phdstream.errors import PhdstreamError

__all__ = ["BATCH", "END", "ERROR", "FRAME", "NOTE", "ROWS", "SCHEMA", "serve"]

FRAME = struct.Struct(">cQ")
"""What comes before every message: its kind, and how many bytes it has."""
SCHEMA, ROWS, BATCH, NOTE, ERROR, END = (bytes([kind]) for kind in b"SRBNEZ")


def serve(requests: IO[bytes], answers: IO[bytes], memory: int) -> None:
    """Answer one request a line until there are no more; no request may take more than ``memory`` bytes."""
    _limit(memory)
    for line in requests:
        try:
            _answer(json.loads(line), answers)
        except PhdstreamError as error:
            _send(answers, ERROR, str(error).encode("utf-8", "replace"))
        _send(answers, END, b"")
        answers.flush()


def _limit(memory: int) -> None:
    kind = getattr(resource, "RLIMIT_DATA", resource.RLIMIT_AS)
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (memory if hard == resource.RLIM_INFINITY else min(memory, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what was being read is private


def _answer(request: dict[str, Any], answers: IO[bytes]) -> None:
    from phdstream.io.sources.columns import Columns
    from phdstream.io.sources.formats import file_rows
    from phdstream.io.sources.reading import Reading

    columns = Columns(**(request["columns"] | {"coordinates": tuple(request["columns"]["coordinates"])}))
    notes: list[str] = []
    schema = None
    for some in file_rows(Path(request["path"]), columns, Reading(**request["reading"]), request["rows"], notes):
        while notes:
            _send(answers, NOTE, notes.pop(0).encode())
        if some.batch.schema != schema:
            schema = some.batch.schema
            _send(answers, SCHEMA, schema.serialize())
        about = {"broken": some.broken, "first_broken": some.first_broken, "complaint": some.complaint}
        _send(answers, ROWS, json.dumps(about).encode())
        _send(answers, BATCH, some.batch.serialize())


def _send(answers: IO[bytes], kind: bytes, content: Any) -> None:
    view = memoryview(content)
    answers.write(FRAME.pack(kind, view.nbytes))
    answers.write(view)


if __name__ == "__main__":
    # Libraries may print; only messages may go where the other process listens.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, channel, int(sys.argv[1]))
