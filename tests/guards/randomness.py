"""Guard: nothing that a release is made by reaches randomness or a clock, but for the places that draw noise.

Every module that is imported, however indirectly and wherever in the file, by what makes releases is looked through
for anything that gives random numbers, the time, or the interpreter's own disorder (`hash` of a text differs from
process to process). So the reach is larger than that of the calls that are really made, and never smaller, but for
modules imported under a computed name, which are findings themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.guards.sources import Finding, Sources, dotted, function_at, tree_of

ROOTS = (
    "phdstream.streams.stream",
    "phdstream.streams.tracking",
    "phdstream.streams.paper",
    "phdstream.privacy",
    "phdstream.release",
    "phdstream.domains",
    "phdstream.io.sinks.estimates",
    "phdstream.io.sinks.writers",
)
"""What makes a release of a tick's events, and its files: rooms, with all modules in them."""

ALLOWED = {
    "phdstream.privacy.laplace:_random": "the operating system's randomness, of which all noise is made",
    "phdstream.privacy.noise:ExactNoise.key": "a public number, drawn once a stream; no privacy rests on it",
    "phdstream.privacy.noise:Simulation.__init__": "seeded noise: asked for by name, and marked in all it makes",
    "phdstream.domains:": "loads kinds of domains when they are asked for; all of them are among the roots",
    "phdstream.release.tables:": "loads pandas, Polars or GeoPandas for a table of theirs; of what is released already",
    "phdstream.domains.shapes.projection:need": "loads pyproj and its like, which project and draw nothing",
}
"""The only places, and why."""

_MODULES = ("random", "secrets", "time", "uuid", "numpy.random", "sched", "timeit")
_NAMES = ("os.urandom", "os.getrandom", "os.times", "os.getpid", "np.random", "numpy.random", "pc.random")
_ENDS = ("random", "urandom", "getrandom")
"""Of whatever they are attributes, also by another name, or as a text."""
_CLOCKS = ("now", "utcnow", "today")
"""What reads the clock, of datetime and its like (which may well read a date that somebody wrote), also as a text."""
_BUILTINS = ("hash", "id", "__import__", "eval", "exec")
_DYNAMIC = ("importlib.import_module", "importlib.reload")


def findings(sources: Sources) -> list[Finding]:
    """Return every use of randomness or time that releases could reach, also those that are allowed."""
    found = []
    for module in sorted(reach(sources)):
        tree = tree_of(sources[module])
        found += [Finding(module, function_at(tree, line), line, what) for line, what in _uses(tree)]
    return sorted(set(found))


def reach(sources: Sources) -> set[str]:
    """Return all modules that the roots import, however indirectly."""
    waiting = [name for name in sources if any(name == root or name.startswith(f"{root}.") for root in ROOTS)]
    reached: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += [name for name in _imports(tree_of(sources[module])) if name in sources]
    return reached


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield all that a module imports, also inside functions: of ``from a import b`` both ``a`` and ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            whole = [f"{node.module}.{name}" for name in names] if isinstance(node, ast.ImportFrom) else names
            for name in [*whole, *([node.module] if isinstance(node, ast.ImportFrom) and node.module else [])]:
                if name in (*_MODULES, *_NAMES, *_DYNAMIC) or name.split(".")[0] in _MODULES:
                    yield node.lineno, f"imports {name}"
        elif isinstance(node, ast.Attribute) and (dotted(node) in (*_NAMES, *_DYNAMIC) or node.attr in _ENDS):
            yield node.lineno, f"uses {ast.unparse(node)}"
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS:
                yield node.lineno, f"calls {node.func.id}"
            texts = [part.value for part in node.args if isinstance(part, ast.Constant)]
            if getattr(node.func, "attr", "") in _CLOCKS or set(texts) & set(_CLOCKS):
                yield node.lineno, "asks what time it is"
            if set(texts) & set(_ENDS):
                yield node.lineno, "names randomness"
