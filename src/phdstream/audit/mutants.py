"""Planted bugs: each a change in one place of the code, with the check that is to catch it. They are in `mutants.toml`.

A mutant is never loaded into this process: the package is copied, the copy changed, and another process runs with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import phdstream
from phdstream.errors import InputError, did_you_mean

__all__ = ["Mutant", "all_mutants", "chosen", "planted", "run_with"]


@dataclass(frozen=True)
class Mutant:
    """A planted bug: its name, what it does, the part it is in, the file, what is replaced by what; who must see it.

    ``check`` is the audit's, ``tests`` are files of the test suite of which at least one test fails.
    """

    name: str
    says: str
    part: str
    file: str
    edits: list[list[str]]
    check: str
    tests: str

    def apply(self, source: str) -> str:
        """Return the file with the bug; the place must be there, once."""
        for old, new in self.edits:
            if source.count(old) != 1:
                raise InputError(
                    f"mutant '{self.name}': its place in {self.file} is not there once. Bring it up to date."
                )
            source = source.replace(old, new)
        return source


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Return all planted bugs, in the order of the road."""
    told = tomllib.loads((files(__package__) / "mutants.toml").read_text(encoding="utf-8"))
    return tuple(Mutant(name, **fields) for name, fields in told.items())


def chosen(names: list[str]) -> tuple[Mutant, ...]:
    """Return the mutants of these names; all if there are none."""
    known = {mutant.name: mutant for mutant in all_mutants()}
    for name in names:
        if name not in known:
            raise InputError(f"there is no mutant '{name}': {did_you_mean(name, known)}")
    return tuple(known[name] for name in names) or all_mutants()


@contextmanager
def planted(mutant: Mutant) -> Iterator[Path]:
    """Yield a folder that holds a copy of the package with the bug."""
    with TemporaryDirectory(prefix="phdstream-mutant-") as folder:
        copy = Path(folder) / "phdstream"
        shutil.copytree(Path(phdstream.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        place = copy / mutant.file
        place.write_text(mutant.apply(place.read_text(encoding="utf-8")), encoding="utf-8")
        yield Path(folder)


def run_with(folder: Path, command: list[str], seconds: float, cwd: Path | None = None) -> tuple[int | None, str]:
    """Run Python with the package in a folder in place of ours; return its exit status (None: too slow) and output."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, *command], env=environment, cwd=cwd, timeout=seconds, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout
