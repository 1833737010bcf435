"""Which code makes a trial's numbers, as a digest: results of other code are other results, and cannot be mixed up.

Found statically, in the syntax trees of the sources. From the function that runs a trial, the function that makes the
method and the class of the domain, every name is followed to its definition, through imports, and from there on. The
digest is of all definitions reached, without comments, docstrings and layout, and of the versions of the libraries
that compute. So a change in one method leaves the trials of another as they are, and a new method needs no list.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib import metadata
from types import FunctionType
from typing import Any

from phdstream.errors import InputError
from phdstream.evaluation.sources import Import, Module, own_module, used_names

__all__ = ["DIGESTED_AS_DATA", "NEVER_RUN", "code_digest"]

NEVER_RUN = (
    "phdstream.release.answering",
    "phdstream.release.share_noise",
    "phdstream.release.counts",
    "phdstream.release.changes",
    "phdstream.release.maps",
    "phdstream.release.tables",
    "phdstream.release.usefulness",
    "phdstream.streams.durable",
    "phdstream.streams.state",
    "phdstream.evaluation.advice",
    "phdstream.evaluation.figures",
    "phdstream.evaluation.pictures",
    "phdstream.evaluation.report",
    "phdstream.evaluation.running",
    "phdstream.evaluation.summary",
)
"""Modules and packages that a trial can reach by name but does not execute; a test runs trials with them poisoned."""
DIGESTED_AS_DATA = (
    "phdstream.io",
    "phdstream.domains.shapes.files",
    "phdstream.evaluation.setting.load_setting",
    "phdstream.evaluation.experiment",
)
"""What reads an experiment, its events and polygons: a trial is told apart by what was read (`Setting.digest`)."""
_LABELS = ("phdstream.version",)
"""What a release says of itself and no number depends on."""
_LIBRARIES = ("numpy", "shapely", "scipy")


def code_digest(make: Callable[..., Any], *others: Any) -> str:
    """Return a digest of all code behind a function that makes a method, and behind ``others``: functions, classes,
    plain values.

    >>> from phdstream.evaluation.methods import standard_methods
    >>> known = standard_methods()
    >>> code_digest(known["phdstream"].make) == code_digest(known["phdstream"].make)
    True
    >>> code_digest(known["phdstream"].make) == code_digest(known["phdstream-block"].make)
    False
    """
    reached = _Reached()
    for each in (make, *others):
        reached.follow(each)
    texts = [*sorted(reached.texts), *(f"{name} {_minor_version(name)}" for name in _LIBRARIES)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


@cache
def _minor_version(library: str) -> str:
    try:
        return ".".join(metadata.version(library).split(".")[:2])
    except metadata.PackageNotFoundError:  # one of an extra
        return "not installed"


class _Reached:
    """The definitions that were reached, as text, each with its module and name."""

    def __init__(self) -> None:
        self._ours = {"phdstream"}
        self._seen: set[tuple[str, str]] = set()
        self.texts: set[str] = set()

    def follow(self, value: Any) -> None:
        """Take in a value that a method is made with: a function, a class, plain data, or an object of a class."""
        if isinstance(value, partial):
            self.follow([value.func, value.args, value.keywords])
        elif isinstance(value, FunctionType):
            self._follow_function(value)
        elif isinstance(value, type):
            self._follow_name(value.__module__, value.__qualname__.partition(".")[0])
        elif value is None or isinstance(value, str | int | float):
            self.texts.add(repr(value))
        elif isinstance(value, Mapping):
            for key, each in value.items():
                self.texts.add(f"{key} = {each!r}" if isinstance(each, str | int | float) else str(key))
                self.follow(each)
        elif isinstance(value, Iterable):
            self.follow(dict(enumerate(value)))
        else:
            self.follow(type(value))
            self.follow(getattr(value, "__dict__", {}))

    def _follow_function(self, function: FunctionType) -> None:
        """Take in a function by its source, and what it holds from where it was made. Its whole package is ours."""
        self._ours.add(function.__module__.partition(".")[0])
        module = self._module(function.__module__)
        if module is None:
            raise InputError(
                f"a method is made by {function.__qualname__}, whose source is not at hand: put it into a module."
            )
        for node in module.functions_at(function.__code__.co_firstlineno):
            self._take(module, node)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.texts.add(f"{function.__qualname__} holds {name}")
            self.follow(cell.cell_contents)
        self.follow([function.__defaults__, function.__kwdefaults__])

    def _follow_name(self, module_name: str, name: str) -> None:
        """Take in what a module calls by a name, wherever it is defined; names that are not ours are libraries'."""
        module = self._module(module_name)
        if module is None or (module_name, name) in self._seen or _left_out(f"{module_name}.{name}"):
            return
        self._seen.add((module_name, name))
        for node in (*module.definitions.get(name, ()), *module.statements):
            self._take(module, node)
        for target, original in module.imports.get(name, ()):
            self._follow_import(target, original)
        if name not in module.definitions and name not in module.imports:
            self._follow_module(f"{module_name}.{name}")

    def _follow_import(self, target: str, original: str | None) -> None:
        if original is None:
            self._follow_module(target)
        else:
            self._follow_name(target, original)

    def _follow_module(self, name: str) -> None:
        """Take in all that a module defines: it is used as a whole."""
        module = self._module(name)
        for each in module.definitions if module else ():
            self._follow_name(name, each)

    def _take(self, module: Module, node: ast.AST) -> None:
        text, names, imports = _read(node)
        self.texts.add(f"{module.name}: {text}")
        for name in names & (module.definitions.keys() | module.imports.keys()):
            self._follow_name(module.name, name)
        for target, original in imports:
            self._follow_import(target, original)

    def _module(self, name: str) -> Module | None:
        """Return a module of ours that trials execute, or None."""
        return None if _left_out(name) or name.partition(".")[0] not in self._ours else own_module(name)


def _left_out(name: str) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in NEVER_RUN + DIGESTED_AS_DATA + _LABELS)


@cache
def _read(node: ast.AST) -> tuple[str, set[str], list[Import]]:
    return ast.unparse(node), *used_names(node)
