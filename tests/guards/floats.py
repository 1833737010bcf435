"""Guard: no floating-point number between an exact count and its noise.

Exact counts are handled in the modules of ``PATH`` and nowhere else: asking for them anywhere else is a finding. In
these modules every function is looked through for anything that makes a floating-point number: a literal, a true
division, a conversion, a function of `math`, an array of no stated type (which holds floats), a function of NumPy that
is not known to make whole numbers of whole numbers. NumPy and `math` may go by their usual names only. A function that
computes with *public* numbers only stands in ``PUBLIC``, with what makes them public; whoever adds a function there has
to say why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.guards.sources import Finding, Sources, dotted, functions, tree_of

PATH = (
    "phdstream.streams.private_codes",
    "phdstream.streams.code_counts",
    "phdstream.streams.engine",
    "phdstream.streams.tracking.mechanism.mechanism",
    "phdstream.streams.tracking.pieces",
    "phdstream.streams.paper.mechanism",
    "phdstream.streams.paper.selective_counting",
    "phdstream.streams.paper.counters.bank",
    "phdstream.streams.paper.counters.binary",
    "phdstream.streams.paper.counters.counter",
    "phdstream.streams.paper.counters.levels",
    "phdstream.domains.prefixes",
    "phdstream.privacy.divisible_noise",
    "phdstream.privacy.noise",
    "phdstream.privacy.laplace",
    "phdstream.privacy.exponentials",
)
"""From exact counts to noisy ones."""

_ACCURACY = "how accurate a counter is: of its ε and how many values it took, both public"
PUBLIC = {
    "phdstream.privacy.laplace:discrete_laplace": "the scale, a public float, whose exact value is taken as a fraction",
    "phdstream.privacy.laplace:_digits": "divides fractions, which is exact",
    "phdstream.privacy.laplace:_random": "random bits, as words of the kind that its two callers name",
    "phdstream.privacy.exponentials:exp_bounds": "halves a fraction, which is exact",
    "phdstream.privacy.noise:Simulation.__init__": "seeded noise for experiments, which promises nothing",
    "phdstream.privacy.noise:Simulation.add": "seeded noise for experiments, which promises nothing",
    **{
        f"phdstream.streams.paper.counters.{where}": _ACCURACY
        for where in (
            "counter:Counter.__post_init__",
            "counter:Simple.scales",
            "counter:Simple.privacy_loss",
            "counter:Block.scales",
            "counter:Block.privacy_loss",
            "counter:total_deviation",
            "counter:_distribution_of_absolute_sum",
            "counter:_chernoff",
            "binary:BinaryTree.variance",
            "binary:BinaryTree.privacy_loss",
            "levels:ByLevel.scales",
        )
    },
}
"""Functions that may compute in floating point, for they are given no private number."""

_EXACT = ("spend", "within")
_ELSEWHERE = {
    "phdstream.release": "what is below streams cannot import exact counts; ``within`` is something else there",
    "phdstream.domains": "the same",
    "phdstream.audit": "audits what noise is given, and releases nothing",
    "phdstream.engines.spark.counting": "Spark's counts, compared with NumPy's to the bit",
    "phdstream.baselines": "the baselines to be beaten; those that promise nothing say so",
    "phdstream.evaluation": "compares releases with the truth, and says that its output is private",
}
"""Rooms that hold exact numbers of their own and release nothing through a mechanism."""

_WHOLE_TYPES = {"np.int64", "np.int16", "np.uint16", "np.uint64", "np.bool_", "np.str_", "bool", "int"}
_FLOATS = ("float", "complex")
_WHOLE = {
    f"np.{name}"
    for name in (
        "arange", "argsort", "array", "asarray", "bincount", "bitwise_count", "column_stack", "concatenate", "cumsum",
        "diff", "dtype", "empty", "empty_like", "flatnonzero", "frombuffer", "full", "generic", "max", "maximum",
        "minimum", "ones", "pad", "searchsorted", "sort", "split", "unique", "where", "zeros", "zeros_like",
    )
} | _WHOLE_TYPES  # fmt: skip
"""What of NumPy makes whole numbers of whole numbers; anything else is a finding."""
_OF_NO_TYPE = ("np.zeros", "np.ones", "np.empty", "np.full")
"""They make floats, unless a type is said."""
_METHODS = ("mean", "std", "var")
_UNUSUAL = ("math", "numpy", "cmath", "decimal")


def findings(sources: Sources) -> list[Finding]:
    """Return every float on the way from counts to noise, and every place elsewhere that asks for exact counts."""
    found = []
    for module in PATH:
        tree = tree_of(sources[module])
        found += [Finding(module, "", line, what) for line, what in _renamed(tree)]
        floats = _constants(tree)
        for name, function, _ in functions(tree):
            found += [
                Finding(module, name, line, what) for line, what in [*_floats(function), *_uses(function, floats)]
            ]
    for module, text in sources.items():
        if module not in PATH and not any(module.startswith(room) for room in _ELSEWHERE):
            for name, function, _ in functions(tree_of(text)):
                found += [Finding(module, name, line, "asks for exact counts") for line in _asks(function)]
    return sorted(set(found))


def _floats(function: ast.AST) -> Iterator[tuple[int, str]]:
    skipped = {id(part) for node in ast.walk(function) for part in _annotations(node)}
    for node in ast.walk(function):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
            yield node.lineno, f"the number {node.value!r}"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield node.lineno, "a true division"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
            yield node.lineno, "a power, which is a float for a negative exponent"
        elif isinstance(node, ast.Name | ast.Attribute):
            name = dotted(node)
            if name in _FLOATS or name.startswith("math.") or (name.startswith("np.") and name not in _WHOLE):
                yield node.lineno, f"uses {name}"
        if isinstance(node, ast.Call) and _makes_floats(node):
            yield node.lineno, f"calls {ast.unparse(node.func)}()"


def _constants(tree: ast.Module) -> set[str]:
    """Return the names that a module, or a class in it, gives a float outside of all functions."""
    statements = [*tree.body, *(part for node in tree.body if isinstance(node, ast.ClassDef) for part in node.body)]
    given = [node for node in statements if isinstance(node, ast.Assign | ast.AnnAssign) and any(_floats(node))]
    targets = [target for node in given for target in (node.targets if isinstance(node, ast.Assign) else [node.target])]
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _uses(function: ast.AST, constants: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(function):
        if getattr(node, "id", "") in constants or getattr(node, "attr", "") in constants:
            yield node.lineno, f"uses {ast.unparse(node)}, a float"  # type: ignore[attr-defined]


def _makes_floats(call: ast.Call) -> bool:
    """Whether a call makes floats by what it is, by the type it names, or by the type it does not name."""
    name, method = dotted(call.func), getattr(call.func, "attr", "")
    types = [word.value for word in call.keywords if word.arg == "dtype"]
    types += call.args[2 if name == "np.full" else 1 :][:1] if name in _OF_NO_TYPE else []
    types += call.args[:1] if method == "astype" else []
    weighted = name == "np.bincount" and any(word.arg == "weights" for word in call.keywords)
    no_type = name in _OF_NO_TYPE and not types
    return method in _METHODS or weighted or no_type or any(dotted(kind) not in _WHOLE_TYPES for kind in types)


def _renamed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield imports by which NumPy or `math` would go by a name that is not looked for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _UNUSUAL:
            if node.module != "numpy.typing":
                yield node.lineno, f"imports from {node.module}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                usual = (alias.name, alias.asname) in (("numpy", "np"), ("math", None))
                if alias.name.split(".")[0] in _UNUSUAL and not usual:
                    yield node.lineno, f"imports {alias.name} under another name"


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of annotations: they compute nothing."""
    notes = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    for note in notes:
        if note is not None:
            yield from ast.walk(note)


def _asks(function: ast.AST) -> Iterator[int]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EXACT:
            yield node.lineno
