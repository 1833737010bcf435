"""Guard: nothing private in a message, a log or a public file; and nothing private decides in a mechanism.

A value is **private** if it is of a private type (by its annotation), comes from a call that returns private values,
is kept in a private type or in an attribute that was given such a value, or is computed from any of these. What a
source of noise returns is not. Within each function this is followed through assignments, whatever their order. It is
not followed through arguments of other functions: there the annotation has to say it.

Findings are private values in a ``raise``, in a call that logs, prints or warns, and in the making of a release or of a
public file. In ``DECIDING`` modules so are branches that a private value takes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.guards.sources import Finding, Function, Sources, dotted, functions, tree_of

PRIVATE_TYPES = {
    "PrivateCodes", "TickEvents", "ExactCounts", "CodeCounts", "EncodedEvents", "PrivateTally", "UserIds",
    "ContributionBound", "DivisibleNoise", "Intake", "HeldEvents", "_Net", "_Sum", "_FinestCounts",
}  # fmt: skip
_PRIVATE_CALLS = {"spend", "within", "codes", "_all_codes", "admit", "user_ids", "private_tally", "many_from_arrays"}
_HARMLESS = {
    "kind", "bound", "engine", "unit", "setting", "budget", "domain", "deletes", "limit", "noise", "counter", "dtype",
    "_bits", "_fields", "_elsewhere", "epsilon", "rule", "selector", "scale", "parts_per_node",
}  # fmt: skip
"""Attributes of private values that say nothing of events: forms, settings, who counts."""
_NOISY_CALLS = {
    "count_start_total", "count_start", "take_tick", "count_zones", "count_block", "select", "count", "_count",
    "_count_finely", "release_tick", "step", "divisible", "charge", "_count_roughly",
}  # fmt: skip
"""Methods that return noisy values, or nothing: mechanisms, counters, noise."""
_LOGS = ("_LOG.", "logging.", "logger.", "log.", "warnings.", "typer.echo", "sys.stderr.", "sys.stdout.", "console.")
_LOGGING = {"debug", "info", "warning", "warn", "error", "exception", "critical", "echo", "secho", "add_note"}
"""Whatever they are methods of: a logger under any name, also one that is made on the spot."""
_PUBLIC = {"Release", "Estimate", "publish", "put_once", "write_manifest", "metadata"}

DECIDING = (
    "phdstream.streams.tracking.mechanism.mechanism",
    "phdstream.streams.tracking.method",
    "phdstream.streams.paper.mechanism",
    "phdstream.streams.paper.method",
    "phdstream.streams.paper.counters.bank",
    "phdstream.streams.paper.counters.binary",
    "phdstream.streams.paper.counters.counter",
    "phdstream.streams.paper.counters.levels",
)
"""Modules in which no branch may depend on a private value."""
_VALUES = {"values"}
"""Arguments of counters that are exact, whatever their type says."""

_FORM = "names the form of users' names (integers, text, bytes), which is the caller's, and none of them"
ALLOWED = {
    "phdstream.privacy.bounding:ContributionBound.check": _FORM,
    "phdstream.privacy.user_ids:UserIds.__post_init__": _FORM,
    "phdstream.privacy.user_ids:UserIds.concat": _FORM,
    "phdstream.service.intake:Intake._read": "tells a sender which of their own rows could not be read",
}
"""Places where it is meant, and why."""


def findings(sources: Sources) -> list[Finding]:
    """Return every private value in a message, a log or a public file, and every private decision of a mechanism."""
    found = []
    for module, text in sources.items():
        tree = tree_of(text)
        kept = _private_attributes(tree)
        for name, function, owner in functions(tree):
            scope = _Scope(module, function, owner, kept.get(owner.name, set()) if owner else set())
            found += [Finding(module, name, line, what) for line, what in scope.disclosures()]
    return sorted(set(found))


def _private_attributes(tree: ast.Module) -> dict[str, set[str]]:
    """Return, for each class, the attributes that some method of it gives a private value."""
    kept: dict[str, set[str]] = {}
    for _, function, owner in functions(tree):
        if owner is not None:
            scope = _Scope("", function, owner, set())
            kept.setdefault(owner.name, set()).update(scope.kept())
    return kept


class _Scope:
    """One function: which of its names are private."""

    def __init__(self, module: str, function: Function, owner: ast.ClassDef | None, attributes: set[str]) -> None:
        self._module, self._function, self._attributes = module, function, attributes
        self._own = owner is not None and owner.name in PRIVATE_TYPES
        self._private = {argument.arg for argument in self._arguments() if self._says_private(argument)}
        self._lists = {arg.arg for arg in self._arguments() if ast.unparse(arg.annotation or arg).startswith("list[")}
        self._follow()

    def _arguments(self) -> list[ast.arg]:
        of = self._function.args
        return [*of.posonlyargs, *of.args, *of.kwonlyargs]

    def _says_private(self, argument: ast.arg) -> bool:
        counted = self._module in DECIDING and ".counters." in self._module and argument.arg in _VALUES
        return counted or _names_private_type(argument.annotation)

    def _follow(self) -> None:
        """Note every name that is given a private value, until there are no more."""
        before = -1
        while before != len(self._private):
            before = len(self._private)
            for targets, value in self._assignments():
                if self.private(value):
                    self._private.update(name for target in targets for name in _names(target))

    def _assignments(self) -> Iterator[tuple[list[ast.expr], ast.expr]]:
        for node in ast.walk(self._function):
            if isinstance(node, ast.Assign):
                yield from self._pairs(node.targets, node.value)
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
                yield [node.target], node.value
            elif isinstance(node, ast.For | ast.comprehension):
                yield [node.target], node.iter
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                yield [node.optional_vars], node.context_expr

    @staticmethod
    def _pairs(targets: list[ast.expr], value: ast.expr) -> Iterator[tuple[list[ast.expr], ast.expr]]:
        """Yield ``a, b = c, d`` as two assignments."""
        for target in targets:
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            if both and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
                for one, given in zip(target.elts, value.elts, strict=True):  # type: ignore[attr-defined]
                    yield [one], given
            else:
                yield [target], value

    def kept(self) -> set[str]:
        """Return the attributes of ``self`` that are given a private value."""
        found = set()
        for targets, value in self._assignments():
            for target in targets:
                attributes = [part for part in ast.walk(target) if isinstance(part, ast.Attribute)]
                found |= {part.attr for part in attributes if dotted(part.value) == "self" and self.private(value)}
        for node in ast.walk(self._function):
            if isinstance(node, ast.AnnAssign) and _names_private_type(node.annotation):
                found |= {dotted(node.target).removeprefix("self.")} - {""}
        return found

    def private(self, node: ast.AST) -> bool:
        """Whether an expression holds something private."""
        if isinstance(node, ast.Name):
            return node.id in self._private
        if isinstance(node, ast.Attribute):
            if node.attr in _HARMLESS:
                return False
            of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            return (of_self and (self._own or node.attr in self._attributes)) or self.private(node.value)
        if isinstance(node, ast.Call):
            counts_ticks = dotted(node.func) == "len" and dotted(node.args[0]) in self._lists
            return not counts_ticks and self._private_call(node)
        if isinstance(node, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return False  # whether something is there at all, not what
        if isinstance(node, ast.Lambda):
            return False
        return any(self.private(child) for child in ast.iter_child_nodes(node))

    def _private_call(self, node: ast.Call) -> bool:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
        if name in ("isinstance", "type", "hasattr", "issubclass") or name in _NOISY_CALLS:
            return False
        if name == "add" and isinstance(node.func, ast.Attribute) and "noise" in dotted(node.func.value):
            return False
        if name in _PRIVATE_CALLS or name in PRIVATE_TYPES:
            return True
        receiver = [node.func] if isinstance(node.func, ast.Attribute) else []
        return any(self.private(part) for part in [*receiver, *node.args, *(word.value for word in node.keywords)])

    def disclosures(self) -> Iterator[tuple[int, str]]:
        """Yield what goes where it must not."""
        for node in ast.walk(self._function):
            said = self._says(node)
            if said is not None and self._given(said):
                yield said.lineno, "a private value in an error"
            if isinstance(node, ast.Call) and self._given(node):
                name = dotted(node.func)
                if name == "print" or name.startswith(_LOGS) or getattr(node.func, "attr", "") in _LOGGING:
                    yield node.lineno, "a private value in a message"
                elif (name.rsplit(".", 1)[-1] or getattr(node.func, "attr", "")) in _PUBLIC:
                    yield node.lineno, "a private value in what is public"
            elif isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert) and self._decides(node.test):
                yield node.lineno, "a private value decides"

    @staticmethod
    def _says(node: ast.AST) -> ast.expr | None:
        """Return the error that a statement raises, or the text that an assertion fails with."""
        return node.exc if isinstance(node, ast.Raise) else node.msg if isinstance(node, ast.Assert) else None

    def _decides(self, test: ast.expr) -> bool:
        return self._module in DECIDING and self.private(test)

    def _given(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call):
            return self.private(node)
        return any(self.private(part) for part in [*node.args, *(word.value for word in node.keywords)])


def _names_private_type(annotation: ast.expr | None) -> bool:
    if annotation is None:
        return False
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    texts = " ".join(
        node.value for node in ast.walk(annotation) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return bool(names & PRIVATE_TYPES) or any(name in texts for name in PRIVATE_TYPES)


def _names(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id
