"""The source as syntax trees, by module name, and what a guard says of it. Nothing is imported or run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import phdstream

Sources = dict[str, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Finding:
    """A line that a guard objects to: in which module, in which function (``Class.name``), and why."""

    module: str
    function: str
    line: int
    what: str

    @property
    def place(self) -> str:
        """The module and the function, as tables of what is allowed name them."""
        return f"{self.module}:{self.function}"


@cache
def _read() -> tuple[tuple[str, str], ...]:
    root = Path(phdstream.__file__).parent
    return tuple((_name(path.relative_to(root.parent)), path.read_text("utf-8")) for path in sorted(root.rglob("*.py")))


def sources() -> Sources:
    """Return the text of every module of phdstream, by its dotted name."""
    return dict(_read())


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def planted(module: str, old: str, new: str) -> Sources:
    """Return the source with a violation planted in a module; refuses one that would plant nothing."""
    changed = sources()
    assert changed[module].count(old) == 1, f"{old!r} is not in {module} exactly once"
    changed[module] = changed[module].replace(old, new)
    return changed


@cache
def tree_of(text: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(text)


def functions(tree: ast.Module) -> Iterator[tuple[str, Function, ast.ClassDef | None]]:
    """Yield every function and method of a module with its name (``Class.name``) and its class."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node, None
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, Function):
                    yield f"{node.name}.{method.name}", method, node


def function_at(tree: ast.Module, line: int) -> str:
    """Return the name of the function a line is in; empty outside of all."""
    for name, node, _ in functions(tree):
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            return name
    return ""


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` for a chain of names; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
