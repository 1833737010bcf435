"""The kinds of cases by name, and how one case is run."""

from __future__ import annotations

import resource
import shutil
import time
import traceback
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from types import ModuleType

from phdstream.errors import PhdstreamError

__all__ = ["KINDS", "SLOW", "Outcome", "kind_module", "run_case"]

KINDS = {
    "configs": 0.28, "constructors": 0.36, "updates": 0.16, "counts": 0.1, "files": 0.06, "layers": 0.02,
    "states": 0.02,
}  # fmt: skip
"""The kinds, each a module of its own, and its part of all cases."""
SLOW = 5.0
"""Seconds that a case may take."""
_GROWTH = 1 << 20
"""KB by which a case may make the process grow."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case: "accepted", "refused" or "failed", and why it failed."""

    what: str
    why: str = ""
    seconds: float = 0.0


def kind_module(kind: str, folder: Path) -> ModuleType:
    """Return the module of a kind, after it has prepared what its cases share in a folder of its own."""
    module = import_module(f"fuzz.{kind}")
    shared = folder / "shared"
    if not shared.exists():
        shared.mkdir(parents=True)
        module.prepare(shared)
    return module


def run_case(kind: str, number: int, folder: Path) -> Outcome:
    """Run a case in a folder that is the kind's own; what it leaves there but ``shared`` is removed."""
    module = kind_module(kind, folder)
    if hasattr(module, "ready"):
        module.ready(folder / "shared")
    rng = Random(f"{kind}:{number}")
    at = folder / "case"
    shutil.copytree(folder / "shared", at) if getattr(module, "COPIES", True) else at.mkdir()
    before, start = _high_water(), time.monotonic()
    what, why = "accepted", ""
    try:
        module.run(rng, at)
    except PhdstreamError:
        what = "refused"
    except Exception:
        what, why = "failed", traceback.format_exc()
    seconds = time.monotonic() - start
    shutil.rmtree(at, ignore_errors=True)
    if what != "failed" and seconds > SLOW:
        what, why = "failed", f"slow: {seconds:.1f} s"
    if what != "failed" and _high_water() - before > _GROWTH:
        what, why = "failed", f"memory grew by {(_high_water() - before) >> 10} MB"
    return Outcome(what, why, seconds)


def _high_water() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
