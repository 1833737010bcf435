"""The sources of modules as syntax trees: what each defines, what it imports, which names a piece of it uses."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import TypeAlias

__all__ = ["Import", "Module", "own_module", "used_names"]

Import: TypeAlias = tuple[str, str | None]
"""A module, and the name taken from it; None: the module itself."""


@dataclass(frozen=True)
class Module:
    """A module's source: the statements that define each name, where imported names come from, and other statements.

    Comments and docstrings are not in it.
    """

    name: str
    tree: ast.Module
    definitions: dict[str, list[ast.stmt]] = field(default_factory=lambda: defaultdict(list))
    imports: dict[str, list[Import]] = field(default_factory=lambda: defaultdict(list))
    statements: list[ast.stmt] = field(default_factory=list)

    def functions_at(self, line: int) -> list[ast.AST]:
        """Return the functions, named or not, that begin at a line; all of them, if there are several."""
        return [node for node in ast.walk(self.tree) if _first_line(node) == line]


def _first_line(node: ast.AST) -> int | None:
    if isinstance(node, ast.Lambda):
        return node.lineno
    if isinstance(node, ast.FunctionDef):
        return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return None


@cache
def own_module(name: str) -> Module | None:
    """Return a module by its name, or None if there is none with a source.

    >>> list(own_module("phdstream.version").definitions)
    ['__all__', '__version__']
    """
    path = _source_file(name)
    if path is None:
        return None
    tree = _WithoutDocstrings().visit(ast.parse(path.read_text(encoding="utf-8")))
    module, package = Module(name, tree), name if path.name == "__init__.py" else name.rpartition(".")[0]
    for statement in _top_level(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for bound, origin in _imported(statement, package):
                module.imports[bound].append(origin)
        elif names := _defined(statement):
            for each in names:
                module.definitions[each].append(statement)
        else:
            module.statements.append(statement)
    return module


def _source_file(name: str) -> Path | None:
    loaded = sys.modules.get(name)
    try:
        found = getattr(loaded, "__file__", None) if loaded else getattr(find_spec(name), "origin", None)
    except ModuleNotFoundError:  # what has a dot before it is no package
        return None
    return Path(found) if found and found.endswith(".py") else None


class _WithoutDocstrings(ast.NodeTransformer):
    """Takes out strings that stand alone: docstrings, and descriptions below a name."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | None:
        alone = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return ast.copy_location(ast.Pass(), node) if alone else node


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those under ``if``, ``try`` and ``with`` one by one."""
    for statement in body:
        blocks = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")]
        handlers = [handler.body for handler in getattr(statement, "handlers", [])]
        if isinstance(statement, ast.If | ast.Try | ast.With):
            for block in blocks + handlers:
                yield from _top_level(block)
        elif not isinstance(statement, ast.Pass):
            yield statement


def _imported(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, Import]]:
    """Yield the names that an import binds, and where they come from."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], (alias.name, None)
        return
    source = resolve_name("." * node.level + (node.module or ""), package) if node.level else str(node.module)
    for alias in node.names:
        yield alias.asname or alias.name, (source, alias.name)


def _defined(statement: ast.stmt) -> list[str]:
    """Return the names that a statement defines or changes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    named = (node for target in targets if target is not None for node in ast.walk(target))
    return [node.id for node in named if isinstance(node, ast.Name)]


def used_names(node: ast.AST) -> tuple[set[str], list[Import]]:
    """Return the names that a piece of code uses, types in annotations apart, and what it imports by itself."""
    names: set[str] = set()
    imports: list[Import] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Name):
            names.add(each.id)
        elif isinstance(each, ast.Import | ast.ImportFrom):
            imports += [origin for _, origin in _imported(each, "")]
        for part, value in ast.iter_fields(each):
            if part not in ("annotation", "returns"):
                waiting += [child for child in (value if isinstance(value, list) else [value]) if _is_node(child)]
    return names, imports


def _is_node(value: object) -> bool:
    return isinstance(value, ast.AST)
