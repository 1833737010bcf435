"""A clean environment without a network: the wheel, and those libraries of this machine that its metadata asks for."""

from __future__ import annotations

import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def build(source: Path, target: str, out: Path) -> Path:
    """Build a wheel or an sdist with the project's own backend, and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (made,) = out.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


class CleanEnvironment:
    """An environment that has nothing but Python, a wheel and what the wheel says it needs for some extras."""

    def __init__(self, folder: Path, wheel: Path, extras: list[str]) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.folder = folder
        self.python = folder / "bin" / "python"
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(self.python),
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
        ]
        subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
        (self._packages,) = folder.glob("lib/python*/site-packages")
        installed = Distribution.at(next(self._packages.glob("phdstream-*.dist-info")))
        for needed in closure(installed, extras):
            self._link(needed)

    def _link(self, needed: Distribution) -> None:
        for top in {file.parts[0] for file in needed.files or []} - {"..", "__pycache__"}:
            here = self._packages / top
            if not here.exists():
                here.symlink_to(Path(str(needed.locate_file(top))).resolve())

    def run(self, *command: str, cwd: Path, check: bool = True) -> Any:
        """Run a command of the environment, or Python code after ``-c``, with nothing of ours around it."""
        program = self.python if command[0] == "-c" else self.folder / "bin" / command[0]
        rest = command if command[0] == "-c" else command[1:]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LANG": "C.UTF-8", "MPLBACKEND": "agg"}
        done = subprocess.run([program, *rest], cwd=cwd, env=environment, capture_output=True, text=True)
        assert done.returncode == 0 or not check, done.stderr
        return done


def closure(of: Distribution, extras: list[str]) -> list[Distribution]:
    """Return all that a distribution needs with some extras, from those that are installed here."""
    found: dict[str, Distribution] = {}
    asked = {(canonicalize_name(of.metadata["Name"]), extra) for extra in ["", *extras]}
    todo = [(of, extra) for extra in ["", *extras]]
    while todo:
        one, extra = todo.pop()
        for line in one.requires or []:
            needed = Requirement(line)
            if needed.marker is not None and not needed.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(needed.name)
            installed = found[name] = distribution(name)
            assert needed.specifier.contains(installed.version, prereleases=True), f"{line}: {installed.version}"
            for further in ["", *needed.extras]:
                if (name, further) not in asked:
                    asked.add((name, further))
                    todo.append((installed, further))
    return list(found.values())
