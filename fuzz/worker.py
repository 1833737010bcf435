"""A process that runs cases for another: a case's name a line comes in, its outcome goes out, as JSON."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import warnings
from dataclasses import asdict
from pathlib import Path

from fuzz.cases import Outcome, run_case

__all__ = ["serve"]

_MEMORY = 5 << 30


def serve() -> None:
    """Run one case a line until there are no more."""
    channel = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # libraries may print
        os.dup2(nowhere, stream)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for line in sys.stdin:
            kind, number = line.strip().split(":")
            channel.write(json.dumps(asdict(_outcome(kind, int(number), Path(folder) / kind))) + "\n")
            channel.flush()


def _outcome(kind: str, number: int, folder: Path) -> Outcome:
    try:
        return run_case(kind, number, folder)
    except BaseException as error:  # in the making of a case, or an exit that nobody may ask for
        return Outcome("failed", f"outside of the case: {type(error).__name__}: {error}")


if __name__ == "__main__":
    serve()
